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
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

_DONE, _NEEDS_ROWS, _STEP_LIMIT = 0, 1, 2

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
        cache = gram.cache
        tally = np.zeros(2)
        limit = min(next_look, run.max_iter) - run.iterations
        code, position, steps, first, second = _sweep(
            order, position, only_free, cache.rows, cache.slot_of, cache.last_use, cache.clock, gram.diagonal,
            state.beta, state.residual, problem.lo, problem.hi, problem.group, problem.n_groups, tol, limit, tally,
        )  # fmt: skip
        total += steps
        state.note_steps(tally[1])
        run.count(steps, tally[0])
        if code == _NEEDS_ROWS:
            gram.rows(np.unique(np.array([first, second])))
        if run.iterations >= next_look or code == _STEP_LIMIT or run.must_stop():
            violation = state.violation()
            if state.is_lost(violation):
                raise Stop(Status.STALLED)
            run.check(state, violation)
            next_look += _STEPS_PER_LOOK
        if code == _DONE:
            return total


@compiled
def _partner(i: int, beta: Any, r: Any, lo: Any, hi: Any, group: Any, tol: float) -> int:
    """The variable at the other end of i's group, with which i violates by more than ``tol``; -1 if none."""
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
def _sweep(
    order: Any,
    position: int,
    only_free: bool,
    rows: Any,
    slot_of: Any,
    last_use: Any,
    clock: int,
    diagonal: Any,
    beta: Any,
    r: Any,
    lo: Any,
    hi: Any,
    group: Any,
    n_groups: int,
    tol: float,
    max_steps: int,
    tally: Any,
) -> tuple[int, int, int, int, int]:
    """Go on with the sweep from ``position``; where a row is missing, return and be called again."""
    n = diagonal.shape[0]
    steps = 0
    while position < order.shape[0]:
        i = order[position]
        if only_free and not lo[i] < beta[i] < hi[i]:
            position += 1
            continue
        if n_groups == 0:
            j = i
            violates = (r[i] > tol and beta[i] < hi[i]) or (r[i] < -tol and beta[i] > lo[i])
        else:
            j = _partner(i, beta, r, lo, hi, group, tol)
            violates = j >= 0
        if not violates:
            position += 1
            continue
        if steps >= max_steps:
            return _STEP_LIMIT, position, steps, -1, -1
        if slot_of[i % n] < 0 or slot_of[j % n] < 0:
            return _NEEDS_ROWS, position, steps, i % n, j % n
        row_i, row_j = rows[slot_of[i % n]], rows[slot_of[j % n]]
        last_use[slot_of[i % n]] = last_use[slot_of[j % n]] = clock + 1

        # β_i moves by step; its partner, if it has one, by −step
        slope = r[i] if n_groups == 0 else r[i] - r[j]
        curvature = diagonal[i % n]
        if n_groups > 0:
            curvature = curvature_of(diagonal[i % n], diagonal[j % n], row_i[j % n])
        sign = 1.0 if slope > 0 else -1.0
        length = abs(slope) / curvature if curvature > 0 else np.inf
        length = min(length, hi[i] - beta[i] if sign > 0 else beta[i] - lo[i])
        if n_groups > 0:
            length = min(length, beta[j] - lo[j] if sign > 0 else hi[j] - beta[j])
        move(i, sign * length, beta, lo, hi)
        subtract_row(r, row_i, sign * length)
        if n_groups > 0:
            move(j, -sign * length, beta, lo, hi)
            subtract_row(r, row_j, -sign * length)
        tally[0] -= length * (abs(slope) - 0.5 * max(curvature, 0.0) * length)
        tally[1] += 2 * length * max(np.sqrt(abs(diagonal[i % n])), np.sqrt(abs(diagonal[j % n])))
        steps += 1
        position += 1
    return _DONE, position, steps, -1, -1


ALGORITHMS = (
    laboratory(
        "coordinate-ascent",
        "Block coordinate ascent in sweeps",
        "Lecture notes on the dual of the SVM, block coordinate ascent",
        ANY_GROUPS,
        coordinate_ascent,
    ),
)
