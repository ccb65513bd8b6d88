"""What rows contain, whatever their form: sums and fingerprints that dense rows and CSR rows have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Floats, is_sparse
from hinge.data.layout import LAYOUT
from hinge.data.pages import is_mapped, reduced, windows
from hinge.data.sharded import ShardedRows
from hinge.runtime.jit import compiled_exactly

Fingerprints = NDArray[np.uint64]

# Kernel values are compared to this many parts of √(k(x, x) k(y, y)): what is left when they are computed again in
# another order. Weights are counted in as many parts of one repetition, up to what 64 bits hold.
_PARTS = float(1 << 20)
_MOST_WEIGHT = 2.0**63 / _PARTS


# Where the rows of an array begin, which nobody asks.
_NO_ROWS = np.empty(0, np.int64)


def fingerprints(X: Any, seed: int) -> Fingerprints:
    """Return a random number for each row of an array or CSR matrix that depends on its values only.

    Zeros do not count, stored or not, nor does the sign of one, nor the type of the numbers.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> rows = np.array([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]])
    >>> bool((fingerprints(rows, 1) == fingerprints(sp.csr_array(rows.astype(np.float32)), 1)).all())
    True
    """
    if isinstance(X, ShardedRows):
        return np.asarray(X.per_row("fingerprints", seed))
    result = np.empty(X.shape[0], np.uint64)
    for start in range(0, X.shape[0], LAYOUT.read_rows):
        part = slice(start, start + LAYOUT.read_rows)
        rows, indices, indptr = X[part], np.empty(0, np.int64), np.empty(0, np.int64)
        if is_sparse(rows):
            indices, indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
            rows = rows.data
        values = np.ascontiguousarray(rows, dtype=np.float64)
        _row_fingerprints(values.view(np.uint64), indices, indptr, np.uint64(seed), result[part])
    return result


def gram_fingerprints(
    K: Floats, strata: NDArray[np.intp], weights: NDArray[np.float64], seed: int
) -> tuple[Fingerprints, Fingerprints, Fingerprints]:
    """Return three random numbers for each sample of a kernel matrix.

    The first depends on which values the sample has with the others and how often, but not on their order: a
    sample of weight 2 counts like two samples. The second depends on the first number and the stratum of those
    others, too. Samples that play the same part in the matrix, as all do in the identity, still have the same
    numbers; the third tells them apart unless they are copies of each other.

    Kernel values are taken relative to √(k(x, x) k(y, y)) and rounded to six digits: the same matrix computed in
    another order gives the same numbers.
    """
    scale = np.sqrt(np.abs(K.diagonal().astype(np.float64)))
    counts = np.rint(np.minimum(weights, _MOST_WEIGHT) * _PARTS).astype(np.uint64)
    first = _mixed(K, scale, np.full(len(K), seed, np.uint64), counts)
    second = _mixed(K, scale, first + strata.astype(np.uint64), counts)
    places = np.arange(len(K)).astype(np.uint64)
    return first, second, _mixed(K, scale, places, np.ones(len(K), np.uint64))


def _mixed(K: Floats, scale: NDArray[np.float64], colours: Fingerprints, counts: Fingerprints) -> Fingerprints:
    result = np.empty(len(K), np.uint64)
    for start in range(0, len(K), LAYOUT.read_rows):
        part = slice(start, start + LAYOUT.read_rows)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            relative = np.rint(_PARTS * (K[part] / scale[part, None] / scale))
        relative = np.where(np.isfinite(relative), relative, np.sign(K[part])) + 0.0  # -0.0 is 0.0
        _mix_lines(relative.view(np.uint64), colours, counts, result[part])
    return result


def extremes(X: Any) -> tuple[float, float, int]:
    """Return the smallest and the largest value that rows store, and how many they store."""
    if isinstance(X, ShardedRows):
        found = [answer for answer in X.contents("extremes") if answer[2]]
        if not found:
            return 0.0, 0.0, 0
        least, most, counts = zip(*found, strict=True)
        return min(least), max(most), sum(counts)
    values = X.data if is_sparse(X) else X
    if not values.size:
        return 0.0, 0.0, 0
    least = reduced(values, lambda part: part.min(), min)
    return float(least), float(reduced(values, lambda part: part.max(), max)), values.size


def moments(X: Any, scale: float, center: float, power: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return sums and counts of `row_moments` for rows in whatever form."""
    if isinstance(X, ShardedRows):
        sums, counts = X.per_row("moments", scale, center, power)
        return sums, counts
    sums, counts = np.empty(X.shape[0]), np.empty(X.shape[0])
    if type(X) is np.ndarray and not is_mapped(X):
        row_moments(X, _NO_ROWS, scale, center, power, sums, counts)
        return sums, counts
    for part in windows(X):
        values, indptr = X, _NO_ROWS
        if is_sparse(X):
            values, indptr = X.data, X.indptr[part.start : part.stop + 1].astype(np.int64, copy=False)
        else:
            values = np.asarray(X[part])
        row_moments(values, indptr, scale, center, power, sums[part], counts[part])
    return sums, counts


@compiled_exactly
def row_moments(
    values: Floats,
    indptr: NDArray[np.int64],
    scale: float,
    center: float,
    power: int,
    sums: NDArray[np.float64],
    counts: NDArray[np.float64],
) -> None:
    """Sum (scale · x − center)^power, power 1 or 2, over the non-zeros of each row, and count them.

    Rows as in `products.row_dot`. Sums are taken in the order of the features: zeros make no difference.
    """
    for i in range(sums.shape[0]):
        row = values[i] if values.ndim == 2 else values[indptr[i] : indptr[i + 1]]
        total, count = 0.0, 0
        for k in range(row.shape[0]):
            if row[k] != 0:
                deviation = scale * np.float64(row[k]) - center
                total += deviation if power == 1 else deviation * deviation
                count += 1
        sums[i], counts[i] = total, count


@compiled_exactly
def _mix(number: np.uint64) -> np.uint64:
    """Turn a number into one that looks random (the finaliser of SplitMix64)."""
    number += np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


@compiled_exactly
def _row_fingerprints(
    bits: Fingerprints, indices: NDArray[np.int64], indptr: NDArray[np.int64], seed: np.uint64, out: Fingerprints
) -> None:
    # The bits of 0.0 are all zero, those of -0.0 all but the first.
    for i in range(out.shape[0]):
        row = bits[i] if bits.ndim == 2 else bits[indptr[i] : indptr[i + 1]]
        number = _mix(seed)
        for k in range(row.shape[0]):
            if row[k] << np.uint64(1) != 0:
                feature = k if bits.ndim == 2 else indices[indptr[i] + k]
                number = _mix(number ^ _mix(np.uint64(feature)) ^ row[k])
        out[i] = number


@compiled_exactly
def _mix_lines(bits: Fingerprints, colours: Fingerprints, counts: Fingerprints, out: Fingerprints) -> None:
    """Sum up what each line holds, in any order: a number for each value and colour, as often as it counts."""
    for i in range(out.shape[0]):
        line, total = bits[i], np.uint64(0)
        for j in range(line.shape[0]):
            total += counts[j] * _mix(_mix(line[j]) ^ colours[j])
        out[i] = _mix(total)
