"""Storages that hold kernel values outright: a matrix that was computed elsewhere, and a Python function.

Neither need be symmetric, though only a symmetric matrix has a dual problem: the symmetric part (K + Kᵀ)/2 takes
its place, and a warning says so. Asymmetry is measured against √(k(x, x) k(y, y)).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Floats, Index, is_sparse
from hinge.data.collection import Collection
from hinge.data.layout import LAYOUT
from hinge.data.samples import Samples, Statistic
from hinge.runtime.interrupt import foreign
from hinge.runtime.jit import compiled, larger
from hinge.runtime.prices import MULTIPLY_ADDS_PER_CALLED_VALUE

# Asymmetry that nobody needs to know of, because values of this type are rounded that much.
_ROUNDING = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-8}

# Largest asymmetry that sums in single precision can leave behind.
_SINGLE_ROUNDING = 1e-4


class GivenGram(Samples):
    """A kernel matrix that was computed elsewhere."""

    cost = 1.0
    is_given = True

    def __init__(self, matrix: Floats, index: Index | None = None, storage: str = "precomputed") -> None:
        super().__init__()
        self._values = matrix
        self.storage = storage
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
        return GivenGram(self._values, index if self.index is None else self.index[index], self.storage)

    def _contents(self, index: Index) -> Iterable[bytes]:
        return (row.tobytes() for row in self.panel(index, self._values.dtype) + 0.0)

    def largest_values(self) -> NDArray[np.float64]:
        whole = np.empty(len(self._values))
        _find_largest(self._values, whole)
        return whole if self.index is None else whole[self.index]

    def diagonal_statistic(self, statistic: Statistic) -> NDArray[np.float64]:
        diagonal = self._values.diagonal().astype(np.float64)
        return diagonal if self.index is None else diagonal[self.index]


class RowKernel:
    """A user's kernel function as it is called: on samples in the user's own container, returning checked values.

    Parameters
    ----------
    function : callable
        Takes two collections of samples, returns the matrix of their kernel values.

    Attributes
    ----------
    takes_symmetric_part : bool
        Whether k(x, y) is the mean of what the function returns for (x, y) and for (y, x). Training sets it
        where it finds the two to differ beyond rounding, and predictions follow.
    """

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function
        self.takes_symmetric_part = False

    @classmethod
    def of(cls, function: Callable[[Any, Any], Any]) -> RowKernel:
        """Return the function itself if it is one of these already."""
        return function if isinstance(function, cls) else cls(function)

    def __call__(self, first: Collection, second: Collection) -> Floats:
        """Return the kernel values of two sets of samples."""
        values = self._values(first, second)
        if self.takes_symmetric_part:
            values = 0.5 * values + 0.5 * self._values(second, first).T
        return values

    def matrix(self, samples: Collection) -> Floats:
        """Return the kernel matrix of samples, made symmetric, by one call with the same container twice.

        The call sees all samples of the container, those that are not meant too, as in scikit-learn: some
        functions know only the values of a whole data set.
        """
        everyone = Collection(samples.container)
        values = self._values(everyone, everyone)
        if samples.index is not None:
            values = values[np.ix_(samples.index, samples.index)]
        share = _tell_asymmetry(values, "the kernel function")
        self.takes_symmetric_part = share > _SINGLE_ROUNDING
        return _symmetric_part(values) if share > 0 else values

    def blocks(self, queries: Collection, vectors: Collection, room: int) -> Iterator[tuple[slice, Floats]]:
        """Yield places among new samples and their kernel values with ``vectors``, this many bytes at a time.

        The function sees the whole container of the vectors, as in scikit-learn: the very object that it was
        trained with.
        """
        everyone = Collection(vectors.container)
        n = queries.shape[0]
        lines = max(room // (8 * everyone.n_contained), 1)
        for start in range(0, n, lines):
            piece = slice(start, min(start + lines, n))
            values = self(queries if piece == slice(0, n) else queries[piece], everyone)
            yield piece, values if vectors.index is None else values[:, vectors.index]

    def _values(self, first: Collection, second: Collection) -> Floats:
        rows = first.selected()
        others = rows if second is first else second.selected()
        with foreign:
            found = self.function(rows, others)
        found = found.toarray() if is_sparse(found) else np.asarray(found)
        if found.dtype.kind == "c":
            raise ValueError(
                "the kernel function returned complex values; kernel values must be real. Return their real part "
                "if that is meant"
            )
        values: Floats = found if found.dtype == np.float32 else np.asarray(found, dtype=np.float64)
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
    """Samples to call a kernel function with, and their places in the training data."""

    rows: Collection
    places: Index


class CalledKernel(Samples):
    """Samples behind a Python function that returns kernel values, asked for piece by piece.

    Where a comparison holds values of two samples in both orders, it is seen whether the function is symmetric.
    """

    storage = "callable"
    cost = MULTIPLY_ADDS_PER_CALLED_VALUE
    is_given = True
    runs_on_one_thread = True

    def __init__(self, rows: Collection, function: RowKernel) -> None:
        super().__init__()
        self.rows = rows
        self.function = function
        self.n, self.n_features = rows.shape[0], 0

    @property
    def takes_symmetric_part(self) -> bool:
        return self.function.takes_symmetric_part

    def _compute_norms(self, dtype: Any) -> NDArray[np.float64]:
        return np.zeros(self.n)

    def panel(self, index: Index, dtype: Any) -> CalledPanel:
        rows = self.rows[index]
        return CalledPanel(rows, rows.places)

    def compare(self, statistic: Statistic, panel: CalledPanel, start: int, stop: int, out: Floats) -> None:
        columns = self.rows[start:stop]
        values = self.function(panel.rows, columns)
        if self._is_asymmetric(values, panel.places, columns.places):
            self.function.takes_symmetric_part = True
            values = self.function(panel.rows, columns)
        out[...] = values

    def _is_asymmetric(self, values: Floats, of_rows: Index, of_columns: Index) -> bool:
        """Whether values in both orders differ beyond rounding; then say so."""
        if self.takes_symmetric_part:
            return False
        _, rows, columns = np.intersect1d(of_rows, of_columns, return_indices=True)
        return _tell_asymmetry(values[np.ix_(rows, columns)], "the kernel function", _SINGLE_ROUNDING) > 0

    def take(self, index: Index, dtype: Any) -> CalledKernel:
        return CalledKernel(self.rows[index], self.function)

    def diagonal_statistic(self, statistic: Statistic) -> NDArray[np.float64]:
        diagonal = np.empty(self.n)
        for start in range(0, self.n, LAYOUT.whole_rows):
            part = self.rows[start : start + LAYOUT.whole_rows]
            diagonal[start : start + LAYOUT.whole_rows] = self.function(part, part).diagonal()
        return diagonal


def symmetric(matrix: Floats) -> Floats:
    """Return a square kernel matrix, or its symmetric part if it is asymmetric beyond the rounding of its type."""
    return _symmetric_part(matrix) if _tell_asymmetry(matrix, "the precomputed kernel matrix") > 0 else matrix


def _symmetric_part(matrix: Floats) -> Floats:
    half = matrix * matrix.dtype.type(0.5)
    return np.asarray(half + half.T)


def _tell_asymmetry(matrix: Floats, name: str, least: float = 0.0) -> float:
    """Return the asymmetry of a square matrix of kernel values, and warn of it; 0 where it need not be told.

    That is where it is no more than ``least``, or than the rounding of its type.
    """
    scale = np.sqrt(np.abs(matrix.diagonal().astype(np.float64)))
    share, i, j = _largest_asymmetry(matrix, scale)
    if share <= max(least, _ROUNDING[matrix.dtype]):
        return 0.0
    what = "symmetric only up to rounding" if share <= _SINGLE_ROUNDING else "not symmetric"
    warnings.warn(
        f"{name} is {what}: k(x, y) and k(y, x) differ by up to {share:.3g} of √(k(x, x) k(y, y)), as do "
        f"{matrix[i, j]:.6g} and {matrix[j, i]:.6g} by {abs(float(matrix[i, j]) - float(matrix[j, i])):.3g}. Its "
        "symmetric part, (K + K.T) / 2, is used",
        UserWarning,
        stacklevel=2,
    )
    return share


@compiled
def _find_largest(matrix: Floats, largest: NDArray[np.float64]) -> None:
    """Set the largest absolute value of each row."""
    for i in range(matrix.shape[0]):
        row, most = matrix[i], matrix.dtype.type(0)
        for j in range(row.shape[0]):
            most = larger(most, abs(row[j]))
        largest[i] = most


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
