"""Samples: the only code that knows how data is stored.

A storage class answers the same few questions for dense rows, CSR rows and packed bits. The Gram matrix asks
for a *panel*, the samples of a working set laid out for comparison, and then compares it with ranges of
columns. Comparisons are dot products, except for kernels built on sums of differences.

A given Gram matrix and a Python callable are storages too: theirs hold kernel values outright.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hinge import products

Floats = NDArray[np.floating]
Index = NDArray[np.int64]
Statistic = Literal["dot", "l1", "l2", "chi2", "value"]

# How the compiled loops number the statistics that are sums over features.
_DIFFERENCE = {"l1": 1, "l2": 2, "chi2": 3}

# 0/1 features are packed when comparing words costs less than walking the non-zeros of a row.
_WORDS_PER_NONZERO = 1.0
_ALWAYS_PACK_WORDS = 8

# Rows converted at once while the data is read, so that no second full copy ever exists.
_READ_ROWS = 4096


class Samples(ABC):
    """Rows of data that can be compared with each other.

    Attributes
    ----------
    n : int
        Number of samples.
    n_features : int
        Number of features.
    storage : str
        What a report calls this storage.
    cost : float
        Rough cost of one comparison, in multiply-add steps.
    """

    n: int
    n_features: int
    storage: str
    cost: float

    @abstractmethod
    def squared_norms(self, dtype: Any) -> NDArray[np.float64]:
        """Return the squared norm of every sample as comparisons in ``dtype`` see it."""

    @abstractmethod
    def panel(self, index: Index, dtype: Any) -> Any:
        """Lay out the samples ``index`` for `compare`."""

    @abstractmethod
    def compare(self, statistic: Statistic, panel: Any, start: int, stop: int, out: Floats) -> None:
        """Fill ``out[w, t]`` with the statistic of panel sample w and sample ``start + t``."""

    @abstractmethod
    def take(self, index: Index, dtype: Any) -> Self:
        """Copy the samples ``index`` into a storage of their own, for comparisons in ``dtype``."""

    def has_negatives(self) -> bool:
        """Whether some feature is negative."""
        return False

    def diagonal_statistic(self, statistic: Statistic) -> NDArray[np.float64]:
        """Return the statistic of every sample with itself."""
        return self.squared_norms(np.float64) if statistic == "dot" else np.zeros(self.n)


class DenseSamples(Samples):
    """Rows of a float32 or float64 array.

    Single-precision work runs on a float32 copy; double precision reads the original. Centring subtracts
    ``center`` from every row on the way, which leaves distances alone and keeps products small.
    """

    storage = "dense"

    def __init__(self, rows: Floats, center: NDArray[np.float64] | None = None) -> None:
        self.rows = np.ascontiguousarray(rows)
        self.center = center
        self.n, self.n_features = self.rows.shape
        self.cost = float(self.n_features)
        self._single: NDArray[np.float32] | None = None

    def has_negatives(self) -> bool:
        return bool(self.rows.size) and bool(self.rows.min() < 0)

    def centered(self) -> DenseSamples:
        """Return the same rows, seen from their mean."""
        return DenseSamples(self.rows, self.rows.mean(axis=0, dtype=np.float64))

    def squared_norms(self, dtype: Any) -> NDArray[np.float64]:
        norms = np.empty(self.n)
        for start in range(0, self.n, _READ_ROWS):
            rows = self._range(start, min(start + _READ_ROWS, self.n), dtype).astype(np.float64, copy=False)
            norms[start : start + _READ_ROWS] = np.einsum("ij,ij->i", rows, rows)
        return norms

    def panel(self, index: Index, dtype: Any) -> Floats:
        if dtype == np.float32:
            return self._in_single()[index]
        return self._shifted(self.rows[index], dtype)

    def compare(self, statistic: Statistic, panel: Floats, start: int, stop: int, out: Floats) -> None:
        columns = self._range(start, stop, out.dtype)
        if statistic == "dot":
            np.matmul(panel, columns.T, out=out)
        else:
            products.dense_differences(_DIFFERENCE[statistic], panel, columns, out)

    def take(self, index: Index, dtype: Any) -> DenseSamples:
        return DenseSamples(self.panel(index, dtype))

    def combine(self, index: Index, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weight vector ``Xᵀ coefficients`` of the samples ``index``."""
        weights = np.zeros(self.n_features)
        for start in range(0, len(index), _READ_ROWS):
            part = slice(start, start + _READ_ROWS)
            weights += coefficients[part] @ self.panel(index[part], np.float64)
        return weights

    def project(self, weights: NDArray[np.float64], start: int, stop: int) -> NDArray[np.float64]:
        """Return the dot products of the samples ``start`` to ``stop`` with a weight vector."""
        return self._range(start, stop, np.float64) @ weights

    def _range(self, start: int, stop: int, dtype: Any) -> Floats:
        if dtype == np.float32:
            return self._in_single()[start:stop]
        return self._shifted(self.rows[start:stop], dtype)

    def _shifted(self, rows: Floats, dtype: Any) -> Floats:
        if self.center is None:
            return rows.astype(dtype, copy=False)
        return np.subtract(rows, self.center, dtype=np.float64).astype(dtype, copy=False)

    def _in_single(self) -> NDArray[np.float32]:
        if self._single is None:
            if self.rows.dtype == np.float32 and self.center is None:
                return self.rows
            single = np.empty(self.rows.shape, np.float32)
            for start in range(0, self.n, _READ_ROWS):
                part = self.rows[start : start + _READ_ROWS]
                np.subtract(
                    part, 0.0 if self.center is None else self.center, out=single[start : start + _READ_ROWS],
                    dtype=np.float64, casting="same_kind",
                )  # fmt: skip
            self._single = single
        return self._single


class SparseSamples(Samples):
    """Rows of a CSR matrix, compared with a panel that is densified over the features that occur in it."""

    storage = "sparse"

    def __init__(self, matrix: Any) -> None:
        self.n, self.n_features = matrix.shape
        self.indptr = matrix.indptr.astype(np.int64, copy=False)
        self.indices = matrix.indices.astype(np.int32, copy=False)
        self.values: dict[Any, Floats] = {matrix.data.dtype: matrix.data}
        self.cost = max(self.indices.size / max(self.n, 1), 1.0)

    def has_negatives(self) -> bool:
        return bool(self.indices.size) and bool(next(iter(self.values.values())).min() < 0)

    def _values(self, dtype: Any) -> Floats:
        dtype = np.dtype(dtype)
        if dtype not in self.values:
            self.values[dtype] = next(iter(self.values.values())).astype(dtype)
        return self.values[dtype]

    def squared_norms(self, dtype: Any) -> NDArray[np.float64]:
        squares = self._values(dtype).astype(np.float64) ** 2
        rows = np.repeat(np.arange(self.n), np.diff(self.indptr))
        return np.bincount(rows, weights=squares, minlength=self.n).astype(np.float64, copy=False)

    def panel(self, index: Index, dtype: Any) -> tuple[NDArray[np.int32], Floats]:
        values = self._values(dtype)
        present = np.zeros(self.n_features, dtype=bool)
        for row in index:
            present[self.indices[self.indptr[row] : self.indptr[row + 1]]] = True
        place = np.where(present, np.cumsum(present, dtype=np.int32) - 1, np.int32(-1)).astype(np.int32)
        panel = np.zeros((int(np.count_nonzero(present)), len(index)), dtype=dtype)
        products.densify(self.indptr, self.indices, values, index, place, panel)
        return place, panel

    def compare(self, statistic: Statistic, panel: Any, start: int, stop: int, out: Floats) -> None:
        place, features = panel
        csr = (self.indptr, self.indices, self._values(features.dtype))
        if statistic == "dot":
            products.sparse_dots(*csr, place, features, start, out)
        else:
            sums = np.abs(features).sum(axis=0)
            products.sparse_differences(_DIFFERENCE[statistic], *csr, place, features, sums, start, out)

    def combine(self, index: Index, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weight vector ``Xᵀ coefficients`` of the samples ``index``."""
        weights = np.zeros(self.n_features)
        values = self._values(np.float64)
        products.sparse_combine(self.indptr, self.indices, values, index, coefficients, weights)
        return weights

    def project(self, weights: NDArray[np.float64], start: int, stop: int) -> NDArray[np.float64]:
        """Return the dot products of the samples ``start`` to ``stop`` with a weight vector."""
        result = np.empty(stop - start)
        products.sparse_project(self.indptr, self.indices, self._values(np.float64), weights, start, result)
        return result

    def take(self, index: Index, dtype: Any) -> SparseSamples:
        csr = (self._values(dtype), self.indices, self.indptr)
        whole = sp.csr_array(csr, shape=(self.n, self.n_features))
        return SparseSamples(whole[index])


class BitSamples(Samples):
    """Samples whose features are all 0 or 1: 64 features a word, compared by counting common bits."""

    storage = "bits"

    def __init__(self, words: NDArray[np.uint64], n_features: int) -> None:
        self.words = words  # (n_words, n): word-major, so that loops run along the samples
        self.n = words.shape[1]
        self.n_features = n_features
        self.cost = 2.0 * words.shape[0]

    def squared_norms(self, dtype: Any) -> NDArray[np.float64]:
        return np.bitwise_count(self.words).sum(axis=0, dtype=np.float64)

    def panel(self, index: Index, dtype: Any) -> NDArray[np.uint64]:
        return np.ascontiguousarray(self.words[:, index].T)

    def compare(self, statistic: Statistic, panel: Any, start: int, stop: int, out: Floats) -> None:
        columns = np.ascontiguousarray(self.words[:, start:stop])
        products.bit_dots(panel, columns, out)
        if statistic != "dot":  # for bits |x - y| and (x - y)^2 / (x + y) are both x + y - 2xy
            own = np.bitwise_count(panel).sum(axis=1, dtype=out.dtype)
            others = np.bitwise_count(columns).sum(axis=0, dtype=out.dtype)
            np.multiply(out, -2, out=out)
            np.add(out, own[:, None] + others[None, :], out=out)

    def take(self, index: Index, dtype: Any) -> BitSamples:
        return BitSamples(np.take(self.words, index, axis=1), self.n_features)


class GivenGram(Samples):
    """A kernel matrix that was computed elsewhere."""

    storage = "precomputed"
    cost = 1.0

    def __init__(self, matrix: Floats, index: Index | None = None) -> None:
        self.matrix = matrix
        self.index = index
        self.n = matrix.shape[0] if index is None else len(index)
        self.n_features = matrix.shape[0]

    def squared_norms(self, dtype: Any) -> NDArray[np.float64]:
        return np.zeros(self.n)

    def panel(self, index: Index, dtype: Any) -> Floats:
        return self.matrix[index if self.index is None else self.index[index]]

    def compare(self, statistic: Statistic, panel: Floats, start: int, stop: int, out: Floats) -> None:
        out[...] = panel[:, start:stop] if self.index is None else panel[:, self.index[start:stop]]

    def take(self, index: Index, dtype: Any) -> GivenGram:
        return GivenGram(self.matrix, index if self.index is None else self.index[index])

    def diagonal_statistic(self, statistic: Statistic) -> NDArray[np.float64]:
        diagonal = self.matrix.diagonal().astype(np.float64)
        return diagonal if self.index is None else diagonal[self.index]


class CalledKernel(Samples):
    """Rows of data behind a Python function that returns kernel values."""

    storage = "callable"
    cost = 1e3  # unknown; anything in Python is dear

    def __init__(self, rows: Any, function: Callable[[Any, Any], Any]) -> None:
        self.rows = rows
        self.function = function
        self.n, self.n_features = rows.shape

    def squared_norms(self, dtype: Any) -> NDArray[np.float64]:
        return np.zeros(self.n)

    def panel(self, index: Index, dtype: Any) -> Any:
        return self.rows[index]

    def compare(self, statistic: Statistic, panel: Any, start: int, stop: int, out: Floats) -> None:
        out[...] = self._values(panel, self.rows[start:stop])

    def take(self, index: Index, dtype: Any) -> CalledKernel:
        return CalledKernel(self.rows[index], self.function)

    def diagonal_statistic(self, statistic: Statistic) -> NDArray[np.float64]:
        return np.array([self._values(self.rows[[t]], self.rows[[t]])[0, 0] for t in range(self.n)])

    def _values(self, first: Any, second: Any) -> NDArray[np.float64]:
        values = np.asarray(self.function(first, second), dtype=np.float64)
        expected = (first.shape[0], second.shape[0])
        if values.shape != expected:
            raise ValueError(
                f"the kernel function returned an array of shape {values.shape} for {expected[0]} and "
                f"{expected[1]} samples; it must return one row per sample of its first argument and one column "
                "per sample of its second"
            )
        if not np.isfinite(values).all():
            raise ValueError("the kernel function returned NaN or infinity; every kernel value must be finite")
        return values


def as_samples(X: Any, pack: bool = True) -> Samples:
    """Choose the storage for a data matrix: packed bits where every value is 0 or 1, else CSR or dense.

    ``pack=False`` keeps bits as they come.

    Examples
    --------
    >>> as_samples(np.eye(3)).storage
    'bits'
    >>> as_samples(np.array([[0.5, 1.0], [2.0, 0.0]])).storage
    'dense'
    """
    if sp.issparse(X):
        matrix = sp.csr_array(X)
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # the caller's matrix stays as it is
            matrix.sum_duplicates()
        _refuse_nonfinite(matrix.data, "X")
        return (_packed_sparse(matrix) if pack else None) or SparseSamples(matrix)
    rows = np.asarray(X)
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    if rows.ndim != 2:
        raise ValueError(f"X must be a matrix with one row per sample, got {rows.ndim} dimension(s)")
    _refuse_nonfinite(rows, "X")
    return (_packed_dense(rows) if pack else None) or DenseSamples(rows)


def given_gram(matrix: Any) -> GivenGram:
    """Check a precomputed kernel matrix: square, finite, symmetric."""
    if sp.issparse(matrix):
        raise TypeError("a precomputed kernel matrix must be dense: pass K.toarray()")
    matrix = np.asarray(matrix)
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"a precomputed kernel matrix must be square, with a row and a column per training sample; got shape "
            f"{matrix.shape}. To train on features, choose another kernel"
        )
    _refuse_nonfinite(matrix, "the precomputed kernel matrix")
    asymmetry = _largest_asymmetry(matrix)
    scale = float(np.abs(matrix).max(initial=0.0))
    allowed = 1e-4 if matrix.dtype == np.float32 else 1e-8
    if asymmetry > allowed * scale:
        raise ValueError(
            f"a precomputed kernel matrix must be symmetric; K and its transpose differ by up to {asymmetry:.3g}. "
            "Pass (K + K.T) / 2 if the difference is only rounding"
        )
    return GivenGram(matrix)


def _largest_asymmetry(matrix: Floats, tile: int = 512) -> float:
    largest = 0.0
    n = matrix.shape[0]
    for i in range(0, n, tile):
        for j in range(i, n, tile):
            difference = matrix[i : i + tile, j : j + tile] - matrix[j : j + tile, i : i + tile].T
            largest = max(largest, float(np.abs(difference).max()))
    return largest


def _refuse_nonfinite(values: Floats, name: str) -> None:
    # A finite sum proves that every value is finite, in one pass without a temporary array.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        where = f" (first at position {tuple(int(k) for k in bad[0])})"
        raise ValueError(f"{name} contains NaN or infinity{where}; remove or impute these values first")


def _worth_packing(n_features: int, nonzeros_per_row: float) -> bool:
    words = -(-n_features // 64)
    return words <= max(_ALWAYS_PACK_WORDS, _WORDS_PER_NONZERO * nonzeros_per_row)


def _packed_dense(rows: Floats) -> BitSamples | None:
    n, n_features = rows.shape
    if n_features == 0 or n == 0:
        return None
    n_words = -(-n_features // 64)
    padded = np.zeros((n, n_words * 8), np.uint8)
    n_ones = 0
    for start in range(0, n, _READ_ROWS):
        part = rows[start : start + _READ_ROWS]
        ones = part == 1
        if not np.array_equal(ones, part != 0):
            return None
        n_ones += int(np.count_nonzero(ones))
        packed = np.packbits(ones, axis=1, bitorder="little")
        padded[start : start + _READ_ROWS, : packed.shape[1]] = packed
    if not _worth_packing(n_features, n_ones / n):
        return None
    return BitSamples(np.ascontiguousarray(padded.view("<u8").T.astype(np.uint64, copy=False)), n_features)


def _packed_sparse(matrix: Any) -> BitSamples | None:
    n, n_features = matrix.shape
    if n_features == 0 or n == 0 or not _worth_packing(n_features, matrix.nnz / n):
        return None
    if not np.isin(matrix.data, (0, 1)).all():
        return None
    words = np.zeros((-(-n_features // 64), n), np.uint64)
    indptr, indices = matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False)
    products.pack_rows(indptr, indices, matrix.data, words)
    return BitSamples(words, n_features)
