"""The samples that a fit counts, and which of them each machine is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from hinge.arrays import Index, Vector
from hinge.data.pages import rows_of
from hinge.kernel.kernels import Kernel
from hinge.model import self_values
from hinge.runtime.threads import lazy
from hinge.training.multiclass import REST, Duel


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The samples that count.

    Attributes
    ----------
    X : array, CSR matrix or Collection
        Rows with a weight above zero; of a precomputed kernel their columns too.
    y : array or None
        Their targets.
    weights : array
        Their weights.
    places : int64 array
        Where they were in the caller's data.
    shape : tuple
        Shape of the caller's data.
    diagonal : array, optional
        k(x, x) of every sample, where somebody knows it already.
    """

    X: Any
    y: Any
    weights: Vector
    places: Index
    shape: tuple[int, ...]
    diagonal: Vector | None = None

    def self_values(self, kernel: Kernel) -> Vector:
        """Return k(x, x) of every sample."""
        if self.diagonal is not None:
            return self.diagonal
        given = np.asarray(self.X).diagonal() if kernel.is_precomputed else None
        return self_values(self.X, kernel, given)

    @lazy
    def classes(self) -> tuple[Any, Index]:
        """The labels among the targets, sorted, and the number of each sample's."""
        labels = np.unique(self.y)
        return labels, np.searchsorted(labels, self.y)

    @lazy
    def _by_class(self) -> tuple[Index, Index, Index]:
        """All samples, class by class; where each class begins among them; how many it has."""
        codes = self.classes[1]
        counts = np.bincount(codes)
        return np.argsort(codes, kind="stable").astype(np.int64, copy=False), np.cumsum(counts) - counts, counts

    def members(self, *duels: Duel) -> Index:
        """Return the samples that take part in a duel: those of the positive class first, or everybody.

        Of several duels they follow one another.
        """
        labels, codes = self.classes
        if duels[0].negative == REST or len(labels) == 2:
            everybody = np.arange(len(codes), dtype=np.int64)
            return everybody if len(duels) == 1 else np.tile(everybody, len(duels))
        order, begins, counts = self._by_class
        sides = np.fromiter(chain.from_iterable(duels), np.int64, 2 * len(duels))
        ends = np.cumsum(counts[sides])
        shift = begins[sides] - ends + counts[sides]
        return order[np.arange(ends[-1]) + np.repeat(shift, counts[sides])]

    def sizes(self, duels: Sequence[Duel]) -> Index:
        """Return how many samples take part in each duel."""
        if len(self.classes[0]) == 2:
            return np.full(len(duels), len(self.places))
        counts = np.bincount(self.classes[1])
        sides = np.fromiter(chain.from_iterable(duels), np.int64, 2 * len(duels)).reshape(-1, 2)
        return np.where(sides[:, 1] == REST, counts.sum(), counts[sides[:, 0]] + counts[sides[:, 1]])


def select(X: Any, y: Any, weights: Vector | None, is_gram: bool) -> TrainingData:
    """Leave out samples of weight zero: they are to count as absent.

    Raises
    ------
    ValueError
        All weights are zero.
    """
    n = X.shape[0]
    if weights is None:
        return TrainingData(X, y, np.ones(n), np.arange(n, dtype=np.int64), X.shape)
    places = np.flatnonzero(weights > 0).astype(np.int64)
    if len(places) == 0:
        raise ValueError("Invalid input - all samples have zero or negative weights. At least one must count.")
    if len(places) == n:
        return TrainingData(X, y, weights, places, X.shape)
    rows = X[np.ix_(places, places)] if is_gram else rows_of(X, places)
    return TrainingData(rows, None if y is None else y[places], weights[places], places, X.shape)
