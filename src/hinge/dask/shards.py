"""Shards on the workers of a Dask cluster.

A shard has a number, and a home: the worker that holds it at the moment. Workers may die, restart and join: a
shard without a home is made again, from its partition or from the client's own rows, wherever there is a worker.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hinge.arrays import Index
from hinge.dask.adapter import Cluster, WorkerLostError
from hinge.dask.hosts import ABSENT, Adopted, Host, adopt
from hinge.dask.presence import Patience, await_workers, check_versions
from hinge.kernel.shard import Facts
from hinge.report import ClusterWork
from hinge.runtime.interrupt import Cancelled, requested

logger = logging.getLogger("hinge")


class Source:
    """Where the rows of a shard come from: a partition on the cluster, or rows of the client.

    Parameters
    ----------
    future : optional
        The partition.
    rows : callable, optional
        Returns the rows.
    """

    def __init__(self, future: Any = None, rows: Callable[[], Any] | None = None) -> None:
        self.future, self.rows = future, rows


class DaskShards:
    """Blocks of rows on the workers of a cluster; see `hinge.data.sharded.Shards`.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    sources : sequence of Source
        Where the rows of each shard come from.
    at_hand : callable, optional
        Returns rows of the client by their places, where these are all here.
    patience : Patience
        How long to wait.
    """

    def __init__(
        self,
        cluster: Cluster,
        sources: Sequence[Source],
        at_hand: Callable[[Index], Any] | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._cluster, self._sources, self._at_hand = cluster, list(sources), at_hand
        self._patience = patience or Patience()
        self._homes: list[str | None] = [None] * len(self._sources)
        self._lock = threading.RLock()
        self._looked_at = time.monotonic()
        self._dtype, self._as_sparse = "", False
        self.work = ClusterWork()
        check_versions(cluster, self._patience)
        adopted = self._settle(range(len(self._sources)), requested)
        if mixed := self._unlike(adopted):
            adopted.update(self._settle(mixed, requested))
        self.facts = [self._facts_of(adopted[number]) for number in range(len(self._sources))]
        self.sizes = np.array([facts.n for facts in self.facts], np.int64)
        full = [facts.n_features for facts in self.facts if facts.n]
        self.n_features = full[0] if full else 0
        self.dtype, self.is_sparse = np.dtype(self._dtype or np.float64), self._as_sparse
        self.work = replace(self.work, shards=len(self._sources))

    @staticmethod
    def _facts_of(adopted: Adopted) -> Facts:
        assert adopted.facts is not None
        return adopted.facts

    def _unlike(self, adopted: dict[int, Adopted]) -> list[int]:
        """Agree on one type of values and one form; return the shards that have another one."""
        full = [one for one in adopted.values() if one.facts is not None and one.facts.n] or list(adopted.values())
        self._dtype = np.result_type(*[np.dtype(one.dtype) for one in full]).str
        self._as_sparse = any(one.is_sparse for one in full)
        return [k for k, one in adopted.items() if (one.dtype, one.is_sparse) != (self._dtype, self._as_sparse)]

    # ------------------------------------------------------------------ questions

    def ask(
        self, question: str, common: tuple[Any, ...], own: Sequence[Any], cancelled: Callable[[], bool]
    ) -> list[Any]:
        """Return the answer of every shard; those that were lost meanwhile are made again and asked again."""
        answers: list[Any] = [None] * len(self._homes)
        left = {number: arguments for number, arguments in enumerate(own) if arguments is not None}
        while left:
            if homeless := [number for number in left if self._homes[number] is None]:
                self._restore(homeless, cancelled)
            found = self._ask_hosts(question, common, left, cancelled)
            for number, answer in found.items():
                answers[number] = answer
                del left[number]
        if time.monotonic() - self._looked_at > self._patience.between_looks:
            self._welcome(cancelled)
        return answers

    def _ask_hosts(
        self, question: str, common: tuple[Any, ...], left: dict[int, Any], cancelled: Callable[[], bool]
    ) -> dict[int, Any]:
        by_home: dict[str, dict[int, Any]] = defaultdict(dict)
        for number, arguments in left.items():
            if (home := self._homes[number]) is not None:
                by_home[home][number] = arguments
        told = {home: (question, common, mine) for home, mine in by_home.items()}
        begun = time.perf_counter()
        found = self._cluster.call("answer", told, cancelled)
        waited = time.perf_counter() - begun
        answers = {}
        with self._lock:
            for home, result in found.items():
                if isinstance(result, WorkerLostError):
                    self._lose(home)
                    continue
                for number, answer in result.items():
                    if isinstance(answer, str) and answer == ABSENT:
                        self._homes[number] = None if self._homes[number] == home else self._homes[number]
                    else:
                        answers[number] = answer
            self.work = replace(
                self.work,
                questions=self.work.questions + 1,
                bytes_sent=self.work.bytes_sent + sum(size_of(message) for message in told.values()),
                bytes_received=self.work.bytes_received + size_of(answers),
                seconds_waited=self.work.seconds_waited + waited,
            )
        return answers

    def rows(self, index: Index) -> Any:
        """Return rows that the client has itself."""
        return None if self._at_hand is None else self._at_hand(index)

    def tell(self, event: str, **figures: Any) -> None:
        """Tell those who have subscribed to our topic what is going on."""
        self._cluster.tell(event, **figures)

    def close(self) -> None:
        """Leave nothing on the cluster."""
        self._cluster.close()

    # ------------------------------------------------------------------ homes

    def _lose(self, address: str) -> None:
        """Expect nothing of a worker any more; its shards need another home."""
        if address in self._homes:
            logger.warning("worker %s is gone; its shards will be made again", address)
            self._cluster.tell("lost", worker=address)
        self._cluster.forget(address)
        self._homes = [None if home == address else home for home in self._homes]

    def _restore(self, numbers: Sequence[int], cancelled: Callable[[], bool]) -> None:
        """Make shards again that have no home."""
        with self._lock:
            homeless = [number for number in numbers if self._homes[number] is None]
            if homeless:
                self._settle(homeless, cancelled)
                self.work = replace(self.work, rebuilt=self.work.rebuilt + len(homeless))

    def _settle(
        self, numbers: Sequence[int], cancelled: Callable[[], bool], only: Sequence[str] | None = None
    ) -> dict[int, Adopted]:
        """Give shards a home, on any worker or on ``only`` some; return what these say of them."""
        found: dict[int, Adopted] = {}
        deadline = time.monotonic() + self._patience.for_workers
        while left := [number for number in numbers if number not in found]:
            hosts = self._await_hosts(cancelled) if only is None else list(only)
            outcomes = self._adopt(left, hosts, cancelled)
            for number, outcome in zip(left, outcomes, strict=True):
                if isinstance(outcome, WorkerLostError):
                    continue
                found[number] = self._accepted(number, outcome)
            if only is not None:
                break
            if len(found) < len(numbers) and time.monotonic() > deadline:
                raise WorkerLostError(
                    f"partition {left[0]} found no worker within {self._patience.for_workers:g} s: its data may "
                    "be lost with the worker that held it. Data that was scattered cannot be made again; data "
                    "that is read or computed by tasks can"
                )
        if lacking := sorted({one.address for one in found.values()} - set(self._cluster.hosts)):
            self._cluster.start_hosts(Host, lacking, cancelled)
        for number, one in found.items():
            self._homes[number] = one.address
        self.work = replace(self.work, workers=len({home for home in self._homes if home is not None}))
        return found

    def _accepted(self, number: int, outcome: Any) -> Adopted:
        if isinstance(outcome, BaseException):
            if type(outcome).__name__ == "KilledWorker":
                raise RuntimeError(
                    f"workers die, time after time, over partition {number}: is their memory large enough?"
                ) from outcome
            raise outcome
        assert isinstance(outcome, Adopted)
        if outcome.fault:
            is_memory = outcome.facts is None and "MiB" in outcome.fault
            raise (MemoryError if is_memory else ValueError)(f"partition {number} of X: {outcome.fault}")
        return outcome

    def _adopt(self, numbers: Sequence[int], hosts: Sequence[str], cancelled: Callable[[], bool]) -> list[Any]:
        """Bring rows to workers; return what each said, or why it did not."""
        form = self._dtype, self._as_sparse
        tasks, calls = {}, {}
        load = {host: sum(home == host for home in self._homes) for host in hosts}
        for number in numbers:
            source = self._sources[number]
            if source.future is not None:
                worker = hosts[0] if len(hosts) == 1 else None
                place = self._cluster.place
                tasks[number] = place(adopt, source.future, self._cluster.token, number, *form, worker=worker)
            else:
                host = min(hosts, key=lambda name: load[name])
                load[host] += 1
                calls[number] = host
        outcomes: dict[int, Any] = dict(
            zip(tasks, self._cluster.wait_for(list(tasks.values()), cancelled), strict=True)
        )
        while calls:  # a block for each worker at a time, so that none is held up by another's
            batch = {host: number for number, host in reversed(calls.items())}
            told = {host: (self._rows_of(number), number, *form) for host, number in batch.items()}
            self.work = replace(self.work, bytes_sent=self.work.bytes_sent + size_of(list(told.values())))
            for host, outcome in self._cluster.call("adopt", told, cancelled).items():
                outcomes[batch[host]] = outcome
                del calls[batch[host]]
        return [outcomes[number] for number in numbers]

    def _rows_of(self, number: int) -> Any:
        rows = self._sources[number].rows
        assert rows is not None
        return rows()

    def _await_hosts(self, cancelled: Callable[[], bool]) -> list[str]:
        """Return the workers that have hosts; where none has, start some on all that are there, or wait for one.

        Nobody waits for workers that have joined meanwhile: they may take long to begin (`_welcome`).
        """
        while True:
            there = await_workers(self._cluster, self._patience, cancelled)
            for gone in set(self._cluster.hosts) - set(there):
                self._lose(gone)
            if not self._cluster.hosts:
                self._cluster.start_hosts(Host, there, cancelled)
            if self._cluster.hosts:
                return self._cluster.hosts
            if cancelled():
                raise Cancelled

    def _welcome(self, cancelled: Callable[[], bool]) -> None:
        """Give workers that have joined their share of the shards."""
        with self._lock:
            self._looked_at = time.monotonic()
            fresh = set(self._cluster.workers()) - set(self._cluster.hosts)
            self._cluster.invite(Host, sorted(fresh - {home for home in self._homes if home is not None}))
            for address in self._cluster.arrived():
                self._share_with(address, cancelled)

    def _share_with(self, address: str, cancelled: Callable[[], bool]) -> None:
        """Move shards from those who have most to a worker that has none."""
        held: dict[str, list[int]] = defaultdict(list)
        for number, home in enumerate(self._homes):
            if home is not None:
                held[home].append(number)
        moved: list[tuple[int, str]] = []
        while held and len(moved) + 1 < max(len(numbers) for numbers in held.values()):
            most = max(held, key=lambda home: len(held[home]))
            moved.append((held[most].pop(), most))
        if not moved:
            return
        settled = self._settle([number for number, _ in moved], cancelled, only=[address])
        for number, old in moved:
            if number in settled and settled[number].address != old:
                self._cluster.call("drop", {old: ([number],)}, cancelled)
        logger.info("worker %s has joined and took over %d shards", address, len(settled))
        self._cluster.tell("joined", worker=address, shards=len(settled))


def size_of(payload: Any) -> int:
    """Count the bytes of the arrays in what is sent: all the rest is small."""
    if isinstance(payload, np.ndarray):
        return int(payload.nbytes)
    if isinstance(payload, dict):
        return sum(size_of(value) for value in payload.values())
    if isinstance(payload, list | tuple):
        return sum(size_of(value) for value in payload)
    return size_of(vars(payload)) if hasattr(payload, "__dict__") and not isinstance(payload, type) else 0
