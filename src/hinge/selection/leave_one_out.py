"""Leave-one-out: what a machine trained on all samples but one says of that one, for every sample, exactly.

A sample that is no support vector can be left out without a change: its box is empty, its variable zero in either
case. For the others the machine of all samples is the start. Where only the sign of a decision matters two more
kinds of samples need no new machine:

* A training error stays one. Leaving a loss out of the sum that is minimised cannot make that loss smaller.
* A sample with 2 α R² + ξ < 1 stays right (Joachims 2000, lemma 2; see `hinge.selection.xi_alpha`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import indexable

from hinge.arrays import Vector
from hinge.dual.optimality import multipliers_of, violation_of
from hinge.dual.problem import DualProblem
from hinge.estimators import SVC, SVR
from hinge.estimators.base import KernelMachine
from hinge.estimators.inputs import thread_count
from hinge.kernel.gram import Gram
from hinge.report import Solution
from hinge.runtime.interrupt import catching, check
from hinge.runtime.threads import blas_on_one_thread
from hinge.selection.bounds import largest_ridge, spread_of, xi_alpha_bounds
from hinge.selection.chain import Chain, matrix_of
from hinge.selection.fold import FoldTrainer, follows_data, kernel_of
from hinge.selection.job import Job
from hinge.selection.workshop import KernelValues, Workshop
from hinge.settings import Settings
from hinge.solvers import solve
from hinge.solvers.active_set.free_set import FreeSet

# A margin this many tolerances wide is not a matter of rounding: the short cuts may rest on it.
_SAFE_TOLERANCES = 10.0

# The machine of all samples, and those that are found by linear algebra from it, are solved this exactly.
_EXACT = 1e-8


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """What came out.

    Attributes
    ----------
    predictions : array of shape (n_samples,)
        For each sample the answer of the machine that was trained without it.
    errors : array of shape (n_samples,)
        Whether the answer is wrong; for a regressor how far the target is above it. None for a one-class machine.
    error : float
        The share of wrong answers, the mean squared error of a regressor, the share of outliers of a one-class
        machine.
    n_refits : int
        How many machines had to be solved anew.
    violation : float
        The largest violation of all of them.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import SVC
    >>> from hinge.selection import leave_one_out
    >>> left = leave_one_out(SVC(C=10.0), np.array([[0.0], [1.0], [5.0], [6.0]]), [0, 0, 1, 1])
    >>> left.error, left.predictions
    (0.0, array([0, 0, 1, 1]))
    """

    predictions: NDArray[Any]
    errors: NDArray[Any] | None
    error: float
    n_refits: int
    violation: float


def leave_one_out(estimator: KernelMachine, X: Any, y: Any = None, *, sample_weight: Any = None) -> LeaveOneOut:
    """Predict every sample by the machine that is trained on all others.

    The answers are those of ``cross_val_predict(estimator, X, y, cv=LeaveOneOut())``, at a small part of the cost.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR, NuSVR, OneClassSVM or SVDD
        The machine. Of `SVC` and `SVR` only support vectors are left out one by one; where ν, ``gamma="scale"`` or
        ``class_weight="balanced"`` make every machine depend on every sample, each is solved, from that of all.
    X : array-like or sparse matrix of shape (n_samples, n_features) or (n_samples, n_samples)
        The samples; for ``kernel="precomputed"`` their kernel matrix.
    y : array-like of shape (n_samples,), optional
        Class labels, or the numbers to predict.
    sample_weight : array-like of shape (n_samples,), optional
        Weights for the fits.

    Returns
    -------
    LeaveOneOut
        Predictions and errors.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hinge import SVC
    >>> result = leave_one_out(SVC(gamma=0.5), *load_iris(return_X_y=True))
    >>> int(result.errors.sum()), result.n_refits < 80
    (5, True)
    """
    if estimator._calibrates:
        raise ValueError("leave_one_out gives no probabilities; use probability=False")
    X, y, sample_weight = indexable(X, y, sample_weight)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    everyone = np.arange(n)
    job = Job(clone(estimator), X, y, [(everyone, everyone)], None, sample_weight)
    job.estimator._validate_params()
    with catching(), blas_on_one_thread():
        whole = _Whole(job.shared(Workshop))
        predictions = whole.predictions() if whole.is_independent else whole.predictions_one_by_one()
    return _result(job.shared(Workshop), predictions, whole)


class _Whole:
    """The machine of all samples, and what is left of it without one of them."""

    def __init__(self, shop: Workshop) -> None:
        self.shop = shop
        self.machine: KernelMachine = clone(shop.job.estimator)
        self.kernel = kernel_of(shop, self.machine, shop.folds[0].train)
        self.values: KernelValues = shop.values(self.kernel, thread_count(self.machine.n_jobs))
        self.trainer = FoldTrainer(shop, shop.folds[0], self.kernel, self.values)
        self.trainer.fit(self.machine)
        self.n_refits = 0
        self.violation = 0.0

    @property
    def is_independent(self) -> bool:
        """Whether leaving a sample out changes nothing but its own box."""
        machine, shop = self.machine, self.shop
        if not isinstance(machine, SVC | SVR) or not self.values.is_convex or not np.isfinite(machine.C):
            return False
        if follows_data(machine) or getattr(machine, "class_weight", None) == "balanced":
            return False
        counting = shop.codes[shop.weights > 0]
        return bool((np.bincount(counting)[np.unique(counting)] > 1).all())

    def predictions(self) -> NDArray[Any]:
        """Predict by leaving support vectors out, each from the machine of all samples."""
        decisions = self.trainer.decisions("test")
        for k, seat in self.trainer.seats.items():
            decisions[seat.members, k] = self._without_each(seat.chain, seat.gram, decisions[seat.members, k])
        return np.asarray(self.machine._answers(decisions))

    def _without_each(self, chain: Chain, gram: Gram, decisions: Vector) -> Vector:
        """Return the decision of a machine on each of its samples, left out, given those of the machine itself."""
        problem, solution = chain.last
        tol, beta, violation = float(self.machine.tol), solution.beta, solution.report.violation
        free_set = _exact_free_set(problem, gram, solution)
        if free_set is not None:
            beta, residual = free_set.beta, free_set.residual
            violation = violation_of(problem, beta, residual)
            decisions = problem.image_of(beta, residual) + _intercept(problem, beta, residual)
        self.violation = max(self.violation, violation)
        doubtful = problem.coefficients(np.abs(beta)) > 0
        if _votes(self.machine):
            doubtful &= ~_decided(problem, beta, decisions, gram, _SAFE_TOLERANCES * tol)
        for t in np.flatnonzero(doubtful):
            decisions[t] = self._without(int(t), problem, gram, beta, free_set, tol)
        return decisions

    def _without(
        self, t: int, problem: DualProblem, gram: Gram, beta: Vector, free_set: FreeSet | None, tol: float
    ) -> float:
        check()
        self.n_refits += 1
        variables = np.arange(t, problem.n_variables, problem.n_samples)
        lo, hi = problem.lo.copy(), problem.hi.copy()
        lo[variables], hi[variables] = 0.0, 0.0
        reduced = replace(problem, lo=lo, hi=hi)
        point = None if free_set is None else free_set.copy()
        if point is not None and point.leave_out(reduced, variables) and point.settle(_EXACT):
            point.refresh()
            violation = violation_of(reduced, point.beta, point.residual)
            if violation <= tol:
                self.violation = max(self.violation, violation)
                return float(reduced.v[t] - point.residual[t]) + _intercept(reduced, point.beta, point.residual)
        start = beta.copy()
        start[variables] = 0.0
        solution = solve(reduced, gram, Settings(tol=tol, start=start))
        self.violation = max(self.violation, solution.report.violation)
        image = reduced.v[t] - solution.residual[t]
        return float(image) + _intercept(reduced, solution.beta, solution.residual)

    def predictions_one_by_one(self) -> NDArray[Any]:
        """Predict by solving every machine, for those formulations in which each sample has a part in all."""
        shop = self.shop
        answers = []
        for t in range(shop.n):
            fold = shop.fold(np.delete(np.arange(shop.n), t), np.array([t]))
            machine = clone(self.machine)
            kernel, values = self.kernel, self.values
            if follows_data(machine):
                kernel = kernel_of(shop, machine, fold.train)
                values = shop.values(kernel, thread_count(machine.n_jobs))
            trainer = FoldTrainer(shop, fold, kernel, values, origin=self.trainer)
            trainer.fit(machine)
            answers.append(machine._answers(trainer.decisions("test"))[0])
            self.n_refits += 1
            self.violation = max(self.violation, float(machine.report_.violation))
        return np.array(answers)


def _votes(machine: KernelMachine) -> bool:
    """Whether predictions depend on nothing but the signs of decisions."""
    if not is_classifier(machine):
        return False
    return bool(len(machine.classes_) == 2 or (machine.multi_class == "ovo" and not machine.break_ties))


def _exact_free_set(problem: DualProblem, gram: Gram, solution: Solution) -> FreeSet | None:
    """Return the solution to the last digits, ready to be changed; None where linear algebra cannot do that."""
    kernel = matrix_of(gram)
    if kernel is None or not solution.report.converged or problem.ridge is not None:
        return None
    try:
        free_set = FreeSet(kernel, problem, solution.beta)
    except LinAlgError:
        return None
    if not free_set.settle(_EXACT):
        return None
    free_set.refresh()
    is_exact = violation_of(problem, free_set.beta, free_set.residual) <= _SAFE_TOLERANCES * _EXACT
    return free_set if is_exact else None


def _intercept(problem: DualProblem, beta: Vector, residual: Vector) -> float:
    multipliers = multipliers_of(problem, beta, residual)
    return float(multipliers.mean()) if len(multipliers) else 0.0


def _decided(problem: DualProblem, beta: Vector, decisions: Vector, gram: Gram, slack: float) -> NDArray[np.bool_]:
    """Mark the samples of a classifier that are on the same side of the machine trained without them."""
    margins = problem.v * decisions
    kernel = matrix_of(gram)
    is_error = margins < -slack
    if kernel is None:
        return np.asarray(is_error)
    if problem.ridge is not None:
        margins = margins + problem.v * problem.ridge * beta
    bounds = xi_alpha_bounds(beta, margins, spread_of(kernel) + largest_ridge(problem))
    return np.asarray(is_error | (bounds < 1 - slack))


def _result(shop: Workshop, predictions: NDArray[Any], whole: _Whole) -> LeaveOneOut:
    errors: NDArray[Any] | None = None
    if is_classifier(whole.machine):
        errors = predictions != shop.y
        error = float(errors.mean())
    elif is_regressor(whole.machine):
        errors = shop.y - predictions
        error = float(np.mean(errors**2))
    else:
        error = float(np.mean(predictions < 0))
    return LeaveOneOut(predictions, errors, error, whole.n_refits, whole.violation)
