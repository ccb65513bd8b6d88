"""Block coordinate ascent: one block of variables after the other, in sweeps (lecture notes on the dual).

Idea. Optimise over a few variables at a time, all others held, and go round. Where a sum must be kept the
smallest block is a pair: each variable in its turn, if it violates, moves together with the variable at the
other end of its group, the one with which it violates most. Without a sum each variable moves alone: coordinate
ascent proper, or Hildreth's method. The order is shuffled before each sweep.

Cost. A kernel row for each of the block's variables, per step. Nothing is searched but the partner.

When to use. Well-conditioned problems and low accuracy: the order asks nothing of the residual. Where variables
are strongly coupled a greedy choice needs many times fewer steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.arrays import Index
from hinge.lab.algorithms.course import ANY_GROUPS, laboratory
from hinge.lab.algorithms.pairs import curvature_of, move, subtract_row
from hinge.report import Status
from hinge.runtime.jit import compiled
from hinge.solvers.pairs.loop import Outcome
from hinge.solvers.pairs.step import CONVERGED, NEEDS_ROWS, STEP_LIMIT, Point, Rows, use_rows
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

# Steps between two looks at clock, limits and callback; a look computes the violation of all samples.
_STEPS_PER_LOOK = 1000

_SEED = 3


def coordinate_ascent(state: State, tol: float, run: Run) -> None:
    """Sweep over all variables in random order until none violates."""
    random = np.random.default_rng(_SEED)
    while state.violation() > tol:
        run.check(state, state.violation())
        order = random.permutation(state.problem.n_variables)
        if sweep(state, tol, run, order, only_free=False) == 0:
            raise Stop(Status.STALLED)


def sweep(state: State, tol: float, run: Run, order: Index, only_free: bool) -> int:
    """Visit the variables in this order (those that are free at that time); return the number of steps made."""
    problem, gram = state.problem, state.gram
    position, total = 0, 0
    next_look = (run.iterations // _STEPS_PER_LOOK + 1) * _STEPS_PER_LOOK
    while True:
        point, rows = Point.of(problem, state.beta, state.residual), Rows.of_cache(gram)
        limit = min(next_look, run.max_iter) - run.iterations
        outcome, position = _sweep(order, position, only_free, rows, point, tol, limit)
        gram.cache.clock = int(rows.clock[0])
        total += outcome.steps
        state.note_steps(outcome.way)
        run.count(outcome.steps, outcome.change)
        if outcome.code == NEEDS_ROWS:
            gram.rows(np.unique(np.array([outcome.first, outcome.second])))
        if run.iterations >= next_look or outcome.code == STEP_LIMIT or run.must_stop():
            violation = state.violation()
            if state.is_lost(violation):
                raise Stop(Status.STALLED)
            run.check(state, violation)
            next_look += _STEPS_PER_LOOK
        if outcome.code == CONVERGED:
            return total


@compiled
def _partner(i: int, point: Point, tol: float) -> int:
    """The variable with which i violates by more than ``tol``; -1 if none.

    It is at the other end of i's group; without groups, where i moves alone, it is i itself.
    """
    beta, r, lo, hi, group, n_groups = point
    if n_groups == 0:
        violates = (r[i] > tol and beta[i] < hi[i]) or (r[i] < -tol and beta[i] > lo[i])
        return i if violates else -1
    top, bottom = -1, -1
    for t in range(r.shape[0]):
        if group[t] == group[i]:
            if beta[t] < hi[t] and (top < 0 or r[t] > r[top]):
                top = t
            if beta[t] > lo[t] and (bottom < 0 or r[t] < r[bottom]):
                bottom = t
    up = r[i] - r[bottom] if bottom >= 0 and beta[i] < hi[i] else 0.0
    down = r[top] - r[i] if top >= 0 and beta[i] > lo[i] else 0.0
    if max(up, down) <= tol:
        return -1
    return bottom if up >= down else top


@compiled
def _take_step(i: int, j: int, rows: Rows, point: Point) -> tuple[float, float]:
    """Move β_i to its optimum, and β_j by as much the other way if there are groups; the fall and the way."""
    beta, r, lo, hi, _, n_groups = point
    diagonal, n = rows.diagonal, len(rows.diagonal)
    row_i, row_j = rows.values[rows.slot_of[i % n]], rows.values[rows.slot_of[j % n]]
    is_alone = n_groups == 0
    slope, curvature = r[i], diagonal[i % n]
    if not is_alone:
        slope, curvature = r[i] - r[j], curvature_of(diagonal[i % n], diagonal[j % n], row_i[j % n])
    sign = 1.0 if slope > 0 else -1.0
    length = abs(slope) / curvature if curvature > 0 else np.inf
    length = min(length, hi[i] - beta[i] if sign > 0 else beta[i] - lo[i])
    if not is_alone:
        length = min(length, beta[j] - lo[j] if sign > 0 else hi[j] - beta[j])
    move(i, sign * length, beta, lo, hi)
    subtract_row(r, row_i, sign * length)
    if not is_alone:
        move(j, -sign * length, beta, lo, hi)
        subtract_row(r, row_j, -sign * length)
    fall = length * (abs(slope) - 0.5 * max(curvature, 0.0) * length)
    return fall, 2 * length * max(np.sqrt(abs(diagonal[i % n])), np.sqrt(abs(diagonal[j % n])))


@compiled
def _sweep(
    order: Any, position: int, only_free: bool, rows: Rows, point: Point, tol: float, max_steps: int
) -> tuple[Outcome, int]:
    """Go on with the sweep from ``position``; where a row is missing, return and be called again from there.

    No violation is known in a sweep.
    """
    beta, lo, hi, slot_of, n = point.beta, point.lo, point.hi, rows.slot_of, len(rows.diagonal)
    steps, change, way = 0, 0.0, 0.0
    while position < order.shape[0]:
        i = order[position]
        j = -1 if only_free and not lo[i] < beta[i] < hi[i] else _partner(i, point, tol)
        if j >= 0:
            if steps >= max_steps:
                return Outcome(STEP_LIMIT, steps, np.nan, change, way, -1, -1), position
            if slot_of[i % n] < 0 or slot_of[j % n] < 0:
                return Outcome(NEEDS_ROWS, steps, np.nan, change, way, i % n, j % n), position
            use_rows(rows, i, j)
            fall, length = _take_step(i, j, rows, point)
            change -= fall
            way += length
            steps += 1
        position += 1
    return Outcome(CONVERGED, steps, np.nan, change, way, -1, -1), position


ALGORITHMS = (
    laboratory(
        "coordinate-ascent",
        "Block coordinate ascent in sweeps",
        "Lecture notes on the dual of the SVM, block coordinate ascent",
        ANY_GROUPS,
        coordinate_ascent,
    ),
)
