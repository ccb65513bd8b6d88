"""Newton steps on the free variables of a small problem, for when pair steps crawl.

At large C the free variables are strongly coupled and pair steps zigzag (Bottou & Lin section 1.6.3). With the
bounded variables held, the minimum over the free ones is one linear system: K_FF δ = r_F − μ, with Σδ = 0 in every
group. A step that would leave the box stops at the first bound, that variable is no longer free, and the smaller
system is solved again. A flat direction is followed to the box in the same way, because a small ridge makes its
step very long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from hinge.accumulate import gather
from hinge.problem import Vector
from hinge.samples import Floats, Index

# Factoring more free variables than this costs more than the pair steps it replaces.
MOST_FREE = 2000

# Seconds, roughly, per unit of work; they only have to tell a small factorisation from a large one.
_SECONDS_PER_FLOP = 6e-11
_SECONDS_PER_VALUE = 2e-8
_SECONDS_PER_CALL = 2e-4

# Rows of the kernel matrix that are turned into double precision together.
_ROWS_AT_ONCE = 256

_RIDGE = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-11}
_RIDGE_GROWTH = 100.0
_MOST_RIDGE = 1e-2


def newton_seconds(n_variables: int, n_free: int) -> float:
    """Estimate the time of one Newton step; infinite where it is out of the question."""
    if n_free > MOST_FREE:
        return np.inf
    return _SECONDS_PER_FLOP * n_free**3 / 3 + _SECONDS_PER_VALUE * n_variables * n_free + _SECONDS_PER_CALL


def newton_steps(
    kernel: Floats,
    beta: Vector,
    residual: Vector,
    lo: Vector,
    hi: Vector,
    group: Any,
    n_groups: int,
    rounds: int,
    must_stop: Callable[[], bool],
) -> int:
    """Move the free variables to their joint minimum, or until ``rounds`` bounds are met; return the steps taken.

    ``beta`` and ``residual`` are changed in place; the objective never rises.
    """
    for taken in range(rounds):
        if must_stop():
            return taken
        free = np.flatnonzero((beta > lo) & (beta < hi))
        if not max(n_groups, 1) < len(free) + 1 <= MOST_FREE + 1:
            return taken
        direction = _direction(kernel, free, residual[free], group[free], n_groups)
        slope = float(np.dot(residual[free], direction))
        image = _image(kernel, free, direction)
        curvature = float(np.dot(direction, image[free]))
        if not slope > 0:
            return taken
        best = slope / curvature if curvature > 0 else np.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(direction > 0, hi[free] - beta[free], lo[free] - beta[free]) / direction
        room[direction == 0] = np.inf
        first = int(np.argmin(room))
        length = min(best, float(room[first]))
        if not np.isfinite(length):
            return taken
        beta[free] = np.clip(beta[free] + length * direction, lo[free], hi[free])
        if length == room[first]:
            blocked = free[first]
            beta[blocked] = hi[blocked] if direction[first] > 0 else lo[blocked]
        residual -= length * image
        if length == best:
            return taken + 1
    return rounds


def _image(kernel: Floats, free: Index, direction: Vector) -> Vector:
    """Return K[:, free] @ direction in double precision, some rows at a time."""
    image = np.empty(len(kernel))
    for start in range(0, len(kernel), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        image[rows] = kernel[rows, free].astype(np.float64) @ direction
    return image


def _direction(kernel: Floats, free: Index, residual: Vector, group: Any, n_groups: int) -> Vector:
    """Solve K δ = r − μ for the free variables, with Σδ = 0 in every group."""
    scale = float(np.mean(np.abs(kernel[free, free]))) or 1.0
    members = np.equal.outer(group, np.arange(n_groups)).astype(np.float64)
    ridge = _RIDGE[kernel.dtype]
    matrix = np.empty((len(free), len(free)))
    while ridge <= _MOST_RIDGE:
        gather(kernel, free, free, matrix)
        matrix.flat[:: len(free) + 1] += ridge * scale
        try:
            # The transpose is the same matrix, in the order that LAPACK overwrites without a copy.
            factor = cho_factor(matrix.T, overwrite_a=True, check_finite=False)
        except LinAlgError:
            ridge *= _RIDGE_GROWTH
            continue
        plain = cho_solve(factor, residual, check_finite=False)
        if n_groups == 0:
            return plain
        pulls = cho_solve(factor, members, check_finite=False)
        # A group without free variables has an all-zero column: its multiplier is then any number.
        multipliers = np.linalg.lstsq(members.T @ pulls, members.T @ plain, rcond=None)[0]
        direction = plain - pulls @ multipliers
        counts = np.maximum(members.sum(axis=0), 1.0)
        return direction - members @ (members.T @ direction / counts)  # rounding must not move the sums
    return np.zeros_like(residual)  # indefinite: leave it to the pair steps
