"""Images Kβ in double-double arithmetic, for when double precision cannot tell whether a point is optimal.

Samples are compared as they were given, not as seen from their centre; sums over features, kernel functions and
sums over support vectors all keep twice the digits. This takes fifty times as long as double precision, so it
is asked for single samples, and only where `hinge.kernel.rounding` shows that they need it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import FeatureRows, Floats, Index, Vector
from hinge.data.layout import LAYOUT
from hinge.data.samples import KINDS, Samples, Statistic
from hinge.kernel.double_double import add, divide, multiply, two_product, two_sum
from hinge.kernel.kernels import Kernel
from hinge.runtime.jit import compiled_literally
from hinge.runtime.prices import SECONDS_PER_SHARP_TERM, SECONDS_PER_SHARP_VALUE
from hinge.runtime.threads import Team

# The two parts of each number, one below the other.
Pairs = NDArray[np.float64]


def seconds_of(samples: Samples, n_values: int) -> float:
    """Guess how long one thread takes for this many kernel values."""
    return (SECONDS_PER_SHARP_TERM * samples.terms + SECONDS_PER_SHARP_VALUE) * n_values


def sharp_image(
    samples: Samples, kernel: Kernel, support: Index, coefficients: NDArray[np.float64], rows: Index, team: Team
) -> Pairs:
    """Return Σ coefficient · k(support, ·) at the samples ``rows``, to twice the digits of a double.

    Parameters
    ----------
    samples : Samples
        All samples.
    kernel : Kernel
        The kernel function.
    support : int64 array
        Samples with a coefficient.
    coefficients : float64 array
        One for each of them.
    rows : int64 array
        Where the image is wanted.
    team : Team
        Who computes it.

    Returns
    -------
    array of shape (2, n_rows)
        The image is the sum of both lines.
    """
    image = np.zeros((2, len(rows)))
    statistic = kernel.by_differences or kernel.statistic
    row_norms, column_norms = np.zeros((2, 2, 0))
    if kernel.takes_norms:
        row_norms, column_norms = _norms(samples, statistic, rows), _norms(samples, statistic, support)

    def work(start: int, stop: int) -> None:
        for first in range(0, len(support), LAYOUT.flat_tile[0]):
            team.check()
            part = slice(first, first + LAYOUT.flat_tile[0])
            values = _comparisons(samples, statistic, rows[start:stop], support[part])
            kernel.sharpen(values[0], values[1], row_norms[:, start:stop], column_norms[:, part])
            _accumulate(values, coefficients[part], image[:, start:stop])

    team.share(len(rows), LAYOUT.few_rows, work, seconds_of(samples, len(rows) * len(support)))
    return image


def sharp_weights(samples: Samples, support: Index, coefficients: NDArray[np.float64]) -> Pairs:
    """Return the weight vector ``Xᵀβ`` of a linear kernel as the sum of two lines."""
    weights = np.zeros((2, samples.n_features))
    for part in _parts(support):
        exact, places = samples.exact_rows_of(support[part])
        _combine(exact, places, coefficients[part], weights)
    return weights


def sharp_projection(samples: Samples, weights: Pairs, rows: Index) -> Pairs:
    """Return ``X weights`` at the samples ``rows`` as the sum of two lines: with `sharp_weights` their image."""
    image = np.zeros((2, len(rows)))
    for part in _parts(rows):
        exact, places = samples.exact_rows_of(rows[part])
        _project(exact, places, weights, image[:, part])
    return image


def _parts(index: Index) -> list[slice]:
    return [slice(k, k + LAYOUT.read_rows) for k in range(0, len(index), LAYOUT.read_rows)]


def _comparisons(samples: Samples, statistic: Statistic, rows: Index, columns: Index) -> Pairs:
    values = np.zeros((2, len(rows), len(columns)))
    if samples.is_exactly_compared:  # bits and given values: what double precision says is exact
        others = samples.take(columns, np.float64)
        others.compare(statistic, samples.panel(rows, np.float64), 0, len(columns), values[0])
    else:
        exact, places = samples.exact_rows_of(np.concatenate([rows, columns]))
        rows, columns = places[: len(rows)], places[len(rows) :]
        if exact.values.ndim == 2:
            _compare_dense(KINDS[statistic], exact.values, rows, columns, values)
        else:
            _compare_sparse(KINDS[statistic], exact, rows, columns, values)
    return values


def _norms(samples: Samples, statistic: Statistic, index: Index) -> Pairs:
    """As `Samples.norms`, of the samples ``index``."""
    norms = np.zeros((2, len(index)))
    if samples.is_exactly_compared:
        norms[0] = samples.norms(statistic, np.float64)[index]
    else:
        for part in _parts(index):
            exact, places = samples.exact_rows_of(index[part])
            _measure(KINDS[statistic], exact, places, norms[:, part])
    return norms


@compiled_literally
def _term(kind: int, x: float, y: float) -> tuple[float, float]:
    """What one feature adds to a comparison."""
    if kind == 0:
        return two_product(x, y)
    difference = two_sum(x, -y)
    if kind == 1:
        return difference if difference[0] >= 0 else (-difference[0], -difference[1])
    square = multiply(difference, difference)
    if kind == 2:
        return square
    total = two_sum(x, y)
    return divide(square, total) if total[0] > 0 else square


@compiled_literally
def _compare_dense(kind: int, values: Floats, rows: Index, columns: Index, out: Pairs) -> None:
    """Comparisons of ``rows`` and ``columns``, both numbers of lines of ``values``."""
    for w in range(rows.shape[0]):
        row = values[rows[w]]
        for t in range(columns.shape[0]):
            column = values[columns[t]]
            total = (0.0, 0.0)
            for f in range(row.shape[0]):
                total = add(total, _term(kind, np.float64(row[f]), np.float64(column[f])))
            out[0, w, t], out[1, w, t] = total


@compiled_literally
def _compare_sparse(kind: int, csr: FeatureRows, rows: Index, columns: Index, out: Pairs) -> None:
    """As `_compare_dense`, of a CSR matrix, feature by feature: far from zero sums of squares would cancel."""
    indptr, indices, values = csr
    for w in range(rows.shape[0]):
        for t in range(columns.shape[0]):
            total = (0.0, 0.0)
            p, end = indptr[rows[w]], indptr[rows[w] + 1]
            q, other_end = indptr[columns[t]], indptr[columns[t] + 1]
            while p < end or q < other_end:
                feature = indices[p] if p < end else indices[q]
                if q < other_end and indices[q] < feature:
                    feature = indices[q]
                x, y = 0.0, 0.0
                if p < end and indices[p] == feature:
                    x = np.float64(values[p])
                    p += 1
                if q < other_end and indices[q] == feature:
                    y = np.float64(values[q])
                    q += 1
                if kind > 0 or (x != 0 and y != 0):
                    total = add(total, _term(kind, x, y))
            out[0, w, t], out[1, w, t] = total


@compiled_literally
def _accumulate(values: Pairs, coefficients: Vector, out: Pairs) -> None:
    for w in range(out.shape[1]):
        total = (out[0, w], out[1, w])
        for t in range(coefficients.shape[0]):
            total = add(total, multiply((values[0, w, t], values[1, w, t]), (coefficients[t], 0.0)))
        out[0, w], out[1, w] = total


@compiled_literally
def _places(indptr: Any, values: Any, row: int) -> tuple[int, int]:
    """Where the entries of a row begin and end: in a CSR matrix, or in ``values`` if that has two axes."""
    if values.ndim == 2:
        return 0, values.shape[1]
    return indptr[row], indptr[row + 1]


@compiled_literally
def _entry(indices: Any, values: Any, row: int, p: int) -> tuple[Any, Any]:
    """Feature and value of an entry of a row."""
    if values.ndim == 2:
        return p, np.float64(values[row, p])
    return np.int64(indices[p]), np.float64(values[p])


@compiled_literally
def _measure(kind: int, exact: FeatureRows, rows: Index, out: Pairs) -> None:
    indptr, indices, values = exact
    for w in range(rows.shape[0]):
        row, total = rows[w], (0.0, 0.0)
        start, stop = _places(indptr, values, row)
        for p in range(start, stop):
            _, x = _entry(indices, values, row, p)
            total = add(total, _term(kind, x, x if kind == 0 else 0.0))
        out[0, w], out[1, w] = total


@compiled_literally
def _combine(exact: FeatureRows, support: Index, coefficients: Vector, weights: Pairs) -> None:
    indptr, indices, values = exact
    for k in range(support.shape[0]):
        row = support[k]
        start, stop = _places(indptr, values, row)
        for p in range(start, stop):
            f, x = _entry(indices, values, row, p)
            weights[0, f], weights[1, f] = add((weights[0, f], weights[1, f]), two_product(coefficients[k], x))


@compiled_literally
def _project(exact: FeatureRows, rows: Index, weights: Pairs, out: Pairs) -> None:
    indptr, indices, values = exact
    for w in range(rows.shape[0]):
        row, total = rows[w], (0.0, 0.0)
        start, stop = _places(indptr, values, row)
        for p in range(start, stop):
            f, x = _entry(indices, values, row, p)
            total = add(total, multiply((weights[0, f], weights[1, f]), (x, 0.0)))
        out[0, w], out[1, w] = total
