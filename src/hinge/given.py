"""Storages that hold kernel values outright: a matrix that was computed elsewhere, and a Python function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.samples import Floats, Index, Samples, Statistic


class GivenGram(Samples):
    """A kernel matrix that was computed elsewhere."""

    storage = "precomputed"
    cost = 1.0

    def __init__(self, matrix: Floats, index: Index | None = None) -> None:
        super().__init__()
        self.matrix = matrix
        self.index = index
        self.n = matrix.shape[0] if index is None else len(index)
        self.n_features = matrix.shape[0]

    def _compute_norms(self, dtype: Any) -> NDArray[np.float64]:
        return np.zeros(self.n)

    def panel(self, index: Index, dtype: Any) -> Floats:
        return self.matrix[index if self.index is None else self.index[index]]

    def compare(self, statistic: Statistic, panel: Floats, start: int, stop: int, out: Floats) -> None:
        out[...] = panel[:, start:stop] if self.index is None else panel[:, self.index[start:stop]]

    def take(self, index: Index, dtype: Any) -> GivenGram:
        return GivenGram(self.matrix, index if self.index is None else self.index[index])

    def largest_values(self) -> NDArray[np.float64]:
        """Return the largest |k(x, ·)| of every sample."""
        whole = np.maximum(self.matrix.max(axis=1), -self.matrix.min(axis=1)).astype(np.float64)
        return whole if self.index is None else whole[self.index]

    def diagonal_statistic(self, statistic: Statistic) -> NDArray[np.float64]:
        diagonal = self.matrix.diagonal().astype(np.float64)
        return diagonal if self.index is None else diagonal[self.index]


class CalledKernel(Samples):
    """Rows of data behind a Python function that returns kernel values."""

    storage = "callable"
    cost = 1e3  # unknown; anything in Python is dear

    def __init__(self, rows: Any, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.rows = rows
        self.function = function
        self.n, self.n_features = rows.shape

    def _compute_norms(self, dtype: Any) -> NDArray[np.float64]:
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
