"""Evaluating a unit: all cells of one kernel."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.metaestimators import _safe_split

from hinge.estimators.base import KernelMachine
from hinge.kernel.kernels import Kernel
from hinge.report import Report
from hinge.runtime import clock, interrupt
from hinge.runtime.threads import lazy
from hinge.selection.fold import FoldTrainer, Part, follows_data, kernel_of
from hinge.selection.job import Cell, Job, Unit
from hinge.selection.workshop import Fold, KernelValues, Workshop


@dataclass
class _FoldResult:
    test: dict[str, float] = field(default_factory=dict)
    train: dict[str, float] = field(default_factory=dict)
    fit_seconds: float = 0.0
    score_seconds: float = 0.0
    report: Report | None = None
    failure: str | None = None


def evaluate_unit(
    job: Job,
    unit: Unit,
    *,
    threads: int = 1,
    spread: Callable[..., Iterable[Any]] = map,
    on_cell: Callable[[Cell], Any] | None = None,
) -> list[Cell]:
    """Fit and score every fold of every candidate of a unit.

    Parameters
    ----------
    job : Job
        Data, folds and scorer.
    unit : Unit
        The candidates, which share a kernel.
    threads : int
        How many compute the kernel's values.
    spread : callable
        Like ``map``; the folds of a candidate are evaluated through it.
    on_cell : callable, optional
        Told of each cell as soon as its folds are scored, in the unit's order.

    Returns
    -------
    list of Cell
        In the unit's order.

    Raises
    ------
    Cancelled
        Somebody asked to stop; see `hinge.runtime.interrupt`.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import SVC
    >>> from hinge.selection import Job, evaluate_unit, plan
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> job = Job(SVC(), X, y, splits=[(np.array([0, 3]), np.array([1, 2]))], scorer=None)
    >>> (unit,) = plan(job.estimator, [{"C": 1.0}])
    >>> evaluate_unit(job, unit)[0].test_scores
    {'score': [1.0]}
    """
    shop = job.shared(Workshop)
    machines, errors = _machines(job.estimator, unit.candidates)
    results: list[dict[int, _FoldResult]] = [{} for _ in machines]
    cells = []
    for kernel, folds in _by_kernel(shop, machines[0]):
        values = shop.values(kernel, threads)
        courses = [_Course(job, shop, fold, kernel, values) for fold in folds]
        try:
            for place, machine in enumerate(machines):
                outcomes = spread(lambda course, m=machine, e=errors[place]: course.evaluate(m, e), courses)
                results[place].update(zip((fold.number for fold in folds), outcomes, strict=True))
                if len(results[place]) == len(shop.folds):
                    is_shared = values.is_shared and not machine._calibrates
                    cells.append(_cell(job, unit, place, results[place], is_shared))
                    if on_cell is not None:
                        on_cell(cells[-1])
        finally:
            values.release()
    return cells


def _by_kernel(shop: Workshop, machine: KernelMachine) -> list[tuple[Kernel, list[Fold]]]:
    """Put folds with the same kernel together: all, unless it follows from the training data."""
    if not follows_data(machine):
        return [(kernel_of(shop, machine, slice(None)), shop.folds)]
    by_fold = ((kernel_of(shop, machine, fold.train), fold) for fold in shop.folds if len(fold.train))
    return [(kernel, [fold for _, fold in pairs]) for kernel, pairs in groupby(by_fold, key=lambda pair: pair[0])]


@dataclass(eq=False)
class _Course:
    """The candidates of a unit on one fold, each started from the one before."""

    job: Job
    shop: Workshop
    fold: Fold
    kernel: Kernel
    values: KernelValues

    @lazy
    def _trainer(self) -> FoldTrainer:
        return FoldTrainer(self.shop, self.fold, self.kernel, self.values)

    def evaluate(self, machine: KernelMachine, invalid: Exception | None) -> _FoldResult:
        """Fit and score one candidate, unless its parameters are invalid.

        Raises
        ------
        Cancelled
            Somebody asked to stop: what a fit that was broken off would score is no result.
        """
        interrupt.check()
        job, result = self.job, _FoldResult()
        machine = copy.copy(machine)
        begun = clock.now()
        try:
            if invalid is not None:
                raise invalid
            self._fit(machine)
            interrupt.check()
            result.report = machine.report_
        except Exception as error:
            if job.error_score == "raise":
                raise
            result.failure = f"{type(error).__name__}: {error}"
        fitted = clock.now()
        result.fit_seconds = fitted - begun
        if result.failure is None:
            result.test = self._scores(machine, "test")
            if job.return_train_score:
                result.train = self._scores(machine, "train")
        result.score_seconds = clock.now() - fitted
        return result

    def _fit(self, machine: KernelMachine) -> None:
        if not machine._calibrates:
            return self._trainer.fit(machine)
        # Calibration has folds of its own: an ordinary fit.
        job, train = self.job, self.fold.all_train
        X, y = _safe_split(job.estimator, job.X, job.y, train)
        weights = None if job.sample_weight is None else self.shop.weights[train]
        machine.fit(X, y, sample_weight=weights)

    def _scores(self, machine: KernelMachine, part: Part) -> dict[str, float]:
        job, fold = self.job, self.fold
        X, y = fold.test_part if part == "test" else fold.train_part
        samples = fold.test if part == "test" else fold.all_train
        weighted = job.sample_weight is not None and (job.scorer is None or _accepts_weights(job.scorer))
        extra = {"sample_weight": self.shop.weights[samples]} if weighted else {}
        try:
            if not machine._calibrates:
                machine._known = X, self._trainer.decisions(part)
            if job.scorer is None:
                return {"score": _own_score(machine, X, y, **extra)}
            scores = job.scorer(machine, *((X,) if y is None else (X, y)), **extra)
        except Exception as error:
            if job.error_score == "raise":
                raise
            text = f"{type(error).__name__}: {error}"
            warnings.warn(
                f"Scoring failed. The score on this fold is set to {job.error_score}. {text}", stacklevel=2
            )
            return dict.fromkeys(metric_names(job.scorer), job.error_score)
        finally:
            machine._known = None
        if isinstance(scores, dict):
            return {name: float(value) for name, value in scores.items()}
        return {"score": float(scores)}


def _own_score(machine: KernelMachine, X: Any, y: Any, sample_weight: Any = None) -> float:
    """What ``machine.score`` returns, but for a classifier without scikit-learn's checks: they outlast a fit."""
    if not is_classifier(machine):
        return float(machine.score(X, y, sample_weight))
    return float(np.average(machine.predict(X) == np.asarray(y), weights=sample_weight))


def _machines(
    estimator: KernelMachine, candidates: Sequence[dict[str, Any]]
) -> tuple[list[KernelMachine], list[Exception | None]]:
    """Return one machine per candidate, and what is wrong with its parameters.

    Parameters that candidates do not set are looked at once: cloning and checking all of them takes as long as
    fitting a small machine.
    """
    pattern = clone(estimator)
    given = pattern.get_params(deep=False)
    searched = set().union(*candidates)
    common = _what_is_wrong(pattern, {name: given[name] for name in given if name not in searched})
    machines, errors = [], []
    for params in candidates:
        machine = copy.copy(pattern)
        if not params.keys() <= given.keys():
            machine.set_params(**params)  # which says what is wrong
        for name, value in params.items():
            setattr(machine, name, value)
        machines.append(machine)
        errors.append(common or _what_is_wrong(machine, {name: getattr(machine, name) for name in searched}))
    return machines, errors


def _what_is_wrong(machine: KernelMachine, params: dict[str, Any]) -> Exception | None:
    try:
        validate_parameter_constraints(machine._parameter_constraints, params, type(machine).__name__)
    except Exception as error:
        return error
    return None


def _accepts_weights(scorer: Any) -> bool:
    if hasattr(scorer, "_accept_sample_weight"):  # scikit-learn 1.7 and later
        return bool(scorer._accept_sample_weight())
    return "sample_weight" in inspect.signature(scorer).parameters


def _cell(job: Job, unit: Unit, place: int, by_fold: dict[int, _FoldResult], is_shared: bool) -> Cell:
    results = [by_fold[number] for number in sorted(by_fold)]

    def columns(kind: str) -> dict[str, list[float]]:
        known = next((scores for result in results if (scores := getattr(result, kind))), None)
        names = list(known) if known is not None else metric_names(job.scorer)
        return {name: [getattr(result, kind).get(name, job.error_score) for result in results] for name in names}

    return Cell(
        index=unit.indices[place],
        params=unit.candidates[place],
        test_scores=columns("test"),
        train_scores=columns("train") if job.return_train_score else {},
        fit_seconds=[result.fit_seconds for result in results],
        score_seconds=[result.score_seconds for result in results],
        reports=[result.report for result in results],
        failures=[result.failure for result in results],
        is_shared=is_shared,
    )


def metric_names(scorer: Any) -> list[str]:
    """Return the names of a scorer's metrics, as far as they are known before it is called."""
    return list(getattr(scorer, "_scorers", ["score"]))
