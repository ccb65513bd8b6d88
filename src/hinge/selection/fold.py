"""One fold of one candidate: solved on shared kernel values, published as a fitted estimator.

A fold is the problem of all samples in which those held out have an empty box: kernel values are used where they
are, whatever the fold. The problem itself comes from the estimator, made of the training samples alone, so that
what is solved is exactly what ``estimator.fit(X_train, y_train)`` would solve.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hinge.estimators.base import KernelMachine
from hinge.estimators.inputs import TrainingData
from hinge.kernels import Kernel
from hinge.problem import DualProblem, Vector
from hinge.samples import Index
from hinge.selection.chain import Chain
from hinge.selection.workshop import Fold, KernelValues, Workshop
from hinge.settings import Settings
from hinge.solvers import solve
from hinge.training import Machine, Task, _machine_of, assemble


class Rows:
    """Some rows of the data, copied only where they are asked for."""

    def __init__(self, X: Any, places: Index) -> None:
        self._X, self._places = X, places

    def __getitem__(self, index: Index) -> Any:
        return self._X[self._places[index]]


def follows_data(machine: KernelMachine) -> bool:
    """Whether the kernel depends on which samples are trained on: γ does, where it is ``"scale"``."""
    uses_gamma = not callable(machine.kernel) and machine.kernel not in ("linear", "precomputed")
    return bool(uses_gamma and machine.gamma == "scale")


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


def fit_fold(
    estimator: KernelMachine,
    shop: Workshop,
    fold: Fold,
    data: TrainingData,
    kernel: Kernel,
    values: KernelValues,
    chains: dict[int, Chain],
) -> None:
    """Fit the estimator to a fold's training samples; its decisions on the fold's parts are known at once.

    Parameters
    ----------
    estimator : KernelMachine
        Fitted in place.
    shop, fold, data : Workshop, Fold, TrainingData
        All data; the fold; its training samples, by `fold_data`.
    kernel, values : Kernel, KernelValues
        The kernel and its values.
    chains : dict
        Where each machine's last problem left off.
    """
    started = time.perf_counter()
    settings = replace(estimator._settings(), time_limit=estimator.time_limit)
    tasks = estimator._tasks(data)
    trained = [_train(task, shop, fold, values, settings, chains, k) for k, task in enumerate(tasks)]
    machines = [machine for machine, _ in trained]
    for k, task in estimator._second_thoughts(data, machines).items():
        trained[k] = _train(task, shop, fold, values, settings, {}, k)
        machines[k] = trained[k][0]
    estimator._model = assemble(kernel, data.X, machines, data.places, estimator._order(data))
    estimator._set_common(data, values.whole, machines, started)
    estimator._publish(estimator._model, data, machines)
    estimator._forget_scratch()
    for name, value in shop.learnt.items():
        setattr(estimator, name, value)
    _remember_decisions(estimator, fold, values, trained)


def _train(
    task: Task, shop: Workshop, fold: Fold, values: KernelValues, settings: Settings, chains: dict[int, Chain],
    k: int,
) -> tuple[Machine, Vector | None]:  # fmt: skip
    """Return the machine of a task and, where its residual tells them, its decisions on all samples."""
    places = fold.train[task.samples]
    classes = tuple(np.unique(shop.codes[places]).tolist())
    members, gram = values.part(classes)
    positions = np.searchsorted(members, places)
    problem = embedded(task.problem, positions, len(members))
    if task.start is not None:
        settings = replace(settings, start=_spread(task.start, positions, len(members)))
        solution = solve(problem, gram, settings)
    else:
        chain = chains.setdefault(k, Chain(classes, values.is_convex))
        solution = chain.solve(problem, gram, settings)
    whole = _machine_of(Task(members, problem, divide=task.divide), solution)
    machine = Machine(
        task.samples, whole.coefficients[positions], whole.intercept, solution, whole.decisions[positions]
    )
    return machine, whole.decisions if len(members) == shop.n else None


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


def _remember_decisions(
    estimator: KernelMachine, fold: Fold, values: KernelValues, trained: list[tuple[Machine, Vector | None]]
) -> None:
    """Let the estimator answer for the fold's own parts from what is there already."""
    compute = estimator._decide
    decisions_of = _decisions(fold, values, trained)

    def decide(X: Any) -> Vector:
        if X is fold.test_part[0]:
            return decisions_of(fold.test)
        if X is fold.train_part[0] and X is not None:
            return decisions_of(fold.all_train)
        return compute(X)

    estimator.__dict__["_decide"] = decide


def _decisions(
    fold: Fold, values: KernelValues, trained: list[tuple[Machine, Vector | None]]
) -> Callable[[Index], Vector]:
    """Return what gives the decisions of samples by their number, without comparing samples."""
    known = [decisions for _, decisions in trained if decisions is not None]
    if len(known) == len(trained):
        everywhere = np.column_stack(known)
        return lambda rows: everywhere[rows]
    coefficients = np.zeros((len(trained), len(fold.train)))
    for row, (machine, _) in zip(coefficients, trained, strict=True):
        row[machine.samples] = machine.coefficients
    used = np.flatnonzero(coefficients.any(axis=0))
    support, coefficients = fold.train[used], coefficients[:, used]
    intercepts = np.array([machine.intercept for machine, _ in trained])
    return lambda rows: values.image(rows, support, coefficients) + intercepts
