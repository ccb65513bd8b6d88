"""Sequential minimal optimisation as one compiled loop over kernel rows at hand.

The loop serves two masters. For `smo` the rows are those of the cache, and when one is missing the loop returns
and is called again once the row is there. For `block` they are the small kernel matrix of a working set, all
present.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hinge.runtime.jit import borrowing, inlined, larger, smaller
from hinge.solvers.pairs.rules import BLOCK, Search, choose_pair
from hinge.solvers.pairs.step import (
    CHOSEN,
    CONVERGED,
    NEEDS_ROWS,
    STEP_LIMIT,
    STUCK,
    UNBOUNDED,
    Point,
    Rows,
    move_alone,
    move_pair,
    use_rows,
)


class Outcome(NamedTuple):
    """Why the loop returned, and what it did.

    Attributes
    ----------
    code : int
        CONVERGED, NEEDS_ROWS, STEP_LIMIT, STUCK or UNBOUNDED.
    steps : int
        Steps taken.
    violation : float
        Violation at the end.
    change : float
        Change of the objective.
    way : float
        Way of all steps, Σ |δ| √k(x, x).
    first, second : int
        With NEEDS_ROWS the rows that it must have, -1 for none.
    """

    code: int
    steps: int
    violation: float
    change: float
    way: float
    first: int
    second: int


def optimise(point: Point, rows: Rows, rule: int, last: Any, tol: float, max_steps: int) -> Outcome:
    """Take steps until the violation is at most ``tol``, a row is missing or ``max_steps`` are done.

    Parameters
    ----------
    point, rows : Point, Rows
        Where to begin, changed in place; kernel rows.
    rule : int
        Number of the working-set rule.
    last : int64 array of shape (max(n_groups, 1), 2) or None
        The last pair of each group (-1 where there is none), kept for the next call; None for a rule that does
        not look back. Then nothing of those that do is compiled, which takes seconds.
    tol : float
        Largest violation allowed.
    max_steps : int
        Most steps to take.
    """
    residual, values = point.residual, rows.values
    search = Search.of(len(residual), point.n_groups, residual.dtype, values.dtype, last is not None)
    return take_steps(point, rows, search, rule, last, tol, max_steps)


@borrowing
def take_steps(
    point: Point, rows: Rows, search: Search, rule: int, last: Any, tol: float, max_steps: int
) -> Outcome:
    """Take the steps of `optimise`, with room to search in.

    A pair whose step is less than a unit in the last place of both variables waits for the end: others may move.
    """
    n = rows.slot_of.shape[0]
    _prepare(point, rows, search)
    steps, n_waiting, change, way = 0, 0, 0.0, 0.0
    while True:
        # ---- done?
        violation, g = _largest_violation(search.top, search.bottom, point.n_groups)
        if violation <= tol:
            code = STUCK if n_waiting else CONVERGED
            return Outcome(code, steps, violation, change, way, -1, -1)
        if steps >= max_steps:
            return Outcome(STEP_LIMIT, steps, violation, change, way, -1, -1)

        # ---- choose i, which grows, and j, which falls; without j, i moves alone
        code, i, j = choose_pair(rule, g, point, rows, search, last, tol)
        if code != CHOSEN:
            return Outcome(code, steps, violation, change, way, i, j)
        other = j if j >= 0 else i
        slot_i, slot_j = rows.slot_of[i % n], rows.slot_of[other % n]
        if slot_i < 0 or slot_j < 0:
            code = STUCK if n_waiting else NEEDS_ROWS
            return Outcome(code, steps, violation, change, way, i % n, other % n)

        # ---- move
        use_rows(rows, i, other)
        steps += 1
        if j < 0:
            step, fall, length = move_alone(i, point, rows.diagonal)
        else:
            step, fall, length = move_pair(i, j, point, rows.values[slot_i], rows.values[slot_j], rows.diagonal)
            if last is not None and np.isfinite(step):
                last[g, 0], last[g, 1] = i, j
        if not np.isfinite(step) or (step == 0 and j < 0):
            return Outcome(STUCK if step == 0 else UNBOUNDED, steps, violation, change, way, -1, -1)
        if step == 0:
            n_waiting += 1
            _let_wait(g, i, j, point, search)
            continue
        change -= fall
        way += length

        # ---- bring residual and extremes up to date
        _mark(i, point, search)
        if j >= 0:
            _mark(j, point, search)
            _follow_pair(point, search, rows.values[slot_i], rows.values[slot_j], step)
        else:
            _subtract(point.residual, rows.values[slot_i], step)
            _find_extremes(point, search)


@borrowing
def _prepare(point: Point, rows: Rows, search: Search) -> None:
    for t in range(rows.diagonal.shape[0]):
        search.diagonal[t] = rows.diagonal[t]
    for g in range(search.up.shape[0]):
        search.begin[g] = 0
        for t in range(point.residual.shape[0]):
            search.up[g, t], search.down[g, t] = -np.inf, np.inf
    for t in range(point.residual.shape[0]):
        _mark(t, point, search)
    _find_extremes(point, search)


@inlined
def _mark(t: int, point: Point, search: Search) -> None:
    """Note which ways variable t may move."""
    g = point.group[t]
    search.up[g, t] = 0.0 if point.beta[t] < point.hi[t] else -np.inf
    search.down[g, t] = 0.0 if point.beta[t] > point.lo[t] else np.inf


@borrowing
def _let_wait(g: int, i: int, j: int, point: Point, search: Search) -> None:
    """Leave a pair out of the search until one of the two moves with another."""
    search.up[g, i], search.down[g, j], search.begin[g] = -np.inf, np.inf, 0
    _find_extremes(point, search)


@inlined
def _find_extremes(point: Point, search: Search) -> None:
    for g in range(search.top.shape[0]):
        search.top[g], search.bottom[g] = _extremes(point.residual, search.up[g], search.down[g])


@borrowing
def _extremes(r: Any, up: Any, down: Any) -> tuple[float, float]:
    """Largest residual that may grow and smallest that may fall."""
    top, bottom = r.dtype.type(-np.inf), r.dtype.type(np.inf)
    for t in range(r.shape[0]):
        top = larger(top, r[t] + up[t])
        bottom = smaller(bottom, r[t] + down[t])
    return top, bottom


@inlined
def _largest_violation(top: Any, bottom: Any, n_groups: int) -> tuple[float, int]:
    if n_groups == 0:
        return max(top[0], -bottom[0], 0.0), 0
    violation, group = 0.0, 0
    for g in range(n_groups):
        if top[g] - bottom[g] > violation:
            violation, group = top[g] - bottom[g], g
    return violation, group


@inlined
def _follow_pair(point: Point, search: Search, row_i: Any, row_j: Any, step: float) -> None:
    """Bring residual and extremes up to date: in one pass where there is one group and one run of variables."""
    r = point.residual
    if search.top.shape[0] == 1 and r.shape[0] == row_i.shape[0]:
        search.top[0], search.bottom[0], search.begin[0] = _subtract_pair(
            r, row_i, row_j, step, search.up[0], search.down[0]
        )
        return
    _subtract(r, row_i, step)
    _subtract(r, row_j, -step)
    _find_extremes(point, search)


@inlined
def _subtract_pair(r: Any, row_i: Any, row_j: Any, step: float, up: Any, down: Any) -> tuple[float, float, int]:
    """r −= step (row_i − row_j), and in the same pass the new extremes and where the block of the top begins."""
    top, bottom = r.dtype.type(-np.inf), r.dtype.type(np.inf)
    length, place = r.dtype.type(step), 0
    for first in range(0, r.shape[0], BLOCK):
        last = min(first + BLOCK, r.shape[0])
        part, mark_up, mark_down = r[first:last], up[first:last], down[first:last]
        part_i, part_j = row_i[first:last], row_j[first:last]
        highest = r.dtype.type(-np.inf)
        for t in range(part.shape[0]):
            value = part[t] - length * (part_i[t] - part_j[t])
            part[t] = value
            highest = larger(highest, value + mark_up[t])
            bottom = smaller(bottom, value + mark_down[t])
        if highest > top:
            top, place = highest, first
    return top, bottom, place


@borrowing
def _subtract(r: Any, row: Any, step: float) -> None:
    n, length = row.shape[0], r.dtype.type(step)
    for first in range(0, r.shape[0], n):
        part = r[first : first + n]
        for t in range(n):
            part[t] -= length * row[t]
