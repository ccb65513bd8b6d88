"""What the pair methods of the laboratory share: the curvature of a pair, exact moves within the box."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.runtime.jit import compiled, larger
from hinge.solvers.pairs.step import ROUNDING

# What is left of a variable's room is rounding when it is below this share of its box.
_ROUNDING = 1e-14

_LEAST_SHARE, _LEAST = ROUNDING * float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


@compiled
def curvature_of(own: float, other: float, between: float) -> float:
    """k(x, x) + k(y, y) − 2k(x, y), at least what rounding may have left of it."""
    return larger(own + other - 2.0 * between, _LEAST_SHARE * (abs(own) + abs(other)) + _LEAST)


@compiled
def move(t: int, step: float, beta: Any, lo: Any, hi: Any) -> None:
    """β_t += step; one that uses up its room, but for rounding, is assigned the bound.

    A variable that is a hair's breadth from its bound would count as free, and block every step it takes part in.
    """
    least = _ROUNDING * (hi[t] - lo[t])
    after = beta[t] + step
    if step > 0 and hi[t] - after <= least:
        after = hi[t]
    elif step < 0 and after - lo[t] <= least:
        after = lo[t]
    beta[t] = after


@compiled
def subtract_row(r: Any, row: Any, step: float) -> None:
    """r −= step · row, for each run of variables."""
    n = row.shape[0]
    for first in range(0, r.shape[0], n):
        part = r[first : first + n]
        for t in range(n):
            part[t] -= step * row[t]
