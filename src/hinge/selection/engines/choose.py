"""Where the units of a search are evaluated: threads of this process, joblib's workers, or a Dask cluster.

Whatever the place, the same units give the same cells. The job, which holds the data, travels to a worker once;
the tasks after it carry only the parameters of a unit. A unit whose worker dies is given to another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from hinge.runtime.interrupt import catching, submit, together
from hinge.runtime.threads import blas_on_one_thread
from hinge.selection.engines.crew import Crew
from hinge.selection.job import Cell, Job, Unit
from hinge.selection.unit import evaluate_unit

_DASK = "dask"
_SCHEMES = ("tcp://", "tls://", "ws://", "wss://", "ucx://", "inproc://")


def run_units(
    job: Job,
    units: Sequence[Unit],
    engine: Any = None,
    n_jobs: int = 1,
    on_cell: Callable[[Cell], Any] | None = None,
) -> Iterator[Cell]:
    """Evaluate units and yield their cells as they come.

    Parameters
    ----------
    job : Job
        What they have in common.
    units : sequence of Unit
        What to evaluate.
    engine : None, str or distributed.Client
        Where. None is this process; ``"loky"``, ``"ray"`` or another name is a backend of joblib; ``"dask"`` is
        the Dask client of this process, ``"tcp://host:8786"`` the cluster of a Dask scheduler, and a client the
        cluster that it is connected to.
    n_jobs : int
        Threads here, or joblib's workers. Here they take units side by side, and folds of each other's units where
        no unit is left. A cluster has as many workers as it has.
    on_cell : callable, optional
        Told of every cell: in this process and from a Dask cluster as soon as all its folds are scored, from
        joblib's workers when their unit is done. Several threads may call it at once.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C was pressed. ``on_cell`` has been told of all cells that are done.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import SVC
    >>> from hinge.selection import Job, plan, run_units
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> job = Job(SVC(), X, y, splits=[(np.array([0, 3]), np.array([1, 2]))], scorer=None)
    >>> [cell.params for cell in run_units(job, plan(SVC(), [{"C": 1.0}, {"C": 2.0}]), None, n_jobs=1)]
    [{'C': 1.0}, {'C': 2.0}]
    """
    if engine is None:
        return _in_threads(job, units, n_jobs, on_cell)
    if isinstance(engine, str) and engine != _DASK and not engine.startswith(_SCHEMES):
        from hinge.selection.engines.joblib_workers import by_joblib

        return _told(by_joblib(job, units, engine, n_jobs), on_cell)
    from hinge.selection.engines.dask_cluster import on_cluster

    return _told(on_cluster(job, units, engine), on_cell)


def _told(cells: Iterator[Cell], on_cell: Callable[[Cell], Any] | None) -> Iterator[Cell]:
    for cell in cells:
        if on_cell is not None:
            on_cell(cell)
        yield cell


def _in_threads(
    job: Job, units: Sequence[Unit], n_jobs: int, on_cell: Callable[[Cell], Any] | None
) -> Iterator[Cell]:
    if n_jobs == 1:
        with catching():
            for unit in units:
                yield from evaluate_unit(job, unit, on_cell=on_cell)
        return
    crew = Crew()
    threads = n_jobs if len(units) == 1 else 1
    with (
        catching(),
        blas_on_one_thread(),
        ThreadPoolExecutor(n_jobs, thread_name_prefix="hinge-search") as pool,
        together(),  # units under way stop where they are when one of them fails
    ):
        futures = [
            submit(pool, evaluate_unit, job, unit, threads=threads, spread=crew.spread, on_cell=on_cell)
            for unit in units
        ]
        for _ in range(n_jobs):  # whoever comes to this has no unit to take
            submit(pool, crew.help)
        try:
            for future in as_completed(futures):
                yield from future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            raise
        finally:
            crew.dismiss()
