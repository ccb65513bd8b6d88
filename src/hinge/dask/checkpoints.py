"""Checkpoints: β of all machines in a file, now and then, for a fit that comes later to go on from."""

from __future__ import annotations

import logging
import os
import threading
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hinge.arrays import Vector
from hinge.io.atomic import atomic_write
from hinge.kernel.gram import Gram
from hinge.report import Solution
from hinge.settings import Settings
from hinge.training.course import Course, Past, key_of
from hinge.training.tasks import Task
from hinge.training.trainer import Trainer

logger = logging.getLogger("hinge")


@dataclass(frozen=True)
class Pace:
    """How often a checkpoint is written.

    Attributes
    ----------
    seconds : float
        Least time between two.
    share : float
        Share of the fit's time that writing may take.
    """

    seconds: float = 5.0
    share: float = 0.05


class Checkpoint:
    """The file of one fit.

    Parameters
    ----------
    path : path
        The file.
    course : Course
        The fit.
    pace : Pace
        How often it is written.
    """

    def __init__(self, path: str | os.PathLike[str], course: Course, pace: Pace | None = None) -> None:
        self._path, self._course, self._pace = path, course, pace or Pace()
        self._lock = threading.Lock()
        self._betas: dict[int, Vector] = {}
        self._begun = self._written = time.monotonic()
        self._spent = 0.0

    def past(self) -> Past | None:
        """Return where the fit that wrote the file stood; None where there is no file, or it is of another fit."""
        if not os.path.exists(self._path):
            return None
        try:
            with open(self._path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
                found = {name: file[name] for name in file.files}
            is_same = _label(self._course) == (int(found["n"]), int(found["machines"]), found["labels"].tolist())
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"the checkpoint {os.fspath(self._path)} cannot be read ({error}): remove it to begin anew"
            ) from error
        if not is_same:
            logger.warning("the checkpoint %s is of another fit; beginning anew", os.fspath(self._path))
            return None
        betas = []
        for task in self._course.tasks:
            beta = found.get(f"beta{task.number}")
            places = self._course.formulation.data.places[task.samples]
            if beta is None or len(beta) != task.problem.n_variables:
                betas.append((places[:0], np.empty((1, 0))))
            else:
                self._betas[task.number] = beta
                betas.append((places, beta.reshape(-1, len(places))))
        return Past(key_of(self._course.formulation, len(betas)), betas)

    def watching(self, trainer: Trainer) -> Trainer:
        """Return a trainer that keeps the file up to date."""
        return _Watched(trainer, self)

    def offer(self, number: int, point: Callable[[], Vector]) -> None:
        """Write down where a machine stands, if it is time for that."""
        now = time.monotonic()
        is_late = now - self._written >= self._pace.seconds
        if is_late and self._spent <= self._pace.share * (now - self._begun):
            self.write(number, point())

    def write(self, number: int, beta: Vector) -> None:
        """Write down where a machine stands."""
        with self._lock:
            begun = time.monotonic()
            self._betas[number] = beta.copy()
            n, machines, labels = _label(self._course)
            arrays: dict[str, Any] = {f"beta{k}": value for k, value in self._betas.items()}
            with atomic_write(self._path, "wb") as file:
                np.savez(file, n=n, machines=machines, labels=np.array(labels), **arrays)
            self._written = time.monotonic()
            self._spent += self._written - begun


def _label(course: Course) -> tuple[int, int, list[Any]]:
    """What a file says of its fit."""
    labels = np.asarray(course.formulation.labels)
    plain = labels.astype(str) if labels.dtype.kind == "O" else labels
    return course.formulation.data.shape[0], len(course.tasks), plain.tolist()


class _Watched(Trainer):
    """A trainer whose machines are written down on their way, and at their end."""

    def __init__(self, trainer: Trainer, checkpoint: Checkpoint) -> None:
        super().__init__(trainer.gram, trainer.settings, trainer.watch, trainer.sharing)
        self._checkpoint = checkpoint

    def _settings_of(self, number: int, task: Task) -> Settings:
        settings = super()._settings_of(number, task)
        if number != task.number:  # a twin, which has no fold of the samples
            return settings
        return replace(settings, keep=lambda point: self._checkpoint.offer(number, point))

    def _solve(self, task: Task, gram: Gram, settings: Settings, n_tasks: int) -> Solution:
        solution = super()._solve(task, gram, settings, n_tasks)
        if settings.keep is not None:
            self._checkpoint.write(task.number, solution.beta)
        return solution
