"""The course of a fit: members → tasks → machines → model → calibration.

Estimators run it with a `Trainer`; searches with one that shares kernel values and solutions between fits
(`hinge.selection.fold`). It knows neither scikit-learn nor attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hinge.arrays import Index, Vector
from hinge.kernel.kernels import Kernel
from hinge.model import Model
from hinge.report import Report
from hinge.runtime import clock
from hinge.runtime.interrupt import Cancelled
from hinge.settings import Settings
from hinge.training.formulation import Formulation
from hinge.training.held_out import held_out_decisions
from hinge.training.machine import Machine, assemble, combined_report, points_of
from hinge.training.tasks import Task
from hinge.training.trainer import Trainer


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit came to.

    Attributes
    ----------
    formulation : Formulation
        What it was about, with the samples that counted.
    machines : sequence of Machine
        The machines.
    model : Model
        All of them together.
    report : Report
        Their reports, summed up.
    notes : list of str
        What a user should be warned of.
    calibration : optional
        What turns decisions into probabilities: sigmoids, a scale of noise, or density marks.
    is_complete : bool
        Whether the calibration is there if it was wanted.
    """

    formulation: Formulation
    machines: Sequence[Machine]
    model: Model
    report: Report
    notes: list[str]
    calibration: Any = None
    is_complete: bool = True


@dataclass(frozen=True, eq=False)
class Course:
    """One fit to make.

    Parameters
    ----------
    formulation : Formulation
        What is trained, on which samples.
    kernel : Kernel
        The kernel.
    settings : Settings
        Method, tolerance and limits of each machine.
    probability : bool
        Whether to calibrate.
    seed : int
        Draws the folds of the calibration.
    past : Past, optional
        An earlier fit to go on from.

    Attributes
    ----------
    tasks : sequence of Task
        What is to be solved. Making them finds out what has no solution before a kernel value is computed.
    """

    formulation: Formulation
    kernel: Kernel
    settings: Settings
    probability: bool = False
    seed: int = 0
    past: Past | None = None
    tasks: Sequence[Task] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tasks", self.formulation.tasks())

    def machines(self, trainer: Trainer) -> Sequence[Machine]:
        """Train all machines."""
        formulation, tasks = self.formulation, self.tasks
        n_runs = formulation.n_runs if self.probability else 1
        trainer.prepare(tasks, n_runs)
        machines = trainer.train(tasks if self.past is None else self.past.continued(tasks, formulation))

        def decide(machine: Machine) -> Vector:
            values = np.zeros(trainer.gram.n)
            values[machine.samples] = machine.coefficients
            return trainer.gram.product(values, machine.samples) + machine.intercept

        while revised := formulation.revised(machines, decide):
            machines = list(machines)
            for task in revised:
                (machine,) = trainer.train([task], first=task.number)
                report = machine.solution.report.after(machines[task.number].solution.report)
                machines[task.number] = replace(machine, solution=replace(machine.solution, report=report))
        return machines

    def run(self, trainer: Trainer) -> Fit:
        """Train all machines, put them together and calibrate them."""
        begun, compiled_before = clock.now(), clock.compiled_seconds()
        formulation, data, machines = self.formulation, self.formulation.data, self.machines(trainer)
        room = trainer.gram.cache_bytes
        model = assemble(self.kernel, data.X, machines, data.places, formulation.order, room)
        report = combined_report(machines, trainer.gram, clock.now() - begun, len(model.support))
        if (compile_seconds := clock.compiled_seconds() - compiled_before) > 0:
            report = replace(report, compile_seconds=compile_seconds)
        notes = formulation.notes(machines, float(trainer.gram.diagonal.max()))
        fit = Fit(formulation, machines, model, report, notes)
        if not self.probability:
            return fit
        return self.calibrated(fit, trainer)

    def calibrated(self, fit: Fit, trainer: Trainer) -> Fit:
        """Return a fit of this course with its calibration, if there is time for that."""
        try:
            return replace(fit, calibration=self._calibration(trainer, fit.machines))
        except Cancelled:
            return replace(fit, is_complete=False)

    def _calibration(self, trainer: Trainer, machines: Sequence[Machine]) -> Any:
        if trainer.watch.is_stopped:
            raise Cancelled
        is_given = not self.kernel.has_features
        return self.formulation.calibration(
            machines, lambda: held_out_decisions(trainer, self.formulation, machines, is_given, self.seed)
        )


@dataclass(frozen=True, eq=False)
class Past:
    """Where the machines of a fit ended, for another fit to go on from.

    Attributes
    ----------
    key : tuple
        What a fit must have in common with that one: numbers of samples and machines, and the classes.
    betas : list of (places, β)
        For each machine the places of its samples in the caller's data, and β.
    """

    key: tuple[Any, ...]
    betas: list[tuple[Index, Vector]]

    @classmethod
    def of(cls, fit: Fit) -> Past:
        """Remember a fit."""
        places = fit.formulation.data.places
        betas = [
            (places[samples], beta.reshape(-1, max(len(samples), 1))) for samples, beta in points_of(fit.machines)
        ]
        return cls(key_of(fit.formulation, len(betas)), betas)

    def continued(self, tasks: Sequence[Task], formulation: Formulation) -> Sequence[Task]:
        """Give each task the β that the same task ended with, if it is the same fit."""
        if not self.is_of(formulation, len(tasks)):
            return tasks
        return [
            replace(task, start=self.start_of(number, formulation.data.places[task.samples]))
            if len(self.betas[number][0])  # that fit came to it
            else task
            for number, task in enumerate(tasks)
        ]

    def is_of(self, formulation: Formulation, n_machines: int) -> bool:
        """Whether it is the same fit."""
        return self.key == key_of(formulation, n_machines)

    def start_of(self, number: int, places: Index) -> Vector:
        """Return the β that a machine ended with, of samples at these places in the caller's data."""
        mine, beta = self.betas[number]
        whole = np.zeros((len(beta), self.key[0]))
        whole[:, mine] = beta
        return whole[:, places].ravel()


def key_of(formulation: Formulation, n_machines: int) -> tuple[Any, ...]:
    """Return what two fits must have in common, for one to go on from the other."""
    return formulation.data.shape[0], n_machines, tuple(formulation.labels)
