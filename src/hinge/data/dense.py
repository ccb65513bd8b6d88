"""Samples as the rows of an array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import FeatureRows, Floats, Index
from hinge.data import products
from hinge.data.samples import KINDS, READ_ROWS, Samples, Statistic

# Panels of few rows are compared in pieces of so many multiply-adds. BLAS has a way for small products that spares
# it from rearranging the columns first: two rows of MNIST take half the time.
_FEW_ROWS, _SMALL_PRODUCT = 16, 850_000


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

    def absolute_sums(self) -> NDArray[np.float64]:
        parts = range(0, self.n, READ_ROWS)
        sums = [np.abs(self.rows[k : k + READ_ROWS]).sum(axis=1, dtype=np.float64) for k in parts]
        return np.concatenate(sums) if sums else np.zeros(0)

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
            products.dense_differences(KINDS[statistic], panel, columns, out)

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
