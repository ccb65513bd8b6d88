"""Samples in a container of the caller's, which nobody but a kernel function looks into."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.arrays import Index, is_sparse


class Collection:
    """Some or all samples of a container: an array of any dimensions, a data frame, a CSR matrix, a list.

    Only its length is asked for. Samples are chosen along the first axis, and a choice is made of the container
    only when somebody wants to see it: most often nobody does, because kernel values of all samples are there.

    Parameters
    ----------
    container : Any
        What the caller passed.
    index : int64 array, optional
        Which samples are meant; all by default.

    Examples
    --------
    >>> words = Collection(["pear", "plum", "fig"])
    >>> words[np.array([2, 0])].selected()
    ['fig', 'pear']
    >>> words.selected() is words.container
    True
    """

    def __init__(self, container: Any, index: Index | None = None) -> None:
        self.container = container
        self.index = index

    @classmethod
    def of(cls, X: Any) -> Collection:
        """Return X itself if it is a collection, else the collection of all samples in it."""
        return X if isinstance(X, cls) else cls(X)

    @property
    def n_contained(self) -> int:
        """Number of samples in the container."""
        shape: tuple[int, ...] = getattr(self.container, "shape", ())
        return int(shape[0]) if len(shape) else len(self.container)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of samples, and the shape of one where the container is an array."""
        n = self.n_contained if self.index is None else len(self.index)
        return (n, *getattr(self.container, "shape", ())[1:])

    @property
    def places(self) -> Index:
        """Where the samples are in the container."""
        return np.arange(self.n_contained) if self.index is None else self.index

    def __getitem__(self, index: Index | slice) -> Collection:
        return Collection(self.container, self.places[index])

    def selected(self) -> Any:
        """Return the container if all of its samples are meant, else these alone in one of its kind."""
        if self.index is None:
            return self.container
        if hasattr(self.container, "iloc"):
            return self.container.iloc[self.index]
        if is_sparse(self.container):
            return self.container.tocsr()[self.index]
        if hasattr(self.container, "shape"):
            return self.container[self.index]
        return [self.container[place] for place in self.index.tolist()]
