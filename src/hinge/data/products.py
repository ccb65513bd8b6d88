"""Compiled loops that compare samples: a panel of working-set samples against a range of columns.

Every function fills ``out[w, t]`` for panel sample ``w`` and column sample ``t``. Loops run over slices with
plain indices, because an offset index would keep the compiler from vectorising them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import FeatureRows, Floats, Index, Vector
from hinge.runtime.jit import compiled, compiled_exactly, popcount
from hinge.runtime.memory import CACHE_LINE


class SparsePanel(NamedTuple):
    """Sparse samples laid out dense: ``lines[place[f], w]`` is feature f of sample w.

    There are lines only for the features that occur; ``place`` is -1 for all others. The samples are filled up
    with zeros.
    """

    place: NDArray[np.int32]
    lines: Floats


@compiled
def bit_dots(panel: NDArray[np.uint64], words: NDArray[np.uint64], out: Floats) -> None:
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
def bit_look_up(panel: NDArray[np.uint64], words: NDArray[np.uint64], table: Floats, out: Floats) -> None:
    """``table[d]``, where d is the number of features in which two 0/1 samples differ.

    Counting and looking up are loops of their own: together they would not vectorise as well.
    """
    n_words = words.shape[0]
    counts = np.zeros(out.shape[1], np.uint32)
    for w in range(out.shape[0]):
        row = out[w]
        one, mask_one = words[0], panel[w, 0]
        if n_words % 2 == 1:
            for t in range(row.shape[0]):
                counts[t] = np.uint32(popcount(one[t] ^ mask_one))
        else:
            two, mask_two = words[1], panel[w, 1]
            for t in range(row.shape[0]):
                counts[t] = np.uint32(popcount(one[t] ^ mask_one) + popcount(two[t] ^ mask_two))
        for k in range(2 - n_words % 2, n_words, 2):
            one, two = words[k], words[k + 1]
            mask_one, mask_two = panel[w, k], panel[w, k + 1]
            for t in range(row.shape[0]):
                counts[t] += np.uint32(popcount(one[t] ^ mask_one) + popcount(two[t] ^ mask_two))
        for t in range(row.shape[0]):
            row[t] = table[counts[t]]


@compiled
def pack_rows(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], values: Floats, words: NDArray[np.uint64]
) -> None:
    """Set bit ``f % 64`` of ``words[f // 64, t]`` for every non-zero feature f of row t."""
    for t in range(indptr.shape[0] - 1):
        for p in range(indptr[t], indptr[t + 1]):
            if values[p] != 0:
                f = indices[p]
                words[f >> 6, t] |= np.uint64(1) << np.uint64(f & 63)


@compiled
def number_features(csr: FeatureRows, rows: Index, place: NDArray[np.int32]) -> int:
    """Number the features that occur in ``rows`` of a CSR matrix, in ``place``; return how many there are."""
    indptr, indices, n_present = csr.indptr, csr.indices, 0
    for w in range(rows.shape[0]):
        for p in range(indptr[rows[w]], indptr[rows[w] + 1]):
            if place[indices[p]] < 0:
                place[indices[p]] = n_present
                n_present += 1
    return n_present


@compiled
def _write_strip(strip: Floats, out: Floats) -> None:
    """Copy the transpose of ``strip``, as far as ``out`` goes."""
    for w in range(out.shape[0]):
        target = out[w]
        for k in range(strip.shape[0]):
            target[k] = strip[k, w]


@compiled
def take_rows(csr: FeatureRows, rows: Index, taken: FeatureRows) -> None:
    """Copy ``rows`` of a CSR matrix to where the ``indptr`` of ``taken`` says."""
    indptr, indices, values = csr.indptr, csr.indices, csr.values
    taken_indptr, taken_indices, taken_values = taken.indptr, taken.indices, taken.values
    for w in range(rows.shape[0]):
        first, target = indptr[rows[w]], taken_indptr[w]
        for k in range(taken_indptr[w + 1] - target):
            taken_indices[target + k] = indices[first + k]
            taken_values[target + k] = values[first + k]


@compiled
def lay_out(csr: FeatureRows, rows: Index, panel: SparsePanel) -> None:
    """Write ``rows`` of a CSR matrix into the columns of a panel's lines, feature f into line ``place[f]``."""
    indptr, indices, values, place, lines = csr.indptr, csr.indices, csr.values, panel.place, panel.lines
    for w in range(rows.shape[0]):
        for p in range(indptr[rows[w]], indptr[rows[w] + 1]):
            lines[np.uint32(place[indices[p]]), w] = values[p]


@compiled
def sparse_dots(csr: FeatureRows, panel: SparsePanel, start: int, out: Floats) -> None:
    """Dot products of CSR rows ``start, start + 1, ...`` with a panel that `lay_out` filled.

    Each non-zero adds a multiple of a line of the panel to the sums, four at a time, so that these are read and
    written less often.
    """
    indptr, indices, values, place, lines = csr.indptr, csr.indices, csr.values, panel.place, panel.lines
    strip = np.empty((CACHE_LINE, lines.shape[1]), dtype=out.dtype)
    shared, factors = np.empty(lines.shape[0] + 1, np.uint32), np.empty(lines.shape[0] + 1, out.dtype)
    for t0 in range(0, out.shape[1], CACHE_LINE):
        filled = min(CACHE_LINE, out.shape[1] - t0)
        for k in range(filled):
            n_shared = 0
            for p in range(indptr[start + t0 + k], indptr[start + t0 + k + 1]):
                line = place[np.uint32(indices[p])]
                shared[n_shared], factors[n_shared] = line, values[p]  # overwritten next if there is no such line
                n_shared += line >= 0
            sums = strip[k]
            sums[:] = 0
            whole = n_shared - n_shared % 4
            for q in range(0, whole, 4):
                a, b, c, d = lines[shared[q]], lines[shared[q + 1]], lines[shared[q + 2]], lines[shared[q + 3]]
                va, vb, vc, vd = factors[q], factors[q + 1], factors[q + 2], factors[q + 3]
                for w in range(sums.shape[0]):
                    sums[w] += va * a[w] + vb * b[w] + vc * c[w] + vd * d[w]
            for q in range(whole, n_shared):
                a, va = lines[shared[q]], factors[q]
                for w in range(sums.shape[0]):
                    sums[w] += va * a[w]
        _write_strip(strip[:filled], out[:, t0 : t0 + filled])


@compiled
def count_nonzeros(rows: Floats, upto: NDArray[np.int64]) -> int:
    """Count the non-zeros of all rows; ``upto[i + 1]`` becomes their number in the rows 0 to i."""
    total = 0
    for i in range(rows.shape[0]):
        row = rows[i]
        for f in range(row.shape[0]):
            total += row[f] != 0
        upto[i + 1] = total
    return total


@compiled
def compress(rows: Floats, csr: FeatureRows) -> None:
    """Write down the non-zeros of every row; there must be room for one more."""
    indptr, indices, values = csr.indptr, csr.indices, csr.values
    for i in range(rows.shape[0]):
        row, p = rows[i], indptr[i]
        for f in range(row.shape[0]):
            indices[p], values[p] = f, row[f]  # a zero is overwritten by what comes next
            p += row[f] != 0


@compiled
def _difference(kind: int, x: Any, y: Any) -> Any:
    if kind == 1:
        return abs(x - y)
    square = (x - y) * (x - y)
    if kind == 2:
        return square
    total = x + y
    return square / total if total > 0 else square


@compiled
def dense_differences(kind: int, panel: Floats, columns: Floats, out: Floats) -> None:
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
    kind: int, one_by_one: bool, csr: FeatureRows, panel: SparsePanel, start: int, out: Floats
) -> None:
    """As `dense_differences`, with rows and panel as in `sparse_dots`.

    Of kinds 1 and 3 a feature that only one of two samples has adds its own size: all features of the panel are
    added at once, and those that the column has too are taken off again. ``one_by_one``, for all kinds, lays out
    every column dense among the features of the panel instead: large sums do not cancel, but that takes as long as
    if there were no zeros.
    """
    indptr, indices, values, place, lines = csr.indptr, csr.indices, csr.values, panel.place, panel.lines
    zero = out.dtype.type(0)
    column, panel_sums = np.zeros(lines.shape[0], out.dtype), np.zeros(lines.shape[1], out.dtype)
    if not one_by_one:
        for f in range(lines.shape[0]):
            line = lines[f]
            for w in range(panel_sums.shape[0]):
                panel_sums[w] += abs(line[w])
    sums = np.empty_like(panel_sums)
    for t in range(out.shape[1]):
        alone = zero  # of the features that no sample of the panel has
        for p in range(indptr[start + t], indptr[start + t + 1]):
            if place[indices[p]] < 0:
                alone += _difference(kind, values[p], zero) if one_by_one else abs(values[p])
            else:
                column[place[indices[p]]] = values[p]
        for w in range(sums.shape[0]):
            sums[w] = panel_sums[w] + alone
        if one_by_one:
            for f in range(lines.shape[0]):
                line, value = lines[f], column[f]
                for w in range(sums.shape[0]):
                    sums[w] += _difference(kind, line[w], value)
        for p in range(indptr[start + t], indptr[start + t + 1]):
            number, value = place[indices[p]], values[p]
            if number >= 0:
                column[number] = zero
                line = lines[np.uint32(number)]
                if not one_by_one:
                    for w in range(sums.shape[0]):
                        sums[w] += _difference(kind, line[w], value) - abs(line[w])
        for w in range(out.shape[0]):
            out[w, t] = sums[w] if sums[w] > 0 else zero  # rounding


@compiled_exactly
def _sparse_row_dot(indices: NDArray[np.int32], values: Floats, weights: Vector) -> float:
    # Sums in a fixed order, four at a time: free to re-order them, the compiler would gather the weights by vector
    # instructions, which some processors run several times slower. Unsigned indices need no test for a sign.
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = indices.shape[0] - indices.shape[0] % 4
    for p in range(0, whole, 4):
        a += values[p] * weights[np.uint32(indices[p])]
        b += values[p + 1] * weights[np.uint32(indices[p + 1])]
        c += values[p + 2] * weights[np.uint32(indices[p + 2])]
        d += values[p + 3] * weights[np.uint32(indices[p + 3])]
    for p in range(whole, indices.shape[0]):
        a += values[p] * weights[np.uint32(indices[p])]
    return (a + b) + (c + d)


@compiled
def _dense_row_dot(row: Floats, weights: Vector) -> float:
    total = 0.0
    for f in range(row.shape[0]):
        total += row[f] * weights[f]
    return total


@compiled
def row_dot(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], values: Floats, t: int, weights: Vector
) -> float:
    """Dot product of row t with ``weights``; rows of a CSR matrix, or of ``values`` if that has two axes."""
    if values.ndim == 2:  # known when this is compiled, so that only one branch remains
        return _dense_row_dot(values[t], weights)
    start, stop = indptr[t], indptr[t + 1]
    return _sparse_row_dot(indices[start:stop], values[start:stop], weights)


@compiled
def add_row(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: Floats,
    t: int,
    coefficient: float,
    weights: Vector,
) -> None:
    """Add ``coefficient`` times row t to ``weights``; rows as in `row_dot`."""
    if values.ndim == 2:
        row = values[t]
        for f in range(row.shape[0]):
            weights[f] += coefficient * row[f]
    else:
        for p in range(indptr[t], indptr[t + 1]):
            weights[np.uint32(indices[p])] += coefficient * values[p]


@compiled
def shift_rows(rows: Floats, center: Vector, out: Floats) -> None:
    """Fill ``out`` with the rows as seen from ``center``, each difference taken in double precision."""
    for i in range(rows.shape[0]):
        source, target = rows[i], out[i]
        for f in range(center.shape[0]):
            target[f] = source[f] - center[f]


@compiled
def dense_norms(rows: Floats, center: Vector, norms: Vector) -> None:
    """Fill ``norms`` with the squared distance of every row from ``center``."""
    for i in range(norms.shape[0]):
        row, total = rows[i], 0.0
        for f in range(center.shape[0]):
            difference = row[f] - center[f]
            total += difference * difference
        norms[i] = total


@compiled
def sparse_norms(indptr: NDArray[np.int64], values: Floats, norms: Vector) -> None:
    """Fill ``norms`` with the squared norm of every row."""
    for i in range(norms.shape[0]):
        row, total = values[indptr[i] : indptr[i + 1]], 0.0
        for k in range(row.shape[0]):
            total += np.float64(row[k]) * np.float64(row[k])
        norms[i] = total


@compiled
def sparse_combine(csr: FeatureRows, rows: Index, coefficients: Vector, weights: Vector) -> None:
    """Add ``coefficients[k]`` times row ``rows[k]`` to ``weights``, for all k."""
    for k in range(rows.shape[0]):
        add_row(csr.indptr, csr.indices, csr.values, rows[k], coefficients[k], weights)


@compiled
def sparse_project(csr: FeatureRows, weights: Vector, start: int, out: Vector) -> None:
    """Dot products of rows ``start, start + 1, ...`` with ``weights``."""
    for t in range(out.shape[0]):
        out[t] = row_dot(csr.indptr, csr.indices, csr.values, start + t, weights)


@compiled
def sparse_moments(csr: FeatureRows, rows: Index, factors: Vector, out: Vector) -> None:
    """Add ``factor x xᵀ`` for the ``rows`` x of a CSR matrix to the lower half of ``out``."""
    indptr, indices, values = csr.indptr, csr.indices, csr.values
    for k in range(rows.shape[0]):
        start, stop = indptr[rows[k]], indptr[rows[k] + 1]
        for p in range(start, stop):
            line, factor = out[np.uint32(indices[p])], factors[k] * values[p]
            for q in range(start, p + 1):
                line[np.uint32(indices[q])] += factor * values[q]
