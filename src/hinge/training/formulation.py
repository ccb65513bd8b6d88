"""What a fit is about: which machines are trained, the dual problem of each, and what calibrates them.

Estimators make a formulation of their parameters and the samples that count; whoever runs the course of a fit
(`hinge.training.course`) asks it for tasks. Nothing here trains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Index, Vector
from hinge.dual.formulations import InfeasibleNuError, c_svc, nu_svc, one_class, svdd
from hinge.dual.problem import DualProblem
from hinge.runtime.interrupt import check
from hinge.training.data import TrainingData
from hinge.training.machine import Machine, half_margin, is_flat, is_vanishing
from hinge.training.multiclass import REST, duels
from hinge.training.probability import N_FOLDS, density_marks, fit_sigmoid, laplace_scale
from hinge.training.tasks import Task, Tasks

#: Makes the dual problem of targets (or labels ±1) and weights.
MakeProblem = Callable[[Vector, Vector], DualProblem]

#: Computes the decisions of a machine of all its samples anew, in double precision.
Decide = Callable[[Machine], Vector]

#: Trains every machine without each fold and returns its decisions on them.
HeldOut = Callable[[], list[Vector]]


class Formulation:
    """Base of the formulations.

    Parameters
    ----------
    data : TrainingData
        The samples that count.
    """

    #: How often each machine is trained where probabilities are wanted: once on all samples, then by folds.
    n_runs: ClassVar[int] = 1 + N_FOLDS

    def __init__(self, data: TrainingData) -> None:
        self.data = data

    @property
    def labels(self) -> Any:
        """The classes; empty where there are none."""
        return ()

    @property
    def strata(self) -> Index:
        """The class number of every sample, by which folds are dealt out."""
        return np.zeros(len(self.data.places), np.intp)

    @property
    def order(self) -> Index | None:
        """What support vectors are sorted by, before their place; None for nothing else."""
        return None

    @property
    def sides(self) -> list[tuple[Any, Any]]:
        """For each machine the labels on its positive and its negative side; None for the rest, or for nothing."""
        return [(None, None)]

    def tasks(self) -> Sequence[Task]:
        """Return the machines to train."""
        raise NotImplementedError

    def revised(self, machines: Sequence[Machine], decide: Decide) -> list[Task]:
        """Return tasks that must be solved again, knowing the machines; asked until there is none."""
        return []

    def without(self, k: int, held_out: NDArray[np.bool_]) -> Task | float:
        """Return task k without the samples marked, or their decision value where nothing is left to train."""
        raise NotImplementedError

    def calibration(self, machines: Sequence[Machine], held_out: HeldOut) -> Any:
        """Return what turns decisions into probabilities.

        Raises
        ------
        Cancelled
            The fit has to stop.
        """
        raise NotImplementedError

    def notes(self, machines: Sequence[Machine], largest: float) -> list[str]:
        """Return what a user should be warned of; the largest k(x, x) tells the scale of kernel values."""
        return []


class Classification(Formulation):
    """Two classes or many, by machines of two classes each; calibrated by a sigmoid for each machine.

    Parameters
    ----------
    data : TrainingData
        The samples that count.
    scheme : {"ovo", "ovr"}
        A machine for each pair of classes, or one for each class against the rest.
    class_weights : array
        Weight of each class.
    problem : callable
        Makes the dual problem of labels ±1 and weights.
    """

    def __init__(self, data: TrainingData, scheme: str, class_weights: Vector, problem: MakeProblem) -> None:
        super().__init__(data)
        self.class_weights = class_weights
        self._problem = problem
        self._duels = duels(len(self.labels), scheme)

    @property
    def labels(self) -> Any:
        """The classes, sorted."""
        return self.data.classes[0]

    @property
    def strata(self) -> Index:
        """The class number of every sample."""
        return self.data.classes[1]

    @property
    def order(self) -> Index | None:
        """Support vectors are listed class by class."""
        return self.strata

    @property
    def sides(self) -> list[tuple[Any, Any]]:
        """The labels on both sides of each machine; None for the rest."""
        labels = self.labels.tolist()
        return [
            (labels[duel.positive], None if duel.negative == REST else labels[duel.negative])
            for duel in self._duels
        ]

    def tasks(self) -> Tasks:
        """Return a task for each pair of classes, or for each class."""
        return Tasks(self.data.sizes(self._duels), self._task, self._together)

    def _together(self, numbers: Index) -> tuple[Index, DualProblem]:
        """Return the samples of some tasks, one after the other, and the problem of all their variables."""
        duels = [self._duels[k] for k in numbers.tolist()]
        members = self.data.members(*duels)
        positive = np.fromiter((duel.positive for duel in duels), np.int64, len(duels))
        codes = self.strata[members]
        signs = np.where(codes == np.repeat(positive, self.data.sizes(duels)), 1.0, -1.0)
        return members, self._problem(signs, self.data.weights[members] * self.class_weights[codes])

    def _task(self, k: int, held_out: NDArray[np.bool_] | None = None) -> Task:
        """Return the task of machine k; samples of it that are held out weigh nothing."""
        duel = self._duels[k]
        members = self.data.members(duel)
        codes, weights = self.strata[members], self.data.weights[members]
        if held_out is not None:
            weights = np.where(held_out, 0.0, weights)
        signs = np.where(codes == duel.positive, 1.0, -1.0)
        is_one_of_pairs = len(self._duels) > 1 and duel.negative != REST
        split = int(np.count_nonzero(signs > 0)) if is_one_of_pairs else 0
        problem, divide = self._two_class(k, signs, weights, self.class_weights[codes])
        return Task(members, problem, k, divide=divide, split=split)

    def _two_class(self, k: int, y: Vector, weights: Vector, class_weights: Vector) -> tuple[DualProblem, bool]:
        """Return the problem of machine k, and whether its decisions are divided by half the margin."""
        return self._problem(y, weights * class_weights), False

    def without(self, k: int, held_out: NDArray[np.bool_]) -> Task | float:
        """Return task k without some samples; one-sided folds have LIBSVM's decisions."""
        duel = self._duels[k]
        sides = self.strata[self.data.members(duel)[~held_out]] == duel.positive
        if not (sides.any() and (~sides).any()):
            return 1.0 if sides.any() else -1.0 if len(sides) else 0.0
        return self._task(k, held_out)

    def calibration(self, machines: Sequence[Machine], held_out: HeldOut) -> Vector:
        """Return the two parameters of each machine's sigmoid."""
        weights = self.data.weights * self.class_weights[self.strata]
        fitted = []
        for values, machine, duel in zip(held_out(), machines, self._duels, strict=True):
            check()
            sides = self.strata[machine.samples] == duel.positive
            fitted.append(fit_sigmoid(values, sides, weights[machine.samples]))
        return np.array(fitted)


class NuClassification(Classification):
    """Classification with ν in the place of C.

    A pair of classes whose sizes differ too much for ν takes the largest that it allows. Where it is class weights
    that make ν infeasible, ν sets the price C without them, and the machine is trained again with that price,
    scaled by class.

    Parameters
    ----------
    data, scheme, class_weights
        As in `Classification`.
    nu : float
        In (0, 1].
    """

    def __init__(self, data: TrainingData, scheme: str, class_weights: Vector, nu: float) -> None:
        super().__init__(data, scheme, class_weights, lambda y, weights: nu_svc(y, nu, weights))
        self._nu = nu
        self._limits: dict[int, float] = {}  # the largest ν of the machines that do not allow the one wanted
        self._unpriced: list[int] = []  # machines whose class weights make ν infeasible
        self._prices: dict[int, float] = {}  # what C these are trained with in the end

    def tasks(self) -> Tasks:
        """Return the tasks, or raise if no pair of classes allows this ν."""
        tasks = Tasks(self.data.sizes(self._duels), self._task)  # each with sums of its own
        tasks.prepare()  # which finds out what ν the pairs allow
        if len(self._limits) == len(tasks):
            raise InfeasibleNuError(
                f"specified nu is infeasible: nu = {self._nu:g}; with these classes and weights "
                f"the largest feasible nu is {max(self._limits.values()):.6g}"
            )
        return tasks

    def _two_class(self, k: int, y: Vector, weights: Vector, class_weights: Vector) -> tuple[DualProblem, bool]:
        if k in self._prices:
            return c_svc(y, self._prices[k], weights * class_weights), False
        nu, limit = self._nu, _largest_nu(y, weights)
        if nu > limit:
            self._limits.setdefault(k, limit)
            nu = limit
        if nu > _largest_nu(y, weights * class_weights):
            self._unpriced.append(k)
            class_weights = np.ones(len(y))
        return nu_svc(y, nu, weights * class_weights), True

    @property
    def has_prices(self) -> bool:
        """Whether class weights make ν infeasible for some machines, which are trained with a price then."""
        return bool(self._unpriced)

    def revised(self, machines: Sequence[Machine], decide: Decide) -> list[Task]:
        """Return the machines whose class weights made ν infeasible, now with a price."""
        revised = []
        for k in sorted(set(self._unpriced) - self._prices.keys()):
            half_width = half_margin(machines[k].solution)
            if half_width > 0:
                self._prices[k] = 1 / half_width
                revised.append(replace(self._task(k), start=machines[k].solution.beta / half_width))
        return revised

    def notes(self, machines: Sequence[Machine], largest: float) -> list[str]:
        """Tell of a ν that was lowered, and of margins without width."""
        notes = []
        if self._limits:
            notes.append(
                f"nu = {self._nu:g} is infeasible for {len(self._limits)} of {len(machines)} pairs of classes, "
                "whose sizes differ too much; each of them takes its largest feasible nu, "
                f"{min(self._limits.values()):.6g} at the least"
            )
        if any(is_flat(machine.solution) for k, machine in enumerate(machines) if k not in self._prices):
            notes.append(
                f"nu = {self._nu:g} is smaller than these data allow: the margin has no width, and decisions mean "
                "nothing. Choose a larger nu, or a kernel that separates better"
            )
        return notes


def _largest_nu(y: Vector, weights: Vector) -> float:
    """Return the largest feasible ν of two classes."""
    positive, negative = float(weights[y > 0].sum()), float(weights[y < 0].sum())
    return 2 * min(positive, negative) / (positive + negative)


class Regression(Formulation):
    """One machine for numbers, or one for each column of them; calibrated by the scale of their noise.

    Parameters
    ----------
    data : TrainingData
        The samples that count.
    problem : callable
        Makes the dual problem of targets and weights.
    """

    def __init__(self, data: TrainingData, problem: MakeProblem) -> None:
        super().__init__(data)
        self._problem = problem
        self.targets: list[Vector] = [data.y] if data.y.ndim == 1 else list(np.ascontiguousarray(data.y.T))

    def tasks(self) -> list[Task]:
        """Return the task of each target; all have the same samples."""
        return [self._task(k, self.data.weights) for k in range(len(self.targets))]

    def _task(self, k: int, weights: Vector) -> Task:
        y = self.targets[k]
        return Task(np.arange(len(y)), self._problem(y, weights), k)

    def without(self, k: int, held_out: NDArray[np.bool_]) -> Task | float:
        """Return a task without some samples; the mean of all its targets where nothing is left."""
        if held_out.all():
            return float(np.average(self.targets[k], weights=self.data.weights))
        return self._task(k, np.where(held_out, 0.0, self.data.weights))

    def calibration(self, machines: Sequence[Machine], held_out: HeldOut) -> float | Vector:
        """Return the scale of the noise of each target; a number where they were a vector."""
        weights = self.data.weights
        scales = [laplace_scale(y - found, weights) for y, found in zip(self.targets, held_out(), strict=True)]
        return scales[0] if self.data.y.ndim == 1 else np.array(scales)


class OneClass(Formulation):
    """One machine for the region of the data; calibrated by density marks, which need no folds.

    Parameters
    ----------
    data : TrainingData
        The samples that count.
    nu : float
        In (0, 1].
    """

    n_runs: ClassVar[int] = 1

    def __init__(self, data: TrainingData, nu: float) -> None:
        super().__init__(data)
        self._nu = nu

    def tasks(self) -> list[Task]:
        """Return the one task."""
        n = len(self.data.places)
        return [Task(np.arange(n), one_class(n, self._nu, self.data.weights))]

    def calibration(self, machines: Sequence[Machine], held_out: HeldOut) -> Vector:
        """Return the density marks."""
        return density_marks(machines[0].decisions, self.data.weights)

    def notes(self, machines: Sequence[Machine], largest: float) -> list[str]:
        """Tell of a weight vector that vanishes."""
        if not is_vanishing(machines[0].solution, largest):
            return []
        return [
            "the weight vector vanishes: the origin of the kernel's space lies among the samples (a linear kernel "
            "on centred data does that), no plane separates them from it, and decisions are rounding errors. "
            'Choose kernel="rbf", or do not centre the data'
        ]


class Sphere(OneClass):
    """The smallest sphere around the data (SVDD).

    Parameters
    ----------
    data, nu
        As in `OneClass`.
    diagonal : array
        k(x, x) of every sample.
    """

    def __init__(self, data: TrainingData, nu: float, diagonal: Vector) -> None:
        super().__init__(data, nu)
        self.diagonal = diagonal

    def tasks(self) -> list[Task]:
        """Return the one task."""
        n = len(self.diagonal)
        return [Task(np.arange(n), svdd(self.diagonal, self._nu, self.data.weights), is_sphere=True)]

    def notes(self, machines: Sequence[Machine], largest: float) -> list[str]:
        """Nothing to tell: every sample may be as near to the origin as it likes."""
        return []
