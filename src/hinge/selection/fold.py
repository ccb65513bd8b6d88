"""One fold of one candidate: solved on shared kernel values, published as a fitted estimator.

A fold is the problem of all samples in which those held out have an empty box: kernel values are used where they
are, whatever the fold. The problem itself comes from the estimator, made of the training samples alone, so that
what is solved is exactly what ``estimator.fit(X_train, y_train)`` would solve.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from hinge.arrays import Index, Vector
from hinge.dual.problem import DualProblem
from hinge.estimators.base import KernelMachine
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import Kernel, kind_of
from hinge.runtime import interrupt
from hinge.selection.chain import Chain
from hinge.selection.workshop import Fold, KernelValues, Workshop
from hinge.solvers import solve
from hinge.training.data import TrainingData
from hinge.training.machine import Absent, Machine, coefficient_rows, machine_of
from hinge.training.tasks import Task
from hinge.training.trainer import Trainer

#: Samples of a fold that are scored.
Part = Literal["test", "train"]


class Rows:
    """Some rows of the data, copied only where they are asked for; the last copy serves again."""

    def __init__(self, X: Any, places: Index) -> None:
        self._X, self._places = X, places
        self._last: tuple[Index, Any] | None = None

    def __getitem__(self, index: Index) -> Any:
        places = self._places[index]
        if self._last is None or not np.array_equal(places, self._last[0]):
            self._last = places, self._X[places]
        return self._last[1]


def follows_data(machine: KernelMachine) -> bool:
    """Whether the kernel depends on which samples are trained on: γ does, where it is ``"scale"``."""
    return "gamma" in kind_of(machine.kernel).uses and bool(machine.gamma == "scale")


def kernel_of(shop: Workshop, machine: KernelMachine, samples: Any) -> Kernel:
    """Return the kernel of a machine trained on some of the samples."""
    rows, weights = shop.X[samples], shop.weights[samples]
    return machine._kernel_of(TrainingData(rows, None, weights, np.empty(0, np.int64), rows.shape))


def fold_data(shop: Workshop, fold: Fold, is_gram: bool) -> TrainingData:
    """Return the training samples of a fold as an estimator wants them."""
    if len(fold.train) == 0:
        raise ValueError("all values of sample_weight are zero in a training fold: at least one sample must count")
    shape = (len(fold.all_train), *((len(fold.all_train),) if is_gram else shop.X.shape[1:]))
    y = None if shop.y is None else shop.y[fold.train]
    rows = Rows(shop.X, fold.train)
    return TrainingData(rows, y, shop.weights[fold.train], fold.places, shape)


@dataclass(eq=False)
class Seat:
    """Where one machine of a fold sits among all samples.

    Attributes
    ----------
    samples : int64 array
        Its samples, by their number in the fold's training data.
    members : int64 array
        All samples of its classes, held out or not.
    positions : int64 array
        Where its samples are among the members.
    gram : Gram
        Kernel values of the members.
    chain : Chain
        Its problems so far.
    """

    samples: Index
    members: Index
    positions: Index
    gram: Gram
    chain: Chain


class FoldTrainer(Trainer):
    """Fits to the training samples of one fold, each started from the one before.

    Parameters
    ----------
    shop, fold : Workshop, Fold
        All data; the fold.
    kernel, values : Kernel, KernelValues
        The kernel and its values.
    origin : FoldTrainer, optional
        Of a neighbouring fold: the first fit starts from its last.
    """

    def __init__(
        self, shop: Workshop, fold: Fold, kernel: Kernel, values: KernelValues, origin: FoldTrainer | None = None
    ) -> None:
        super().__init__(values.whole)
        self._shop, self._fold, self._kernel, self._values = shop, fold, kernel, values
        self._data = replace(
            fold_data(shop, fold, kernel.is_precomputed), diagonal=values.whole.diagonal[fold.train]
        )
        self._origin = {} if origin is None else origin.seats
        self.seats: dict[int, Seat] = {}
        self._machines: Sequence[Machine] = []
        self._everywhere: dict[int, Vector] = {}  # decisions of machines on all samples, where residuals tell them
        self._images: dict[str, tuple[Vector, Vector]] = {}

    def fit(self, estimator: KernelMachine) -> None:
        """Fit an estimator, in place.

        Raises
        ------
        Cancelled
            Somebody asked to stop.
        """
        course = estimator._course(self._data, self._kernel)
        self.settings = course.settings
        with interrupt.within(estimator.time_limit):
            fit = course.run(self)
        interrupt.check()  # a fit that was broken off is no result
        estimator._publish(fit)
        for name, value in self._shop.learnt.items():
            setattr(estimator, name, value)
        for note in fit.notes:
            warnings.warn(note, stacklevel=2)
        self._machines = fit.machines

    def prepare(self, tasks: Sequence[Task], n_runs: int = 1) -> None:
        """Forget the last fit; kernel values are there already."""
        self._everywhere.clear()

    def train(self, tasks: Sequence[Task], first: int = 0) -> list[Machine]:
        """Train a machine for every task, one after the other."""
        absent = Absent(tasks, self.gram)
        return [
            absent.machine(k) if k > 0 and interrupt.requested() else self._train(tasks[k])
            for k in range(len(tasks))
        ]

    def _train(self, task: Task) -> Machine:
        seat = self._seat(task)
        n, positions = len(seat.members), seat.positions
        problem = embedded(task.problem, positions, n)
        if task.is_sphere:
            problem = replace(problem, v=0.5 * seat.gram.diagonal)  # which decisions of held-out samples need
        if task.start is None:
            solution = seat.chain.solve(problem, seat.gram, self.settings)
        else:
            start = _spread(task.start, positions, n)
            solution = solve(problem, seat.gram, replace(self.settings, start=start))
        whole = machine_of(replace(task, samples=seat.members, problem=problem), solution)
        if n == self._shop.n:
            self._everywhere[task.number] = whole.decisions
        own = replace(
            solution, beta=_pick(solution.beta, positions, n), residual=_pick(solution.residual, positions, n)
        )
        return replace(
            whole, samples=task.samples, coefficients=whole.coefficients[positions], solution=own,
            decisions=whole.decisions[positions],
        )  # fmt: skip

    def _seat(self, task: Task) -> Seat:
        seat = self.seats.get(task.number)
        if seat is None or not np.array_equal(seat.samples, task.samples):
            places = self._fold.train[task.samples]
            members, gram = self._values.part(tuple(np.unique(self._shop.codes[places]).tolist()))
            origin = self._origin.get(task.number)
            chain = Chain(self._values.is_convex) if origin is None else origin.chain.branch()
            seat = Seat(task.samples, members, np.searchsorted(members, places), gram, chain)
            self.seats[task.number] = seat
        return seat

    # ------------------------------------------------------------------ decisions

    def decisions(self, part: Part) -> Vector:
        """Return the decisions of the latest fit on the held-out or the training samples of its fold.

        No samples are compared. Machines that did not change from one fit to the next, as where C no longer
        matters, keep theirs.
        """
        rows = self._fold.test if part == "test" else self._fold.all_train
        machines = self._machines
        if len(self._everywhere) == len(machines):
            return np.column_stack([self._everywhere[k][rows] for k in range(len(machines))])
        train = self._fold.train
        coefficients = coefficient_rows(machines, len(train))
        old, image = self._images.get(part, (np.empty((0, 0)), np.empty(0)))
        if old.shape == coefficients.shape:
            changed = np.flatnonzero((coefficients != old).any(axis=1))
        else:
            changed, image = np.arange(len(machines)), np.empty((len(rows), len(machines)))
        if len(changed):
            used = np.flatnonzero(coefficients[changed].any(axis=0))
            image[:, changed] = self._values.image(rows, train[used], coefficients[np.ix_(changed, used)])
        self._images[part] = coefficients, image
        decisions = image + np.array([machine.intercept for machine in machines])
        own = machines[0].own
        return decisions if own == 0 else decisions + own * self.gram.diagonal[rows][:, None]


def embedded(problem: DualProblem, positions: Index, n: int) -> DualProblem:
    """Return the problem as one of ``n`` samples, of which those not at ``positions`` have an empty box."""
    return DualProblem(
        v=_spread(problem.v, positions, n),
        lo=_spread(problem.lo, positions, n),
        hi=_spread(problem.hi, positions, n),
        group=_spread(problem.group, positions, n),
        sums=problem.sums,
        n_samples=n,
        start=_spread(problem.start, positions, n),
        ridge=None if problem.ridge is None else _spread(problem.ridge, positions, n, 1.0),
    )


def _spread(values: Any, positions: Index, n: int, elsewhere: float = 0.0) -> Any:
    runs = values.reshape(-1, len(positions))
    wide = np.full((len(runs), n), elsewhere, dtype=values.dtype)
    wide[:, positions] = runs
    return wide.ravel()


def _pick(values: Vector, positions: Index, n: int) -> Vector:
    """Undo `_spread`."""
    return values.reshape(-1, n)[:, positions].ravel()
