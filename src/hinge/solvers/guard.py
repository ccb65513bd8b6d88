"""A run never ends above a point that it has seen, whatever rounding did."""

from __future__ import annotations

import numpy as np

from hinge.arrays import Vector
from hinge.dual.residuals import objective_at_most
from hinge.solvers.exactness import error_of
from hinge.solvers.state import State


class Guard:
    """The best point of a run so far, by objectives that hold whatever rounding did.

    Steps lower the objective but for rounding. Where rounding rules, a point may be worse than one before it, and
    its residual does not show that.

    Parameters
    ----------
    tol : float
        The tolerance: residuals are computed exactly enough for it.

    Attributes
    ----------
    least : float
        What the objective of the best point is at most.
    """

    def __init__(self, tol: float) -> None:
        self._tol = tol
        self.least, self._beta = np.inf, np.empty(0)

    def note(self, state: State, beta: Vector) -> None:
        """Remember ``beta``, a feasible point of the state's problem, if it is better than all before."""
        objective, _, _ = objective_at_most(state.problem, state.gram, beta, self._tol)
        if objective < self.least:
            self.least, self._beta = objective, beta.copy()

    def settle(self, state: State) -> None:
        """Go to the lowest point between the best one and where the state is now."""
        if not np.isfinite(self.least):
            return
        problem, gram, best, way = state.problem, state.gram, self._beta, state.beta - self._beta
        begun, first, error = objective_at_most(problem, gram, best, self._tol)
        beta = state.beta.copy()
        ended, last, error_of_last = objective_at_most(problem, gram, beta, self._tol)
        fall, rise = max(float(np.dot(way, first)), 0.0), float(np.dot(way, last))
        if rise < 0:
            beta = np.clip(best + fall / (fall - rise) * way, problem.lo, problem.hi)
            ended, last, error_of_last = objective_at_most(problem, gram, beta, self._tol)
        if not ended <= begun:  # a point between the two is rounded to doubles: even that may take it above
            beta, last, error_of_last = best, first, error
        state.beta[:], state.residual[:] = beta, last
        state.lagging = None
        state.note_reference(error_of_last)


def may_be_above(state: State, objective: float) -> bool:
    """Whether rounding may hide that the state's own objective is above this one."""
    magnitudes = np.abs(state.beta)
    rounding = state.gram.rounding(state.problem.coefficients(state.beta))
    error = np.tile(np.maximum(error_of(state), rounding + state.drift), len(magnitudes) // state.gram.n)
    return not state.objective() + 0.5 * float(np.dot(magnitudes, error)) <= objective
