"""What a user passes in, turned into what training needs: rows, weights, a kernel, thread and byte counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge.multiclass import Duel
from hinge.problem import Vector
from hinge.samples import Index
from hinge.threads import available_threads, lazy

# Rows looked at together while statistics of the data are computed, so that no second copy of it exists.
_ROWS_AT_ONCE = 4096

_MEGABYTE = 1024**2


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The samples that count.

    Attributes
    ----------
    X : array or CSR matrix
        Rows with a weight above zero; of a precomputed kernel their columns too.
    y : array or None
        Their targets.
    weights : array
        Their weights.
    places : int64 array
        Where they were in the caller's data.
    shape : tuple
        Shape of the caller's data.
    """

    X: Any
    y: Any
    weights: Vector
    places: Index
    shape: tuple[int, ...]
    _members: dict[Duel, Index] = field(default_factory=dict, init=False, repr=False)

    @lazy
    def classes(self) -> tuple[Any, Index]:
        """The labels among the targets, sorted, and the number of each sample's."""
        labels, codes = np.unique(self.y, return_inverse=True)
        return labels, codes

    def members(self, duel: Duel) -> Index:
        """Return the samples that take part in a duel of two classes."""
        if duel not in self._members:
            self._members[duel] = duel.members(self.classes[1])
        return self._members[duel]


class RowKernel:
    """A user's kernel function as the Gram matrix calls it: on rows, returning a dense array.

    Parameters
    ----------
    function : callable
        Takes two collections of samples, returns the matrix of their kernel values.
    is_opaque : bool
        Whether samples are arbitrary objects, kept in the only column of an object array.
    """

    def __init__(self, function: Callable[[Any, Any], Any], is_opaque: bool) -> None:
        self.function = function
        self.is_opaque = is_opaque

    def __call__(self, first: Any, second: Any) -> Any:
        """Return the kernel values of two sets of rows."""
        if self.is_opaque:
            first, second = first[:, 0], second[:, 0]
        values = self.function(first, second)
        return values.toarray() if sp.issparse(values) else values


def is_opaque(X: Any) -> bool:
    """Whether X is a collection of objects (strings, graphs, ...) that only a user's own kernel understands."""
    if sp.issparse(X):
        return False
    if hasattr(X, "dtypes") and hasattr(X, "columns"):  # a data frame
        return False
    X = X if hasattr(X, "dtype") else _as_array(X)
    return X.ndim == 1 or X.dtype.kind in "OUS"


def opaque_rows(X: Any) -> Any:
    """Put objects into the only column of an object array."""
    items = list(X)
    rows = np.empty((len(items), 1), dtype=object)
    for row, item in zip(rows, items, strict=True):
        row[0] = item
    return rows


def _as_array(X: Any) -> Any:
    try:
        return np.asarray(X)
    except ValueError:  # ragged
        return np.empty(len(X), dtype=object)


def select(X: Any, y: Any, weights: Vector | None, is_gram: bool) -> TrainingData:
    """Leave out samples of weight zero: they are to count as absent.

    Raises
    ------
    ValueError
        A weight is negative, or all are zero.
    """
    n = X.shape[0]
    if weights is None:
        return TrainingData(X, y, np.ones(n), np.arange(n, dtype=np.int64), X.shape)
    if (weights < 0).any():
        where = int(np.argmax(weights < 0))
        raise ValueError(
            f"Negative values in data passed to `sample_weight`: {weights[where]:g} at position {where}. "
            "A weight is a number of repetitions; use 0 to leave a sample out"
        )
    places = np.flatnonzero(weights > 0).astype(np.int64)
    if len(places) == 0:
        raise ValueError("all values of sample_weight are zero: at least one sample must count")
    if len(places) == n:
        return TrainingData(X, y, weights, places, X.shape)
    rows = X[np.ix_(places, places)] if is_gram else X[places]
    return TrainingData(rows, None if y is None else y[places], weights[places], places, X.shape)


def resolve_gamma(gamma: str | float, X: Any, weights: Vector) -> float:
    """Return γ as a number: ``"scale"`` is 1 / (n_features · variance), ``"auto"`` 1 / n_features.

    The variance is that of all entries of X, each row counted by its weight, so that weights and repetitions
    give the same γ.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    variance = _variance(X, weights)
    return 1.0 / (int(X.shape[1]) * variance) if variance != 0 else 1.0


def _variance(X: Any, weights: Vector) -> float:
    if not sp.issparse(X) and X.size and X.min() == X.max():
        return 0.0  # exactly, whatever rounding makes of the mean
    total = float(weights.sum()) * int(X.shape[1])
    mean = float(weights @ _row_sums(X, 0.0, 1)) / total
    if not sp.issparse(X):
        return float(weights @ _row_sums(X, mean, 2)) / total
    # Entries that are not stored are zeros: each adds mean² to the sum of squared deviations.
    stored = np.diff(X.indptr)
    absent = float(weights @ (X.shape[1] - stored))
    return (float(weights @ _row_sums(X, mean, 2)) + absent * mean**2) / total


def _row_sums(X: Any, center: float, power: int) -> Vector:
    """Sum (x − center)^power over the (stored) entries of each row, in double precision."""
    sums = np.empty(X.shape[0])
    for start in range(0, X.shape[0], _ROWS_AT_ONCE):
        part = X[start : start + _ROWS_AT_ONCE]
        if sp.issparse(part):
            rows = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
            terms = (part.data.astype(np.float64) - center) ** power
            sums[start : start + _ROWS_AT_ONCE] = np.bincount(rows, terms, minlength=part.shape[0])
        else:
            terms = np.asarray(part, dtype=np.float64) - center
            sums[start : start + _ROWS_AT_ONCE] = (terms**power).sum(axis=1)
    return sums


def cache_bytes(cache_size: str | float) -> int | None:
    """Return the budget in bytes of a ``cache_size`` in megabytes; None for ``"auto"``."""
    return None if isinstance(cache_size, str) else max(int(cache_size * _MEGABYTE), 1)


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` means; None and -1 take every core this process may use."""
    if n_jobs is None or n_jobs == -1:
        return available_threads()
    if n_jobs == 0:
        raise ValueError("n_jobs = 0 has no meaning; use 1 for one thread, None or -1 for all")
    return int(n_jobs) if n_jobs > 0 else max(available_threads() + 1 + int(n_jobs), 1)
