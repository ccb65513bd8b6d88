"""Units on joblib's backends: loky's processes, Ray's actors, threads."""

from __future__ import annotations

import os
import pickle
import secrets
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hinge.runtime.interrupt import catching
from hinge.selection.job import Cell, Job, Unit
from hinge.selection.unit import evaluate_unit

# How often workers may die before the units are suspected of killing them.
_MOST_DEATHS = 20


@dataclass(frozen=True)
class Parcel:
    """Where a worker finds the job.

    Attributes
    ----------
    name : str
        A name of its own, by which a worker knows that it has the job already.
    place : object
        A file, or a reference to Ray's object store, which holds one copy a machine.
    """

    name: str
    place: Any

    def open(self) -> Job:
        """Return the job; a worker reads it once and keeps it until another job comes."""
        with _opening:
            if self.name not in _opened:
                _opened.clear()
                _opened[self.name] = self._read()
            return _opened[self.name]

    def _read(self) -> Job:
        if isinstance(self.place, str):
            with open(self.place, "rb") as file:
                job: Job = pickle.load(file)
            return job
        import ray

        return pickle.loads(ray.get(self.place))


_opened: dict[str, Job] = {}
_opening = threading.Lock()


def by_joblib(job: Job, units: Sequence[Unit], backend: str, n_jobs: int) -> Iterator[Cell]:
    """Evaluate units on one of joblib's backends; those that were under way when a worker died are sent again.

    Parameters
    ----------
    job : Job
        What the units have in common. A worker reads it once.
    units : sequence of Unit
        What to evaluate.
    backend : str
        Name of the backend.
    n_jobs : int
        Number of workers.
    """
    if backend == "ray":
        _register_ray()
    waiting = dict(enumerate(units))
    n_deaths = 0
    with _parcel(job, backend) as parcel:
        while waiting:
            try:
                for number, cells in _results(parcel, waiting, backend, n_jobs):
                    del waiting[number]
                    yield from cells
            except BrokenProcessPool as error:
                n_deaths += 1
                if n_deaths > _MOST_DEATHS:
                    raise RuntimeError(
                        f"workers of joblib's {backend} backend died {n_deaths} times, perhaps for lack of "
                        "memory: try fewer of them"
                    ) from error


def _results(
    parcel: Parcel, waiting: dict[int, Unit], backend: str, n_jobs: int
) -> Iterator[tuple[int, list[Cell]]]:
    from joblib import Parallel, delayed, parallel_config

    tasks = [delayed(_evaluate)(parcel, number, unit) for number, unit in waiting.items()]
    try:
        settings = parallel_config(backend=backend, n_jobs=n_jobs)
    except ValueError as error:
        raise ValueError(
            f"engine {backend!r} is neither a backend of joblib nor an address of a Dask scheduler such as "
            f"tcp://host:8786 ({error})"
        ) from error
    with settings:
        # A backend that cannot hand over results one by one gives them all at the end.
        pool = Parallel(batch_size=1)
        if pool._backend.supports_return_generator:
            pool = Parallel(batch_size=1, return_as="generator_unordered")
        yield from pool(tasks)


def _evaluate(parcel: Parcel, number: int, unit: Unit) -> tuple[int, list[Cell]]:
    with catching():
        return number, evaluate_unit(parcel.open(), unit)


@contextmanager
def _parcel(job: Job, backend: str) -> Iterator[Parcel]:
    """Put the job where workers find it."""
    name = secrets.token_hex(8)
    if backend == "ray":
        import ray

        yield Parcel(name, ray.put(pickle.dumps(job)))
        return
    with tempfile.TemporaryDirectory(prefix="hinge-search-") as folder:
        path = os.path.join(folder, "job")
        with open(path, "wb") as file:
            pickle.dump(job, file, protocol=pickle.HIGHEST_PROTOCOL)
        yield Parcel(name, path)


def _register_ray() -> None:
    try:
        from ray.util.joblib import register_ray
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('engine "ray" needs Ray: pip install "ray[default]"', name="ray") from error
    register_ray()
