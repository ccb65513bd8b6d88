"""Training as LIBSVM organises it: problems of some samples, pairs of classes, folds for probabilities.

`plan_model` turns one call of LIBSVM's ``svm_train`` into tasks and draws its folds; `train_all` trains the tasks
of many plans side by side; `ModelPlan.finish` puts a model together in LIBSVM's conventions. Random numbers are
drawn while planning, so that they come in LIBSVM's order however the tasks are solved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Index, Vector, sparse
from hinge.cli.folds import GlibcRandom, plain_folds, stratified_folds
from hinge.cli.parameters import Parameters
from hinge.data.lines import Lines
from hinge.data.pages import rows_of
from hinge.dual.formulations import InfeasibleNuError, c_svc, epsilon_svr, nu_svc, nu_svr, one_class, svdd
from hinge.dual.problem import DualProblem
from hinge.io.models.libsvm_model import LibsvmModel, dense_columns, pairs_of
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import Kernel
from hinge.model import self_values
from hinge.settings import Settings
from hinge.training.machine import Machine, assemble
from hinge.training.multiclass import by_opponent
from hinge.training.probability import N_FOLDS
from hinge.training.progress import Watch
from hinge.training.tasks import Task
from hinge.training.trainer import Trainer

# Share of the tolerance by which the boundary of one class is moved, so that samples on it count as inside; and
# what the digits of a model file leave of rho's accuracy.
_BOUNDARY_SHARE = 0.01
_ROUNDED_VALUES = 1e-6


@dataclass(frozen=True, eq=False)
class Shared:
    """What all machines of a run share.

    Attributes
    ----------
    parameters : Parameters
        The command's options.
    rows : Lines, CSR matrix, mapped array or ShardedRows
        All samples as the file has them.
    X : array or CSR matrix
        The same for training; for a precomputed kernel the matrix of kernel values.
    y : array
        Targets.
    labels : int64 array
        Class labels.
    kernel : Kernel
        The kernel.
    ready : callable, optional
        Makes a Gram matrix ready to train with, where the samples are on a cluster.
    """

    parameters: Parameters
    rows: Any
    X: Any
    y: Vector
    labels: NDArray[np.int64]
    kernel: Kernel
    ready: Callable[[Gram], Gram] | None = None

    @property
    def places(self) -> Index:
        """The number of every sample."""
        return np.arange(len(self.y), dtype=np.int64)

    def decide(self, machines: Sequence[Machine], queries: Index) -> Vector:
        """Return the decision values of machines for some of the samples, in double precision; one column each."""
        if not machines:
            return np.empty((len(queries), 0))
        model = assemble(self.kernel, self.X, machines, self.places)
        return model.decide(self.X[queries], self.parameters.threads)


@dataclass(eq=False)
class Training:
    """One binary problem, or one regression: its task, and its machine once it is trained.

    Attributes
    ----------
    task : Task
        What to train.
    costs : tuple of float
        C of the two sides.
    machine : Machine
        The result.
    """

    task: Task
    costs: tuple[float, float]
    _machine: Machine | None = None

    @property
    def machine(self) -> Machine:
        assert self._machine is not None
        return self._machine


@dataclass(eq=False)
class HeldOut:
    """Samples that were left out of a machine, and how they are decided.

    Attributes
    ----------
    queries : int64 array
        Places of the samples.
    at : int64 array
        Where their decision values belong among those of the problem.
    training : Training or float
        The machine without them, or the value where there was nothing to train.
    """

    queries: Index
    at: Index
    training: Training | float


@dataclass(eq=False)
class ModelPlan:
    """One model to train.

    Attributes
    ----------
    samples : int64 array
        All samples, in the order of the problem.
    trainings : list of Training
        The machines, one for each pair of classes.
    classes : list of int64 arrays
        Samples of each class, in LIBSVM's order of classes; empty for regression and one class.
    labels : int64 array
        Their labels.
    signs : list of arrays
        +1 for the samples of the first class of each pair, -1 for those of the second, which come behind them.
    held_out : list of lists of HeldOut
        What calibrates the probabilities of each machine.
    """

    samples: Index
    trainings: list[Training]
    classes: list[Index] = field(default_factory=list)
    labels: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    signs: list[Vector] = field(default_factory=list)
    held_out: list[list[HeldOut]] = field(default_factory=list)

    @property
    def machines(self) -> list[Machine]:
        """The trained machines."""
        return [training.machine for training in self.trainings]

    @property
    def all_trainings(self) -> list[Training]:
        """All machines in LIBSVM's order: those that calibrate one come before it."""
        folds = self.held_out or [[] for _ in self.trainings]
        found: list[Training] = []
        for parts, training in zip(folds, self.trainings, strict=True):
            found += [part.training for part in parts if isinstance(part.training, Training)]
            found.append(training)
        return found

    def finish(self, run: Shared) -> LibsvmModel:
        """Put the model together, without probabilities."""
        p, kernel, k = run.parameters, run.kernel, len(self.classes)
        rho = np.array([0.0 - machine.intercept for machine in self.machines], np.float64)
        if not p.is_classifier:
            if p.is_novelty:
                # Free support vectors lie on the boundary; a step well below the tolerance makes them inliers
                # whatever program adds up their decision values, and in whatever order.
                rho -= _BOUNDARY_SHARE * np.maximum(p.tolerance, _ROUNDED_VALUES * np.abs(rho))
            model = assemble(kernel, run.X, self.machines, run.places, room=p.cache_bytes)
            return LibsvmModel(p.svm_type, kernel, rho, model.coefficients, _vectors(run, model.support))
        codes, order = np.zeros(len(run.y), np.int64), np.zeros(len(run.y), np.int64)
        order[np.concatenate(self.classes)] = np.arange(len(self.samples))
        for code, members in enumerate(self.classes):
            codes[members] = code
        support, coefficients = np.empty(0, np.int64), np.empty((0, 0))
        if self.trainings:
            model = assemble(kernel, run.X, self.machines, run.places, order, p.cache_bytes)
            support, coefficients = model.support, by_opponent(model.coefficients, codes[model.support], k)
        n_support = np.bincount(codes[support], minlength=k).astype(np.int64)
        return LibsvmModel(p.svm_type, kernel, rho, coefficients, _vectors(run, support), self.labels, n_support)


def _vectors(run: Shared, places: Index) -> Any:
    rows = rows_of(run.rows, places, run.parameters.cache_bytes)
    if not run.kernel.is_precomputed:
        return rows
    matrix = rows.matrix() if isinstance(rows, Lines) else rows
    return sparse().csr_matrix(dense_columns(matrix, np.array([0])))


def group_classes(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[NDArray[np.intp]]]:
    """Return the classes in LIBSVM's order, and the places of the samples of each.

    That is the order of first appearance, but of the two labels +1 and -1 the positive one comes first.

    Examples
    --------
    >>> group_classes(np.array([-1, 1, 1, -1]))[0]
    array([ 1, -1])
    >>> group_classes(np.array([3, 1, 2, 1]))[0]
    array([3, 1, 2])
    """
    different, first = np.unique(labels, return_index=True)
    order = different[np.argsort(first)]
    if order.tolist() == [-1, 1]:
        order = order[::-1]
    return order, [np.flatnonzero(labels == label) for label in order]


def folds_of(labels: NDArray[np.int64] | None, n: int, n_folds: int, random: GlibcRandom) -> list[Index]:
    """Return the folds of ``svm-train -v``: stratified where there are labels and it is not leave-one-out."""
    if labels is not None and n_folds < n:
        return stratified_folds(group_classes(labels)[1], n_folds, random)
    return plain_folds(n, n_folds, random)


def plan_model(run: Shared, samples: Index, random: GlibcRandom) -> ModelPlan:
    """Plan the training of one model on some of the samples, in their order."""
    if run.parameters.is_classifier:
        return _plan_classes(run, samples, random)
    result = ModelPlan(samples, [_single(run, samples)])
    if run.parameters.is_regression and run.parameters.probability:
        folds = plain_folds(len(samples), min(N_FOLDS, len(samples)), random)
        result.held_out = [[HeldOut(samples[at], at, _single(run, samples[_without(at, folds)])) for at in folds]]
    return result


def _single(run: Shared, samples: Index) -> Training:
    samples = np.sort(samples)
    p, y, n = run.parameters, run.y[samples], len(samples)
    if p.svm_type == "one_class":
        return Training(Task(samples, one_class(n, p.nu)), (1.0, 1.0))
    if p.svm_type == "svdd":
        problem = svdd(self_values(run.X[samples], run.kernel), p.nu)
        return Training(Task(samples, problem, is_sphere=True), (1.0, 1.0))
    if p.svm_type == "epsilon_svr":
        problem = epsilon_svr(y, p.cost, p.epsilon, squared=p.is_squared)
    else:
        problem = nu_svr(y, p.cost, p.nu)
    return Training(Task(samples, problem), (p.cost, p.cost))


def _plan_classes(run: Shared, samples: Index, random: GlibcRandom) -> ModelPlan:
    p = run.parameters
    labels, members = group_classes(run.labels[samples])
    classes = [samples[places] for places in members]
    weights = dict.fromkeys(labels.tolist(), 1.0)
    for label, weight in p.weights:
        if label in weights:
            weights[label] *= weight
    costs = [p.cost * weights[label] for label in labels.tolist()]
    result = ModelPlan(samples, [], classes, labels)
    for i, j in pairs_of(len(classes)):
        pair = np.concatenate([classes[i], classes[j]])
        signs = np.repeat([1.0, -1.0], [len(classes[i]), len(classes[j])])
        result.signs.append(signs)
        if p.probability:
            result.held_out.append(_calibrating(run, pair, signs, (costs[i], costs[j]), random))
        result.trainings.append(_two_class(run, pair, signs, (costs[i], costs[j])))
    return result


def _two_class(run: Shared, samples: Index, signs: Vector, costs: tuple[float, float]) -> Training:
    order = np.argsort(samples)  # the solver wants samples in the order of the Gram matrix
    samples, signs = samples[order], signs[order]
    if run.parameters.svm_type == "nu_svc":
        return Training(Task(samples, _filled_nu_svc(signs, run.parameters.nu), divide=True), (1.0, 1.0))
    problem = c_svc(signs, 1.0, np.where(signs > 0, *costs), squared=run.parameters.is_squared)
    return Training(Task(samples, problem), costs)


def _calibrating(
    run: Shared, samples: Index, signs: Vector, costs: tuple[float, float], random: GlibcRandom
) -> list[HeldOut]:
    folds = plain_folds(len(samples), N_FOLDS, random)
    parts = []
    for at in folds:
        rest = _without(at, folds)
        sides = signs[rest]
        if len(rest) and abs(sides.sum()) < len(rest):
            training: Training | float = _two_class(run, samples[rest], sides, costs)
        else:
            training = float(np.sign(sides.sum()))  # LIBSVM's values where one side is missing, or both are
        parts.append(HeldOut(samples[at], at, training))
    return parts


def _without(fold: Index, folds: Sequence[Index]) -> Index:
    others = [other for other in folds if other is not fold]
    return np.concatenate(others) if others else np.empty(0, np.int64)


def _filled_nu_svc(signs: Vector, nu: float) -> DualProblem:
    """Build ν-SVC's dual; where a fold has too few of one class for ν, that class is filled up, as in LIBSVM."""
    try:
        return nu_svc(signs, nu)
    except InfeasibleNuError:
        mass = nu * len(signs) / 2
        positive, negative = float((signs > 0).sum()), float((signs < 0).sum())
        sums = np.array([min(mass, positive), -min(mass, negative)])
        lo, hi = np.where(signs > 0, 0.0, -1.0), np.where(signs > 0, 1.0, 0.0)
        start = np.empty(len(signs))
        for g, side in enumerate((signs > 0, signs < 0)):
            filled = np.clip(abs(sums[g]) - np.arange(np.count_nonzero(side)), 0.0, 1.0)
            start[side] = np.sign(sums[g]) * filled
        group = (signs < 0).astype(np.int8)
        return DualProblem(np.zeros(len(signs)), lo, hi, group, sums, len(signs), start)


def train_all(run: Shared, trainings: Sequence[Training], watch: Watch, tol: float) -> None:
    """Train every machine to the tolerance."""
    p, tasks = run.parameters, [training.task for training in trainings]
    gram = Gram(run.X, run.kernel, cache_bytes=p.cache_bytes, threads=p.threads)
    if run.ready is not None:
        gram = run.ready(gram)
    settings = Settings(
        solver=p.solver, rule=p.rule, tol=tol, gap_tol=p.gap_tol, shrinking=bool(p.shrinking),
    )  # fmt: skip
    trainer = Trainer(gram, settings, watch)
    trainer.prepare(tasks)
    for training, machine in zip(trainings, trainer.train(tasks), strict=True):
        training._machine = machine
