"""Iterative refinement: steps from rounded kernel values, answers checked as exactly as the tolerance needs.

Each step leaves a rounding error in the residual; together they can hide a violation larger than the tolerance.
Before convergence is declared the residual is computed anew in double precision wherever it could matter: for
the variables that violate, are free or lie so near the margin that the error found there could make them so, and
for all support vectors, from which the objective is computed. Double precision rounds too. `hinge.kernel.rounding`
bounds by how much, and where that is not far below the tolerance the residual is computed in double-double
arithmetic (`hinge.kernel.sharp`).
"""

from __future__ import annotations

import numpy as np

from hinge.arrays import Vector
from hinge.dual.optimality import doubt_of, free_and_near, multipliers_of
from hinge.dual.problem import DualProblem
from hinge.dual.residuals import ERROR_ALLOWED, NEGLIGIBLE, Reference, exact_residual
from hinge.kernel.gram import Gram
from hinge.report import Status
from hinge.solvers.state import Lags, State, value_error

# Between the end of a method and the check of its answer something moves: rounding is taken out of the residual,
# samples that waited join in. Whoever aims at this share of a tolerance meets it all the same, nearly always.
_SHARPER = 0.8

# A variable is out of reach when it is further from the margin than this many times the largest error found; at
# first that is taken to be the tolerance.
_SAFETY = 10.0


def sharper(tol: float) -> float:
    """Return what to aim at so that ``tol`` still holds when the answer is looked at again."""
    return _SHARPER * tol


def needs_double(problem: DualProblem, gram: Gram, tol: float) -> bool:
    """Whether single-precision steps are hopeless: one of them would move the residual by far more than ``tol``.

    A problem without bounds is such a case, because a small margin must not drown in rounding. The caller's own
    wish for single precision comes first.
    """
    if gram.is_single_by_wish:
        return False
    largest = float(np.max(problem.hi - problem.lo, initial=0.0))
    return value_error(np.float32) * largest * gram.magnitude > tol


def is_exact(state: State, tol: float) -> bool:
    """Whether rounding cannot have moved the violation by a relevant share of ``tol``."""
    if (state.gram.through_weights or state.gram.precision == "single") and not is_at_reference(state):
        return False  # weight vectors: anew takes no time; single precision: the objective needs it too
    return state.drift <= NEGLIGIBLE * tol and doubt(state) <= NEGLIGIBLE * tol


def is_vague_near(state: State, tol: float) -> bool:
    """Whether a sample of which little is known has a part in the answer, or may have come near the margin.

    What is looked at is what `refresh` would compute anew.
    """
    if state.vague is None or not state.vague.any():
        return False
    problem, n = state.problem, state.gram.n
    multipliers = multipliers_of(problem, state.beta, state.residual)
    reach = np.tile(state.vague + state.drift + 2 * _SAFETY * tol, problem.n_variables // n)
    near = free_and_near(problem, state.beta, state.residual, multipliers, reach) | (state.beta != 0)
    return bool((near.reshape(-1, n).any(axis=0) & (state.vague > 0)).any())


def is_within(violation: float, rounding: float, tol: float) -> bool:
    """Whether a violation is at most ``tol`` although rounding may hide some of it: an answer has converged."""
    return violation <= tol and violation + rounding <= (1 + NEGLIGIBLE) * tol


def doubt(state: State) -> float:
    """Return by how much the true violation may exceed the one that the residual shows."""
    return doubt_of(state.problem, state.beta, state.residual, error_of(state))


def error_of(state: State) -> Vector:
    """Return a bound on the error of each sample's residual; none for samples that are out of reach."""
    if state.reference is None:
        return state.gram.rounding(state.problem.coefficients(state.beta)) + state.drift
    # Samples that were not computed are out of reach.
    error = np.where(state.reference.exact, state.reference.error, 0.0)
    return error + _rounding_since(state) + state.drift


def _rounding_since(state: State) -> Vector | float:
    """Bound the rounding error of what has been added to the residual since the reference."""
    assert state.reference is not None
    change = state.problem.coefficients(state.beta - state.reference.beta)
    return state.gram.rounding(change) if change.any() else 0.0


def bound_of(state: State) -> Vector:
    """Return a bound on the error of each sample's residual, those that are out of reach included."""
    reference, rounding = state.reference, state.gram.rounding(state.problem.coefficients(state.beta))
    if reference is None:
        return rounding + state.drift
    loose = rounding + state.spent + (0.0 if state.vague is None else state.vague)
    bound = np.where(reference.exact, reference.error, loose) + _rounding_since(state) + state.drift
    if state.lagging is not None:
        bound += state.lagging.distances() * state.gram.lengths
    return bound


def verdict(state: State, tol: float) -> Status:
    """Return what a point is whose residual, as exact as it can be had, shows a violation of at most ``tol``."""
    if not np.isfinite(state.objective()):  # comparisons with what is no number find no violation
        return Status.STALLED
    return Status.CONVERGED if is_within(state.violation(), doubt(state), tol) else Status.UNCERTAIN


def refresh(state: State, tol: float) -> None:
    """Compute the residual anew for every variable that rounding could bring to violate."""
    problem, n = state.problem, state.gram.n
    copies = problem.n_variables // n
    coefficients = problem.coefficients(state.beta)
    exact = np.zeros(n, dtype=bool)
    error = _left_in_residual(state)
    state.spent += state.drift + float(state.gram.rounding(coefficients).max(initial=0.0))
    bound = np.zeros(n) if state.vague is None else state.vague + state.spent
    if state.vague is not None and state.reference is not None:  # else steps were single, or weights are quick
        known = error_of(state)
        exact = state.reference.exact & (known <= ERROR_ALLOWED * tol)
        error[exact] = known[exact]
    width, largest = 2 * _SAFETY * tol, 0.0
    while True:
        multipliers = multipliers_of(problem, state.beta, state.residual)
        reach = np.tile(np.maximum(width, np.where(exact, 0.0, 2 * error)) + np.where(exact, 0.0, bound), copies)
        near = free_and_near(problem, state.beta, state.residual, multipliers, reach).reshape(-1, n).any(axis=0)
        doubtful = np.flatnonzero((near | (coefficients != 0)) & ~exact)
        if len(doubtful):
            runs, wanted = state.residual.reshape(-1, n), np.where(near, tol, np.inf)[doubtful]
            fresh, error[doubtful] = exact_residual(
                problem, state.gram, state.beta, doubtful, wanted, state.reference
            )
            surprise = np.abs(runs[:, doubtful] - fresh).max(axis=0) - bound[doubtful]
            largest = max(largest, float(surprise.max()))
            runs[:, doubtful] = fresh
            exact[doubtful] = True
        elif width >= _SAFETY * largest:
            break
        width = max(width, 2 * _SAFETY * largest)
    if state.vague is not None:
        state.vague = np.where(exact, 0.0, state.vague)
    if state.lagging is not None:
        state.lagging.epoch[exact] = Lags.CURRENT
    state.reference = Reference(state.beta.copy(), state.residual.copy(), error, exact)
    state.drift = 0.0


def _left_in_residual(state: State) -> Vector:
    """Return how far each sample's residual may be from its true value, also where it was out of reach before.

    Of steps from single-precision kernel values that is what is probable: a bound would bring all into reach.
    """
    if state.reference is None:
        error = state.gram.rounding(state.problem.coefficients(state.beta))
    else:
        error = state.reference.error + _rounding_since(state)
    is_single = state.gram.precision == "single" and not state.gram.through_weights
    return error + (state.probable_drift if is_single else state.drift)


def is_at_reference(state: State) -> bool:
    """Whether the residual is as exact as it can be had: no step was taken since it was computed."""
    return state.reference is not None and np.array_equal(state.reference.beta, state.beta)
