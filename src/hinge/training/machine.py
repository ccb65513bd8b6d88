"""Trained machines: made of solutions, put together into one model, summed up in one report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from hinge.arrays import Index, Vector, sparse
from hinge.data.pages import rows_of
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import Kernel
from hinge.model import Model
from hinge.report import MESSAGES, Ledger, Report, Solution, Status
from hinge.solvers.many import Parts
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
    """A trained machine: f(x) = Σ coefficient · k(sample, x) + intercept + own · k(x, x).

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
    own : float
        −1 for a sphere, 0 for all others.
    """

    samples: Index
    coefficients: Vector
    intercept: float
    solution: Solution
    decisions: Vector
    own: float = 0.0


def machine_of(task: Task, solution: Solution) -> Machine:
    """Return the machine that a solution of a task makes."""
    problem = task.problem
    coefficients = problem.coefficients(solution.beta)
    multipliers = solution.multipliers
    intercept = float(sum(multipliers.tolist()) / len(multipliers)) if len(multipliers) else 0.0
    decisions = problem.image_of(solution.beta, solution.residual) + intercept
    if task.divide:
        # Decision values at the two margins are +1 and -1. A margin of zero width cannot be scaled to that.
        half_width = half_margin(solution)
        scale = half_width if half_width > 0 else 1.0
        coefficients, intercept, decisions = coefficients / scale, intercept / scale, decisions / scale
    if task.is_sphere:  # ‖φ(x) − a‖² = k(x, x) − 2⟨a, φ(x)⟩ + ‖a‖², and v is half of k(x, x)
        decisions = 2 * (intercept - solution.residual)
        return Machine(task.samples, 2 * coefficients, 2 * intercept, solution, decisions, own=-1.0)
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


class Machines(Sequence[Machine]):
    """Machines of which many were trained in one loop: of those a machine is made when it is asked for.

    Parameters
    ----------
    count : int
        How many there are to be.
    """

    def __init__(self, count: int) -> None:
        self._made: list[Machine | None] = [None] * count
        self._batches: list[tuple[Parts, Index]] = []

    @property
    def has_batches(self) -> bool:
        """Whether some of them were trained in a loop."""
        return bool(self._batches)

    def add(self, parts: Parts, numbers: Index) -> None:
        """Take over the problems ``numbers``, as far as they are solved."""
        count = len(self)
        if not self._batches:
            self._batch_of = np.full(count, -1)  # of what was trained in a loop: which loop, and where in it
            self._place_of = np.zeros(count, np.int64)
            self._intercepts = np.zeros(count)
            self._figures = np.zeros((count, len(Parts.columns)))
        places = np.flatnonzero(parts.is_certified)
        mine = numbers[places]
        self._batch_of[mine], self._place_of[mine] = len(self._batches), places
        self._intercepts[mine], self._figures[mine] = parts.intercepts()[places], parts.figures()[places]
        self._batches.append((parts, numbers))

    def missing(self) -> list[int]:
        """Return the numbers of the machines that are not there yet."""
        return [number for number in self._others() if self._made[number] is None]

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, number: int) -> Machine: ...
    @overload
    def __getitem__(self, number: slice) -> list[Machine]: ...
    def __getitem__(self, number: int | slice) -> Machine | list[Machine]:
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(len(self)))]
        machine = self._made[number]
        if machine is None:
            parts, place = self._batches[self._batch_of[number]][0], int(self._place_of[number])
            task = Task(parts.layout.samples[parts.part(place)], parts.problem_of(place))
            machine = self._made[number] = machine_of(task, parts.solution(place))
        return machine

    def __setitem__(self, number: int, machine: Machine | None) -> None:
        self._made[number] = machine

    def points(self) -> Iterator[tuple[Index, Vector]]:
        """Yield the samples and β of every machine, without making those that nobody has asked for."""
        for number, machine in enumerate(self._made):
            if machine is None:
                parts, place = self._batches[self._batch_of[number]][0], int(self._place_of[number])
                here = parts.part(place)
                yield parts.layout.samples[here], parts.beta[here]
            else:
                yield machine.samples, machine.solution.beta

    def _others(self) -> Sequence[int]:
        """Numbers of the machines that are trained one by one."""
        return np.flatnonzero(self._batch_of < 0).tolist() if self._batches else range(len(self))

    def intercepts(self) -> Vector:
        """Return the intercept of every machine."""
        for number in self._others():
            self._intercepts[number] = self[number].intercept
        return self._intercepts

    def coefficients(self) -> tuple[Index, Index, Vector]:
        """Return all coefficients that are not zero: the number of the machine, the sample, the value."""
        found = []
        for batch, (parts, numbers) in enumerate(self._batches):
            sizes = np.diff(parts.layout.offsets)
            support = np.flatnonzero((parts.beta != 0) & np.repeat(self._batch_of[numbers] == batch, sizes))
            found.append((np.repeat(numbers, sizes)[support], parts.layout.samples[support], parts.beta[support]))
        if others := self._others():
            number, samples, values = _coefficients([self[k] for k in others])
            found.append((np.array(others)[number], samples, values))
        number, samples, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return number, samples, values

    def ledger(self) -> Ledger:
        """Return the reports of all machines."""
        others: list[Report | None] = [None] * len(self)
        for number in self._others():
            others[number] = self[number].solution.report
        return Ledger(others, self._batches[0][0].shared_report, Parts.columns, self._figures)


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
    kernel: Kernel,
    X: Any,
    machines: Sequence[Machine],
    places: Index,
    order: Index | None = None,
    room: int | None = None,
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
    room : int, optional
        Bytes beyond which support vectors of samples in a mapped file are in a file, too.

    Returns
    -------
    Model
        One row of coefficients per machine.
    """
    used, coefficients = _table(*_coefficients(machines), len(machines), len(places), order)
    vectors = np.empty((len(used), 0)) if kernel.is_precomputed else rows_of(X, used, room)
    if isinstance(machines, Machines) and machines.has_batches:
        return Model(kernel, vectors, places[used], coefficients, machines.intercepts())
    intercepts = np.array([machine.intercept for machine in machines])
    return Model(
        kernel, vectors, places[used], coefficients, intercepts, machines[0].own if len(machines) else 0.0
    )


def _table(
    number: Index, samples: Index, values: Vector, n_machines: int, n: int, order: Index | None
) -> tuple[Index, Any]:
    """Return the support vectors, in their order, and the coefficients, a row for each machine."""
    if n_machines == 1 and (len(samples) < 2 or (samples[1:] > samples[:-1]).all()):  # they are sorted already
        if order is None:
            return samples, values.reshape(1, -1)
        sequence = np.argsort(order[samples], kind="stable")
        return samples[sequence], values[sequence].reshape(1, -1)
    is_used = np.zeros(n, dtype=bool)
    is_used[samples] = True
    used = np.flatnonzero(is_used)
    if order is not None:
        used = used[np.argsort(order[used], kind="stable")]
    column = np.empty(n, np.int64)
    column[used] = np.arange(len(used))
    shape = n_machines, len(used)
    if n_machines * len(used) > _MOST_DENSE:
        return used, sparse().csr_array((values, (number, column[samples])), shape=shape)
    coefficients = np.zeros(shape)
    coefficients[number, column[samples]] = values
    return used, coefficients


def coefficient_rows(machines: Sequence[Machine], n: int) -> Vector:
    """Return the coefficients of all ``n`` samples, one row per machine; zero where a sample has no part in it."""
    rows = np.zeros((len(machines), n))
    number, samples, values = _coefficients(machines)
    rows[number, samples] = values
    return rows


def _coefficients(machines: Sequence[Machine]) -> tuple[Index, Index, Vector]:
    """Return all coefficients that are not zero: the number of the machine, the sample, the value."""
    if isinstance(machines, Machines) and machines.has_batches:
        return machines.coefficients()
    if len(machines) == 1:
        (machine,) = machines
        support = machine.coefficients.nonzero()[0]
        return np.zeros(len(support), np.int64), machine.samples[support], machine.coefficients[support]
    values = np.concatenate([machine.coefficients for machine in machines])
    samples = np.concatenate([machine.samples for machine in machines])
    number = np.repeat(np.arange(len(machines)), [len(machine.samples) for machine in machines])
    is_support = values != 0
    return number[is_support], samples[is_support], values[is_support]


def ledger_of(machines: Sequence[Machine]) -> Ledger:
    """Return the reports of all machines."""
    if isinstance(machines, Machines) and machines.has_batches:
        return machines.ledger()
    return Ledger([machine.solution.report for machine in machines])


def points_of(machines: Sequence[Machine]) -> Iterable[tuple[Index, Vector]]:
    """Return the samples and β of all machines."""
    if isinstance(machines, Machines):
        return machines.points()
    return [(machine.samples, machine.solution.beta) for machine in machines]


def combined_report(machines: Sequence[Machine], gram: Gram, seconds: float, n_support: int) -> Report:
    """Sum up the reports of all machines: the worst status and violation, the sums of everything else.

    ``n_support`` is the number of samples that are support vectors of at least one machine.
    """
    if len(machines) == 1:
        return machines[0].solution.report
    ledger = ledger_of(machines)
    statuses = ledger.statuses()
    status, common, course = min(statuses, key=_SEVERITY.index), ledger.common, {}
    if common is None:
        common = ledger[int(np.argmax(ledger.column("seconds")))]
        course = ledger.combined(np.max, "most_lagging") | ledger.combined(np.min, "fewest_active")
    return replace(
        common,
        status=status,
        message=f"{statuses[Status.CONVERGED]} of {len(machines)} machines converged; {MESSAGES[status]}",
        **ledger.combined(np.sum, "iterations", "outer_steps", "objective", "gap", "n_bounded"),
        **ledger.combined(np.max, "violation", "rounding", "largest_set"),
        **course,
        n_support=n_support,
        kernel_evaluations=gram.counts.evaluations,
        cache_hits=gram.counts.hits,
        cache_misses=gram.counts.misses,
        cache_bytes=gram.counts.bytes,
        seconds=seconds,
    )
