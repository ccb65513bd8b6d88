"""Rows of a kernel matrix: computed when they are needed, kept as far as the cache goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from hinge.arrays import Floats, Index, Vector
from hinge.kernel import accumulate
from hinge.kernel.cache import RowCache
from hinge.kernel.tiles import Tiles
from hinge.runtime.threads import Team, blas_on_one_thread


@dataclass
class Counts:
    """What the Gram matrix did: the papers measure solvers by it.

    Attributes
    ----------
    evaluations : int
        Kernel values computed.
    hits, misses : int
        Rows that the cache had, and had not, when they were needed.
    bytes : int
        Most bytes of rows held at one time.
    """

    evaluations: int = 0
    hits: int = 0
    misses: int = 0
    bytes: int = 0

    def add(self, *, evaluations: int = 0, hits: int = 0, misses: int = 0) -> None:
        """Count what has just been done."""
        self.evaluations += evaluations
        self.hits += hits
        self.misses += misses


class Rows:
    """Rows of the kernel values of ``tiles``.

    Parameters
    ----------
    cache : RowCache
        Where they are kept.
    tiles : Tiles
        Their values; the columns are all samples.
    team : Team
        The threads.
    counts : Counts
        What is counted, maybe together with others.
    keeps : bool
        Whether rows that a product needs are kept: no where they are cheap to compute again.
    is_whole : bool
        Whether the cache is a matrix in memory that was computed for another purpose; its bytes do not count.
    """

    def __init__(
        self, cache: RowCache, tiles: Tiles, team: Team, counts: Counts, *, keeps: bool, is_whole: bool
    ) -> None:
        self.cache, self.keeps, self._is_whole = cache, keeps, is_whole
        self._tiles, self._team, self._counts = tiles, team, counts
        self._n = tiles.samples.n

    def find(self, index: Index) -> Index:
        """Return the slots of those of the rows ``index`` that are here, -1 for the others."""
        slots = self.cache.find(index)
        n_present = int(np.count_nonzero(slots >= 0))
        self._count(hits=n_present, misses=len(index) - n_present)
        return slots

    def fetch(self, index: Index) -> Index:
        """Return the slots of the rows ``index``, computed where they are absent."""
        slots = self.find(index)
        absent = slots < 0
        if absent.any():
            wanted = index[absent]
            given = self.cache.admit(wanted)

            def keep(start: int, stop: int, tile: Floats, piece: slice) -> None:
                accumulate.keep_rows(tile, given[piece], self.cache.rows[:, start:stop])

            with blas_on_one_thread(), _discarding(self.cache, wanted):
                self._tiles.visit(wanted, self._team, keep)
            self._count(evaluations=len(wanted) * self._n)
            slots[absent] = given
        return slots

    def image(self, index: Index, step: Vector) -> Vector:
        """Return ``K[:, index] @ step``: rows that are here are read, the others computed, and maybe kept."""
        slots = self.cache.find(index)
        known = slots >= 0
        fresh, fresh_step = index[~known], step[~known].astype(self._tiles.dtype)
        kept = self.cache.admit(fresh) if self.keeps else np.full(len(fresh), -1)
        known_slots, known_step = slots[known], step[known].astype(self._tiles.dtype)
        change = np.zeros(self._n)

        def add_known(start: int, stop: int) -> None:
            rows = self.cache.rows[:, start:stop]
            accumulate.add_rows(rows, known_slots, known_step, change[start:stop])

        def add_fresh(start: int, stop: int, tile: Floats, piece: slice) -> None:
            change[start:stop] += fresh_step[piece] @ tile
            accumulate.keep_rows(tile, kept[piece], self.cache.rows[:, start:stop])

        with _discarding(self.cache, fresh):
            if len(known_slots):
                self._team.share(self._n, self._tiles.width, add_known)
            self._tiles.visit(fresh, self._team, add_fresh)
        self._count(hits=len(known_slots), misses=len(fresh), evaluations=len(fresh) * self._n)
        return change

    def hand_down(self, index: Index, child: RowCache) -> None:
        """Copy the rows of the samples ``index``, as far as they are here, to the cache of these samples alone."""
        position = np.full(self._n, -1, dtype=np.int64)
        position[index] = np.arange(len(index))
        old = self.cache
        keys = old.keys()
        keys = keys[position[keys] >= 0][-child.capacity :]
        if len(keys):
            slots = child.admit(position[keys])
            accumulate.gather(old.rows, old.slot_of[keys], index, child.rows[slots[0] : slots[0] + len(keys)])

    def _count(self, *, evaluations: int = 0, hits: int = 0, misses: int = 0) -> None:
        self._counts.add(evaluations=evaluations, hits=hits, misses=misses)
        if not self._is_whole:
            self._counts.bytes = max(self._counts.bytes, self.cache.bytes_used)


@contextmanager
def _discarding(cache: RowCache, index: Index) -> Iterator[None]:
    """Forget rows that were admitted to a cache if they cannot be filled."""
    try:
        yield
    except BaseException:
        cache.discard(index)
        raise
