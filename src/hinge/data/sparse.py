"""Samples as the rows of a CSR matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import FeatureRows, Floats, Index
from hinge.data import products
from hinge.data.layout import LAYOUT
from hinge.data.products import SparsePanel
from hinge.data.samples import KINDS, FeatureSamples, Statistic
from hinge.runtime.memory import CACHE_LINE, aligned
from hinge.runtime.prices import MULTIPLY_ADDS_PER_SPARSE_ONE


class SparseSamples(FeatureSamples):
    """Rows of a CSR matrix, compared with a panel that holds only the features that occur in it.

    Attributes
    ----------
    is_far_from_zero : bool
        Whether sums of differences are to be taken feature by feature, because features that two samples share
        would cancel in sums of all. To be set before samples are compared.
    """

    storage = "sparse"

    def __init__(
        self, indptr: NDArray[np.integer], indices: NDArray[np.integer], values: Floats, n_features: int
    ) -> None:
        super().__init__()
        self.n, self.n_features = len(indptr) - 1, n_features
        self.indptr = indptr.astype(np.int64, copy=False)
        self.indices = indices.astype(np.int32, copy=False)
        self.values: dict[Any, Floats] = {values.dtype: values}
        self.cost = max(MULTIPLY_ADDS_PER_SPARSE_ONE * self.indices.size / max(self.n, 1), 1.0)
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
        products.compress(matrix, FeatureRows(indptr, indices, values))
        return cls(indptr, indices[:-1], values[:-1], matrix.shape[1])

    @property
    def _original(self) -> Floats:
        return next(iter(self.values.values()))

    def _contents(self, index: Index) -> Iterable[tuple[bytes, bytes]]:
        parts = (slice(*self.indptr[i : i + 2]) for i in index)
        return ((self.indices[part].tobytes(), self._original[part].tobytes()) for part in parts)

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

    def tile_shape(self, statistic: Statistic) -> tuple[int, int]:
        """Return as many rows as have a panel that stays in the processor's caches, whatever their features."""
        height, per_row = LAYOUT.sparse_rows, self.indices.size / max(self.n, 1)
        while height > CACHE_LINE and min(height * per_row, self.n_features) * height > LAYOUT.sparse_values:
            height -= CACHE_LINE
        return height, LAYOUT.flat_tile[1]

    def panel(self, index: Index, dtype: Any) -> SparsePanel:
        place = np.full(self.n_features, -1, dtype=np.int32)
        n_present = products.number_features(self.exact_rows(), index, place)
        lines = aligned((n_present, -(-len(index) // CACHE_LINE) * CACHE_LINE), dtype)
        lines.fill(0)
        panel = SparsePanel(place, lines)
        products.lay_out(self.exact_rows(), index, panel)
        return panel

    def compare(self, statistic: Statistic, panel: SparsePanel, start: int, stop: int, out: Floats) -> None:
        csr = self._rows(out.dtype)
        if statistic == "dot":
            products.sparse_dots(csr, panel, start, out)
        else:
            one_by_one = statistic == "l2" or self.is_far_from_zero
            products.sparse_differences(KINDS[statistic], one_by_one, csr, panel, start, out)

    def _rows(self, dtype: Any) -> FeatureRows:
        return FeatureRows(self.indptr, self.indices, self._values(dtype))

    def combine(self, index: Index, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = np.zeros(self.n_features)
        products.sparse_combine(self._rows(np.float64), index, coefficients, weights)
        return weights

    def project(self, weights: NDArray[np.float64], start: int, stop: int) -> NDArray[np.float64]:
        result = np.empty(stop - start)
        products.sparse_project(self._rows(np.float64), weights, start, result)
        return result

    def moments(self, index: Index, factors: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.zeros((self.n_features, self.n_features))
        products.sparse_moments(self._rows(np.float64), index, factors, total)
        return total

    def feature_rows(self) -> FeatureRows:
        return self._rows(np.float64)

    def exact_rows(self) -> FeatureRows:
        return FeatureRows(self.indptr, self.indices, self._original)

    def absolute_sums(self) -> NDArray[np.float64]:
        rows = np.repeat(np.arange(self.n), np.diff(self.indptr))
        return np.bincount(rows, np.abs(self._original), self.n).astype(np.float64, copy=False)

    def rounded_sums(self) -> NDArray[np.float64]:
        return self.absolute_sums()

    def subtracted_sums(self, statistic: Statistic) -> NDArray[np.float64]:
        is_one_by_one = statistic == "l2" or self.is_far_from_zero
        return np.zeros(self.n) if is_one_by_one else self.absolute_sums()

    def take(self, index: Index, dtype: Any) -> SparseSamples:
        values = self.values.get(np.dtype(dtype), self._original)
        indptr = np.zeros(len(index) + 1, np.int64)
        np.cumsum(self.indptr[index + 1] - self.indptr[index], out=indptr[1:])
        rows = FeatureRows(indptr, np.empty(indptr[-1], np.int32), np.empty(indptr[-1], dtype))
        products.take_rows(FeatureRows(self.indptr, self.indices, values), index, rows)
        taken = SparseSamples(*rows, self.n_features)
        taken.is_far_from_zero = self.is_far_from_zero
        return taken

    def joined(self, others: Sequence[SparseSamples]) -> SparseSamples:
        parts = [part.exact_rows() for part in (self, *others)]
        lengths = np.concatenate([np.diff(part.indptr) for part in parts])
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        indices, values = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
        together = SparseSamples(indptr, indices, values, self.n_features)
        together.is_far_from_zero = self.is_far_from_zero
        return together
