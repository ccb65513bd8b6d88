"""Iterative refinement: steps from single-precision kernel values, answers checked in double precision.

Each step leaves a rounding error in the residual; together they can hide a violation larger than the tolerance.
Before convergence is declared the residual is computed anew in double precision wherever it could matter: for
the variables that violate, are free or lie so near the margin that the error found there could make them so, and
for all support vectors, from which the objective is computed.
"""

from __future__ import annotations

import numpy as np

from hinge.gram import Gram
from hinge.optimality import free_and_near, multipliers_of
from hinge.problem import DualProblem, Vector
from hinge.samples import Index
from hinge.solvers.state import SINGLE_ERROR, Reference, State

# Rounding may move the residual by this share of the tolerance before it is computed anew.
_DRIFT_ALLOWED = 0.01

# A variable is out of reach when it is further from the margin than this many times the largest error found.
_SAFETY = 10.0

_FIRST_WIDTH_IN_TOL = 20.0

# Single precision is not even tried where the rounding of one full step exceeds this many tolerances.
_HOPELESS = 1.0


def needs_double(problem: DualProblem, gram: Gram, tol: float) -> bool:
    """Whether single-precision steps are hopeless: one of them would move the residual by far more than ``tol``.

    A problem without bounds is such a case, because a small margin must not drown in rounding. The caller's own
    wish for single precision comes first.
    """
    if gram.is_single_by_wish:
        return False
    largest = float(np.max(problem.hi - problem.lo, initial=0.0))
    return SINGLE_ERROR * largest * gram.magnitude > _HOPELESS * tol


def is_exact(state: State, tol: float) -> bool:
    """Whether rounding cannot have moved the residual by a relevant share of ``tol``."""
    has_been_computed = state.gram.precision == "double" or state.reference is not None
    return has_been_computed and state.drift <= _DRIFT_ALLOWED * tol


def refresh(state: State, tol: float) -> None:
    """Compute the residual in double precision for every variable that rounding could bring to violate."""
    problem, n = state.problem, state.gram.n
    coefficients = problem.coefficients(state.beta)
    exact = np.zeros(n, dtype=bool)
    width, error = _FIRST_WIDTH_IN_TOL * tol, 0.0
    while True:
        multipliers = multipliers_of(problem, state.beta, state.residual)
        near = free_and_near(problem, state.beta, state.residual, multipliers, width)
        doubtful = np.flatnonzero((near.reshape(-1, n).any(axis=0) | (coefficients != 0)) & ~exact)
        if len(doubtful):
            runs = state.residual.reshape(-1, n)
            fresh = problem.v.reshape(-1, n)[:, doubtful] - _image(state, coefficients, doubtful)
            error = max(error, float(np.abs(runs[:, doubtful] - fresh).max()))
            runs[:, doubtful] = fresh
            exact[doubtful] = True
        if width >= _SAFETY * error:
            break
        width = 2 * _SAFETY * error
    image = (problem.v - state.residual).reshape(-1, n)[0]
    state.reference = Reference(coefficients, image, exact)
    state.drift = 0.0


def _image(state: State, coefficients: Vector, samples: Index) -> Vector:
    """Return (Kβ) of ``samples`` in double precision, from the last time it was computed where that is shorter."""
    former = state.reference
    image = np.empty(len(samples))
    known = np.zeros(len(samples), dtype=bool) if former is None else former.exact[samples]
    if former is not None and known.any():
        old = samples[known]
        image[known] = former.image[old] + state.gram.product(coefficients - former.coefficients, old)
    if not known.all():
        image[~known] = state.gram.product(coefficients, samples[~known])
    return image
