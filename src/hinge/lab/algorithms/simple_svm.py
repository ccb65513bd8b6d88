"""SimpleSVM: an active-set method that keeps the free variables optimal (Vishwanathan, Smola & Murty).

Idea. Split the variables into free ones F and those at a bound, and keep r = μ on all of F: then β is the
solution for this split. Take the worst violator outside F and move it, the free variables following so that r
stays equal on F (one linear system, whose inverse is at hand). The move ends where the violator's own r has
come to μ, and it becomes free; or where it reaches its other bound; or where a free variable meets a bound,
which then leaves F, and the move goes on without it.

Cost. |F|² a step for the inverse, by bordering, and a product of the free variables' kernel rows with the
direction. The inverse of F's kernel matrix is kept in memory.

When to use. Few free support vectors, and answers to the last digit: it ends exactly, after finitely many
steps, however badly conditioned the problem is for pair steps (large C).
"""

from __future__ import annotations

import numpy as np

from hinge.arrays import Floats, Index, Vector
from hinge.lab.algorithms.course import ONE_GROUP, laboratory, row_of
from hinge.report import Status
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

# The inverse is computed anew after this number of changes by bordering, because each of them rounds.
_CHANGES_PER_INVERSE = 50

# Curvature below this share of k(x, x) is none: such a move runs to a bound.
_FLAT = 1e-9

_MOST_VAIN = 100


class _FreeSet:
    """F in the order in which variables joined, and the inverse of [[0, 1ᵀ], [1, K_FF]]."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.members: list[int] = []
        self.inverse: Floats = np.empty((0, 0))
        self._changes = 0

    def border(self, row: Floats) -> Vector:
        """Return what a variable with this kernel row adds to the matrix: 1, and its values with F."""
        return np.concatenate([[1.0], row[np.array(self.members) % self.state.gram.n]])

    def begin(self, variable: int) -> None:
        """Start with one member."""
        self.members = [variable]
        own = self.state.gram.diagonal[variable % self.state.gram.n]
        self.inverse = np.array([[-own, 1.0], [1.0, 0.0]])

    def add(self, variable: int, border: Vector, curvature: float) -> None:
        """Grow the inverse by one row and column; ``curvature`` is the Schur complement."""
        pull = np.append(self.inverse @ border, -1.0)
        self.inverse = np.pad(self.inverse, (0, 1)) + np.outer(pull, pull) / curvature
        self.members.append(variable)
        self._changed()

    def remove(self, place: int) -> None:
        """Shrink the inverse by one row and column."""
        del self.members[place]
        p = place + 1
        if not self.members:
            self.inverse = np.empty((0, 0))
        elif abs(self.inverse[p, p]) < 1e-300:
            self.invert()
        else:
            smaller = self.inverse - np.outer(self.inverse[:, p], self.inverse[p]) / self.inverse[p, p]
            self.inverse = np.delete(np.delete(smaller, p, axis=0), p, axis=1)
            self._changed()

    def _changed(self) -> None:
        self._changes += 1
        if self._changes >= _CHANGES_PER_INVERSE:
            self.invert()

    def invert(self) -> None:
        """Compute the inverse from kernel values."""
        samples, place = np.unique(np.array(self.members) % self.state.gram.n, return_inverse=True)
        size = len(self.members) + 1
        matrix = np.ones((size, size))
        matrix[0, 0] = 0.0
        matrix[1:, 1:] = self.state.gram.block(samples)[np.ix_(place, place)]
        self.inverse = np.linalg.pinv(matrix, rcond=1e-14, hermitian=True)
        self._changes = 0

    def settle(self) -> float:
        """Take out what rounding has left of the differences on F, as far as the box allows; return the change."""
        self.invert()
        f, state = np.array(self.members), self.state
        direction = (self.inverse @ np.append(0.0, state.residual[f]))[1:]
        share = min(1.0, float(_rooms(state, f, direction).min()))
        return state.move(f, state.beta[f] + share * direction)


def _rooms(state: State, variables: Index, direction: Vector) -> Vector:
    """How far each variable can go along the direction, in lengths of it."""
    bound = np.where(direction > 0, state.problem.hi[variables], state.problem.lo[variables])
    rooms = np.full(len(variables), np.inf)
    return np.divide(bound - state.beta[variables], direction, out=rooms, where=direction != 0)


def simple_svm(state: State, tol: float, run: Run) -> None:
    """Bring in violators, worst first, until there is none."""
    problem, free = state.problem, _FreeSet(state)
    vain, best = 0, np.inf
    while True:
        violation = state.violation()
        if violation <= tol:
            return
        run.check(state, violation)
        vain = vain + 1 if run.objective >= best else 0
        best = min(best, run.objective)
        if vain > _MOST_VAIN:
            raise Stop(Status.STALLED)
        if not free.members:
            falling = np.where(state.beta > problem.lo, state.residual, np.inf)
            free.begin(int(np.argmin(falling)))
        violator = _worst_violator(state, free, 0.25 * tol)
        if violator < 0:
            run.count(0, free.settle())
            continue
        _bring_in(state, free, violator, run)


def _worst_violator(state: State, free: _FreeSet, tol: float) -> int:
    """Return the variable outside F that is furthest from μ on the wrong side; -1 where none is."""
    problem = state.problem
    excess = state.residual - state.residual[free.members].mean()
    merit = np.maximum(
        np.where(state.beta < problem.hi, excess, -np.inf), np.where(state.beta > problem.lo, -excess, -np.inf)
    )
    merit[free.members] = -np.inf
    worst = int(np.argmax(merit))
    return worst if merit[worst] > tol else -1


def _bring_in(state: State, free: _FreeSet, t: int, run: Run) -> None:
    """Move the violator t, with F following, until it is free or at its other bound."""
    problem, beta, residual = state.problem, state.beta, state.residual
    row = row_of(state, t).copy()
    sign = 1.0 if residual[t] > residual[free.members].mean() else -1.0
    while True:
        border = free.border(row)
        pull = free.inverse @ border
        curvature = float(state.gram.diagonal[t % state.gram.n] - border @ pull)
        f: Index = np.array([*free.members, t])
        direction = sign * np.append(-pull[1:], 1.0)
        slope = float(np.dot(residual[f], direction))
        is_curved = curvature > _FLAT * abs(state.gram.diagonal[t % state.gram.n])
        rooms = _rooms(state, f, direction)
        first = int(np.argmin(rooms))
        full = max(slope, 0.0) / curvature if is_curved else np.inf
        step = min(full, float(rooms[first]))
        target = np.clip(beta[f] + step * direction, problem.lo[f], problem.hi[f])
        if step < full:
            target[first] = problem.hi[f[first]] if direction[first] > 0 else problem.lo[f[first]]
        run.count(1, state.move(f, target))
        if step == full:
            free.add(t, border, curvature)
            return
        if f[first] == t:
            return
        free.remove(first)
        if not free.members:
            if problem.lo[t] < beta[t] < problem.hi[t]:
                free.begin(t)
            return


ALGORITHMS = (
    laboratory(
        "simple-svm",
        "SimpleSVM, an active-set method",
        "Vishwanathan, Smola & Murty; Glasmachers & Igel, section 1.4",
        ONE_GROUP,
        simple_svm,
    ),
)
