"""Which workers are there: waiting for the first, and whether all of them can do what is asked."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from hinge._version import __version__
from hinge.dask.adapter import Cluster, WorkerLostError
from hinge.runtime.interrupt import Cancelled, requested

logger = logging.getLogger("hinge")


@dataclass(frozen=True)
class Patience:
    """How long to wait for what may never come.

    Attributes
    ----------
    for_workers : float
        Seconds that a fit waits for a worker, when there is none; then it ends with an error.
    between_looks : float
        Seconds between two looks at whether workers have joined.
    """

    for_workers: float = 60.0
    between_looks: float = 2.0


def await_workers(cluster: Cluster, patience: Patience, cancelled: Callable[[], bool]) -> list[str]:
    """Return the workers that are there; wait for one where there is none.

    Raises
    ------
    WorkerLostError
        None has come.
    Cancelled
        Somebody asked to stop.
    """
    is_told, deadline = False, time.monotonic() + patience.for_workers
    while True:
        if cluster.is_connected and (there := cluster.workers()):
            return there
        if not is_told:
            logger.warning("there is no worker on the cluster; waiting up to %g s for one", patience.for_workers)
            is_told = True
        if cancelled():
            raise Cancelled
        if time.monotonic() > deadline:
            where = "" if cluster.is_connected else ", and the scheduler does not answer"
            raise WorkerLostError(
                f"the cluster has had no worker for {patience.for_workers:g} s{where}; start workers "
                "and fit again, with warm_start=True and the same checkpoint to go on"
            )
        time.sleep(0.05)


def check_versions(cluster: Cluster, patience: Patience) -> None:
    """Make sure that there are workers, and that they have Hinge, this version of it."""
    version = __version__

    def look() -> str:  # it travels by value: a worker without Hinge could not import it
        import time

        for _ in range(50):
            try:
                import hinge.kernel.shard  # noqa: F401 - what takes long is imported in a task, not between messages
                from hinge._version import __version__ as found
            except ModuleNotFoundError as error:
                if error.name != "hinge":
                    raise
                return ""
            except RuntimeError as error:  # another task imports the same: Python lets one of the two go on
                if type(error).__name__ != "_DeadlockError":
                    raise
                time.sleep(0.1)
            else:
                return found
        raise RuntimeError("the import of Hinge was blocked by that of other tasks")

    await_workers(cluster, patience, requested)
    for address, found in cluster.on_all(look, requested).items():
        if isinstance(found, WorkerLostError):
            continue  # it died meanwhile
        if isinstance(found, BaseException):
            raise RuntimeError(f"worker {address} cannot use Hinge: {found}") from found
        if not found:
            raise ModuleNotFoundError(
                f"worker {address} has no Hinge: install hinge-svm {version} on every worker", name="hinge"
            )
        if found != version:
            raise RuntimeError(
                f"worker {address} has Hinge {found}, this process {version}: install the same everywhere"
            )
