"""A shard: a block of rows, and the answers to what `hinge.data.sharded` asks of it."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hinge.arrays import Floats, Index, Vector
from hinge.data.contents import extremes, fingerprints, moments
from hinge.data.samples import Samples, Statistic
from hinge.data.sharded import FORGOTTEN, Form, View
from hinge.kernel.kernels import Kernel
from hinge.kernel.sharp import Pairs, sharp_image
from hinge.kernel.tiles import Tiles
from hinge.runtime.threads import Team, blas_on_one_thread


class Facts(NamedTuple):
    """What a shard says of its rows before they are stored.

    Attributes
    ----------
    n, n_features : int
        Their shape.
    n_nonzeros : int
        Entries that are not zero.
    is_binary : bool
        Whether all are 0 or 1.
    fault : tuple or None
        Row and column of an entry that is not finite.
    """

    n: int
    n_features: int
    n_nonzeros: int
    is_binary: bool
    fault: tuple[int, int] | None


class Traits(NamedTuple):
    """What a shard says of its samples: attributes of `Samples`."""

    n: int
    cost: float
    terms: int
    is_exactly_compared: bool
    has_few_features: bool
    counts_differences: bool
    has_negatives: bool


class Shard:
    """A block of rows that answers questions.

    Parameters
    ----------
    rows : array or CSR matrix
        The rows: floats in C order, or canonical.
    threads : int, optional
        Threads that compute answers.
    """

    def __init__(self, rows: Any, threads: int | None = None) -> None:
        self.rows = rows
        self.n = int(rows.shape[0])
        self._team = Team(threads)
        self._stored: dict[int, Samples] = {}
        self._views: OrderedDict[int, Samples] = OrderedDict()
        self._tiles: dict[int, tuple[Any, Tiles]] = {}

    def answer(self, question: str, *arguments: Any) -> Any:
        """Answer a question: one of the methods below."""
        with blas_on_one_thread():
            return getattr(self, question)(*arguments)

    # ------------------------------------------------------------------ about rows

    def facts(self, index: Index) -> Facts:
        """Say what the rows are like."""
        rows = self._chosen(index)
        values = rows.data if sp.issparse(rows) else rows
        with np.errstate(over="ignore", invalid="ignore"):
            is_finite = bool(np.isfinite(values.sum(dtype=np.float64)))
        fault = None if is_finite else _fault(rows, values)
        n_nonzeros = int(np.count_nonzero(values))
        is_binary = bool((values[:1] == 1).sum() == np.count_nonzero(values[:1])) and (
            int(np.count_nonzero(values == 1)) == n_nonzeros
        )
        return Facts(int(rows.shape[0]), int(rows.shape[1]), n_nonzeros, is_binary, fault)

    def fetch(self, index: Index) -> Any:
        """Return some rows as they are."""
        return self.rows[index]

    def column_sums(self, index: Index) -> Vector:
        """Sum up every feature."""
        rows = self._chosen(index)
        dense = rows.toarray() if sp.issparse(rows) else rows
        with np.errstate(over="ignore", invalid="ignore"):
            return np.add.reduce(dense, axis=0, dtype=np.float64)

    def extremes(self, index: Index) -> tuple[float, float, int]:
        """Return the smallest and the largest stored value, and how many there are."""
        return extremes(self._chosen(index))

    def moments(self, scale: float, center: float, power: int, index: Index) -> tuple[Vector, Vector]:
        """Return `row_moments` of every row."""
        return moments(self._chosen(index), scale, center, power)

    def fingerprints(self, seed: int, index: Index) -> Any:
        """Return a fingerprint of every row."""
        return fingerprints(self._chosen(index), seed)

    def _chosen(self, index: Index) -> Any:
        is_all = len(index) == self.n and bool((np.diff(index) == 1).all())
        return self.rows if is_all else self.rows[index]

    # ------------------------------------------------------------------ about samples

    def learn(self, view: View, index: NDArray[np.int32] | None) -> None:
        """Store the rows, or those ``index`` of them, to be asked about; the oldest views are dropped for them."""
        samples = self._stored_as(view.form)
        if index is not None:
            samples = samples.take(index.astype(np.int64), view.dtype)
        self._views[view.number] = samples
        parts = [number for number, kept in self._views.items() if kept not in self._stored.values()]
        copied = sum(self._views[number].n for number in parts)
        for number in parts[:-1]:
            if copied <= 2 * self.n:
                break
            copied -= self._views.pop(number).n
            self._tiles.pop(number, None)

    def _stored_as(self, form: Form) -> Samples:
        if form.number not in self._stored:
            if len(self._stored) > 1:  # the one before the last: forms are tried one after the other
                oldest = next(iter(self._stored))
                gone = self._stored.pop(oldest)
                for number in [number for number, kept in self._views.items() if kept is gone]:
                    del self._views[number]
                    self._tiles.pop(number, None)
            self._stored[form.number] = form.of(self.rows)
        return self._stored[form.number]

    def _known(self, number: int, index: Any = None, dtype: Any = np.float64) -> Samples | None:
        samples = self._views.get(number)
        if samples is None:
            return None
        if number in self._views:
            self._views.move_to_end(number)
        return samples if index is None else samples.take(index.astype(np.int64), dtype)

    def traits(self, view: int, _: Any) -> Any:
        """Say what the samples are like."""
        if (samples := self._known(view)) is None:
            return FORGOTTEN
        figures = samples.n, samples.cost, samples.terms, samples.is_exactly_compared
        return Traits(*figures, samples.has_few_features, samples.counts_differences, samples.has_negatives())

    def norms(self, view: int, dtype: Any, _: Any) -> Any:
        """Return their squared norms."""
        return FORGOTTEN if (samples := self._known(view)) is None else samples.squared_norms(dtype)

    def sums(self, view: int, name: str, *rest: Any) -> Any:
        """Return one of the sums over features that `Samples` has a method for."""
        samples = self._known(view)
        return FORGOTTEN if samples is None else getattr(samples, name)(*rest[:-1])

    def copies(self, view: int, dtype: Any, index: Any) -> Any:
        """Return copies of some of them."""
        return FORGOTTEN if (samples := self._known(view, index, dtype)) is None else samples

    def image(
        self,
        view: int,
        kernel: Kernel,
        statistic: Statistic,
        panel: Samples,
        factors: Vector,
        dtype: Any,
        index: Any,
    ) -> Any:
        """Return Σ factor · k(panel sample, ·) at these samples, or at some of them, in the type of the values."""
        if (samples := self._known(view, index, dtype)) is None:
            return FORGOTTEN
        tiles = self._tiles_of(view if index is None else None, samples, kernel, statistic, dtype)
        rounded, result = factors.astype(dtype), np.zeros(samples.n)
        tiles.visit(np.arange(panel.n), self._team, partial(_add, rounded, result), panel)
        return result.astype(dtype)

    def _tiles_of(
        self, view: int | None, samples: Samples, kernel: Kernel, statistic: Statistic, dtype: Any
    ) -> Tiles:
        key = kernel, statistic, np.dtype(dtype)
        if view is None:
            return Tiles(samples, kernel, dtype, statistic)
        if view not in self._tiles or self._tiles[view][0] != key:
            self._tiles[view] = key, Tiles(samples, kernel, dtype, statistic)
        return self._tiles[view][1]

    def sharp_image(
        self, view: int, kernel: Kernel, statistic: Statistic, panel: Any, factors: Vector, dtype: Any, index: Any
    ) -> Any:
        """As `image`, to twice the digits of a double."""
        samples: Any = self._known(view, index, np.float64)
        if samples is None:
            return FORGOTTEN
        together = panel.joined([samples])
        rows = np.arange(panel.n, together.n)
        image: Pairs = sharp_image(together, kernel, np.arange(panel.n), factors, rows, self._team)
        return image[0], image[1]


def _fault(rows: Any, values: Any) -> tuple[int, int] | None:
    """Return row and column of the first entry that is not finite."""
    wrong = np.argwhere(~np.isfinite(values))
    if not len(wrong):
        return None
    if not sp.issparse(rows):
        return int(wrong[0][0]), int(wrong[0][1])
    entry = int(wrong[0][0])
    return int(np.searchsorted(rows.indptr, entry, side="right")) - 1, int(rows.indices[entry])


def _add(factors: Floats, result: Vector, start: int, stop: int, tile: Floats, piece: slice) -> None:
    result[start:stop] += factors[piece] @ tile


class LocalShards:
    """Shards in this process, one after the other.

    Parameters
    ----------
    shards : list of Shard
        The shards.
    """

    def __init__(self, shards: list[Shard]) -> None:
        self._shards = shards
        self.sizes = np.array([shard.n for shard in shards], np.int64)
        first = shards[0].rows
        self.n_features, self.dtype, self.is_sparse = (
            int(first.shape[1]),
            np.dtype(first.dtype),
            sp.issparse(first),
        )

    def ask(self, question: str, common: tuple[Any, ...], own: Any, cancelled: Any) -> list[Any]:
        """Return the answer of every shard."""
        return [
            None if arguments is None else shard.answer(question, *common, *arguments)
            for shard, arguments in zip(self._shards, own, strict=True)
        ]

    def rows(self, index: Index) -> Any:
        """Nothing is at hand without a question."""
        return None
