"""Compiled loops between the row cache and the residual."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Floats, Index
from hinge.data.layout import LAYOUT
from hinge.runtime.jit import compiled
from hinge.runtime.memory import CACHE_LINE

_PARTIAL_ROWS = LAYOUT.whole_rows  # compiled code cannot ask a dataclass


@compiled
def add_rows(rows: Floats, slots: Index, step: Floats, total: NDArray[np.float64]) -> None:
    """Add ``step[k] * rows[slots[k]]`` over all k to ``total``; partial sums have the type of ``step``."""
    width = total.shape[0]
    partial = np.empty(width, dtype=step.dtype)
    for first in range(0, slots.shape[0], _PARTIAL_ROWS):
        last = min(first + _PARTIAL_ROWS, slots.shape[0])
        partial[:] = 0
        k = first
        while k + 3 < last:  # four rows at once, so that the partial sums are read and written less often
            a, b, c, d = rows[slots[k]], rows[slots[k + 1]], rows[slots[k + 2]], rows[slots[k + 3]]
            sa, sb, sc, sd = step[k], step[k + 1], step[k + 2], step[k + 3]
            for t in range(width):
                partial[t] += sa * a[t] + sb * b[t] + sc * c[t] + sd * d[t]
            k += 4
        while k < last:
            row, s = rows[slots[k]], step[k]
            for t in range(width):
                partial[t] += s * row[t]
            k += 1
        for t in range(width):
            total[t] += partial[t]


@compiled
def keep_rows(tile: Floats, slots: Index, rows: Floats) -> None:
    """Copy the lines of ``tile`` into ``rows`` at ``slots``; lines whose slot is -1 are not kept."""
    for w in range(tile.shape[0]):
        if slots[w] >= 0:
            source, target = tile[w], rows[slots[w]]
            for t in range(source.shape[0]):
                target[t] = source[t]


@compiled
def gather(rows: Floats, slots: Index, columns: Index, out: Floats) -> None:
    """Fill ``out[k]`` with the values of ``rows[slots[k]]`` at ``columns``; lines whose slot is -1 are left."""
    for k in range(slots.shape[0]):
        if slots[k] >= 0:
            source, target = rows[slots[k]], out[k]
            for t in range(columns.shape[0]):
                target[t] = source[columns[t]]


@compiled
def gather_and_mirror(
    rows: Floats, slots: Index, columns: Index, fresh: Index, start: int, stop: int, out: Floats
) -> None:
    """Fill the lines ``start`` to ``stop`` of a symmetric matrix, and their mirror image in the lines ``fresh``.

    Line k has the values of ``rows[slots[k]]`` at ``columns``; the slot of fresh lines is -1.
    """
    for first in range(start, stop, CACHE_LINE):
        last = min(first + CACHE_LINE, stop)
        gather(rows, slots[first:last], columns, out[first:last])
        for u in range(fresh.shape[0]):
            target = out[fresh[u]]
            for k in range(first, last):
                if slots[k] >= 0:
                    target[k] = out[k, fresh[u]]


@compiled
def mirror(strip: Floats, start: int, out: Floats) -> None:
    """Write the lines ``start`` and following of a symmetric matrix, given from column ``start`` on.

    Each value to the right of the diagonal goes to its place and to that of its mirror image.
    """
    height, width = strip.shape
    for k in range(height):
        source, target = strip[k, k:], out[start + k, start + k : start + width]
        for t in range(source.shape[0]):
            target[t] = source[t]
    for t in range(width):
        target = out[start + t, start : start + min(height, t)]
        for k in range(target.shape[0]):
            target[k] = strip[k, t]
