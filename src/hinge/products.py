"""Compiled loops that compare samples: a panel of working-set samples against a range of columns.

Every function fills ``out[w, t]`` for panel sample ``w`` and column sample ``t``. Loops run over slices with
plain indices, because an offset index would keep the compiler from vectorising them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hinge.jit import compiled, popcount

Array = NDArray[np.floating]

# Columns handled at once by the sparse loops: one cache line of float32 per working-set row.
_STRIP = 16


@compiled
def bit_dots(panel: NDArray[np.uint64], words: NDArray[np.uint64], out: Array) -> None:
    """Dot products of 0/1 samples. ``panel[w, k]`` and ``words[k, t]`` hold 64 features each."""
    n_words = words.shape[0]
    for w in range(out.shape[0]):
        row = out[w]
        first = words[0]
        mask = panel[w, 0]
        for t in range(row.shape[0]):
            row[t] = np.int32(popcount(first[t] & mask))
        for k in range(1, n_words - 1, 2):
            one, two = words[k], words[k + 1]
            mask_one, mask_two = panel[w, k], panel[w, k + 1]
            for t in range(row.shape[0]):
                row[t] += np.int32(popcount(one[t] & mask_one) + popcount(two[t] & mask_two))
        if n_words % 2 == 0:
            last = words[n_words - 1]
            mask = panel[w, n_words - 1]
            for t in range(row.shape[0]):
                row[t] += np.int32(popcount(last[t] & mask))


@compiled
def pack_rows(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], values: Array, words: NDArray[np.uint64]
) -> None:
    """Set bit ``f % 64`` of ``words[f // 64, t]`` for every non-zero feature f of row t."""
    for t in range(indptr.shape[0] - 1):
        for p in range(indptr[t], indptr[t + 1]):
            if values[p] != 0:
                f = indices[p]
                words[f >> 6, t] |= np.uint64(1) << np.uint64(f & 63)


@compiled
def densify(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: Array,
    rows: NDArray[np.int64],
    place: NDArray[np.int32],
    panel: Array,
) -> None:
    """Write rows of a CSR matrix as columns of ``panel``; ``place`` maps a feature to its line, or to -1."""
    for w in range(rows.shape[0]):
        for p in range(indptr[rows[w]], indptr[rows[w] + 1]):
            panel[place[indices[p]], w] = values[p]


@compiled
def sparse_dots(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: Array,
    place: NDArray[np.int32],
    panel: Array,
    start: int,
    out: Array,
) -> None:
    """Dot products of CSR rows ``start, start + 1, ...`` with a densified panel (feature-major)."""
    width = panel.shape[1]
    strip = np.empty((_STRIP, width), dtype=panel.dtype)
    for t0 in range(0, out.shape[1], _STRIP):
        filled = min(_STRIP, out.shape[1] - t0)
        for k in range(filled):
            sums = strip[k]
            sums[:] = 0
            for p in range(indptr[start + t0 + k], indptr[start + t0 + k + 1]):
                line = place[indices[p]]
                if line >= 0:
                    value = values[p]
                    features = panel[line]
                    for w in range(width):
                        sums[w] += value * features[w]
        for w in range(width):
            target = out[w, t0 : t0 + filled]
            for k in range(filled):
                target[k] = strip[k, w]


@compiled
def _difference(kind: int, x: float, y: float) -> float:
    if kind == 1:
        return abs(x - y)
    square = (x - y) * (x - y)
    if kind == 2:
        return square
    total = x + y
    return square / total if total > 0 else square


@compiled
def dense_differences(kind: int, panel: Array, columns: Array, out: Array) -> None:
    """Sums over the features of |x - y| (kind 1), (x - y)^2 (kind 2) or (x - y)^2 / (x + y) (kind 3)."""
    for w in range(out.shape[0]):
        x = panel[w]
        for t in range(out.shape[1]):
            y = columns[t]
            total = x.dtype.type(0)
            for f in range(x.shape[0]):
                total += _difference(kind, x[f], y[f])
            out[w, t] = total


@compiled
def sparse_differences(
    kind: int,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: Array,
    place: NDArray[np.int32],
    panel: Array,
    panel_sums: Array,
    start: int,
    out: Array,
) -> None:
    """As `dense_differences`, kinds 1 and 3. A feature that the column sample lacks adds |x|: `panel_sums`."""
    width = panel.shape[1]
    sums = np.empty(width, dtype=panel.dtype)
    for t in range(out.shape[1]):
        for w in range(width):
            sums[w] = panel_sums[w]
        for p in range(indptr[start + t], indptr[start + t + 1]):
            line = place[indices[p]]
            value = values[p]
            if line >= 0:
                features = panel[line]
                for w in range(width):
                    sums[w] += _difference(kind, features[w], value) - abs(features[w])
            else:
                for w in range(width):
                    sums[w] += abs(value)
        for w in range(width):
            out[w, t] = sums[w]


@compiled
def sparse_combine(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: Array,
    rows: NDArray[np.int64],
    coefficients: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> None:
    """Add ``coefficients[k]`` times row ``rows[k]`` to ``weights``, for all k."""
    for k in range(rows.shape[0]):
        for p in range(indptr[rows[k]], indptr[rows[k] + 1]):
            weights[indices[p]] += coefficients[k] * values[p]


@compiled
def sparse_project(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: Array,
    weights: NDArray[np.float64],
    start: int,
    out: NDArray[np.float64],
) -> None:
    """Dot products of rows ``start, start + 1, ...`` with ``weights``."""
    for t in range(out.shape[0]):
        total = 0.0
        for p in range(indptr[start + t], indptr[start + t + 1]):
            total += values[p] * weights[indices[p]]
        out[t] = total
