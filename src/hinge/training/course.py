"""Training: from tasks on one Gram matrix to a model.

A task is one machine to train: some of the samples and their dual problem. A fit is one task, or one for each
pair of classes. Several tasks are solved side by side, each on one thread with its own part of the cache;
a single task uses all threads itself. Either way the answers are the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hinge.arrays import Index, Vector
from hinge.dual.problem import DualProblem
from hinge.kernel.gram import Counts, Gram
from hinge.kernel.kernels import Kernel
from hinge.model import Model
from hinge.report import MESSAGES, Report, Solution, Status
from hinge.runtime.interrupt import Cancelled, catching, check, pressed, requested
from hinge.runtime.threads import Team, blas_on_one_thread
from hinge.settings import Progress, Settings
from hinge.solvers import solve
from hinge.solvers.active_set.polish import polish
from hinge.solvers.exactness import is_within
from hinge.solvers.pairs.small import solve_small
from hinge.training.pair_grams import PairGrams
from hinge.training.progress import Watch

# Half of the cache's budget may hold the whole kernel matrix when several machines are trained on it.
_SHARE_FOR_MATRIX = 0.5

# Beyond this many samples machines ask for too few of the rows to compute them all.
_MOST_SHARED = 6000

# The matrix of so few samples takes a moment, and reading a pair's part of it less than laying out its samples.
_FEW_SAMPLES = 2000

# Kernel evaluations that all machines together may take for polishing: a few milliseconds.
_POLISHING_EVALUATIONS = 1e6

# Machines of fewer samples than this spend their time in Python, where threads only wait for each other.
_WORTH_A_THREAD = 100

# Coefficients of so many machines and support vectors are kept without their zeros, which are nearly all of them.
_MOST_DENSE = 1 << 24

# How often a solver that claims convergence where there is none is asked to go on.
_MOST_TRIES = 3

# A margin of ν-SVC below this share of Σ|β| is rounding.
_FLAT_MARGIN = 1e-10

# From bad to good: the status of a whole fit is the first that one of its machines ended with.
_SEVERITY = (
    Status.INTERRUPTED, Status.TIME_LIMIT, Status.ITERATION_LIMIT, Status.INFEASIBLE, Status.STALLED,
    Status.UNCERTAIN, Status.CONVERGED,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Task:
    """One machine to train.

    Parameters
    ----------
    samples : int64 array
        Places of its samples in the Gram matrix.
    problem : DualProblem
        The dual problem of these samples.
    start : array, optional
        β to start from.
    divide : bool
        Whether coefficients are divided by half the difference of the two multipliers (ν-SVC).
    split : int
        Where the samples of a pair of classes change from the first class, all of it, to the second; 0 for others.
    """

    samples: Index
    problem: DualProblem
    start: Vector | None = None
    divide: bool = False
    split: int = 0


class Tasks(Sequence[Task]):
    """Tasks that are made when they are asked for: of a thousand classes there are half a million.

    Parameters
    ----------
    sizes : int64 array
        Number of samples of each task.
    make : callable
        Makes the task of a number.
    """

    def __init__(self, sizes: Index, make: Callable[[int], Task]) -> None:
        self.sizes = sizes
        self._make = make
        self._made: dict[int, Task] = {}

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, number: int) -> Task: ...
    @overload
    def __getitem__(self, number: slice) -> list[Task]: ...
    def __getitem__(self, number: int | slice) -> Task | list[Task]:
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(len(self)))]
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self._made.get(number) or self._make(number)

    def prepare(self) -> None:
        """Make all tasks and keep them; those that the time does not suffice for are made when asked for."""
        for number in range(len(self)):
            if requested():
                return
            self._made[number] = self._make(number)


def sizes_of(tasks: Sequence[Task]) -> Index:
    """Return the number of samples of each task."""
    if isinstance(tasks, Tasks):
        return tasks.sizes
    return np.array([len(task.samples) for task in tasks], np.int64)


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


def train(
    gram: Gram,
    tasks: Sequence[Task],
    settings: Settings | None = None,
    watch: Watch | None = None,
    first: int = 0,
) -> list[Machine]:
    """Train a machine for every task.

    Parameters
    ----------
    gram : Gram
        Kernel values of all samples.
    tasks : sequence of Task
        What to train; larger tasks are begun first.
    settings : Settings, optional
        Method, tolerance and limits of each machine. Callback, time limit and start come from elsewhere: the
        ``watch`` and the tasks.
    watch : Watch, optional
        Listeners of all of them together. A time limit is that of the caller (`hinge.runtime.interrupt.within`).
    first : int
        Number of the first task among all that the watch sees.

    Returns
    -------
    list of Machine
        In the order of the tasks. Those that were not begun when the fit had to stop are where they would have
        started; the first one is always begun.

    Examples
    --------
    >>> from hinge import Gram, Kernel
    >>> from hinge.dual.formulations import c_svc
    >>> gram = Gram(np.array([[0.0], [1.0], [2.0], [3.0]]), Kernel("linear"))
    >>> (machine,) = train(gram, [Task(np.arange(4), c_svc([-1, -1, 1, 1], C=10.0))])
    >>> machine.coefficients.round(9), round(machine.intercept, 9)
    (array([ 0., -2.,  2.,  0.]), -3.0)
    """
    if not tasks:
        return []
    settings, watch = settings or Settings(), watch or Watch(n_machines=len(tasks))
    sizes = sizes_of(tasks)
    is_quick = len(tasks) > 1 and sizes.mean() < _WORTH_A_THREAD
    n_workers = 1 if is_quick else min(gram.team.size, len(tasks))
    one_set = settings.sizes.one_set
    largest = int(sizes[sizes <= one_set].max(initial=0)) if len(tasks) > 1 else 0
    pairs, absent = PairGrams(gram, largest, n_workers), Absent(tasks, gram)
    is_plain = is_quick and not watch.has_listeners and settings.solver == "auto" and settings.max_iter is None
    order = np.argsort(-sizes, kind="stable")
    machines: list[Machine | None] = [None] * len(tasks)

    def run(start: int, stop: int) -> None:
        for number in order[start:stop].tolist():
            machines[number] = train_one(number, tasks[number])

    def train_one(number: int, task: Task) -> Machine:
        if is_plain and task.start is None and (matrix := pairs.matrix_of(task.samples, task.split)) is not None:
            solution = solve_small(task.problem, matrix, gram, task.samples, settings.tol)
            if solution is not None:
                return _machine_of(task, solution)
        watch.begin(first + number)
        try:
            part = pairs.gram_of(task.samples, task.split) or _part_of(gram, task, n_workers, one_set)
        except Cancelled:
            return absent.machine(number, watch.is_stopped)
        settings_of_task = _settings_of(first + number, task, settings, watch)
        solution = _solve(task, part, settings_of_task, _POLISHING_EVALUATIONS / len(tasks))
        if part.counts is not gram.counts:
            _add_counts(gram.counts, part.counts)
        watch.end(first + number, solution.report)
        return _machine_of(task, solution)

    with catching() as scope:
        if len(tasks) == 1:
            run(0, 1)
        else:
            team, begun = Team(n_workers), iter([True])  # the first one is always begun
            team.cancelled = lambda: not next(begun, False) and (watch.is_stopped or requested())
            with blas_on_one_thread(), suppress(Cancelled):
                team.share(len(tasks), 1, run)
        scope.is_answered = is_stopped = watch.is_stopped
        return [machine or absent.machine(number, is_stopped) for number, machine in enumerate(machines)]


def held_out_decisions(
    gram: Gram,
    machines: Sequence[Machine],
    folds: NDArray[np.intp],
    without: Callable[[int, NDArray[np.bool_]], Task | float],
    settings: Settings,
    watch: Watch,
) -> list[Vector]:
    """Return each machine's decision values, made by its twin that was trained without the sample's fold.

    The twins keep the whole Gram matrix: the variables of held-out samples have an empty box. Kernel values are
    thus shared with the machine itself, the twins start from its solution, and the decision values of held-out
    samples are part of the twin's residual.

    Parameters
    ----------
    gram : Gram
        Kernel values of all samples.
    machines : sequence of Machine
        The machines trained on all samples.
    folds : array of int
        Fold of every sample.
    without : callable
        ``without(k, held_out)`` returns the task of machine k without the samples marked, or a number: the
        decision value where there is nothing to train.
    settings, watch : Settings, Watch
        As in `train`.

    Returns
    -------
    list of arrays
        One value a sample of the machine.

    Raises
    ------
    Cancelled
        The fit had to stop before all twins were trained.
    """
    results = [np.empty(len(machine.samples)) for machine in machines]
    tasks, targets = [], []
    for k, machine in enumerate(machines):
        check()
        own = folds[machine.samples]
        for fold in np.unique(own):
            held_out = own == fold
            task = without(k, held_out)
            if isinstance(task, Task):
                copies = machine.solution.beta.reshape(-1, len(own))
                tasks.append(replace(task, start=np.where(held_out, 0.0, copies).ravel()))
                targets.append((results[k], held_out))
            else:
                results[k][held_out] = task
    twins = train(gram, tasks, settings, watch, first=len(machines))
    if watch.is_stopped or requested():
        raise Cancelled
    for twin, (result, held_out) in zip(twins, targets, strict=True):
        result[held_out] = twin.decisions[held_out]
    return results


def keep_values(gram: Gram, n_wanted: int) -> Gram:
    """Return the Gram matrix with all values computed once, if machines share them and memory allows.

    Parameters
    ----------
    gram : Gram
        Kernel values of all samples.
    n_wanted : int
        Samples of all machines together; more than ``gram.n`` where machines overlap.

    Raises
    ------
    Cancelled
        Somebody asked to stop meanwhile. Where only the time is up the matrix is returned as it was.
    """
    fits = 8 * gram.n**2 <= _SHARE_FOR_MATRIX * gram.cache_bytes and gram.n <= _MOST_SHARED
    is_dear = not gram.is_cheap or gram.n <= _FEW_SAMPLES
    is_worth_it = n_wanted >= 1.5 * gram.n and is_dear and not gram.kernel.is_precomputed
    if not (fits and is_worth_it):
        return gram
    try:
        return gram.stored()
    except Cancelled:
        if pressed():
            raise
        return gram


def assemble(
    kernel: Kernel, X: Any, machines: Sequence[Machine], places: Index, order: Vector | None = None
) -> Model:
    """Put machines together into one model over the union of their support vectors.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : array or CSR matrix
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
    coefficients: Any = sp.csr_array((values, (number, column[samples])), shape=shape)
    if len(machines) * len(used) <= _MOST_DENSE:
        coefficients = coefficients.toarray()
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


def _solve(task: Task, gram: Gram, settings: Settings, polishing: float) -> Solution:
    begun, iterations, outer_steps = time.perf_counter(), 0, 0
    for _ in range(_MOST_TRIES):
        solution = solve(task.problem, gram, settings)
        iterations += solution.report.iterations
        outer_steps += solution.report.outer_steps
        seconds = time.perf_counter() - begun
        report = replace(solution.report, iterations=iterations, outer_steps=outer_steps, seconds=seconds)
        solution = replace(solution, report=report)
        if not report.converged:
            return solution
        try:
            solution = polish(task.problem, gram, solution, settings.tol, polishing)
        except Cancelled:
            return solution
        if is_within(solution.report.violation, solution.report.rounding, settings.tol):
            return solution
        settings = replace(settings, start=solution.beta)  # the solver was mistaken: let it look again
    stalled = replace(solution.report, status=Status.STALLED, message=MESSAGES[Status.STALLED])
    return replace(solution, report=stalled)


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
        return _machine_of(task, Solution(beta, problem.v.copy(), np.zeros(problem.n_groups), report))

    def _report(self, beta: Vector, is_stopped: bool) -> Report:
        status, gram = Status.INTERRUPTED if is_stopped else Status.TIME_LIMIT, self._gram
        return Report(
            status, "the fit was stopped before this machine was begun", reason="not begun",
            precision=gram.precision, storage=gram.samples.storage, n_support=int(np.count_nonzero(beta)),
        )  # fmt: skip


def _settings_of(number: int, task: Task, settings: Settings, watch: Watch) -> Settings:
    if not watch.has_listeners and task.start is None:
        return settings
    listen: Callable[[Progress], bool] = lambda progress: watch.step(number, progress)  # noqa: E731
    return replace(settings, callback=listen, time_limit=None, start=task.start)


def _machine_of(task: Task, solution: Solution) -> Machine:
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


def _part_of(gram: Gram, task: Task, n_workers: int, one_set: int) -> Gram:
    """The Gram matrix of one task: its samples, its share of the threads and of the cache."""
    part = gram
    if n_workers > 1 or not np.array_equal(task.samples, np.arange(gram.n)):
        n_threads = max(gram.team.size // n_workers, 1)
        part = gram.part(task.samples, threads=n_threads, cache_bytes=gram.cache_bytes // n_workers)
    is_one_set = part.n <= one_set and part.has_room_for(task.problem.n_variables)
    return part.stored() if is_one_set else part  # one working set would compute all of it in any case


def _add_counts(total: Counts, part: Counts) -> None:
    total.evaluations += part.evaluations
    total.hits += part.hits
    total.misses += part.misses
    total.bytes = max(total.bytes, part.bytes)
