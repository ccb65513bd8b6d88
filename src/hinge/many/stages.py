"""What problems with the same targets have in common: the dual problems of every fold and every C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.arrays import Index, Vector
from hinge.dual.problem import DualProblem
from hinge.estimators.base import KernelMachine
from hinge.estimators.svc import SVC
from hinge.kernel.kernels import Kernel, kind_of
from hinge.solvers.many import Parts
from hinge.solvers.one_pass import is_for_one_pass, suits_one_pass
from hinge.training.data import TrainingData

Split = tuple[Index, Index]


@dataclass(frozen=True, eq=False)
class Stage:
    """The fits of one machine's parameters on one training set, whatever the samples are.

    Attributes
    ----------
    machine : SVC
        The parameters, and the classes: enough to read decisions.
    train, test : int64 arrays
        Samples to train on, and those held out.
    n_samples : int
        Samples of a problem, in all.
    sizes : int64 array
        Variables of each pair of classes.
    members : int64 array
        The sample of every variable, pair by pair.
    problem : DualProblem
        All variables.
    """

    machine: SVC
    train: Index
    test: Index
    n_samples: int
    sizes: Index
    members: Index
    problem: DualProblem

    @classmethod
    def of(cls, machine: SVC, y: Any, split: Split) -> Stage | None:
        """Return the stage of a fold; None where the compiled loop is not for it."""
        train, test = split
        places = np.arange(len(train), dtype=np.int64)
        data = TrainingData(None, y[train], np.ones(len(train)), places, (len(train),))
        course = machine._course(data, Kernel("linear"))  # which kernel it is does not matter to a dual problem
        tasks: Any = course.tasks
        members, problem = tasks.make_together(np.arange(len(tasks)))
        if not suits_one_pass(problem) or not is_for_one_pass(int(tasks.sizes.max()), course.settings):
            return None
        reader = _copy(machine)
        reader.classes_ = course.formulation.labels
        return cls(reader, train, test, len(y), tasks.sizes, train[members], problem)

    @property
    def n_machines(self) -> int:
        """Number of pairs of classes."""
        return len(self.sizes)

    def parts(self, count: int) -> Parts:
        """Lay out the problems of all pairs, for this many sets of samples."""
        one = self.problem
        rows = self.members + self.n_samples * np.arange(count)[:, None]
        v, lo, hi, start = (np.tile(values, count) for values in (one.v, one.lo, one.hi, one.start))
        problem = DualProblem(v, lo, hi, np.tile(one.group, count), one.sums, len(v), start)
        return Parts.of(np.tile(self.sizes, count), rows.ravel(), problem)

    def spread(self, beta: Vector, count: int) -> Vector:
        """Return the coefficients of all samples, one row per machine, for each of this many sets of samples."""
        coefficients = np.zeros((count, self.n_machines, self.n_samples))
        of_machine = np.repeat(np.arange(self.n_machines), self.sizes)
        coefficients[:, of_machine, self.members] = beta.reshape(count, -1)
        return coefficients

    def reader(self, X: Any, decisions: Vector) -> SVC:
        """Return a machine that knows its decisions on the samples X, and nothing else."""
        reader = _copy(self.machine)
        reader._known = X, decisions
        return reader


def _copy(machine: SVC) -> SVC:
    """Copy the attributes; scikit-learn's own way takes longer than a fit."""
    twin = object.__new__(type(machine))
    twin.__dict__.update(vars(machine))
    return twin


def stages_of(machines: Sequence[KernelMachine], y: Any, splits: Sequence[Split]) -> list[list[Stage | None]]:
    """Return the stages of every fold, one a machine; None where the estimator's own fit has to do it."""
    return [[_stage_of(machine, y, split) for machine in machines] for split in splits]


def _stage_of(machine: KernelMachine, y: Any, split: Split) -> Stage | None:
    if type(machine) is not SVC or not _is_plain(machine):
        return None
    try:
        return Stage.of(machine, machine._check_targets(y), split)
    except ValueError:  # its own fit says why
        return None


def _is_plain(machine: SVC) -> bool:
    """Whether nothing is asked of a fit but its decisions, and votes alone answer."""
    return (
        isinstance(machine.kernel, str)
        and kind_of(machine.kernel).has_features
        and machine.multi_class == "ovo"
        and not machine.break_ties
        and not machine._calibrates
        and machine.precision != "single"
        and machine.time_limit is None
        and machine.callback is None
        and not machine.verbose
        and not hasattr(machine, "_skl_callbacks")
    )
