"""Storages that hold kernel values outright: a matrix that was computed elsewhere, and a Python function.

Neither need be symmetric, though only a symmetric matrix has a dual problem. Beyond rounding, measured against
√(k(x, x) k(y, y)), the symmetric part (K + Kᵀ)/2 takes its place, and a warning says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hinge.arrays import Floats, Index
from hinge.data.samples import Samples, Statistic
from hinge.runtime.jit import compiled
from hinge.runtime.prices import MULTIPLY_ADDS_PER_CALLED_VALUE

# Largest asymmetry that counts as rounding, as a share of √(k(x, x) k(y, y)).
_ROUNDING = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-8}


class GivenGram(Samples):
    """A kernel matrix that was computed elsewhere."""

    storage = "precomputed"
    cost = 1.0
    is_given = True

    def __init__(self, matrix: Floats, index: Index | None = None) -> None:
        super().__init__()
        self._values = matrix
        self.index = index
        self.matrix = matrix if index is None else None
        self.n = matrix.shape[0] if index is None else len(index)
        self.n_features = matrix.shape[0]

    def _compute_norms(self, dtype: Any) -> NDArray[np.float64]:
        return np.zeros(self.n)

    def panel(self, index: Index, dtype: Any) -> Floats:
        return self._values[index if self.index is None else self.index[index]]

    def compare(self, statistic: Statistic, panel: Floats, start: int, stop: int, out: Floats) -> None:
        out[...] = panel[:, start:stop] if self.index is None else panel[:, self.index[start:stop]]

    def take(self, index: Index, dtype: Any) -> GivenGram:
        return GivenGram(self._values, index if self.index is None else self.index[index])

    def largest_values(self) -> NDArray[np.float64]:
        whole = np.maximum(self._values.max(axis=1), -self._values.min(axis=1)).astype(np.float64)
        return whole if self.index is None else whole[self.index]

    def diagonal_statistic(self, statistic: Statistic) -> NDArray[np.float64]:
        diagonal = self._values.diagonal().astype(np.float64)
        return diagonal if self.index is None else diagonal[self.index]


class RowKernel:
    """A user's kernel function as the Gram matrix calls it: on rows, returning a dense array of checked values.

    Parameters
    ----------
    function : callable
        Takes two collections of samples, returns the matrix of their kernel values.
    is_opaque : bool
        Whether samples are arbitrary objects, kept in the only column of an object array.

    Attributes
    ----------
    takes_symmetric_part : bool
        Whether k(x, y) is the mean of what the function returns for (x, y) and for (y, x). Training sets it
        where it finds the two to differ, and predictions follow.
    """

    def __init__(self, function: Callable[[Any, Any], Any], is_opaque: bool = False) -> None:
        self.function = function
        self.is_opaque = is_opaque
        self.takes_symmetric_part = False

    def __call__(self, first: Any, second: Any) -> NDArray[np.float64]:
        """Return the kernel values of two sets of rows."""
        if self.is_opaque:
            first, second = first[:, 0], second[:, 0]
        values = self._values(first, second)
        if self.takes_symmetric_part:
            values = 0.5 * values + 0.5 * self._values(second, first).T
        return values

    def _values(self, first: Any, second: Any) -> NDArray[np.float64]:
        found = self.function(first, second)
        found = found.toarray() if sp.issparse(found) else np.asarray(found)
        if found.dtype.kind == "c":
            raise ValueError(
                "the kernel function returned complex values; kernel values must be real. Return their real part "
                "if that is meant"
            )
        values = np.asarray(found, dtype=np.float64)
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


class CalledPanel(NamedTuple):
    """Rows to call a kernel function with, and their places in the training data where they are of it."""

    rows: Any
    places: Index | None


class CalledKernel(Samples):
    """Rows of data behind a Python function that returns kernel values.

    ``places``: the numbers of the rows among the training samples. Where a comparison holds values of two of them
    in both orders, it is seen whether the function is symmetric.
    """

    storage = "callable"
    cost = MULTIPLY_ADDS_PER_CALLED_VALUE
    is_given = True
    runs_on_one_thread = True

    def __init__(self, rows: Any, function: Callable[[Any, Any], Any], places: Index | None = None) -> None:
        super().__init__()
        self.rows = rows
        self.function = function if isinstance(function, RowKernel) else RowKernel(function)
        self.places = places
        self.n, self.n_features = rows.shape

    @property
    def takes_symmetric_part(self) -> bool:
        return self.function.takes_symmetric_part

    def _compute_norms(self, dtype: Any) -> NDArray[np.float64]:
        return np.zeros(self.n)

    def panel(self, index: Index, dtype: Any) -> CalledPanel:
        return CalledPanel(self.rows[index], None if self.places is None else self.places[index])

    def compare(self, statistic: Statistic, panel: CalledPanel, start: int, stop: int, out: Floats) -> None:
        columns = self.rows[start:stop]
        values = self.function(panel.rows, columns)
        if self._is_asymmetric(values, panel.places, start, stop):
            self.function.takes_symmetric_part = True
            values = self.function(panel.rows, columns)
        out[...] = values

    def _is_asymmetric(self, values: NDArray[np.float64], places: Index | None, start: int, stop: int) -> bool:
        """Whether values in both orders differ beyond rounding; then say so."""
        if self.takes_symmetric_part or self.places is None or places is None:
            return False
        _, rows, columns = np.intersect1d(places, self.places[start:stop], return_indices=True)
        return _tell_asymmetry(values[np.ix_(rows, columns)], "the kernel function")

    def take(self, index: Index, dtype: Any) -> CalledKernel:
        return CalledKernel(self.rows[index], self.function, None if self.places is None else self.places[index])

    def diagonal_statistic(self, statistic: Statistic) -> NDArray[np.float64]:
        return np.array([self.function(self.rows[[t]], self.rows[[t]])[0, 0] for t in range(self.n)])


def symmetric(matrix: Floats) -> Floats:
    """Return a square kernel matrix itself, or its symmetric part if it is asymmetric beyond rounding."""
    if not _tell_asymmetry(matrix, "the precomputed kernel matrix"):
        return matrix
    half = matrix * matrix.dtype.type(0.5)
    return np.asarray(half + half.T)


def _tell_asymmetry(matrix: Floats, name: str) -> bool:
    """Whether a square matrix of kernel values is asymmetric beyond rounding; if so, warn."""
    scale = np.sqrt(np.abs(matrix.diagonal().astype(np.float64)))
    share, i, j = _largest_asymmetry(matrix, scale)
    if share <= _ROUNDING[matrix.dtype]:
        return False
    warnings.warn(
        f"{name} is not symmetric: k(x, y) and k(y, x) differ by up to {share:.3g} of √(k(x, x) k(y, y)), as do "
        f"{matrix[i, j]:.6g} and {matrix[j, i]:.6g} by {abs(float(matrix[i, j]) - float(matrix[j, i])):.3g}. Its "
        "symmetric part, (K + K.T) / 2, is used",
        UserWarning,
        stacklevel=2,
    )
    return True


@compiled
def _largest_asymmetry(matrix: Floats, scale: NDArray[np.float64]) -> tuple[float, int, int]:
    """Largest difference of K and its transpose beside √(k_ii k_jj), or beside the values if these are larger."""
    worst, row, column = 0.0, 0, 0
    n, tile = matrix.shape[0], 64  # tiles, because columns are read along rows
    for top in range(0, n, tile):
        for left in range(top, n, tile):
            for i in range(top, min(top + tile, n)):
                for j in range(max(left, i + 1), min(left + tile, n)):
                    a, b = np.float64(matrix[i, j]), np.float64(matrix[j, i])
                    if a != b:
                        size = max(scale[i] * scale[j], max(abs(a), abs(b)))
                        if abs(a - b) > worst * size:
                            worst, row, column = abs(a - b) / size, i, j
    return worst, row, column
