"""A run never ends above a point that it has seen, whatever rounding did."""

from __future__ import annotations

import numpy as np

from hinge.arrays import Vector
from hinge.dual.optimality import doubt_of_objective
from hinge.dual.problem import DualProblem
from hinge.dual.residuals import objective_at_most
from hinge.solvers.exactness import error_of
from hinge.solvers.state import State, restore_sums

# Points looked at on a line: parabolas settle in two or three.
_TRIALS = 3


class Guard:
    """The best point of a run so far, by objectives that hold whatever rounding did.

    Steps lower the objective but for rounding. Where rounding rules, a point may be worse than one before it, and
    its residual does not show that. The way to it is right all the same, more often than not: so the lowest point
    on the line from the best one through it is looked for. Where steps crawl, that is far beyond the new point.

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
        self.least = np.inf
        self._beta = self._residual = self._error = np.empty(0)

    def note(self, state: State, beta: Vector) -> float:
        """Remember ``beta``, a feasible point of the state's problem, if it is better than all before.

        So is the point where samples that are alike have shared out what they have together. Returns what the
        lower objective is at most.
        """
        objective = self._note(state, beta)
        if state.problem.alike is None:
            return objective
        return min(objective, self._note(state, state.problem.best_shared(beta)))

    def _note(self, state: State, beta: Vector) -> float:
        objective, residual, error = objective_at_most(state.problem, state.gram, beta, self._tol)
        if objective < self.least:
            self.least, self._beta, self._residual, self._error = objective, beta.copy(), residual, error
        return objective

    def lead(self, state: State) -> bool:
        """Take the state to the best point found on the line from the best one so far through where it is now.

        Returns whether it was at a better point than all before.
        """
        is_better = self._search(state) if np.isfinite(self.least) else True
        if not np.isfinite(self.least):
            self.note(state, state.beta)
        if np.isfinite(self.least):
            state.beta[:], state.residual[:] = self._beta, self._residual
            state.lagging, state.is_stale = None, False
            state.note_reference(self._error)
        return is_better

    def _search(self, state: State) -> bool:
        """Look for the lowest point on the line, by the parabola through what is known of it.

        What rounding does to a point, and to what is known of its objective, grows with the square of the way too.
        """
        problem, origin, first = state.problem, self._beta, self.least
        goal = state.beta.copy()
        way = goal - origin
        slope, longest = float(np.dot(way, self._residual)), _reach(problem, origin, way)
        objective, length = self.note(state, goal), 1.0
        is_better = objective < first
        for _ in range(_TRIALS):
            bend = (objective - first) / length + slope  # of the parabola, times the length
            lowest = min(0.5 * slope / bend * length if bend > 0 else np.inf, longest)
            is_near = objective < first and lowest <= 2 * length
            if is_near or not (np.isfinite(objective) and 0 < lowest < np.inf):
                break
            length = lowest
            beta = np.clip(origin + length * way, problem.lo, problem.hi)
            restore_sums(problem, beta, state.gram.diagonal)
            objective = self.note(state, beta)
        return is_better


def _reach(problem: DualProblem, beta: Vector, way: Vector) -> float:
    """Return how many times ``way`` can be gone from ``beta`` within the box."""
    room = np.where(way > 0, problem.hi, problem.lo) - beta
    moves = way != 0
    with np.errstate(over="ignore"):
        return float(np.min(room[moves] / way[moves], initial=np.inf))


def may_be_above(state: State, objective: float) -> bool:
    """Whether rounding may hide that the state's own objective is above this one."""
    problem, beta = state.problem, state.beta
    error = np.maximum(error_of(state), state.gram.rounding(problem.coefficients(beta)) + state.drift)
    return not state.objective() + doubt_of_objective(problem, beta, state.residual, error) <= objective
