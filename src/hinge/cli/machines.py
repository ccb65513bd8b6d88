"""Training as LIBSVM organises it: problems of some samples, pairs of classes, folds for probabilities.

`plan` turns one call of LIBSVM's ``svm_train`` into tasks and draws its folds; `solve_all` trains the tasks of
many plans side by side; `Plan.finish` puts a model together in LIBSVM's conventions. Random numbers are drawn
while planning, so that they come in LIBSVM's order however the tasks are solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hinge.arrays import Index, Vector
from hinge.cli.folds import GlibcRandom, plain_folds, stratified_folds
from hinge.cli.parameters import Parameters
from hinge.dual.formulations import InfeasibleNuError, c_svc, epsilon_svr, nu_svc, nu_svr, one_class
from hinge.dual.problem import DualProblem
from hinge.io.models.libsvm_model import LibsvmModel, dense_columns, pairs_of
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import Kernel
from hinge.model import Model
from hinge.settings import Settings
from hinge.training.machine import Machine, assemble
from hinge.training.progress import Watch
from hinge.training.tasks import Task
from hinge.training.trainer import Trainer

N_PROBABILITY_FOLDS = 5

# Share of the tolerance by which the boundary of one class is moved, so that samples on it count as inside; and
# what the digits of a model file leave of rho's accuracy.
_BOUNDARY_SHARE = 0.01
_ROUNDED_VALUES = 1e-6


@dataclass(frozen=True, eq=False)
class Run:
    """What all machines of a run share.

    Attributes
    ----------
    parameters : Parameters
        The command's options.
    rows : CSR matrix
        All samples as the file has them.
    X : array or CSR matrix
        The same for training; for a precomputed kernel the matrix of kernel values.
    y : array
        Targets.
    labels : int64 array
        Class labels.
    kernel : Kernel
        The kernel.
    """

    parameters: Parameters
    rows: Any
    X: Any
    y: Vector
    labels: NDArray[np.int64]
    kernel: Kernel

    def decide(self, machine: Machine, queries: Index) -> Vector:
        """Return a machine's decision values for some of the samples, in double precision."""
        model = assemble(self.kernel, self.X, [machine], np.arange(len(self.y), dtype=np.int64))
        return self.decide_model(model, queries)[:, 0]

    def decide_model(self, model: Model, queries: Index) -> Vector:
        """Return the decision values of all machines of a model for some of the samples."""
        return model.decide(self.X[queries], self.parameters.threads)


@dataclass(eq=False)
class Job:
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
    """Samples that were left out of a job, and how they are decided.

    Attributes
    ----------
    queries : int64 array
        Places of the samples.
    at : int64 array
        Where their decision values belong among those of the problem.
    job : Job or float
        The job without them, or the value where there was nothing to train.
    """

    queries: Index
    at: Index
    job: Job | float


@dataclass(eq=False)
class Plan:
    """One model to train.

    Attributes
    ----------
    classes : list of int64 arrays
        Samples of each class, in LIBSVM's order of classes; empty for regression and one class.
    class_labels : int64 array
        Their labels.
    jobs : list of Job
        The machines, one a pair.
    signs : list of arrays
        +1 for the samples of the first class of each pair, -1 for those of the second, which come behind them.
    held_out : list of lists of HeldOut
        What calibrates the probabilities of each machine.
    samples : int64 array
        All samples, in the order of the problem.
    """

    samples: Index
    jobs: list[Job]
    classes: list[Index] = field(default_factory=list)
    class_labels: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    signs: list[Vector] = field(default_factory=list)
    held_out: list[list[HeldOut]] = field(default_factory=list)

    @property
    def all_jobs(self) -> list[Job]:
        """The jobs in LIBSVM's order: those that calibrate a machine come before it."""
        folds = self.held_out or [[] for _ in self.jobs]
        jobs: list[Job] = []
        for parts, job in zip(folds, self.jobs, strict=True):
            jobs += [part.job for part in parts if isinstance(part.job, Job)]
            jobs.append(job)
        return jobs

    def finish(self, run: Run) -> LibsvmModel:
        """Put the model together, without probabilities."""
        if not run.parameters.is_classifier:
            return self._finish_single(run)
        k = len(self.classes)
        ordered = np.concatenate(self.classes)
        codes = np.repeat(np.arange(k), [len(members) for members in self.classes])
        where = np.empty(len(run.y), np.int64)
        where[ordered] = np.arange(len(ordered))
        coefficients = np.zeros((k - 1, len(ordered)))
        for (i, j), job in zip(pairs_of(k), self.jobs, strict=True):
            at = where[job.machine.samples]
            opponent = np.where(codes[at] == i, j - 1, i)
            coefficients[opponent, at] = job.machine.coefficients
        used = np.flatnonzero(coefficients.any(axis=0))
        return LibsvmModel(
            run.parameters.svm_type, run.kernel,
            np.array([0.0 - job.machine.intercept for job in self.jobs], np.float64),
            coefficients[:, used], _vectors(run, ordered[used]), self.class_labels,
            np.bincount(codes[used], minlength=k).astype(np.int64),
        )  # fmt: skip

    def _finish_single(self, run: Run) -> LibsvmModel:
        machine = self.jobs[0].machine
        used = np.flatnonzero(machine.coefficients)
        rho = 0.0 - machine.intercept
        if run.parameters.svm_type == "one_class":
            # Free support vectors lie on the boundary; a step well below the tolerance makes them inliers whatever
            # program adds up their decision values, and in whatever order.
            rho -= _BOUNDARY_SHARE * max(run.parameters.tolerance, _ROUNDED_VALUES * abs(rho))
        return LibsvmModel(
            run.parameters.svm_type, run.kernel, np.array([rho]),
            machine.coefficients[used][None, :], _vectors(run, machine.samples[used]),
        )  # fmt: skip


def _vectors(run: Run, places: Index) -> Any:
    rows = run.rows[places]
    return sp.csr_matrix(dense_columns(rows, np.array([0]))) if run.kernel.is_precomputed else rows


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


def plan(run: Run, samples: Index, random: GlibcRandom) -> Plan:
    """Plan the training of one model on some of the samples, in their order."""
    if run.parameters.is_classifier:
        return _plan_classes(run, samples, random)
    job = _single_job(run, samples)
    result = Plan(samples, [job])
    if run.parameters.is_regression and run.parameters.probability:
        folds = plain_folds(len(samples), min(N_PROBABILITY_FOLDS, len(samples)), random)
        result.held_out = [
            [HeldOut(samples[at], at, _single_job(run, samples[_without(at, folds)])) for at in folds]
        ]
    return result


def _single_job(run: Run, samples: Index) -> Job:
    samples = np.sort(samples)
    p, y, n = run.parameters, run.y[samples], len(samples)
    if p.svm_type == "one_class":
        return Job(Task(samples, one_class(n, p.nu)), (1.0, 1.0))
    problem = epsilon_svr(y, p.cost, p.epsilon) if p.svm_type == "epsilon_svr" else nu_svr(y, p.cost, p.nu)
    return Job(Task(samples, problem), (p.cost, p.cost))


def _plan_classes(run: Run, samples: Index, random: GlibcRandom) -> Plan:
    p = run.parameters
    labels, members = group_classes(run.labels[samples])
    classes = [samples[places] for places in members]
    weights = dict.fromkeys(labels.tolist(), 1.0)
    for label, weight in p.weights:
        if label in weights:
            weights[label] *= weight
    costs = [p.cost * weights[label] for label in labels.tolist()]
    result = Plan(samples, [], classes, labels)
    for i, j in pairs_of(len(classes)):
        pair = np.concatenate([classes[i], classes[j]])
        signs = np.repeat([1.0, -1.0], [len(classes[i]), len(classes[j])])
        result.signs.append(signs)
        if p.probability:
            result.held_out.append(_calibration_jobs(run, pair, signs, (costs[i], costs[j]), random))
        result.jobs.append(_two_class_job(run, pair, signs, (costs[i], costs[j])))
    return result


def _two_class_job(run: Run, samples: Index, signs: Vector, costs: tuple[float, float]) -> Job:
    order = np.argsort(samples)  # the solver wants samples in the order of the Gram matrix
    samples, signs = samples[order], signs[order]
    if run.parameters.svm_type == "nu_svc":
        return Job(Task(samples, _filled_nu_svc(signs, run.parameters.nu), divide=True), (1.0, 1.0))
    return Job(Task(samples, c_svc(signs, 1.0, np.where(signs > 0, *costs))), costs)


def _calibration_jobs(
    run: Run, samples: Index, signs: Vector, costs: tuple[float, float], random: GlibcRandom
) -> list[HeldOut]:
    folds = plain_folds(len(samples), N_PROBABILITY_FOLDS, random)
    parts = []
    for at in folds:
        rest = _without(at, folds)
        sides = signs[rest]
        if len(rest) and abs(sides.sum()) < len(rest):
            job: Job | float = _two_class_job(run, samples[rest], sides, costs)
        else:
            job = float(np.sign(sides.sum()))  # LIBSVM's values where one side is missing, or both are
        parts.append(HeldOut(samples[at], at, job))
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


def solve_all(run: Run, jobs: Sequence[Job], watch: Watch, tol: float) -> None:
    """Train every job to the tolerance."""
    p, tasks = run.parameters, [job.task for job in jobs]
    gram = Gram(run.X, run.kernel, cache_bytes=p.cache_bytes, threads=p.threads)
    trainer = Trainer(gram, Settings(solver=p.solver, tol=tol, shrinking=bool(p.shrinking)), watch)
    trainer.prepare(tasks)
    for job, machine in zip(jobs, trainer.train(tasks), strict=True):
        job._machine = machine
