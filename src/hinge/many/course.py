"""The course of many fits: batches in the compiled loop, what that leaves by the estimator's own fit.

Batches depend on the problems alone, never on the number of threads: neither do results.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from sklearn.utils.metaestimators import _safe_split

from hinge.arrays import Vector
from hinge.estimators.base import KernelMachine
from hinge.many.batch import Batch, Solved, Values
from hinge.many.problems import Problems, Stack
from hinge.many.stages import Split, Stage, stages_of
from hinge.report import Status
from hinge.runtime import interrupt
from hinge.runtime.threads import Team, blas_on_one_thread
from hinge.training.progress import Tally

# Kernel values of a batch: its matrices should stay in the cache of a core, and share what Python takes for them.
_BATCH_VALUES = 1 << 18

#: The status of a fit that raised an error.
FAILED = "failed"


@dataclass(frozen=True)
class Slot:
    """One fit: which problem, which machine (value of C), which fold."""

    problem: int
    machine: int
    fold: int

    @property
    def place(self) -> tuple[int, int, int]:
        """Where it is in arrays of all fits."""
        return self.problem, self.machine, self.fold


class Sink(Protocol):
    """What is kept of fits. Every slot is told of once, from whatever thread."""

    def take_batch(
        self, slots: Sequence[Slot], stack: Stack, stage: Stage, values: Values, solved: Solved
    ) -> None:
        """Keep what a batch came to; only of settled problems, whose slots these are."""

    def take_fit(self, slot: Slot, machine: KernelMachine, X: Any, y: Any, split: Split) -> None:
        """Keep what an estimator came to that was fitted to one problem."""


@dataclass(eq=False)
class Endings:
    """How fits ended: arrays of shape (n_problems, n_machines, n_folds), and reasons by problem."""

    statuses: Any
    violations: Vector
    errors: dict[int, str] = field(default_factory=dict)
    n_left: int = 0

    @classmethod
    def of(cls, shape: tuple[int, int, int]) -> Endings:
        """Begin without any fit."""
        longest = max(len(status) for status in (*Status, FAILED))
        return cls(np.full(shape, "", f"<U{longest}"), np.full(shape, np.nan))


@dataclass(frozen=True, eq=False)
class _Run:
    """Problems with the same targets, and their folds."""

    numbers: range
    y: Any
    splits: Sequence[Split]
    stages: list[list[Stage | None]]

    def batches(self) -> list[range]:
        size = max(_BATCH_VALUES // max(len(self.y), 1) ** 2, 1)
        first, last = self.numbers.start, self.numbers.stop
        return [range(start, min(start + size, last)) for start in range(first, last, size)]


class ManyFitsCourse:
    """Fits every machine to every problem without each of its folds.

    Parameters
    ----------
    machines : sequence of KernelMachine
        The estimator, once for each value of C.
    problems : Problems
        The problems.
    splits : list
        The folds of each run of problems with the same targets.
    sink : Sink
        Takes what comes out.
    raises : bool
        Whether the first error ends everything.
    """

    def __init__(
        self,
        machines: Sequence[KernelMachine],
        problems: Problems,
        splits: Sequence[Sequence[Split]],
        sink: Sink,
        raises: bool,
    ) -> None:
        self._problems, self._sink, self._raises = problems, sink, raises
        self._machines = [copy.copy(machine).set_params(n_jobs=1) for machine in machines]
        self._runs = []
        for numbers, folds in zip(problems.runs(), splits, strict=True):
            y = np.asarray(problems.target(numbers.start))
            self._runs.append(_Run(numbers, y, folds, stages_of(self._machines, y, folds)))
        n_folds = max((len(folds) for folds in splits), default=0)
        self.outcome = Endings.of((problems.count, len(machines), n_folds))
        self._lock = threading.Lock()

    def run(self, n_threads: int, tally: Tally) -> Endings:
        """Make all fits.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C was pressed.
        """
        work = [(run, numbers) for run in self._runs for numbers in run.batches()]

        def share(start: int, stop: int) -> None:
            for run, numbers in work[start:stop]:
                self._evaluate(run, numbers)
                tally.advance(len(numbers))

        with interrupt.catching(), blas_on_one_thread():
            Team(n_threads).share(len(work), 1, share)
        return self.outcome

    def _evaluate(self, run: _Run, numbers: range) -> None:
        """Make all fits of a batch of problems."""
        stack = batch = None
        first = next((stage for of_fold in run.stages for stage in of_fold if stage is not None), None)
        if first is not None:
            stack = Stack.of(self._problems, numbers)
        if first is not None and stack is not None:
            try:
                batch = Batch(first.machine, stack)
            except ValueError:  # each problem's own fit says whether it concerns that one
                batch = None
        for fold, split in enumerate(run.splits):
            values = None if batch is None else batch.values(split[0])
            for number, stage in enumerate(run.stages[fold]):
                slots = [Slot(problem, number, fold) for problem in numbers]
                if batch is not None and stack is not None and stage is not None and values is not None:
                    slots = self._solve(batch, stack, stage, values, slots)
                for slot in slots:
                    interrupt.check()
                    self._fit(run, slot)

    def _solve(self, batch: Batch, stack: Stack, stage: Stage, values: Values, slots: list[Slot]) -> list[Slot]:
        """Make the fits of a stage in the compiled loop; return those that it did not settle."""
        solved = batch.solve(stage, values)
        settled = [slot for slot, is_settled in zip(slots, solved.is_settled, strict=True) if is_settled]
        if settled:
            here = np.array([slot.problem for slot in settled]), slots[0].machine, slots[0].fold
            self.outcome.statuses[here] = Status.CONVERGED
            self.outcome.violations[here] = solved.violations[solved.is_settled]
            self._sink.take_batch(settled, stack, stage, values, solved)
        return [slot for slot, is_settled in zip(slots, solved.is_settled, strict=True) if not is_settled]

    def _fit(self, run: _Run, slot: Slot) -> None:
        """Make one fit by the estimator's own means."""
        outcome, split = self.outcome, run.splits[slot.fold]
        with self._lock:
            outcome.n_left += 1
        try:
            X, y = self._problems.samples(slot.problem), self._problems.target(slot.problem)
            X = np.asarray(X) if isinstance(X, list) else X
            machine = copy.copy(self._machines[slot.machine])
            machine.fit(*_safe_split(machine, X, np.asarray(y), split[0]))
            outcome.statuses[slot.place] = machine.report_.status
            outcome.violations[slot.place] = machine.report_.violation
            self._sink.take_fit(slot, machine, X, np.asarray(y), split)
        except Exception as error:
            if self._raises:
                error.add_note(f"in problem {slot.problem}, fold {slot.fold}")
                raise
            outcome.statuses[slot.place] = FAILED
            outcome.violations[slot.place] = np.nan
            with self._lock:
                outcome.errors.setdefault(slot.problem, f"fold {slot.fold}: {type(error).__name__}: {error}")
