"""Samples as the rows of an array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import FeatureRows, Floats, Index
from hinge.data import products
from hinge.data.layout import LAYOUT
from hinge.data.samples import KINDS, FeatureSamples, Statistic
from hinge.runtime.threads import lazy


class DenseSamples(FeatureSamples):
    """Rows of a float32 or float64 array.

    Single-precision work runs on a float32 copy; double precision reads the original. Centring subtracts
    ``center`` from every row on the way, which leaves distances alone and keeps products small.

    """

    storage = "dense"
    is_dense = True

    def __init__(self, rows: Floats, center: NDArray[np.float64] | None = None) -> None:
        super().__init__()
        self.rows = np.ascontiguousarray(rows)
        self.center = center
        self.n, self.n_features = self.rows.shape
        self.terms = self.n_features
        self.has_few_features = 0 < self.n_features <= LAYOUT.few_features
        self.cost = float(self.n_features)
        self._single: NDArray[np.float32] | None = None
        self._features: dict[Any, Floats] = {}

    def tile_shape(self, statistic: Statistic) -> tuple[int, int]:
        is_tall = statistic == "dot" and self.n_features >= LAYOUT.many_features
        return LAYOUT.tall_tile if is_tall else LAYOUT.flat_tile

    def rounded_sums(self) -> NDArray[np.float64]:
        if self.rows.dtype == np.float32:
            return np.zeros(self.n)  # differences of the features themselves
        # A sum of absolute values is at most √length times the norm.
        return np.asarray(np.sqrt(self.n_features * self.squared_norms(np.float64)))

    def _contents(self, index: Index) -> Iterable[bytes]:
        return (row.tobytes() for row in self.rows[index] + 0.0)  # -0.0 becomes 0.0

    def has_negatives(self) -> bool:
        return bool(self.rows.size) and bool(self.rows.min() < 0)

    def centered(self) -> DenseSamples:
        with np.errstate(over="ignore", invalid="ignore"):  # norms from there are not finite either
            return DenseSamples(self.rows, np.add.reduce(self.rows, axis=0, dtype=np.float64) / max(self.n, 1))

    def _compute_norms(self, dtype: Any) -> NDArray[np.float64]:
        norms = np.empty(self.n)
        if dtype == np.float32:
            products.dense_norms(self._in_single(), np.zeros(self.n_features), norms)
        else:
            products.dense_norms(self.rows, self._center_or_zero, norms)
        return norms

    def absolute_sums(self) -> NDArray[np.float64]:
        parts = range(0, self.n, LAYOUT.read_rows)
        sums = [np.abs(self.rows[k : k + LAYOUT.read_rows]).sum(axis=1, dtype=np.float64) for k in parts]
        return np.concatenate(sums) if sums else np.zeros(0)

    def panel(self, index: Index, dtype: Any) -> Floats:
        if dtype == np.float32:
            return self._in_single()[index]
        return self._in_double[index] if self._has_double else self._shifted(self.rows[index], dtype)

    def compare(self, statistic: Statistic, panel: Floats, start: int, stop: int, out: Floats) -> None:
        columns = self._range(start, stop, out.dtype)
        if statistic == "dot":
            pieces = 1 if len(panel) > LAYOUT.few_rows else panel.size * len(columns) // LAYOUT.small_product + 1
            width = max(-(-len(columns) // pieces), 1)
            with np.errstate(over="ignore", invalid="ignore"):  # kernel values are looked at, not dot products
                for first in range(0, len(columns), width):
                    np.matmul(panel, columns[first : first + width].T, out=out[:, first : first + width])
        else:
            products.dense_differences(KINDS[statistic], panel, columns, out)

    def take(self, index: Index, dtype: Any) -> DenseSamples:
        if dtype == np.float64:  # as they were given, so that they can be compared exactly
            taken = DenseSamples(self.rows[index].astype(np.float64, copy=False), self.center)
            if self._has_double:
                taken.keeps_double, taken._in_double = True, self._in_double[index]
            return taken
        return DenseSamples(self.panel(index, dtype))

    def joined(self, others: Sequence[DenseSamples]) -> DenseSamples:
        return DenseSamples(np.concatenate([self.rows, *(other.rows for other in others)]), self.center)

    def exact_rows(self) -> FeatureRows:
        return FeatureRows(np.empty(0, np.int64), np.empty(0, np.int32), self.rows)

    def features(self, dtype: Any) -> Floats:
        if dtype not in self._features:
            features = np.zeros((-(-self.n_features // 4) * 4, self.n), dtype)
            features[: self.n_features] = self._range(0, self.n, dtype).T
            self._features[dtype] = features
        return self._features[dtype]

    def combine(self, index: Index, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = np.zeros(self.n_features)
        for start in range(0, len(index), LAYOUT.read_rows):
            part = slice(start, start + LAYOUT.read_rows)
            weights += coefficients[part] @ self.panel(index[part], np.float64)
        return weights

    def project(self, weights: NDArray[np.float64], start: int, stop: int) -> NDArray[np.float64]:
        return self._range(start, stop, np.float64) @ weights

    def moments(self, index: Index, factors: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.zeros((self.n_features, self.n_features))
        roots = np.sqrt(factors)
        for start in range(0, len(index), LAYOUT.read_rows):
            part = slice(start, start + LAYOUT.read_rows)
            rows = self.panel(index[part], np.float64) * roots[part, None]
            total += rows.T @ rows
        return total

    def feature_rows(self) -> FeatureRows:
        rows = self._range(0, self.n, self.rows.dtype)
        return FeatureRows(np.empty(0, np.int64), np.empty(0, np.int32), rows)

    def _range(self, start: int, stop: int, dtype: Any) -> Floats:
        if dtype == np.float32:
            return self._in_single()[start:stop]
        return self._in_double[start:stop] if self._has_double else self._shifted(self.rows[start:stop], dtype)

    @property
    def _has_double(self) -> bool:
        return self.keeps_double and self.center is not None

    @lazy
    def _in_double(self) -> Floats:
        return self._shifted(self.rows, np.float64)

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
