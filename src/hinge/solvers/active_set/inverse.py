"""The inverse of a symmetric matrix that grows and shrinks by a row at a time.

Only its lower half is kept, in the corner of a larger array: changes are bound by memory. Rows are copied value by
value: slices that are assigned to slices take seconds to compile.
"""

from __future__ import annotations

from typing import Any

from hinge.runtime.jit import borrowing


@borrowing
def times(inverse: Any, size: int, vector: Any, out: Any) -> None:
    """out = inverse @ vector."""
    for i in range(size):
        out[i] = 0.0
    whole = size - size % 4
    for i in range(0, whole, 4):  # four rows at once, so that the vectors are read and written less often
        a, b, c, d = inverse[i, :i], inverse[i + 1, :i], inverse[i + 2, :i], inverse[i + 3, :i]
        fa, fb, fc, fd = vector[i], vector[i + 1], vector[i + 2], vector[i + 3]
        ta, tb, tc, td = 0.0, 0.0, 0.0, 0.0
        part, target = vector[:i], out[:i]  # slices, or it would not vectorise
        for j in range(i):
            ta += a[j] * part[j]
            tb += b[j] * part[j]
            tc += c[j] * part[j]
            td += d[j] * part[j]
            target[j] += a[j] * fa + b[j] * fb + c[j] * fc + d[j] * fd
        out[i] += ta
        out[i + 1] += tb
        out[i + 2] += tc
        out[i + 3] += td
        _times_corner(inverse, i, i, i + 4, vector, out)
    _times_corner(inverse, 0, whole, size, vector, out)


@borrowing
def _times_corner(inverse: Any, left: int, first: int, last: int, vector: Any, out: Any) -> None:
    """The share of rows ``first`` to ``last``, from column ``left`` on, in `times`."""
    for i in range(first, last):
        for j in range(left, i):
            out[i] += inverse[i, j] * vector[j]
            out[j] += inverse[i, j] * vector[i]
        out[i] += inverse[i, i] * vector[i]


@borrowing
def copy_row(inverse: Any, size: int, place: int, out: Any) -> None:
    """Copy a row of the inverse: up to the diagonal it is there, beyond it is a column."""
    for i in range(place + 1):
        out[i] = inverse[place, i]
    for i in range(place + 1, size):
        out[i] = inverse[i, place]


@borrowing
def add(inverse: Any, size: int, pull: Any, pivot: float) -> None:
    """Border the system by one variable, given ``pull`` = inverse @ border and its curvature."""
    for i in range(size):
        row, part, factor = inverse[i, : i + 1], pull[: i + 1], pull[i] / pivot
        for j in range(i + 1):
            row[j] += factor * part[j]
    last = inverse[size]
    for j in range(size):
        last[j] = -pull[j] / pivot
    last[size] = 1.0 / pivot


@borrowing
def remove(inverse: Any, size: int, place: int, column: Any) -> None:
    """Take the variable at ``place`` out of the system; the last one takes its place."""
    copy_row(inverse, size, place, column)
    pivot = column[place]
    for i in range(size):
        row, part, factor = inverse[i, : i + 1], column[: i + 1], column[i] / pivot
        for j in range(i + 1):
            row[j] -= factor * part[j]
    last = size - 1
    if place != last:
        for i in range(place):
            inverse[place, i] = inverse[last, i]
        for i in range(place + 1, last):
            inverse[i, place] = inverse[last, i]
        inverse[place, place] = inverse[last, last]
