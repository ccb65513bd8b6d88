"""A point, the kernel rows at hand, and the step of one pair: what the loop, its rules and its callers share.

Variable t belongs to row ``t % n`` of the kernel matrix; β and r hold one or two runs of n variables. Every pair
moves mass inside one group, from j to i. Without groups each variable moves alone, as if its partner had
residual 0 and kernel values 0 (Platt eq. 23).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hinge.arrays import Floats, Vector
from hinge.dual.problem import DualProblem
from hinge.kernel.gram import Gram
from hinge.runtime.jit import borrowing, inlined

# What became of a search for a pair (CHOSEN, NEEDS_ROWS, STUCK), and why the loop returned (all but CHOSEN).
CHOSEN, NEEDS_ROWS, STUCK, CONVERGED, STEP_LIMIT, UNBOUNDED = range(6)

# Rounding of a pair's curvature k(x, x) + k(y, y) − 2k(x, y), in units of the last place of its first two terms. A
# curvature below that is unknown; taken for as large as it may be, its step cannot raise the objective. (LIBSVM
# document eq. 3.23 has a small number in its place, whatever the scale of the kernel.)
ROUNDING = 4.0


class Point(NamedTuple):
    """Where a problem stands, for compiled code.

    Attributes
    ----------
    beta, residual : arrays
        The point, changed in place. The residual may be single where that is exact enough: the loop is as fast as
        memory gives it residual, rows and marks.
    lo, hi : float64 arrays
        The box.
    group : int8 array
        The group of each variable.
    n_groups : int
        0 where variables move alone.
    """

    beta: Any
    residual: Any
    lo: Any
    hi: Any
    group: Any
    n_groups: int

    @classmethod
    def of(cls, problem: DualProblem, beta: Vector, residual: Floats) -> Point:
        """Lay out β and its residual; both are shared."""
        return cls(beta, residual, problem.lo, problem.hi, problem.group, problem.n_groups)


class Rows(NamedTuple):
    """Kernel rows at hand, for compiled code.

    Attributes
    ----------
    values : array of shape (n_slots, n)
        The rows.
    slot_of : int64 array of length n
        In which slot each row is; -1 where it is absent.
    last_use : int64 array of length n_slots
        At which tick of the clock each slot was last used.
    clock : int64 array of length 1
        Ticks whenever rows are used.
    diagonal : float64 array of length n
        k(x, x).
    """

    values: Any
    slot_of: Any
    last_use: Any
    clock: Any
    diagonal: Any

    @classmethod
    def of_cache(cls, gram: Gram) -> Rows:
        """Lay out the rows that a Gram matrix has in its cache; whoever lets the clock tick tells the cache."""
        cache = gram.cache
        return cls(cache.rows, cache.slot_of, cache.last_use, np.array([cache.clock]), gram.diagonal)

    @classmethod
    def of_matrix(cls, kernel: Floats, diagonal: Floats) -> Rows:
        """Lay out a whole kernel matrix, which lacks no row."""
        n = len(kernel)
        return cls(kernel, np.arange(n), np.zeros(n, np.int64), np.zeros(1, np.int64), diagonal)


@inlined
def use_rows(rows: Rows, i: int, j: int) -> None:
    """Note that the rows of the variables i and j are used now."""
    n = rows.slot_of.shape[0]
    rows.clock[0] += 1
    rows.last_use[rows.slot_of[i % n]] = rows.clock[0]
    rows.last_use[rows.slot_of[j % n]] = rows.clock[0]


@inlined
def rounding_of(row: Any) -> float:
    """`ROUNDING` for kernel values of this precision."""
    return ROUNDING * float(np.finfo(row.dtype).eps)


@borrowing
def pair_step(gradient: float, curvature: float, room_i: float, room_j: float) -> float:
    """Return the best step along β_i += δ, β_j −= δ: δ minimises ½ curvature δ² − gradient δ within the rooms.

    Parameters
    ----------
    gradient : float
        r_i − r_j, positive.
    curvature : float
        K_ii + K_jj − 2 K_ij; where it is not positive the step runs to the end of the segment.
    room_i, room_j : float
        hi_i − β_i and β_j − lo_j.

    Returns
    -------
    float
        The step; infinite where nothing stops it.
    """
    step = gradient / curvature if curvature > 0 else np.inf
    return min(step, room_i, room_j)


@inlined
def move_pair(i: int, j: int, point: Point, row_i: Any, row_j: Any, diagonal: Any) -> tuple[float, float, float]:
    """Move mass from j to i.

    Returns the step (0 where rounding swallows it, infinite where nothing ends it), by how much the objective
    falls, and the step's way Σ |δ| √k(x, x).
    """
    beta, r, n = point.beta, point.residual, diagonal.shape[0]
    slope, room_i, room_j = float(r[i] - r[j]), point.hi[i] - beta[i], beta[j] - point.lo[j]
    curvature, most = _curvature(i, j, row_i, row_j, diagonal, min(room_i, room_j))
    step = pair_step(slope, most, room_i, room_j)
    if not np.isfinite(step):
        return step, 0.0, 0.0
    risen, fallen = abs(_move(i, step, point)), abs(_move(j, -step, point))
    way = risen * np.sqrt(abs(diagonal[i % n])) + fallen * np.sqrt(abs(diagonal[j % n]))
    return step if risen + fallen > 0 else 0.0, step * (slope - 0.5 * curvature * step), way


@inlined
def move_alone(i: int, point: Point, diagonal: Any) -> tuple[float, float, float]:
    """Move β_i to its own optimum; returns what `move_pair` does, the step being negative where β_i falls."""
    beta, own = point.beta, diagonal[i % diagonal.shape[0]]
    direction = 1.0 if point.residual[i] > 0 else -1.0
    slope, curvature = float(abs(point.residual[i])), max(own, 0.0)
    step = pair_step(slope, curvature, point.hi[i] - beta[i] if direction > 0 else beta[i] - point.lo[i], np.inf)
    if not np.isfinite(step):
        return step, 0.0, 0.0
    moved = _move(i, direction * step, point)
    return moved, step * (slope - 0.5 * curvature * step), abs(moved) * np.sqrt(abs(own))


@inlined
def _curvature(i: int, j: int, row_i: Any, row_j: Any, diagonal: Any, room: float) -> tuple[float, float]:
    """Curvature of the objective along β_i += δ, β_j −= δ; the same, but at least its rounding.

    The latter is zero where a sample has both variables or is there twice, so that rows are the same to the last
    bit, and where nothing ends a step that is flat or nearly so.
    """
    n = diagonal.shape[0]
    value = diagonal[i % n] + diagonal[j % n] - 2.0 * row_i[j % n]
    least = rounding_of(row_i) * (abs(diagonal[i % n]) + abs(diagonal[j % n]))
    if value > least:
        return value, value
    is_exactly_flat = room == np.inf or i % n == j % n or (value == 0 and _is_same(row_i, row_j))
    return max(value, 0.0), 0.0 if is_exactly_flat else least


@borrowing
def _is_same(row_i: Any, row_j: Any) -> bool:
    t = 0
    while t < row_i.shape[0] and row_i[t] == row_j[t]:
        t += 1
    return t == row_i.shape[0]


@inlined
def _move(t: int, step: float, point: Point) -> float:
    """Move β_t by ``step``; one that reaches its bound is assigned the bound (LIBSVM document section 3.6).

    Returns the distance really moved.
    """
    low, high, before = point.lo[t], point.hi[t], point.beta[t]
    after = before + step
    if step > 0 and (step >= high - before or after > high):
        after = high
    elif step < 0 and (-step >= before - low or after < low):
        after = low
    point.beta[t] = after
    return after - before
