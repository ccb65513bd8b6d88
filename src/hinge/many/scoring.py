"""What is kept of cross-validated fits: scores, and on request predictions and decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import _safe_split

from hinge.arrays import Vector
from hinge.estimators.base import KernelMachine
from hinge.estimators.classification import KernelClassifier
from hinge.many.batch import Solved, Values
from hinge.many.course import Slot
from hinge.many.problems import Problems, Stack
from hinge.many.stages import Split, Stage


class ScoreSink:
    """Scores samples held out.

    Parameters
    ----------
    problems : Problems
        The problems.
    shape : tuple
        Numbers of problems, machines and folds.
    scorer : callable or None
        None for the estimator's own score.
    keeps : set of str
        Which of predictions and decisions are kept.
    """

    def __init__(self, problems: Problems, shape: tuple[int, int, int], scorer: Any, keeps: set[str]) -> None:
        self._problems, self._scorer, self._keeps = problems, scorer, keeps
        self.scores = np.full(shape, np.nan)
        self._kept: dict[str, Any] = {name: np.empty(shape[:2], dtype=object) for name in keeps}
        self._lengths = [len(problems.target(number)) for number in range(shape[0])] if keeps else []

    def take_batch(
        self, slots: Sequence[Slot], stack: Stack, stage: Stage, values: Values, solved: Solved
    ) -> None:
        """Score a batch."""
        decisions = solved.decisions[solved.is_settled]
        count, n_test, n_machines = decisions.shape
        y_test = np.asarray(self._problems.target(slots[0].problem))[stage.test]
        flat = decisions.reshape(count * n_test, n_machines)
        numbers = np.array([slot.problem for slot in slots])
        if self._scorer is None:
            predictions = stage.machine._answers(flat).reshape(count, n_test)
            here = numbers, slots[0].machine, slots[0].fold
            self.scores[here] = np.mean(predictions == y_test, axis=1)
        else:
            for slot, own in zip(slots, decisions, strict=True):
                X_test = self._problems.samples(slot.problem)[stage.test]
                self.scores[slot.place] = self._scorer(stage.reader(X_test, own), X_test, y_test)
        for name in self._keeps:
            answers = _answers(name, stage.reader(flat, flat), flat)
            for slot, own in zip(slots, answers.reshape(count, n_test, *answers.shape[1:]), strict=True):
                self._keep(name, slot, stage.test, own)

    def take_fit(self, slot: Slot, machine: KernelMachine, X: Any, y: Any, split: Split) -> None:
        """Score one fit."""
        X_test, y_test = _safe_split(machine, X, y, split[1], split[0])
        scorer = self._scorer
        score = machine.score(X_test, y_test) if scorer is None else scorer(machine, X_test, y_test)  # type: ignore[attr-defined]
        self.scores[slot.place] = score
        for name in self._keeps:
            self._keep(name, slot, split[1], _answers(name, machine, X_test))

    def _keep(self, name: str, slot: Slot, test: Any, answers: Any) -> None:
        # Folds of a problem are evaluated one after the other: nobody else has this one in hand.
        place = slot.problem, slot.machine
        kept = self._kept[name]
        if kept[place] is None:
            shape = (self._lengths[slot.problem], *answers.shape[1:])
            kept[place] = np.full(shape, np.nan) if name == "decisions" else np.full(shape, None)
        kept[place][test] = answers

    def kept(self, name: str) -> Any:
        """Return what was kept, as one array where problems are of one size."""
        if name not in self._keeps:
            return None
        slots = self._kept[name]
        shapes = {slot.shape for slot in slots.ravel() if slot is not None}
        if len(shapes) != 1:
            return slots
        empty = np.full(next(iter(shapes)), np.nan if name == "decisions" else None)
        whole = np.array([[empty if slot is None else slot for slot in row] for row in slots])
        return _plain(whole, self._problems) if name == "predictions" else whole


def _answers(name: str, machine: KernelMachine, X: Any) -> Any:
    """Return the predictions or the decisions of a machine."""
    if name == "predictions" or not hasattr(machine, "decision_function"):
        return machine.predict(X)  # type: ignore[attr-defined]
    return machine.decision_function(X)


def _plain(predictions: Any, problems: Problems) -> Any:
    """Give predictions the type of the targets, or that of floats where some are missing."""
    kind = np.result_type(*(np.asarray(target) for target in problems.targets))
    is_missing = predictions == None  # noqa: E711
    if not is_missing.any():
        return predictions.astype(kind)
    if kind.kind not in "biuf":
        return predictions
    return np.where(is_missing, np.nan, predictions).astype(np.float64)


class FitSink:
    """Keeps coefficients and intercepts.

    Parameters
    ----------
    shape : tuple
        Numbers of problems and machines.
    is_linear : bool
        Whether weights of features are kept too.
    """

    def __init__(self, shape: tuple[int, int], is_linear: bool) -> None:
        self.coefficients, self.intercepts, self.weights = (np.empty(shape, dtype=object) for _ in range(3))
        self.gammas = np.full(shape, np.nan)
        self._is_linear = is_linear

    def take_batch(
        self, slots: Sequence[Slot], stack: Stack, stage: Stage, values: Values, solved: Solved
    ) -> None:
        """Keep the machines of a batch."""
        weights: Vector = np.matmul(solved.coefficients, stack.X) if self._is_linear else np.empty(0)
        for slot, k in zip(slots, np.flatnonzero(solved.is_settled).tolist(), strict=True):
            place = slot.problem, slot.machine
            self.coefficients[place], self.intercepts[place] = solved.coefficients[k], solved.intercepts[k]
            self.gammas[place] = values.gammas[k]
            if self._is_linear:
                self.weights[place] = weights[k, :, : stack.widths[k]]

    def take_fit(self, slot: Slot, machine: KernelMachine, X: Any, y: Any, split: Split) -> None:
        """Keep the machines of one fit."""
        model, place = machine._model, (slot.problem, slot.machine)
        coefficients = np.zeros((len(model.intercepts), len(y)))
        coefficients[:, model.support] = model.coefficients
        self.coefficients[place], self.intercepts[place] = coefficients, np.asarray(model.intercepts)
        if "gamma" in model.kernel.uses:
            self.gammas[place] = model.kernel.gamma
        if self._is_linear:
            self.weights[place] = np.asarray(model.weights())


def is_accuracy(machine: KernelMachine, scoring: Any) -> bool:
    """Whether a scorer is the share of correct predictions, which a classifier's own score is."""
    return isinstance(machine, KernelClassifier) and isinstance(scoring, str) and scoring == "accuracy"
