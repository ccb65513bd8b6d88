"""What commands do on a cluster: connect, read files there, train on their rows, have samples decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from hinge.arrays import Vector
from hinge.dask.adapter import Cluster, WorkerLostError, client_of
from hinge.dask.inputs import parts_of, shards_of_collection
from hinge.dask.machines import ready
from hinge.dask.presence import Patience, check_versions
from hinge.dask.progress import EventListener, TableListener
from hinge.dask.reading import read_svmlight
from hinge.dask.shards import DaskShards
from hinge.data.sharded import ShardedRows
from hinge.kernel.gram import Gram
from hinge.report import ClusterWork
from hinge.runtime.interrupt import requested
from hinge.training.progress import Listener

# Blocks of samples for each worker that are decided ahead of the one that is waited for.
_AHEAD = 2


@contextmanager
def session(address: str) -> Iterator[Session]:
    """Connect to the scheduler at an address, whose workers must have this version of Hinge.

    Raises
    ------
    ConnectionError
        No scheduler answers there, or it has no worker.
    ModuleNotFoundError, RuntimeError
        Dask is missing here; or Hinge is missing on a worker, or another version is there.
    """
    client = client_of(address)
    try:
        cluster = Cluster(client)
        check_versions(cluster, Patience())
        here = Session(cluster)
        try:
            yield here
        finally:
            here.close()
    finally:
        with suppress(OSError, TimeoutError):
            client.close()


class Session:
    """A connection to a cluster.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._shards: DaskShards | None = None

    @property
    def work(self) -> ClusterWork:
        """What was asked of the cluster so far."""
        return ClusterWork() if self._shards is None else self._shards.work

    def samples_of(self, files: Sequence[str]) -> tuple[ShardedRows, Vector]:
        """Read LIBSVM text on the workers, to stay there; column i is the feature of index i."""
        X, y = read_svmlight(files, zero_based=True)
        self._shards, (labels,) = shards_of_collection(self._cluster, X, y)
        return ShardedRows(self._shards), labels

    def ready(self, gram: Gram) -> Gram:
        """Return a Gram matrix of such samples, ready to train with."""
        return ready(gram)

    def listeners(self, is_shown: bool) -> list[Listener]:
        """Return who is told of the training: those who subscribed to events, and a table if it is wanted."""
        shards = self._shards
        assert shards is not None
        n = int(shards.sizes.sum())
        events: Listener = EventListener(shards.tell, lambda: shards.work, n)
        return [TableListener(lambda: shards.work, n), events] if is_shown else [events]

    def decided(
        self, files: Sequence[str], model: Any, decide: Callable[[Any, Any, Any], Any]
    ) -> Iterator[tuple[Vector, Vector]]:
        """Have the samples of LIBSVM text decided by the workers; yield labels and decisions, part by part.

        Parameters
        ----------
        files : sequence of str
            The files, in this order.
        model : object
            What decides; it travels to the cluster once.
        decide : callable
            Given rows, labels and the model, on a worker; returns what is yielded.
        """
        from dask.delayed import delayed

        X, y = read_svmlight(files, zero_based=True)
        shared, task = self._cluster.place(_itself, model), delayed(decide, pure=False)
        tasks = [task(*pair, shared) for pair in zip(parts_of(X), parts_of(y), strict=True)]
        waiting: list[Any] = []
        for next_one in range(len(tasks)):
            ahead = next_one + _AHEAD * max(len(self._cluster.workers()), 1)
            waiting += self._cluster.compute(tasks[next_one + len(waiting) : ahead])
            (outcome,) = self._cluster.wait_for([waiting.pop(0)], requested)
            if isinstance(outcome, WorkerLostError):
                raise WorkerLostError(f"part {next_one} of the samples was lost with its workers: {outcome}")
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome

    def close(self) -> None:
        """Leave nothing on the cluster."""
        (self._shards or self._cluster).close()


def _itself(model: Any) -> Any:
    return model


def decide_part(rows: Any, labels: Any, model: Any) -> tuple[Vector, Vector]:
    """Decide some samples on a worker, on its threads, by a model of LIBSVM's."""
    import scipy.sparse as sp
    from distributed import get_worker

    threads = get_worker().state.nthreads
    blocks = [values for _, values in model.decide(sp.csr_matrix(rows), threads)]
    return np.asarray(labels), np.concatenate(blocks or [np.empty((0, max(len(model.rho), 1)))])
