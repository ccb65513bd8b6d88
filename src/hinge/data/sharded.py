"""Samples that lie in shards: blocks of rows that answer questions, in this process or on other computers.

A shard holds rows and computes with them; it keeps nothing that cannot be made again from its rows. β, residuals
and bounds stay with whoever asks. So a shard may vanish at any moment: the next question finds it rebuilt from its
rows, it says that it has forgotten what it was told, is told again, and answers.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Floats, Index, Vector, is_sparse, sparse
from hinge.data.bits import packed
from hinge.data.dense import DenseSamples
from hinge.data.layout import LAYOUT
from hinge.data.samples import Samples, Statistic
from hinge.data.sparse import SparseSamples
from hinge.runtime.interrupt import requested
from hinge.runtime.threads import lazy

#: The answer of a shard that does not know the samples it was asked about.
FORGOTTEN = "forgotten"

_numbers = itertools.count()


class Shards(Protocol):
    """Blocks of rows, wherever they are. What is asked of them says `hinge.kernel.shard.Shard`.

    Attributes
    ----------
    sizes : int64 array
        Number of rows of each shard.
    n_features : int
        Number of features.
    dtype : dtype
        Type of their values.
    is_sparse : bool
        Whether they are rows of CSR matrices.
    """

    sizes: Index
    n_features: int
    dtype: np.dtype[Any]
    is_sparse: bool

    def ask(
        self, question: str, common: tuple[Any, ...], own: Sequence[Any], cancelled: Callable[[], bool]
    ) -> list[Any]:
        """Return the answer of every shard, in their order.

        Parameters
        ----------
        question : str
            A method of `Shard`.
        common : tuple
            What all shards are given.
        own : sequence of tuple or None
            What each is given besides; a shard with None is not asked, and its answer is None.
        cancelled : callable
            Asked while answers are awaited; where it says True, `Cancelled` is raised.
        """

    def rows(self, index: Index) -> Any:
        """Return rows that are at hand without a question; None where they are not."""


@dataclass(frozen=True, eq=False)
class Form:
    """How the rows of all shards are stored.

    Attributes
    ----------
    kind : {"dense", "sparse", "bits"}
        What a report calls it.
    center : array, optional
        What dense rows are seen from.
    is_far_from_zero : bool
        As of `SparseSamples`.
    number : int
        Tells forms apart.
    """

    kind: str
    center: Vector | None = None
    is_far_from_zero: bool = False
    number: int = field(default_factory=lambda: next(_numbers))

    def of(self, rows: Any) -> Samples:
        """Store rows like this."""
        if self.kind == "bits":
            bits = packed(rows, always=True)
            assert bits is not None
            return bits
        if self.kind == "sparse":
            sparse = SparseSamples.of(rows)
            sparse.is_far_from_zero = self.is_far_from_zero
            return sparse
        return DenseSamples(rows.toarray() if is_sparse(rows) else rows, self.center)


@dataclass(frozen=True)
class View:
    """What a shard needs to know of the samples that it is asked about.

    Attributes
    ----------
    number : int
        Tells views apart.
    form : Form
        How they are stored.
    dtype : dtype
        For comparisons in which type the samples of a part are copied.
    """

    number: int
    form: Form
    dtype: Any


class ShardedRows:
    """Rows of features that lie in shards, as training sees them.

    Parameters
    ----------
    shards : Shards
        Who holds them.
    places : int64 array, optional
        Which of all rows these are, ascending; by default all.
    """

    def __init__(self, shards: Shards, places: Index | None = None) -> None:
        self.shards = shards
        self.places = np.arange(int(shards.sizes.sum())) if places is None else places
        self.shape = len(self.places), shards.n_features
        self.dtype = shards.dtype

    @lazy
    def own(self) -> Own:
        """Where each of the rows is."""
        return Own(self.shards.sizes, self.places)

    def __getitem__(self, index: Index) -> Any:
        """Return some of the rows themselves."""
        places = self.places[index]
        if (rows := self.shards.rows(places)) is not None:
            return rows
        own = Own(self.shards.sizes, places)
        begun = time.monotonic()  # a fit that was stopped still wants its support vectors
        parts = self.shards.ask(
            "fetch", (), own.arguments(), lambda: requested() and time.monotonic() > begun + LAYOUT.last_seconds
        )
        if not len(places):
            empty = np.empty((0, self.shape[1]), self.dtype)
            return sparse().csr_array(empty) if self.shards.is_sparse else empty
        present = [part for part in parts if part is not None]
        stacked = sparse().vstack(present, format="csr") if self.shards.is_sparse else np.concatenate(present)
        return stacked[own.order()]

    def select(self, places: Index) -> ShardedRows:
        """Return some of these rows, which stay where they are."""
        return ShardedRows(self.shards, self.places[places])

    def contents(self, question: str, *arguments: Any) -> list[Any]:
        """Ask the shards about the contents of these rows: a list with the answer of each that has some."""
        answers = self.shards.ask(question, arguments, self.own.arguments(), requested)
        return [answer for answer in answers if answer is not None]

    def per_row(self, question: str, *arguments: Any) -> Any:
        """As `contents`, put together: one value per row, or several arrays of such."""
        answers = self.contents(question, *arguments)
        if isinstance(answers[0], tuple):
            return tuple(self.own.gather(list(parts)) for parts in zip(*answers, strict=True))
        return self.own.gather(answers)


class Own:
    """Which rows of which shard an array of places is.

    Parameters
    ----------
    sizes : int64 array
        Rows of each shard.
    places : int64 array
        Places of some rows among all.
    """

    def __init__(self, sizes: Index, places: Index) -> None:
        ends = np.cumsum(sizes)
        shard = np.searchsorted(ends, places, side="right")
        self.n = len(places)
        self._is_sorted = bool((np.diff(shard) >= 0).all())
        self._where = [np.flatnonzero(shard == s) for s in range(len(sizes))]
        self.local = [places[where] - (ends[s] - sizes[s]) for s, where in enumerate(self._where)]

    def arguments(self) -> list[Any]:
        """Return what to tell each shard: the numbers of its rows; None to those without any."""
        return [(local.astype(np.int32),) if len(local) else None for local in self.local]

    def order(self) -> Index:
        """Return where each place is when what shards answer is put one after the other."""
        return np.argsort(np.concatenate(self._where), kind="stable") if self._where else np.empty(0, np.int64)

    def parts(self, values: Any) -> list[Any]:
        """Divide one value a place among the shards."""
        return [values[where] for where in self._where]

    def gather(self, answers: Sequence[Any]) -> Any:
        """Put what the shards with rows answered in the order of the places."""
        if self._is_sorted:
            return np.concatenate(answers)
        result = np.empty(self.n, answers[0].dtype)
        wheres = (where for where in self._where if len(where))
        for where, answer in zip(wheres, answers, strict=True):
            result[where] = answer
        return result


class ShardedSamples(Samples):
    """Samples that shards store and compare: what is asked of all of them at once, they answer together.

    Whoever compares a few asks for copies of them (`take`); whoever wants kernel values with all of them, for
    their image (`image`).

    Parameters
    ----------
    rows : ShardedRows
        The rows.
    form : Form
        How they are stored.
    dtype : dtype
        For comparisons in which type shards copy the samples of a part.
    root : ShardedSamples, optional
        What they are a part of, and copied from.
    """

    is_apart = True

    def __init__(
        self, rows: ShardedRows, form: Form, dtype: Any = np.float64, root: ShardedSamples | None = None
    ) -> None:
        super().__init__()
        self.rows, self.form = rows, form
        self.n, self.n_features = rows.shape
        is_whole = self.n == int(rows.shards.sizes.sum())
        self._view = View(next(_numbers), form, np.dtype(np.float64) if is_whole else np.dtype(dtype))
        self._is_whole = is_whole and bool((np.diff(rows.places) == 1).all())
        self._root = root or self
        self._near: Near = Near(int(rows.shards.sizes.sum())) if root is None else root._near
        traits = self._ask("traits")
        self.storage, self.terms = form.kind, max(trait.terms for trait in traits)
        self.cost = float(np.average([trait.cost for trait in traits], weights=[trait.n for trait in traits]))
        self.is_exactly_compared = traits[0].is_exactly_compared
        self.has_few_features = traits[0].has_few_features
        self.counts_differences = traits[0].counts_differences
        self._has_negatives = any(trait.has_negatives for trait in traits)

    # ------------------------------------------------------------------ questions

    def _ask(
        self,
        question: str,
        *common: Any,
        chosen: list[Any] | None = None,
        cancelled: Callable[[], bool] = requested,
    ) -> list[Any]:
        """Return what every shard answers that has some of these samples, or those that are ``chosen``."""
        if chosen is None:
            chosen = [(None,) if len(local) else None for local in self.rows.own.local]
        answers: list[Any] = [FORGOTTEN if arguments is not None else None for arguments in chosen]
        missing = chosen
        while any(arguments is not None for arguments in missing):
            found = self.rows.shards.ask(question, (self._view.number, *common), missing, cancelled)
            answers = [old if new is None else new for old, new in zip(answers, found, strict=True)]
            lost = [isinstance(answer, str) and answer == FORGOTTEN for answer in answers]
            missing = [arguments if is_lost else None for arguments, is_lost in zip(chosen, lost, strict=True)]
            if any(lost):
                told = [(self._part_of(s),) if is_lost else None for s, is_lost in enumerate(lost)]
                self.rows.shards.ask("learn", (self._view,), told, cancelled)
        return [answer for answer in answers if answer is not None]

    def _part_of(self, shard: int) -> NDArray[np.int32] | None:
        return None if self._is_whole else self.rows.own.local[shard].astype(np.int32)

    def _per_sample(self, question: str, *arguments: Any) -> Any:
        return self.rows.own.gather(self._ask(question, *arguments))

    def _compute_norms(self, dtype: Any) -> NDArray[np.float64]:
        return np.asarray(self._per_sample("norms", np.dtype(dtype)), dtype=np.float64)

    def absolute_sums(self) -> NDArray[np.float64]:
        return np.asarray(self._per_sample("sums", "absolute_sums"))

    def rounded_sums(self) -> NDArray[np.float64]:
        return np.asarray(self._per_sample("sums", "rounded_sums"))

    def subtracted_sums(self, statistic: Statistic) -> NDArray[np.float64]:
        return np.asarray(self._per_sample("sums", "subtracted_sums", statistic))

    def has_negatives(self) -> bool:
        return self._has_negatives

    # ------------------------------------------------------------------ other samples

    def take(self, index: Index, dtype: Any) -> Any:
        """Copy the samples ``index`` to where the caller is."""
        places = self.rows.places[index]
        if (rows := self.rows.shards.rows(places)) is not None:
            return self.form.of(rows).take(np.arange(len(places)), dtype)
        key = self.form.number, np.dtype(dtype)
        return self._near.take(places, key, lambda some: self._root._fetched(some, dtype))

    def _fetched(self, places: Index, dtype: Any) -> Any:
        wanted = Own(self.rows.shards.sizes, places)
        first, *others = self._ask("copies", np.dtype(dtype), chosen=_positions(self.rows.own, wanted))
        together = first.joined(others) if others else first
        order = wanted.order()
        return together if (np.diff(order) == 1).all() else together.take(order, dtype)

    def view(self, index: Index, dtype: Any) -> Any:
        """Return the samples ``index``: where they are, or copies of them where they are few."""
        if len(index) <= LAYOUT.few_samples:
            return self.take(index, dtype)
        return ShardedSamples(self.rows.select(index), self.form, dtype, self._root)

    def centered(self) -> ShardedSamples:
        """Return the same samples, seen from their mean."""
        sums = self.rows.contents("column_sums")
        center = np.add.reduce(sums) / max(self.n, 1)
        return ShardedSamples(self.rows, Form("dense", center))

    def panel(self, index: Index, dtype: Any) -> Any:
        raise NotImplementedError("samples in shards are compared where they are, or taken first")

    def compare(self, statistic: Statistic, panel: Any, start: int, stop: int, out: Floats) -> None:
        raise NotImplementedError("samples in shards are compared where they are, or taken first")

    # ------------------------------------------------------------------ images

    def image(
        self,
        question: str,
        function: tuple[Any, ...],
        support: Index,
        factors: Vector,
        rows: Index | None,
        dtype: Any,
        cancelled: Callable[[], bool],
    ) -> Any:
        """Let every shard answer a question about sums over the samples ``support``, and add up the answers.

        Parameters
        ----------
        question : {"image", "sharp_image"}
            Which kind of sum.
        function : tuple
            The kernel and the statistic.
        support, factors : arrays
            Samples, and what each is multiplied with.
        rows : int64 array, optional
            Where the sums are wanted; by default for all samples.
        dtype : dtype
            Type of the kernel values.
        cancelled : callable
            Whether to stop.
        """
        own = None if rows is None else Own(self.rows.shards.sizes, self.rows.places[rows])
        chosen = None if own is None else _positions(self.rows.own, own)
        where = self.rows.own if own is None else own
        total = np.zeros((2, where.n) if question == "sharp_image" else where.n)
        if not where.n:
            return total
        for piece in self._pieces(support, where, dtype):
            panel = self.take(support[piece], dtype)
            told = *function, panel, factors[piece], dtype
            answers = self._ask(question, *told, chosen=chosen, cancelled=cancelled)
            if question == "sharp_image":
                total[0] += where.gather([high for high, _ in answers])
                total[1] += where.gather([low for _, low in answers])
            else:
                total += where.gather(answers)
        return total

    def _pieces(self, support: Index, where: Own, dtype: Any) -> list[slice]:
        """Divide support vectors so that no message is huge, and nobody is busy for long without being asked."""
        bytes_each = max(self.cost, 1.0) * np.dtype(dtype).itemsize
        most = max(len(local) for local in where.local)
        width = int(min(LAYOUT.batch_bytes / bytes_each, LAYOUT.values_at_once / max(most, 1)))
        width = max(width, LAYOUT.flat_tile[0])
        return [slice(k, k + width) for k in range(0, len(support), width)]


def _positions(whole: Own, part: Own) -> list[Any]:
    """Return, for each shard, where its rows in ``part`` are among those in ``whole``, as an argument."""
    found: list[Any] = []
    for all_of_it, some in zip(whole.local, part.local, strict=True):
        order = np.argsort(all_of_it, kind="stable") if (np.diff(all_of_it) < 0).any() else None
        position = np.searchsorted(all_of_it, some, sorter=order)
        position = position if order is None else order[position]
        found.append((position.astype(np.int32),) if len(some) else None)
    return found


class Near:
    """Copies of samples that were asked for last: working sets have many in common.

    Parameters
    ----------
    n : int
        Number of all samples.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._kept: dict[Any, tuple[Any, NDArray[np.int32]]] = {}
        self._lock = threading.Lock()

    def take(self, places: Index, key: Any, fetch: Callable[[Index], Any]) -> Any:
        """Return samples that are kept under a key, having fetched those that were not."""
        if len(places) > LAYOUT.few_samples:
            return fetch(places)
        with self._lock:
            kept, slot = self._kept.get(key, (None, np.full(self._n, -1, np.int32)))
            absent = places[slot[places] < 0]
            if kept is None or len(absent):
                fresh = fetch(places if kept is None else absent)
                if kept is None:
                    kept, slot[places] = fresh, np.arange(len(places))
                else:
                    if kept.n + len(absent) > LAYOUT.kept_near * LAYOUT.few_samples:
                        present = places[slot[places] >= 0]
                        kept = kept.take(slot[present].astype(np.int64), key[1])
                        slot[:] = -1
                        slot[present] = np.arange(len(present))
                    slot[absent] = kept.n + np.arange(len(absent))
                    kept = kept.joined([fresh])
                self._kept[key] = kept, slot
            return kept.take(slot[places].astype(np.int64), key[1])
