"""Units on a Dask cluster.

The job is a task of its own: the scheduler gives it to one worker, and every other worker that gets a unit copies
it from there, once (unless Dask's memory manager takes back the copy of an idle worker). Should all copies die
with their workers, the scheduler sends it again. Cells come back one by one through an event topic while their
unit still runs. Workers may join, leave and die: Dask moves units on, and a unit that it gives up
after several deaths is sent again from here without the cells that are done.
"""

from __future__ import annotations

import logging
import pickle
import queue
import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

from hinge.selection.job import Cell, Job, Unit
from hinge.selection.unit import evaluate_unit

logger = logging.getLogger("hinge")

# How often a unit, or the job, is sent again in vain before it is suspected of killing workers. Dask itself tries
# four workers each time.
_MOST_TRIES = 5

# In the place of a unit's number: what all units share is to blame.
_JOB = None

# Seconds that a scheduler has to answer.
_CONNECT_SECONDS = 15


def on_cluster(job: Job, units: Sequence[Unit], engine: Any) -> Iterator[Cell]:
    """Evaluate units on a Dask cluster and yield their cells as they are done.

    Parameters
    ----------
    job : Job
        What the units have in common. It is sent to each worker once.
    units : sequence of Unit
        What to evaluate.
    engine : distributed.Client or str
        A client; the address of a scheduler; or ``"dask"`` for the client that this process has.
    """
    with _client(engine) as client:
        run = _Run(client, job, units)
        try:
            yield from run.cells()
        finally:
            run.close()


class _Run:
    """One search on a cluster."""

    def __init__(self, client: Any, job: Job, units: Sequence[Unit]) -> None:
        self.client = client
        self.payload = pickle.dumps(job, protocol=pickle.HIGHEST_PROTOCOL)
        self.topic = f"hinge-search-{secrets.token_hex(8)}"
        self.news: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.waiting = dict(enumerate(units))
        self.futures: dict[int, Any] = {}
        self.tries = dict.fromkeys([_JOB, *self.waiting], 0)
        self.done: set[int] = set()
        if not client.nthreads():
            logger.warning("no worker is connected to %s; waiting for one", client.scheduler.address)
        client.subscribe_topic(self.topic, lambda event: self.news.put(pickle.loads(event[1])))
        self.data = self._send_job()

    def cells(self) -> Iterator[Cell]:
        """Send all units; yield each cell once, whoever reports it first."""
        for number in self.waiting:
            self._send(number)
        while self.waiting:
            news = self.news.get()
            for cell in [news] if isinstance(news, Cell) else self._settle(*news):
                if cell.index not in self.done:
                    self.done.add(cell.index)
                    yield cell

    def _send_job(self) -> Any:
        import dask

        key = f"{self.topic}-job-{secrets.token_hex(4)}"
        # Dask advises against large data in a task. Here the scheduler's own copy is what survives lost workers.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": f"{2 * len(self.payload)} B"}):
            return self.client.submit(pickle.loads, self.payload, key=key, pure=False)

    def _send(self, number: int) -> None:
        key = f"{self.topic}-{number}-{secrets.token_hex(4)}"
        future = self.client.submit(_evaluate, self.data, self.waiting[number], self.topic, key=key, pure=False)
        self.futures[number] = future
        future.add_done_callback(lambda done: self.news.put((number, done)))

    def _settle(self, number: int, future: Any) -> list[Cell]:
        """Return the cells of a unit that ended; send it again where that was a worker's fault."""
        from distributed import KilledWorker

        if number not in self.waiting or self.futures[number] is not future:
            return []  # of an earlier try
        error = future.exception() if future.status == "error" else None
        if error is not None and not isinstance(error, KilledWorker):
            raise _explained(error)
        if future.status == "finished":
            with suppress(OSError, CancelledError):  # the worker died with the result in its hands
                cells: list[Cell] = future.result()
                del self.waiting[number]
                self.tries[_JOB] = 0
                return cells
        if self.client.status != "running":
            raise ConnectionError(f"the connection to the scheduler {self.client.scheduler.address} is lost")
        self._send_again(number, error)
        return []

    def _send_again(self, number: int, error: BaseException | None) -> None:
        """Send what a unit still lacks; send the job first if it is the job that was given up."""
        from distributed import KilledWorker

        unit = self.waiting[number]
        left = [k for k, index in enumerate(unit.indices) if index not in self.done]
        if not left:
            del self.waiting[number]
            return
        if self.data.status == "error":
            self._blame(_JOB, "the data", error)
            self.data = self._send_job()
        elif len(left) < len(unit.indices):
            self.tries[number] = 0
        elif isinstance(error, KilledWorker) and error.task == self.futures[number].key:
            self._blame(number, f"the candidates {[unit.candidates[k] for k in left]}", error)
        self.waiting[number] = Unit(tuple(unit.candidates[k] for k in left), tuple(unit.indices[k] for k in left))
        self._send(number)

    def _blame(self, culprit: int | None, name: str, error: BaseException | None) -> None:
        self.tries[culprit] += 1
        if self.tries[culprit] > _MOST_TRIES:
            raise RuntimeError(
                f"workers of {self.client.scheduler.address} die, time after time, over {name}: "
                "is their memory large enough?"
            ) from error

    def close(self) -> None:
        """Leave nothing behind on the cluster."""
        with suppress(Exception):
            self.client.unsubscribe_topic(self.topic)
            self.client.cancel([*self.futures.values(), self.data])
        self.futures.clear()
        del self.data


def _evaluate(job: Job, unit: Unit, topic: str) -> list[Cell]:
    """Evaluate a unit on a worker; tell the client of each cell at once."""
    from distributed import get_worker

    worker = get_worker()
    return evaluate_unit(job, unit, on_cell=lambda cell: worker.log_event(topic, pickle.dumps(cell)))


def _explained(error: BaseException) -> BaseException:
    if isinstance(error, ModuleNotFoundError):
        return ModuleNotFoundError(f"a worker of the cluster says: {error}; install hinge on every worker")
    return error


@contextmanager
def _client(engine: Any) -> Iterator[Any]:
    try:
        from distributed import Client, default_client
    except ModuleNotFoundError as error:
        advice = "a cluster needs Dask: pip install 'hinge-svm[cluster]'"
        raise ModuleNotFoundError(advice, name="distributed") from error
    if isinstance(engine, Client):
        yield engine
    elif engine == "dask":
        yield default_client()
    elif isinstance(engine, str):
        try:
            client = Client(engine, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise ConnectionError(
                f"no Dask scheduler answers at {engine}; start one with `dask scheduler`, and workers with "
                f"`dask worker {engine}`"
            ) from error
        with client:
            yield client
    else:
        raise TypeError(f"engine must be None, a name, an address or a Dask client, got {engine!r}")
