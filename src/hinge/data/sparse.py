"""Samples as the rows of a CSR matrix."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import FeatureRows, Floats, Index
from hinge.data import products
from hinge.data.samples import KINDS, Samples, Statistic
from hinge.runtime.memory import aligned

# A multiply-add of sparse samples waits for the second-level cache: it takes as long as so many of dense ones.
_SPARSE_PRICE = 5.0

# Panels of sparse samples hold a multiple of so many, a vector of float32 on most processors; at most so many;
# and if that can be helped no more than so many values.
_PANEL_STEP, _MOST_IN_PANEL, _PANEL_VALUES = 16, 192, 1 << 20


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
            products.sparse_differences_one_by_one(KINDS[statistic], *csr, *panel, start, out)
        else:
            products.sparse_differences(KINDS[statistic], *csr, *panel, start, out)

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
        rows = np.repeat(np.arange(self.n), np.diff(self.indptr))
        return np.bincount(rows, np.abs(self._original), self.n).astype(np.float64, copy=False)

    def take(self, index: Index, dtype: Any) -> SparseSamples:
        values = self.values.get(np.dtype(dtype), self._original)
        indptr = np.zeros(len(index) + 1, np.int64)
        np.cumsum(self.indptr[index + 1] - self.indptr[index], out=indptr[1:])
        indices, entries = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], dtype)
        products.take_rows(self.indptr, self.indices, values, index, indptr, indices, entries)
        taken = SparseSamples(indptr, indices, entries, self.n_features)
        taken.is_far_from_zero = self.is_far_from_zero
        return taken
