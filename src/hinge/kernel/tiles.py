"""Tiles of kernel values: a panel of samples against a range of others, in the cheapest way storage allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hinge.arrays import Floats, Index
from hinge.data.samples import Samples, Statistic
from hinge.kernel.kernels import Kernel
from hinge.runtime.prices import MULTIPLY_ADDS_PER_KERNEL_FUNCTION, SECONDS_PER_KERNEL_FUNCTION
from hinge.runtime.threads import Team


class Panel(NamedTuple):
    """Samples laid out for comparison with others.

    Attributes
    ----------
    layout : Any
        What `Samples.panel` returned.
    norms : array
        Norms of these samples; where none are needed, any value for each.
    """

    layout: Any
    norms: Floats

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        parts = self.layout if isinstance(self.layout, tuple) else (self.layout,)
        return sum(getattr(part, "nbytes", 0) for part in parts)


def _padded(lines: Floats) -> Panel:
    """Return a panel of features, filled up with zeros; no norms are needed."""
    return Panel(lines, lines[:, 0])


Batch = list[tuple[Panel, slice]]

# Takes the range of columns, a tile of their values, and its place among the rows.
TileUse = Callable[[int, int, Floats, slice], None]


class Tiles:
    """Kernel values of the columns ``samples`` with panels of any samples stored alike.

    Three ways lead to them. Distances of 0/1 samples are whole numbers, whose kernel values can be looked up in
    a table. A function of distances is computed in one pass where features are few. All others compare samples
    first, mostly by a matrix product, and then apply the kernel function to the tile.

    Parameters
    ----------
    samples : Samples
        The columns.
    kernel : Kernel
        The kernel function.
    dtype : dtype
        Type of the values.
    statistic : str, optional
        What samples are compared by, where it is not the kernel's own.

    Attributes
    ----------
    height, width : int
        Rows and columns of a tile that is computed at a good pace.

    Examples
    --------
    >>> from hinge.data.dense import DenseSamples
    >>> samples = DenseSamples(np.array([[0.0], [1.0], [3.0]]))
    >>> tiles = Tiles(samples, Kernel("rbf", gamma=1.0), np.float64)
    >>> tiles.values(tiles.panel(np.array([0])), 1, 3).round(5)
    array([[3.6788e-01, 1.2000e-04]])
    """

    def __init__(self, samples: Samples, kernel: Kernel, dtype: Any, statistic: Statistic | None = None) -> None:
        self.samples = samples
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.statistic: Statistic = statistic or kernel.statistic
        self._table: Floats | None = None
        self._features: Floats | None = None
        self.height, self.width = samples.tile_shape(self.statistic)
        if kernel.decays and samples.counts_differences:
            with np.errstate(over="ignore"):
                self._table = np.exp(-kernel.gamma * np.arange(samples.n_features + 1.0)).astype(dtype)
        elif kernel.by_differences is not None and samples.has_few_features:
            self._features = samples.features(self.dtype)

    @property
    def looks_up(self) -> bool:
        """Whether values come from a table, which takes as long in any precision."""
        return self._table is not None

    def seconds(self, n_values: int) -> float:
        """Guess how long one thread computes this many values: enough to tell little work from much."""
        of_function = 1 + self.samples.cost / MULTIPLY_ADDS_PER_KERNEL_FUNCTION
        return SECONDS_PER_KERNEL_FUNCTION * of_function * self.dtype.itemsize / 4 * n_values

    def pieces(self, length: int) -> list[slice]:
        """Cut the rows 0 to ``length`` into those of single tiles."""
        return [slice(k, min(k + self.height, length)) for k in range(0, length, self.height)]

    def panel(self, index: Index, source: Samples | None = None) -> Panel:
        """Lay out the samples ``index`` of ``source``, by default of the columns."""
        if self._features is not None and source is None:  # they are laid out already
            return _padded(np.ascontiguousarray(self._features[:, index].T))
        source = source or self.samples
        layout = source.panel(index, self.dtype)
        if self._features is None:
            return Panel(layout, self._norms(source, index, len(index)))
        padded = np.zeros((len(index), len(self._features)), self.dtype)
        padded[:, : layout.shape[1]] = layout
        return _padded(padded)

    def _norms(self, source: Samples, places: Index | slice, length: int) -> Floats:
        """Return the norms of so many samples, or zeros where the kernel takes none."""
        if self.kernel.takes_norms:
            return source.norms(self.kernel.statistic, self.dtype)[places]
        return np.zeros(length, self.dtype)

    def visit(self, index: Index, team: Team, use: TileUse, source: Samples | None = None) -> None:
        """Compare the samples ``index`` of ``source`` with all columns and let ``use`` see each tile.

        Panels are laid out for all threads, and as many at once as memory allows. A thread sees all tiles of its
        columns in order, one after the other in the same memory: ``use`` must not keep them.
        """
        seconds = self.seconds(len(index) * self.samples.n)
        spare: list[Floats] = []  # memory for a tile, of threads that need none just now
        for batch in self._batches(index, source):
            visit = partial(self._visit_columns, batch, use, team, spare)
            team.share(self.samples.n, self.width, visit, seconds)

    def _visit_columns(
        self, batch: Batch, use: TileUse, team: Team, spare: list[Floats], start: int, stop: int
    ) -> None:
        # Workers of Dask have their memory allocator give back whatever is freed: fresh memory is expensive there.
        try:
            memory = spare.pop()
        except IndexError:
            memory = np.empty(self.height * min(self.width, self.samples.n), self.dtype)
        for panel, piece in batch:
            team.check()
            shape = len(panel.norms), stop - start
            tile = memory[: shape[0] * shape[1]].reshape(shape)
            self.fill(panel, start, stop, tile)
            use(start, stop, tile, piece)
        spare.append(memory)

    def _batches(self, index: Index, source: Samples | None) -> Iterator[Batch]:
        batch: Batch = []
        size = 0
        for piece in self.pieces(len(index)):
            panel = self.panel(index[piece], source)
            batch.append((panel, piece))
            size += panel.size
            if size > self.samples.panel_bytes:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def values(self, panel: Panel, start: int, stop: int) -> Floats:
        """Return the kernel values of the panel with the columns ``start`` to ``stop``."""
        tile = np.empty((len(panel.norms), stop - start), self.dtype)
        self.fill(panel, start, stop, tile)
        return tile

    def fill(self, panel: Panel, start: int, stop: int, tile: Floats) -> None:
        """As `values`, into ``tile``."""
        if self._table is not None:
            self.samples.look_up(panel.layout, start, stop, self._table, tile)
        elif self._features is not None:
            features = np.ascontiguousarray(self._features[:, start:stop])
            self.kernel.of_few_features(panel.layout, features, tile)
        else:
            self.samples.compare(self.statistic, panel.layout, start, stop, tile)
            norms = self._norms(self.samples, slice(start, stop), stop - start)
            self.kernel.apply(tile, panel.norms, norms, self.statistic)
