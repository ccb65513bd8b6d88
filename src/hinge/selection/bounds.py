"""Joachims' ξα estimate: a bound on the leave-one-out error that needs no machine but the one there is.

T. Joachims, "Estimating the generalization performance of an SVM efficiently", ICML 2000. A sample that the
machine trained without it gets wrong has 2 α R² + ξ ≥ 1, where α is its dual variable, ξ its training loss
max(0, 1 − y f(x)) and R² a bound on the spread of kernel values, c ≤ k(x, x') ≤ c + R². Counting the samples for
which this holds bounds the number of leave-one-out errors from above; counting them by class bounds recall and
precision from below.

The squared hinge is the hard margin of the kernel values plus 1 / 2C_t for a sample with itself (Bottou & Lin
section 1.2.4): no ξ is left, and R² grows by the largest of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hinge.arrays import Floats, Vector
from hinge.data.layout import LAYOUT
from hinge.dual.problem import DualProblem
from hinge.estimators import SVC
from hinge.kernel.gram import Gram


@dataclass(frozen=True, eq=False)
class XiAlpha:
    """What Joachims' estimate says; `classes_[1]` is the positive class.

    Attributes
    ----------
    error : float
        At least the share of leave-one-out errors.
    recall, precision : float
        At most those of leave-one-out; NaN where no sample is left to compute them from.
    doubtful : bool array of shape (n_samples,)
        The samples that count as errors: 2 α R² + ξ ≥ 1.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import SVC
    >>> from hinge.selection import xi_alpha
    >>> X = np.arange(20.0)[:, None]
    >>> bound = xi_alpha(SVC(C=0.01, kernel="linear"), X, np.arange(20) >= 10)
    >>> 0 <= bound.error <= 1, bound.doubtful.shape
    (True, (20,))
    """

    error: float
    recall: float
    precision: float
    doubtful: NDArray[np.bool_] = field(repr=False)


def xi_alpha(estimator: SVC, X: Any, y: Any, *, sample_weight: Any = None) -> XiAlpha:
    """Estimate error, recall and precision without any further fit.

    Parameters
    ----------
    estimator : SVC
        For two classes. One that is fitted already is taken as it is; otherwise it is fitted once.
    X, y : array-like
        The training samples and their labels.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the fit.

    Returns
    -------
    XiAlpha
        Bounds: the error is at least the leave-one-out error, recall and precision at most those of leave-one-out.
        They hold for the exact solution; at the estimator's tolerance, up to samples within it of the bound.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from hinge.selection import leave_one_out
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> machine = SVC(C=0.5, gamma=0.02).fit(scale(X), y)
    >>> bound = xi_alpha(machine, scale(X), y)
    >>> leave_one_out(machine, scale(X), y).error <= bound.error < 0.2
    True
    """
    if not isinstance(estimator, SVC):
        raise TypeError(f"the ξα estimate is about SVC, got {type(estimator).__name__}")
    if not hasattr(estimator, "_model"):
        estimator = clone(estimator).fit(X, y, sample_weight=sample_weight)
    if len(estimator.classes_) != 2:
        raise ValueError(
            f"the ξα estimate is about two classes, got {len(estimator.classes_)}; take pairs of them"
        )
    decisions = estimator._decide(X)[:, 0]
    if len(decisions) != estimator.shape_fit_[0]:
        raise ValueError(
            f"X must be the {estimator.shape_fit_[0]} training samples of the machine, got {len(decisions)}"
        )
    signs = np.where(np.asarray(y) == estimator.classes_[1], 1.0, -1.0)
    alpha = np.zeros(len(signs))
    alpha[estimator.support_] = estimator._model.coefficients[0]
    margins, ridge = signs * decisions, 0.0
    if estimator.loss == "squared_hinge":
        data = estimator._training_data(X, y, sample_weight)
        margins, ridge = np.ones(len(signs)), largest_ridge(estimator._formulation(data).tasks()[0].problem)
    doubtful = xi_alpha_bounds(alpha, margins, _spread(estimator, X) + ridge) >= 1.0
    positive = signs > 0
    kept, false = int(np.sum(positive & ~doubtful)), int(np.sum(~positive & doubtful))
    return XiAlpha(
        error=float(doubtful.mean()),
        recall=_ratio(kept, int(positive.sum())),
        precision=_ratio(kept, kept + false),
        doubtful=doubtful,
    )


def xi_alpha_bounds(beta: Vector, margins: Vector, spread: float) -> Vector:
    """Return 2 α R² + ξ of every sample, given β = yα and y f(x)."""
    return np.asarray(2.0 * np.abs(beta) * spread + np.maximum(0.0, 1.0 - margins))


def largest_ridge(problem: DualProblem) -> float:
    """Return the most that a squared loss adds to k(x, x); 0 for the plain one."""
    return 0.0 if problem.ridge is None else float(problem.ridge[problem.hi > problem.lo].max(initial=0.0))


def spread_of(kernel: Floats) -> float:
    """Return R²: the difference of the largest and the smallest kernel value."""
    return float(kernel.max() - kernel.min())


def _spread(estimator: SVC, X: Any) -> float:
    """R² of the training samples, from kernel values computed some rows at a time."""
    if estimator.kernel == "precomputed":
        return spread_of(np.asarray(X, dtype=np.float64))
    data = estimator._training_data(X, np.zeros(X.shape[0] if hasattr(X, "shape") else len(X)), None)
    gram = Gram(data.X, estimator._model.kernel, precision="double")
    at_once = LAYOUT.flat_tile[1]
    largest, smallest = float(gram.diagonal.max()), np.inf
    for start in range(0, gram.n, at_once):
        rows = np.arange(start, min(start + at_once, gram.n))
        for left in range(0, start + 1, at_once):
            both = np.union1d(rows, np.arange(left, min(left + at_once, gram.n)))
            smallest = min(smallest, float(gram.block(both).min()))
    return largest - smallest


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
