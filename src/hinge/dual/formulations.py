"""Each formulation fills one `DualProblem`; nothing else in the library knows them apart.

| formulation | v | box | groups | afterwards |
|---|---|---|---|---|
| C-SVC | y | [0, C_t] where y = +1, [−C_t, 0] where y = −1 | one | intercept = multiplier |
| ν-SVC | 0 | [0, w_t], [−w_t, 0] | one per label | divide by half the difference of the multipliers |
| one-class | 0 | [0, w_t] | one | offset = multiplier |
| SVDD | ½ k(x, x) | [0, w_t / ν Σw] | one, of sum 1 | R² − ‖a‖² = twice the multiplier |
| ε-SVR | y − ε; y + ε | [0, C_t]; [−C_t, 0] | one | coefficient = β_t + β_{t+n} |
| ν-SVR | y; y | [0, C_t]; [−C_t, 0] | one per half | intercept = mean of the multipliers |
| squared C-SVC, ε-SVR | as above | [0, ∞), (−∞, 0] | as above | the ridge is 1 / 2C_t |

C_t = C w_t, where w_t is the weight of sample t (LIBSVM document, section 6). Without a threshold (Platt
section 2.6, eq. 23) C-SVC and ε-SVR have no group. C = ∞ is the hard margin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Vector
from hinge.dual.problem import DualProblem

_EPS = float(np.finfo(np.float64).eps)


class InfeasibleNuError(ValueError):
    """ν asks for more support vectors than the data can give."""


def c_svc(
    y: Any, C: float = 1.0, weights: Any = None, fit_intercept: bool = True, squared: bool = False
) -> DualProblem:
    """Build the dual of C-support vector classification (LIBSVM document, section 2.1).

    Parameters
    ----------
    y : array of +1 and -1
        Labels.
    C : float
        Cost of a violated margin; ``inf`` for the hard margin.
    weights : array, optional
        One factor of C per sample.
    fit_intercept : bool
        False for a machine without threshold.
    squared : bool
        Whether a violated margin costs its square (Bottou & Lin section 1.2.4).

    Returns
    -------
    DualProblem
        One variable per sample.
    """
    y = _labels(y)
    costs, ridge = _bounds_and_ridge(_costs(C, weights, len(y)), squared)
    is_positive = y > 0
    return DualProblem(
        v=y,
        lo=np.where(is_positive, 0.0, -costs),
        hi=np.where(is_positive, costs, 0.0),
        group=np.zeros(len(y), np.int8),
        sums=np.zeros(1 if fit_intercept else 0),
        n_samples=len(y),
        start=np.zeros(len(y)),
        ridge=ridge,
    )


def nu_svc(y: Any, nu: float = 0.5, weights: Any = None) -> DualProblem:
    """Build the dual of ν-support vector classification (LIBSVM document, section 2.2), scaled to boxes of w_t.

    Parameters
    ----------
    y : array of +1 and -1
        Labels.
    nu : float
        In (0, 1]: bounds the share of margin errors from above and of support vectors from below.
    weights : array, optional
        Weight of each sample.

    Returns
    -------
    DualProblem
        Divide its solution by half the difference of the two multipliers.
    """
    y = _labels(y)
    w = _weights(weights, len(y))
    _check_nu(nu)
    is_positive = y > 0
    is_negative = ~is_positive
    of_positive, of_negative = w[is_positive], w[is_negative]
    positive, negative = float(of_positive.sum()), float(of_negative.sum())
    mass = nu * (positive + negative) / 2
    if mass > min(positive, negative) * (1 + 1e-12):
        limit = 2 * min(positive, negative) / (positive + negative)
        raise InfeasibleNuError(
            f"specified nu is infeasible: nu = {nu!r}; with these classes and weights the largest feasible nu is "
            f"{limit:.10g}"
        )
    mass = min(mass, positive, negative)
    start = np.zeros(len(y))
    start[is_positive] = _fill(of_positive, mass)
    start[is_negative] = -_fill(of_negative, mass)
    return DualProblem(
        v=np.zeros(len(y)),
        lo=np.where(is_positive, 0.0, -w),
        hi=np.where(is_positive, w, 0.0),
        group=is_negative.view(np.int8),
        sums=np.array([mass, -mass]),
        n_samples=len(y),
        start=start,
    )


def one_class(n_samples: int, nu: float = 0.5, weights: Any = None) -> DualProblem:
    """Build the dual of the one-class machine (LIBSVM document, section 2.3), scaled to boxes of w_t.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    nu : float
        In (0, 1]: bounds the share of outliers from above and of support vectors from below.
    weights : array, optional
        Weight of each sample.

    Returns
    -------
    DualProblem
        Its multiplier is the offset.
    """
    w = _weights(weights, n_samples)
    _check_nu(nu)
    mass = nu * float(w.sum())
    return DualProblem(
        v=np.zeros(n_samples),
        lo=np.zeros(n_samples),
        hi=w,
        group=np.zeros(n_samples, np.int8),
        sums=np.array([mass]),
        n_samples=n_samples,
        start=_fill(w, mass),
    )


def svdd(diagonal: Any, nu: float = 0.5, weights: Any = None) -> DualProblem:
    """Build the dual of support vector data description: the smallest sphere around the samples (Tax & Duin 2004).

    With C_t = w_t / ν Σw, the sphere of centre a and radius R minimises ½ R² + ½ Σ C_t (‖φ(x_t) − a‖² − R²)₊; its
    centre is a = Σ β_t φ(x_t). At residual r_t a sample has the squared distance ‖a‖² + 2 r_t.

    Parameters
    ----------
    diagonal : array
        k(x, x) of every sample.
    nu : float
        In (0, 1]: bounds the share of samples outside from above and of support vectors from below.
    weights : array, optional
        Weight of each sample.

    Returns
    -------
    DualProblem
        One variable per sample, of sum 1.
    """
    diagonal = _targets(diagonal)
    w = _weights(weights, len(diagonal))
    _check_nu(nu)
    prices = w / (nu * float(w[w > 0].sum()))  # to the last bit what it is without the samples that do not count
    return DualProblem(
        v=0.5 * diagonal,
        lo=np.zeros(len(w)),
        hi=prices,
        group=np.zeros(len(w), np.int8),
        sums=np.ones(1),
        n_samples=len(w),
        start=_fill(prices, 1.0),
    )


def epsilon_svr(
    y: Any,
    C: float = 1.0,
    epsilon: float = 0.1,
    weights: Any = None,
    fit_intercept: bool = True,
    squared: bool = False,
) -> DualProblem:
    """Build the dual of ε-support vector regression (LIBSVM document, section 2.4).

    Parameters
    ----------
    y : array of float
        Targets.
    C : float
        Cost of a deviation beyond ε.
    epsilon : float
        Half-width of the tube in which deviations are free.
    weights : array, optional
        One factor of C per sample.
    fit_intercept : bool
        False for a machine without threshold.
    squared : bool
        Whether a deviation beyond ε costs its square.

    Returns
    -------
    DualProblem
        Two variables per sample: the pull upwards and the pull downwards.
    """
    y = _targets(y)
    if not (np.isfinite(epsilon) and epsilon >= 0):
        raise ValueError(f"epsilon must be a finite number that is not negative, got {epsilon}")
    costs, ridge = _bounds_and_ridge(_costs(C, weights, len(y)), squared)
    nothing = np.zeros(len(y))
    return DualProblem(
        v=np.concatenate([y - epsilon, y + epsilon]),
        lo=np.concatenate([nothing, -costs]),
        hi=np.concatenate([costs, nothing]),
        group=np.zeros(2 * len(y), np.int8),
        sums=np.zeros(1 if fit_intercept else 0),
        n_samples=len(y),
        start=np.zeros(2 * len(y)),
        ridge=None if ridge is None else np.tile(ridge, 2),
    )


def nu_svr(y: Any, C: float = 1.0, nu: float = 0.5, weights: Any = None) -> DualProblem:
    """Build the dual of ν-support vector regression (LIBSVM document, section 2.5).

    Parameters
    ----------
    y : array of float
        Targets.
    C : float
        Cost of a deviation beyond the tube.
    nu : float
        In (0, 1]: bounds the share of points outside the tube from above; sets the tube's width.
    weights : array, optional
        One factor of C per sample.

    Returns
    -------
    DualProblem
        Two variables per sample; half the difference of the multipliers is the tube's half-width ε.
    """
    y = _targets(y)
    costs = _costs(C, weights, len(y))
    if not np.isfinite(costs).all():
        raise ValueError("nu-SVR needs a finite C")
    _check_nu(nu)
    mass = nu * float(costs.sum()) / 2
    nothing = np.zeros(len(y))
    up = _fill(costs, mass)
    return DualProblem(
        v=np.concatenate([y, y]),
        lo=np.concatenate([nothing, -costs]),
        hi=np.concatenate([costs, nothing]),
        group=np.repeat(np.array([0, 1], np.int8), len(y)),
        sums=np.array([mass, -mass]),
        n_samples=len(y),
        start=np.concatenate([up, -up]),
    )


def _fill(room: Vector, mass: float) -> Vector:
    """Fill the variables in order until ``mass`` is spent, as LIBSVM starts its ν formulations."""
    spent, filled = np.cumsum(room), np.zeros(len(room))
    last = int(np.searchsorted(spent, mass))  # the variable that takes the rest
    filled[:last] = room[:last]
    if last < len(room):
        rest = mass - float(spent[last - 1]) if last else mass
        dust = 8 * _EPS * mass  # the rounding of the sum must not leave a variable inside its box
        filled[last] = room[last] if room[last] - rest <= dust else rest if rest > dust else 0.0
    return filled


def _labels(y: Any) -> Vector:
    y = np.asarray(y, dtype=np.float64)
    if y.ndim != 1 or len(y) == 0 or not (np.abs(y) == 1.0).all():
        _targets(y)  # which says what else may be wrong
        raise ValueError("labels must be +1 or -1; encode the two classes first")
    return y


def _targets(y: Any) -> Vector:
    y = np.asarray(y, dtype=np.float64)
    if y.ndim != 1 or len(y) == 0:
        raise ValueError(f"y must be a vector with one value per sample, got shape {y.shape}")
    if not np.isfinite(y).all():
        raise ValueError("y contains NaN or infinity; remove these samples first")
    return y


def _weights(weights: Any, n: int) -> Vector:
    if weights is None:
        return np.ones(n)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n,):
        raise ValueError(f"weights must have one value per sample: expected shape ({n},), got {w.shape}")
    least, most = (w.min(), w.max()) if n else (0.0, 0.0)
    if not 0 <= least <= most < np.inf:  # NaN fails too
        raise ValueError("weights must be finite and not negative")
    if not most > 0:
        raise ValueError("all weights are zero: at least one sample must count")
    return w


def _costs(C: float, weights: Any, n: int) -> NDArray[np.float64]:
    if not C > 0:  # NaN fails too
        raise ValueError(f"C must be positive, got {C}")
    w = _weights(weights, n)
    if w.all():
        return C * w
    return np.where(w > 0, C * np.where(w > 0, w, 1.0), 0.0)  # weight 0 is absence, even at C = inf


def _bounds_and_ridge(costs: Vector, squared: bool) -> tuple[Vector, Vector | None]:
    """Return how far variables may go from zero, and what a squared loss adds to the diagonal."""
    if not squared:
        return costs, None
    if not np.isfinite(costs).all():
        raise ValueError("a squared loss needs a finite C; choose the plain loss for the hard margin")
    counts = costs > 0  # weight 0 is absence: no room, and any ridge
    return np.where(counts, np.inf, 0.0), np.where(counts, 0.5 / np.where(counts, costs, 1.0), 1.0)


def _check_nu(nu: float) -> None:
    if not 0 < nu <= 1:
        raise ValueError(f"nu must be above 0 and at most 1, got {nu}")
