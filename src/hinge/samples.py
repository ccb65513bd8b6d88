"""Samples: the only code that knows how data is stored.

A storage class answers the same few questions for dense rows, CSR rows and packed bits. The Gram matrix asks
for a *panel*, the samples of a working set laid out for comparison, and then compares it with ranges of
columns. Comparisons are dot products, except for kernels built on sums of differences.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hinge import products
from hinge.memory import aligned

Floats = NDArray[np.floating]
Index = NDArray[np.int64]
Statistic = Literal["dot", "l1", "l2", "chi2", "value"]
FeatureRows = tuple[NDArray[np.int64], NDArray[np.int32], Floats]

# How the compiled loops number the statistics that are sums over features.
_DIFFERENCE = {"l1": 1, "l2": 2, "chi2": 3}

# Rows converted at once while the data is read, so that no second full copy ever exists.
READ_ROWS = 4096

# Panels of few rows are compared in pieces of so many multiply-adds. BLAS has a way for small products that spares
# it from rearranging the columns first: two rows of MNIST take half the time.
_FEW_ROWS, _SMALL_PRODUCT = 16, 850_000

# A multiply-add of sparse samples waits for the second-level cache: it takes as long as so many of dense ones.
_SPARSE_PRICE = 5.0

# Panels of sparse samples hold a multiple of so many, a vector of float32 on most processors; at most so many;
# and if that can be helped no more than so many values.
_PANEL_STEP, _MOST_IN_PANEL, _PANEL_VALUES = 16, 192, 1 << 20


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
        Rough cost of one comparison, in multiply-add steps of dense samples.
    terms : int
        Most terms that the sum of one comparison has.
    is_exactly_compared : bool
        Whether comparisons in double precision have no rounding error.
    """

    n: int
    n_features: int
    storage: str
    cost: float
    terms: int = 0
    is_exactly_compared = True

    def __init__(self) -> None:
        self._norms: dict[Any, Floats] = {}

    def squared_norms(self, dtype: Any) -> Floats:
        """Return the squared norm of every sample as comparisons in ``dtype`` see it."""
        dtype = np.dtype(dtype)
        if dtype not in self._norms:
            with np.errstate(over="ignore"):  # whoever needs them looks whether they are finite
                self._norms[dtype] = self._compute_norms(dtype).astype(dtype, copy=False)
        return self._norms[dtype]

    @abstractmethod
    def _compute_norms(self, dtype: Any) -> NDArray[np.float64]:
        """Compute `squared_norms`, summed in double precision."""

    @abstractmethod
    def panel(self, index: Index, dtype: Any) -> Any:
        """Lay out the samples ``index`` for `compare`."""

    @abstractmethod
    def compare(self, statistic: Statistic, panel: Any, start: int, stop: int, out: Floats) -> None:
        """Fill ``out[w, t]`` with the statistic of panel sample w and sample ``start + t``."""

    @abstractmethod
    def take(self, index: Index, dtype: Any) -> Self:
        """Copy the samples ``index`` into a storage of their own, for comparisons in ``dtype``."""

    def exact_rows(self) -> FeatureRows:
        """Return the rows as they were given, where comparing them may round."""
        raise NotImplementedError(f"{self.storage} samples are compared exactly as they are")

    def has_negatives(self) -> bool:
        """Whether some feature is negative."""
        return False

    def diagonal_statistic(self, statistic: Statistic) -> NDArray[np.float64]:
        """Return the statistic of every sample with itself."""
        return self.squared_norms(np.float64).astype(np.float64) if statistic == "dot" else np.zeros(self.n)


class DenseSamples(Samples):
    """Rows of a float32 or float64 array.

    Single-precision work runs on a float32 copy; double precision reads the original. Centring subtracts
    ``center`` from every row on the way, which leaves distances alone and keeps products small.
    """

    storage = "dense"
    is_exactly_compared = False

    def __init__(self, rows: Floats, center: NDArray[np.float64] | None = None) -> None:
        super().__init__()
        self.rows = np.ascontiguousarray(rows)
        self.center = center
        self.n, self.n_features = self.rows.shape
        self.terms = self.n_features
        self.cost = float(self.n_features)
        self._single: NDArray[np.float32] | None = None
        self._features: dict[Any, Floats] = {}

    def has_negatives(self) -> bool:
        return bool(self.rows.size) and bool(self.rows.min() < 0)

    def centered(self) -> DenseSamples:
        """Return the same rows, seen from their mean."""
        with np.errstate(over="ignore", invalid="ignore"):  # norms from there are not finite either
            return DenseSamples(self.rows, self.rows.mean(axis=0, dtype=np.float64))

    def _compute_norms(self, dtype: Any) -> NDArray[np.float64]:
        norms = np.empty(self.n)
        if dtype == np.float32:
            products.dense_norms(self._in_single(), np.zeros(self.n_features), norms)
        else:
            products.dense_norms(self.rows, self._center_or_zero, norms)
        return norms

    def panel(self, index: Index, dtype: Any) -> Floats:
        if dtype == np.float32:
            return self._in_single()[index]
        return self._shifted(self.rows[index], dtype)

    def compare(self, statistic: Statistic, panel: Floats, start: int, stop: int, out: Floats) -> None:
        columns = self._range(start, stop, out.dtype)
        if statistic == "dot":
            pieces = 1 if len(panel) > _FEW_ROWS else panel.size * len(columns) // _SMALL_PRODUCT + 1
            width = max(-(-len(columns) // pieces), 1)
            with np.errstate(over="ignore", invalid="ignore"):  # kernel values are looked at, not dot products
                for first in range(0, len(columns), width):
                    np.matmul(panel, columns[first : first + width].T, out=out[:, first : first + width])
        else:
            products.dense_differences(_DIFFERENCE[statistic], panel, columns, out)

    def take(self, index: Index, dtype: Any) -> DenseSamples:
        if dtype == np.float64:  # as they were given, so that they can be compared exactly
            return DenseSamples(self.rows[index].astype(np.float64, copy=False), self.center)
        return DenseSamples(self.panel(index, dtype))

    def exact_rows(self) -> FeatureRows:
        return np.empty(0, np.int64), np.empty(0, np.int32), self.rows

    def features(self, dtype: Any) -> Floats:
        """Return the transposed data, a line for each feature, with lines of zeros up to a multiple of four."""
        if dtype not in self._features:
            features = np.zeros((-(-self.n_features // 4) * 4, self.n), dtype)
            features[: self.n_features] = self._range(0, self.n, dtype).T
            self._features[dtype] = features
        return self._features[dtype]

    def combine(self, index: Index, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weight vector ``Xᵀ coefficients`` of the samples ``index``."""
        weights = np.zeros(self.n_features)
        for start in range(0, len(index), READ_ROWS):
            part = slice(start, start + READ_ROWS)
            weights += coefficients[part] @ self.panel(index[part], np.float64)
        return weights

    def project(self, weights: NDArray[np.float64], start: int, stop: int) -> NDArray[np.float64]:
        """Return the dot products of the samples ``start`` to ``stop`` with a weight vector."""
        return self._range(start, stop, np.float64) @ weights

    def moments(self, index: Index, factors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of ``factor x xᵀ`` over the samples ``index``; its lower half counts."""
        total = np.zeros((self.n_features, self.n_features))
        roots = np.sqrt(factors)
        for start in range(0, len(index), READ_ROWS):
            rows = (
                self.panel(index[start : start + READ_ROWS], np.float64) * roots[start : start + READ_ROWS, None]
            )
            total += rows.T @ rows
        return total

    def feature_rows(self) -> FeatureRows:
        """Return the rows as `products.row_dot` takes them."""
        return np.empty(0, np.int64), np.empty(0, np.int32), self._range(0, self.n, self.rows.dtype)

    def _range(self, start: int, stop: int, dtype: Any) -> Floats:
        if dtype == np.float32:
            return self._in_single()[start:stop]
        return self._shifted(self.rows[start:stop], dtype)

    def _shifted(self, rows: Floats, dtype: Any) -> Floats:
        if self.center is None:
            return rows.astype(dtype, copy=False)
        return np.subtract(rows, self.center, dtype=np.float64).astype(dtype, copy=False)

    @property
    def _center_or_zero(self) -> NDArray[np.float64]:
        return np.zeros(self.n_features) if self.center is None else self.center

    def _in_single(self) -> NDArray[np.float32]:
        if self._single is None:
            if self.rows.dtype == np.float32 and self.center is None:
                return self.rows
            single = np.empty(self.rows.shape, np.float32)
            products.shift_rows(self.rows, self._center_or_zero, single)
            self._single = single
        return self._single


class SparsePanel(NamedTuple):
    """Sparse samples laid out dense: ``lines[place[f], w]`` is feature f of sample w.

    There are lines only for the features that occur; ``place`` is -1 for all others. The samples are filled up
    with zeros.
    """

    place: NDArray[np.int32]
    lines: Floats


class SparseSamples(Samples):
    """Rows of a CSR matrix, compared with a panel that holds only the features that occur in it.

    Attributes
    ----------
    is_far_from_zero : bool
        Whether sums of differences are to be taken feature by feature, because features that two samples share
        would cancel in sums of all. To be set before samples are compared.
    """

    storage = "sparse"
    is_exactly_compared = False

    def __init__(
        self, indptr: NDArray[np.integer], indices: NDArray[np.integer], values: Floats, n_features: int
    ) -> None:
        super().__init__()
        self.n, self.n_features = len(indptr) - 1, n_features
        self.indptr = indptr.astype(np.int64, copy=False)
        self.indices = indices.astype(np.int32, copy=False)
        self.values: dict[Any, Floats] = {values.dtype: values}
        self.cost = max(_SPARSE_PRICE * self.indices.size / max(self.n, 1), 1.0)
        self.terms = 2 * int(
            np.diff(self.indptr).max(initial=0)
        )  # features of both rows, where they are differences
        self.is_far_from_zero = False

    @classmethod
    def of(cls, matrix: Any) -> SparseSamples:
        """Return the rows of a CSR matrix in canonical format, or those of an array without its zeros."""
        if not isinstance(matrix, np.ndarray):
            return cls(matrix.indptr, matrix.indices, matrix.data, matrix.shape[1])
        indptr = np.zeros(len(matrix) + 1, np.int64)
        length = products.count_nonzeros(matrix, indptr)
        indices, values = np.empty(length + 1, np.int32), np.empty(length + 1, matrix.dtype)
        products.compress(matrix, indptr, indices, values)
        return cls(indptr, indices[:-1], values[:-1], matrix.shape[1])

    @property
    def _original(self) -> Floats:
        return next(iter(self.values.values()))

    def has_negatives(self) -> bool:
        return bool(self.indices.size) and bool(self._original.min() < 0)

    def _values(self, dtype: Any) -> Floats:
        dtype = np.dtype(dtype)
        if dtype not in self.values:
            self.values[dtype] = self._original.astype(dtype)
        return self.values[dtype]

    def _compute_norms(self, dtype: Any) -> NDArray[np.float64]:
        norms = np.empty(self.n)
        # Double precision changes nothing in the original: no copy of it is needed.
        values = self._original if dtype == np.float64 else self._values(dtype)
        products.sparse_norms(self.indptr, values, norms)
        return norms

    @property
    def panel_height(self) -> int:
        """Number of samples whose panel stays in the processor's caches, whatever features they have."""
        height, per_row = _MOST_IN_PANEL, self.indices.size / max(self.n, 1)
        while height > _PANEL_STEP and min(height * per_row, self.n_features) * height > _PANEL_VALUES:
            height -= _PANEL_STEP
        return height

    def panel(self, index: Index, dtype: Any) -> SparsePanel:
        place = np.full(self.n_features, -1, dtype=np.int32)
        n_present = products.number_features(self.indptr, self.indices, index, place)
        lines = aligned((n_present, -(-len(index) // _PANEL_STEP) * _PANEL_STEP), dtype)
        lines.fill(0)
        products.lay_out(self.indptr, self.indices, self._original, index, place, lines)
        return SparsePanel(place, lines)

    def compare(self, statistic: Statistic, panel: SparsePanel, start: int, stop: int, out: Floats) -> None:
        csr = (self.indptr, self.indices, self._values(out.dtype))
        if statistic == "dot":
            products.sparse_dots(*csr, *panel, start, out)
        elif statistic == "l2" or self.is_far_from_zero:
            products.sparse_differences_one_by_one(_DIFFERENCE[statistic], *csr, *panel, start, out)
        else:
            products.sparse_differences(_DIFFERENCE[statistic], *csr, *panel, start, out)

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

    def moments(self, index: Index, factors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of ``factor x xᵀ`` over the samples ``index``; its lower half counts."""
        total = np.zeros((self.n_features, self.n_features))
        products.sparse_moments(self.indptr, self.indices, self._values(np.float64), index, factors, total)
        return total

    def feature_rows(self) -> FeatureRows:
        """Return the rows as `products.row_dot` takes them."""
        return self.indptr, self.indices, self._values(np.float64)

    def exact_rows(self) -> FeatureRows:
        return self.indptr, self.indices, self._original

    def absolute_sums(self) -> NDArray[np.float64]:
        """Return Σ|x| over the features of every sample."""
        sums = np.concatenate([[0.0], np.cumsum(np.abs(self._original), dtype=np.float64)])
        return sums[self.indptr[1:]] - sums[self.indptr[:-1]]

    def take(self, index: Index, dtype: Any) -> SparseSamples:
        values = self.values.get(np.dtype(dtype), self._original)
        indptr = np.zeros(len(index) + 1, np.int64)
        np.cumsum(self.indptr[index + 1] - self.indptr[index], out=indptr[1:])
        indices, entries = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], dtype)
        products.take_rows(self.indptr, self.indices, values, index, indptr, indices, entries)
        taken = SparseSamples(indptr, indices, entries, self.n_features)
        taken.is_far_from_zero = self.is_far_from_zero
        return taken


class BitSamples(Samples):
    """Samples whose features are all 0 or 1: 64 features a word, compared by counting common bits."""

    storage = "bits"

    def __init__(self, words: NDArray[np.uint64], n_features: int) -> None:
        super().__init__()
        self.words = words  # (n_words, n): word-major, so that loops run along the samples
        self.n = words.shape[1]
        self.n_features = n_features
        self.cost = 2.0 * words.shape[0]

    def _compute_norms(self, dtype: Any) -> NDArray[np.float64]:
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
