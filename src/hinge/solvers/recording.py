"""Writes a run down: where it stands on all samples, whatever part of them it is working on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from hinge.arrays import Vector
from hinge.dual.optimality import gap_of, multipliers_of, objective_of, violation_of
from hinge.dual.problem import DualProblem
from hinge.report import Report
from hinge.runtime import clock
from hinge.solvers.state import State
from hinge.trace import Trace, Tracing

# Where only some points are recorded, that takes at most this share of the run's time.
_MOST_TIME = 0.1


class Part(Protocol):
    """Some samples of a state being worked on."""

    def with_part(self, beta: Vector) -> Vector:
        """Return β of the whole if that of the part were ``beta``."""


class Place(NamedTuple):
    """Where a run is.

    Attributes
    ----------
    state : State
        What is worked on.
    beta : array or None
        Its variables, where the method has others than the state.
    n_active : int
        How many samples are worked on.
    nest : sequence of Part
        The parts of parts that lead to ``state`` from all samples.
    iterations : int
        Steps so far.
    """

    state: State
    beta: Vector | None
    n_active: int
    nest: Sequence[Part]
    iterations: int

    def point(self, problem: DualProblem) -> Vector:
        """Return β of all samples, those who wait included."""
        point = self.state.beta if self.beta is None else problem.near(self.beta)
        for part in reversed(self.nest):
            point = part.with_part(point)
        return point


class Recorder:
    """Records a run.

    Parameters
    ----------
    tracing : Tracing
        What to record.
    """

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._started = clock.now()
        self._spent = 0.0
        self._rows: list[tuple[float, ...]] = []
        self._betas: list[Vector] = []
        self._last_step = -1

    def observe(self, whole: State, place: Place) -> None:
        """Record where a run stands, unless the time for that is used up.

        Parameters
        ----------
        whole : State
            The state of all samples, out of date while parts of it are worked on.
        place : Place
            Where the run is.
        """
        begun = clock.now()
        seconds = begun - self._started - self._spent
        is_dear = self._spent > _MOST_TIME * seconds and not self._tracing.every_step
        if place.iterations == self._last_step or (is_dear and self._rows):
            return
        self._last_step = place.iterations
        problem, evaluations = whole.problem, whole.gram.counts.evaluations
        residual = None if place.nest or place.beta is not None else place.state.residual
        point = place.point(problem)
        if residual is None:
            product = whole.gram.product(problem.coefficients(point))
            residual = (problem.v.reshape(-1, problem.n_samples) - product).ravel()
            whole.gram.counts.evaluations = evaluations  # recording is no part of the run
        gap = gap_of(problem, point, residual, multipliers_of(problem, point, residual))
        figures = objective_of(problem, point, residual), violation_of(problem, point, residual), gap
        self._write((seconds, place.iterations, evaluations, *figures, place.n_active), point)
        self._spent += clock.now() - begun

    def _write(self, row: tuple[float, ...], beta: Vector) -> None:
        self._rows.append(row)
        if self._tracing.beta:
            self._betas.append(beta.copy())

    def trace(self, report: Report, beta: Vector, n_samples: int) -> Trace:
        """Return what was recorded, with the solution as its last entry."""
        figures = report.kernel_evaluations, report.objective, report.violation, report.gap
        self._write((report.seconds - self._spent, report.iterations, *figures, n_samples), beta)
        seconds, iterations, evaluations, objective, violation, gap, n_active = np.array(self._rows).T
        whole = (column.astype(np.int64) for column in (iterations, evaluations, n_active))
        iterations, evaluations, n_active = whole
        betas = np.array(self._betas) if self._tracing.beta else None
        return Trace(seconds, iterations, evaluations, objective, violation, gap, n_active, betas)
