"""One fold of one candidate: solved on shared kernel values, published as a fitted estimator.

A fold is the problem of all samples in which those held out have an empty box: kernel values are used where they
are, whatever the fold. The problem itself comes from the estimator, made of the training samples alone, so that
what is solved is exactly what ``estimator.fit(X_train, y_train)`` would solve.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hinge.arrays import Index, Vector
from hinge.dual.problem import DualProblem
from hinge.estimators.base import KernelMachine
from hinge.estimators.inputs import TrainingData
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import Kernel, kind_of
from hinge.runtime import interrupt
from hinge.selection.chain import Chain
from hinge.selection.workshop import Fold, KernelValues, Workshop
from hinge.settings import Settings
from hinge.solvers import solve
from hinge.training.course import Absent, Machine, Task, _machine_of, assemble, coefficient_rows


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
    return machine._resolve_kernel(TrainingData(rows, None, weights, np.empty(0, np.int64), rows.shape))


def fold_data(shop: Workshop, fold: Fold, is_gram: bool) -> TrainingData:
    """Return the training samples of a fold as an estimator wants them."""
    if len(fold.train) == 0:
        raise ValueError("all values of sample_weight are zero in a training fold: at least one sample must count")
    width = len(fold.all_train) if is_gram else shop.X.shape[1]
    y = None if shop.y is None else shop.y[fold.train]
    rows = Rows(shop.X, fold.train)
    return TrainingData(rows, y, shop.weights[fold.train], fold.places, (len(fold.all_train), width))


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


class Series:
    """Fits to the training samples of one fold, each started from the one before.

    Parameters
    ----------
    shop, fold : Workshop, Fold
        All data; the fold.
    kernel, values : Kernel, KernelValues
        The kernel and its values.
    origin : Series, optional
        Of a neighbouring fold: the first fit starts from its last.
    """

    def __init__(
        self, shop: Workshop, fold: Fold, kernel: Kernel, values: KernelValues, origin: Series | None = None
    ) -> None:
        self._shop, self._fold, self._kernel, self._values = shop, fold, kernel, values
        self._data = fold_data(shop, fold, kernel.is_precomputed)
        self._origin = {} if origin is None else origin.seats
        self.seats: dict[int, Seat] = {}
        self._decisions = _Decisions(fold, values)

    def fit(self, estimator: KernelMachine) -> None:
        """Fit an estimator, in place; its decisions on the fold's parts are known at once.

        Raises
        ------
        Cancelled
            Somebody asked to stop.
        """
        started = time.perf_counter()
        data, values = self._data, self._values
        settings = estimator._settings()
        with interrupt.within(estimator.time_limit):
            tasks = estimator._tasks(data)
            absent = Absent(tasks, values.whole)
            trained: list[tuple[Machine, Vector | None]] = []
            for k in range(len(tasks)):
                is_late = k > 0 and interrupt.requested()
                trained.append((absent.machine(k), None) if is_late else self._train(k, tasks[k], settings))
            machines = [machine for machine, _ in trained]
            for k, task in estimator._second_thoughts(data, machines).items():
                trained[k] = self._train(k, task, settings)
                machines[k] = trained[k][0]
        interrupt.check()  # a fit that was broken off is no result
        estimator._model = assemble(self._kernel, data.X, machines, data.places, estimator._order(data))
        estimator._set_common(data, values.whole, machines, started)
        estimator._publish(estimator._model, data, machines)
        estimator._forget_scratch()
        for name, value in self._shop.learnt.items():
            setattr(estimator, name, value)
        self._decisions.remember(estimator, trained)

    def _train(self, k: int, task: Task, settings: Settings) -> tuple[Machine, Vector | None]:
        """Return machine k and, where its residual tells them, its decisions on all samples."""
        seat = self._seat(k, task)
        n, positions = len(seat.members), seat.positions
        problem = embedded(task.problem, positions, n)
        if task.start is None:
            solution = seat.chain.solve(problem, seat.gram, settings)
        else:
            start = _spread(task.start, positions, n)
            solution = solve(problem, seat.gram, replace(settings, start=start))
        whole = _machine_of(Task(seat.members, problem, divide=task.divide), solution)
        own = replace(
            solution, beta=_pick(solution.beta, positions, n), residual=_pick(solution.residual, positions, n)
        )
        machine = Machine(
            task.samples, whole.coefficients[positions], whole.intercept, own, whole.decisions[positions]
        )
        return machine, whole.decisions if n == self._shop.n else None

    def _seat(self, k: int, task: Task) -> Seat:
        seat = self.seats.get(k)
        if seat is None or not np.array_equal(seat.samples, task.samples):
            places = self._fold.train[task.samples]
            members, gram = self._values.part(tuple(np.unique(self._shop.codes[places]).tolist()))
            chain = self._origin[k].chain.branch() if k in self._origin else Chain(self._values.is_convex)
            seat = Seat(task.samples, members, np.searchsorted(members, places), gram, chain)
            self.seats[k] = seat
        return seat


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
    )


def _spread(values: Any, positions: Index, n: int) -> Any:
    runs = values.reshape(-1, len(positions))
    wide = np.zeros((len(runs), n), dtype=values.dtype)
    wide[:, positions] = runs
    return wide.ravel()


def _pick(values: Vector, positions: Index, n: int) -> Vector:
    """Undo `_spread`."""
    return values.reshape(-1, n)[:, positions].ravel()


class _Decisions:
    """Decisions of the latest machines on all samples of a fold's parts, without comparing samples.

    Machines that did not change from one fit to the next, as where C no longer matters, keep theirs.
    """

    def __init__(self, fold: Fold, values: KernelValues) -> None:
        self._fold, self._values = fold, values
        self._latest: dict[str, tuple[Vector, Vector]] = {}

    def remember(self, estimator: KernelMachine, trained: list[tuple[Machine, Vector | None]]) -> None:
        """Let the estimator answer for the fold's own parts from what is there already."""
        fold, compute = self._fold, estimator._decide
        known = [decisions for _, decisions in trained if decisions is not None]
        everywhere = np.column_stack(known) if len(known) == len(trained) else None
        machines = [machine for machine, _ in trained]

        def decide(X: Any) -> Vector:
            if X is fold.test_part[0]:
                name, rows = "test", fold.test
            elif X is fold.train_part[0] and X is not None:
                name, rows = "train", fold.all_train
            else:
                return compute(X)
            return self._image(name, rows, machines) if everywhere is None else everywhere[rows]

        estimator.__dict__["_decide"] = decide

    def _image(self, name: str, rows: Index, machines: list[Machine]) -> Vector:
        train = self._fold.train
        coefficients = coefficient_rows(machines, len(train))
        old, image = self._latest.get(name, (np.empty((0, 0)), np.empty(0)))
        if old.shape == coefficients.shape:
            changed = np.flatnonzero((coefficients != old).any(axis=1))
        else:
            changed, image = np.arange(len(machines)), np.empty((len(rows), len(machines)))
        if len(changed):
            used = np.flatnonzero(coefficients[changed].any(axis=0))
            image[:, changed] = self._values.image(rows, train[used], coefficients[np.ix_(changed, used)])
        self._latest[name] = coefficients, image
        return image + np.array([machine.intercept for machine in machines])
