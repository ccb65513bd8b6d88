"""Trained machines: made of solutions, put together into one model, summed up in one report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge.arrays import Index, Vector
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import Kernel
from hinge.model import Model
from hinge.report import MESSAGES, Report, Solution, Status
from hinge.training.tasks import Task, Tasks

# Coefficients (machines times support vectors) beyond which they are kept without their zeros: nearly all are.
_MOST_DENSE = 1 << 24

# Share of Σ|β| below which a margin of ν-SVC is rounding.
_FLAT_MARGIN = 1e-10

# Share of the longest that ‖w‖² could be, below which it is rounding.
_VANISHING_WEIGHTS = 1e-14

# From bad to good: the status of a whole fit is the first that one of its machines ended with.
_SEVERITY = (
    Status.INTERRUPTED, Status.TIME_LIMIT, Status.ITERATION_LIMIT, Status.INFEASIBLE, Status.STALLED,
    Status.UNCERTAIN, Status.CONVERGED,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Machine:
    """A trained machine: f(x) = Σ coefficient · k(sample, x) + intercept.

    Attributes
    ----------
    samples : int64 array
        Places of its samples in the Gram matrix.
    coefficients : array
        One coefficient a sample.
    intercept : float
        The intercept.
    solution : Solution
        The solution behind it.
    decisions : array
        f of its own samples, by the solver's residual.
    """

    samples: Index
    coefficients: Vector
    intercept: float
    solution: Solution
    decisions: Vector


def machine_of(task: Task, solution: Solution) -> Machine:
    """Return the machine that a solution of a task makes."""
    problem = task.problem
    coefficients = problem.coefficients(solution.beta)
    multipliers = solution.multipliers
    intercept = float(multipliers.mean()) if len(multipliers) else 0.0
    decisions = (problem.v - solution.residual)[: problem.n_samples] + intercept
    if task.divide:
        # Decision values at the two margins are +1 and -1. A margin of zero width cannot be scaled to that.
        half_width = half_margin(solution)
        scale = half_width if half_width > 0 else 1.0
        coefficients, intercept, decisions = coefficients / scale, intercept / scale, decisions / scale
    return Machine(task.samples, coefficients, intercept, solution, decisions)


def half_margin(solution: Solution) -> float:
    """Return what the machine of a ν-SVC solution is divided by: half the distance of its margins, 1/C."""
    return float(solution.multipliers[1] - solution.multipliers[0]) / 2


def is_flat(solution: Solution) -> bool:
    """Whether a solution of ν-SVC has no margin but for its violation and rounding: decisions mean nothing."""
    rounding = _FLAT_MARGIN * float(np.abs(solution.beta).sum())
    return solution.report.converged and half_margin(solution) <= max(solution.report.violation, rounding)


def is_vanishing(solution: Solution, largest: float) -> bool:
    """Whether the weight vector of a one-class solution is nothing but its violation and rounding.

    ``largest`` is the largest k(x, x): no sample is longer than its root.
    """
    total, squared = float(solution.beta.sum()), 2 * solution.report.objective  # Σβ and ‖w‖² = βᵀKβ
    rounding = _VANISHING_WEIGHTS * total**2 * largest
    return solution.report.converged and squared <= max(solution.report.violation * total, rounding)


class Absent:
    """What a stopped fit knows of the tasks that it did not come to: where they would have started."""

    def __init__(self, tasks: Sequence[Task], gram: Gram) -> None:
        self._tasks, self._gram = tasks, gram
        self._blank: Machine | None = None

    def machine(self, number: int, is_stopped: bool = False) -> Machine:
        """Return the machine of a task that was not begun, because of the time or because it was stopped.

        Those of tasks that do not even exist are one and the same, without samples.
        """
        if isinstance(self._tasks, Tasks):
            if self._blank is None:
                nothing = np.empty(0)
                solution = Solution(nothing, nothing, np.zeros(2), self._report(nothing, is_stopped))
                self._blank = Machine(np.empty(0, np.int64), nothing, 0.0, solution, nothing)
            return self._blank
        task = self._tasks[number]
        problem = task.problem
        beta = np.zeros(problem.n_variables) if task.start is None else problem.near(task.start)
        report = self._report(beta, is_stopped)
        return machine_of(task, Solution(beta, problem.v.copy(), np.zeros(problem.n_groups), report))

    def _report(self, beta: Vector, is_stopped: bool) -> Report:
        status, gram = Status.INTERRUPTED if is_stopped else Status.TIME_LIMIT, self._gram
        return Report(
            status, "the fit was stopped before this machine was begun", reason="not begun",
            precision=gram.precision, storage=gram.storage, n_support=int(np.count_nonzero(beta)),
        )  # fmt: skip


def assemble(
    kernel: Kernel, X: Any, machines: Sequence[Machine], places: Index, order: Index | None = None
) -> Model:
    """Put machines together into one model over the union of their support vectors.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : array, CSR matrix or Collection
        The samples that the Gram matrix was made of.
    machines : sequence of Machine
        The machines.
    places : int64 array
        Where each row of X was in the caller's data.
    order : array, optional
        Support vectors are sorted by this value of theirs, then by place.

    Returns
    -------
    Model
        One row of coefficients a machine.
    """
    number, samples, values = _coefficients(machines)
    is_used = np.zeros(len(places), dtype=bool)
    is_used[samples] = True
    used = np.flatnonzero(is_used)
    if order is not None:
        used = used[np.argsort(order[used], kind="stable")]
    column = np.empty(len(places), np.int64)
    column[used] = np.arange(len(used))
    shape = len(machines), len(used)
    if len(machines) * len(used) <= _MOST_DENSE:
        coefficients: Any = np.zeros(shape)
        coefficients[number, column[samples]] = values
    else:
        coefficients = sp.csr_array((values, (number, column[samples])), shape=shape)
    vectors = np.empty((len(used), 0)) if kernel.is_precomputed else X[used]
    intercepts = np.array([machine.intercept for machine in machines])
    return Model(kernel, vectors, places[used], coefficients, intercepts)


def coefficient_rows(machines: Sequence[Machine], n: int) -> Vector:
    """Return the coefficients of all ``n`` samples, a row a machine; zero where a sample has no part in it."""
    rows = np.zeros((len(machines), n))
    number, samples, values = _coefficients(machines)
    rows[number, samples] = values
    return rows


def _coefficients(machines: Sequence[Machine]) -> tuple[Index, Index, Vector]:
    """Return all coefficients that are not zero: the number of the machine, the sample, the value."""
    values = np.concatenate([machine.coefficients for machine in machines])
    samples = np.concatenate([machine.samples for machine in machines])
    number = np.repeat(np.arange(len(machines)), [len(machine.samples) for machine in machines])
    support = values != 0
    return number[support], samples[support], values[support]


def combined_report(machines: Sequence[Machine], gram: Gram, seconds: float) -> Report:
    """Sum up the reports of all machines: the worst status and violation, the sums of everything else."""
    reports = [machine.solution.report for machine in machines]
    if len(reports) == 1:
        return reports[0]
    status = min((report.status for report in reports), key=_SEVERITY.index)
    n_converged = sum(report.converged for report in reports)
    n_support = len(np.unique(_coefficients(machines)[1]))
    return replace(
        max(reports, key=lambda report: report.seconds),
        status=status,
        message=f"{n_converged} of {len(reports)} machines converged; {MESSAGES[status]}",
        iterations=sum(report.iterations for report in reports),
        outer_steps=sum(report.outer_steps for report in reports),
        violation=float(np.max([report.violation for report in reports])),
        rounding=float(np.max([report.rounding for report in reports])),
        objective=sum(report.objective for report in reports),
        gap=sum(report.gap for report in reports),
        n_support=n_support,
        n_bounded=sum(report.n_bounded for report in reports),
        kernel_evaluations=gram.counts.evaluations,
        cache_hits=gram.counts.hits,
        cache_misses=gram.counts.misses,
        cache_bytes=gram.counts.bytes,
        seconds=seconds,
        largest_set=max(report.largest_set for report in reports),
        fewest_active=min(report.fewest_active for report in reports),
        most_lagging=max(report.most_lagging for report in reports),
    )
