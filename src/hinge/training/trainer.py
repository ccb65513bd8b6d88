"""Training: from tasks on one Gram matrix to machines.

Several tasks are solved side by side, each on one thread with its own part of the cache; a single task uses all
threads itself. Either way the answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from hinge.arrays import Vector
from hinge.kernel.gram import Gram
from hinge.kernel.rows import Counts
from hinge.report import MESSAGES, Report, Solution, Status
from hinge.runtime import clock
from hinge.runtime.interrupt import Cancelled, catching, pressed, requested
from hinge.runtime.threads import Team, blas_on_one_thread
from hinge.settings import Progress, Settings
from hinge.solvers import solve
from hinge.solvers.active_set.polish import polish
from hinge.solvers.exactness import is_within
from hinge.solvers.growing import solve_growing
from hinge.solvers.many import Parts
from hinge.solvers.one_pass import Bars, is_for_one_pass, suits_one_pass, writable
from hinge.solvers.recording import Recorder
from hinge.trace import Tracing
from hinge.training.machine import Absent, Machine, Machines, machine_of
from hinge.training.pair_grams import PairGrams
from hinge.training.progress import Watch
from hinge.training.tasks import Task, Tasks, sizes_of


@dataclass(frozen=True)
class Sharing:
    """What machines of one fit share, and when.

    Parameters
    ----------
    overlap : float
        Samples of all machines, beside those there are, from which on values are worth computing all at once.
    matrix_share : float
        Share of the cache's budget that the whole kernel matrix may take; the rest is for working sets.
    most_samples : int
        Samples beyond which machines ask for too few of the rows to compute them all.
    worth_a_thread : int
        Samples: machines of fewer, on average, spend their time in Python, where threads wait for each other.
    polishing : float
        Kernel evaluations that all machines together may take for polishing: a few milliseconds.
    tries : int
        How often a solver that claims convergence where there is none is asked to go on.
    most_together : int
        Machines whose problems are laid out at a time.
    chunk_seconds : float
        How long machines that are trained in one loop may take, roughly, before anybody asks whether to stop.
    """

    overlap: float = 1.5
    matrix_share: float = 0.5
    most_samples: int = 6000
    worth_a_thread: int = 100
    polishing: float = 1e6
    tries: int = 3
    most_together: int = 2000
    chunk_seconds: float = 0.002


class Trainer:
    """Trains the machines of one fit.

    Parameters
    ----------
    gram : Gram
        Kernel values of all samples.
    settings : Settings, optional
        Method, tolerance and limits of each machine. Callback, time limit and start come from elsewhere: the
        ``watch``, the caller (`hinge.runtime.interrupt.within`) and the tasks.
    watch : Watch, optional
        Listeners of all machines together.
    sharing : Sharing, optional
        What machines share.

    Examples
    --------
    >>> from hinge import Gram, Kernel
    >>> from hinge.dual.formulations import c_svc
    >>> gram = Gram(np.array([[0.0], [1.0], [2.0], [3.0]]), Kernel("linear"))
    >>> (machine,) = Trainer(gram).train([Task(np.arange(4), c_svc([-1, -1, 1, 1], C=10.0))])
    >>> machine.coefficients.round(9), round(machine.intercept, 9)
    (array([ 0., -2.,  2.,  0.]), -3.0)
    """

    def __init__(
        self,
        gram: Gram,
        settings: Settings | None = None,
        watch: Watch | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        self.gram = gram
        self.settings = settings or Settings()
        self.watch = watch or Watch()
        self.sharing = sharing or Sharing()

    def prepare(self, tasks: Sequence[Task], n_runs: int = 1) -> None:
        """Get ready for all machines of a fit, each of which is trained ``n_runs`` times.

        Where machines share kernel values, and memory allows, all values are computed once.

        Raises
        ------
        Cancelled
            Somebody asked to stop meanwhile. Where only the time is up values are left to be computed on demand.
        """
        gram, sharing, sizes = self.gram, self.sharing, sizes_of(tasks)
        self.watch.expect(sizes if n_runs == 1 else np.tile(sizes, n_runs))
        fits = 8 * gram.n**2 <= sharing.matrix_share * gram.cache_bytes and gram.n <= sharing.most_samples
        is_slow = not gram.is_cheap or gram.n <= self.settings.sizes.one_set
        is_shared = n_runs * int(sizes.sum()) >= sharing.overlap * gram.n
        if fits and is_slow and is_shared and gram.given_matrix is None:
            try:
                self.gram = gram.stored()
            except Cancelled:
                if pressed():
                    raise

    def train(self, tasks: Sequence[Task], first: int = 0) -> Sequence[Machine]:
        """Train a machine for every task.

        Parameters
        ----------
        tasks : sequence of Task
            What to train; larger tasks are begun first.
        first : int
            Number of the first task among all that the watch sees.

        Returns
        -------
        sequence of Machine
            In the order of the tasks. Those that were not begun when the fit had to stop are where they would have
            started; the first one is always begun.
        """
        watch, begun = self.watch, iter([True])  # the first one is always begun
        machines = Machines(len(tasks))

        def is_cancelled() -> bool:
            return not next(begun, False) and (watch.is_stopped or requested())

        with catching() as scope:
            with suppress(Cancelled):
                starts = self._train_together(tasks, machines, is_cancelled)
                self._train_each(tasks, first, machines, starts, is_cancelled)
            scope.is_answered = is_stopped = watch.is_stopped
            if missing := machines.missing():
                absent = Absent(tasks, self.gram)
                for number in missing:
                    machines[number] = absent.machine(number, is_stopped)
            return machines if machines.has_batches else machines[:]

    def _train_together(
        self, tasks: Sequence[Task], machines: Machines, is_cancelled: Callable[[], bool]
    ) -> dict[int, Vector]:
        """Train all small machines in a compiled loop; return where those ended that it left."""
        gram, settings, starts = self.gram, self.settings, {}
        if not isinstance(tasks, Tasks) or tasks.make_together is None or len(tasks) == 1:
            return {}
        if self.watch.has_listeners or not is_for_one_pass(1, settings):
            return {}
        sizes, largest = sizes_of(tasks), min(settings.sizes.one_pass, settings.sizes.one_set)
        is_whole = gram.matrix is not None
        if not (gram.precision == "double" if is_whole else _is_for_growth(gram)):
            return {}
        if not is_whole:
            largest = settings.sizes.one_set
        order = np.argsort(-sizes, kind="stable")
        order, most = order[sizes[order] <= largest], self.sharing.most_together
        for first in range(0, len(order), most):
            numbers = order[first : first + most]
            samples, problem = tasks.make_together(numbers)
            if not suits_one_pass(problem):
                return {}
            parts = Parts.of(sizes[numbers], samples, problem, gram)
            try:
                solve_all = self._solve_parts if is_whole else self._solve_growing
                solve_all(parts, is_cancelled)
            finally:
                machines.add(parts, numbers)
            for place in np.flatnonzero(~parts.is_certified).tolist():
                if parts.is_begun(place, settings.tol):
                    starts[int(numbers[place])] = parts.beta[parts.part(place)]
        return starts

    def _solve_parts(self, parts: Parts, is_cancelled: Callable[[], bool]) -> None:
        """Solve problems that are laid out together, on the matrix of all samples."""
        kernel, bars, tol = writable(self.gram), Bars(*self.gram.error_terms()), self.settings.tol
        spent, everyone = np.cumsum(parts.guessed_seconds()), np.arange(len(parts.seconds))
        inner = np.flatnonzero(np.diff(spent // self.sharing.chunk_seconds)) + 1
        ends = [0, *inner.tolist(), len(everyone)]

        def run(start: int, stop: int) -> None:
            for chunk in range(start, stop):
                parts.solve(everyone[ends[chunk] : ends[chunk + 1]], kernel, bars, tol)

        self.gram.team.share(len(ends) - 1, 1, run, float(spent[-1]), is_cancelled)

    def _solve_growing(self, parts: Parts, is_cancelled: Callable[[], bool]) -> None:
        """Solve problems that are laid out together, each on a matrix of some of its samples."""
        gram, bars, tol = self.gram, Bars(*self.gram.error_terms()), self.settings.tol
        room = self.sharing.matrix_share * gram.cache_bytes / gram.team.size
        most = min(self.settings.sizes.one_pass, int((room / 8) ** 0.5))
        samples = gram.source.samples
        if 8 * samples.n * samples.n_features <= self.sharing.matrix_share * gram.cache_bytes:
            samples.keeps_double = True
            samples.panel(parts.layout.samples[:1], np.float64)  # made before threads want it

        def run(start: int, stop: int) -> None:
            for place in range(start, stop):
                begun = clock.now()
                solve_growing(parts, place, gram, bars, most, tol)
                parts.seconds[place] = clock.now() - begun

        with blas_on_one_thread():
            gram.team.share(len(parts.sizes), 1, run, float(parts.guessed_seconds().sum()), is_cancelled)

    def _train_each(
        self,
        tasks: Sequence[Task],
        first: int,
        machines: Machines,
        starts: dict[int, Vector],
        is_cancelled: Callable[[], bool],
    ) -> None:
        """Train the machines that are not there yet, side by side."""
        left = machines.missing()
        if not left:
            return
        if len(left) == 1:
            machines[left[0]] = self._trainer_of(tasks, first, 1, starts)(left[0])
            return
        sizes = sizes_of(tasks)[left]
        is_quick = sizes.mean() < self.sharing.worth_a_thread
        n_workers = 1 if is_quick else min(self.gram.team.size, len(left))
        train_one = self._trainer_of(tasks, first, n_workers, starts)
        order = [left[k] for k in np.argsort(-sizes, kind="stable")]

        def run(start: int, stop: int) -> None:
            for number in order[start:stop]:
                machines[number] = train_one(number)

        with blas_on_one_thread():
            Team(n_workers).share(len(order), 1, run, cancelled=is_cancelled)

    def _trainer_of(
        self, tasks: Sequence[Task], first: int, n_workers: int, starts: dict[int, Vector]
    ) -> Callable[[int], Machine | None]:
        """Return what trains the task of a number, on one of several threads; None where it had to stop."""
        gram, watch = self.gram, self.watch
        one_set = self.settings.sizes.one_set
        pairs: PairGrams | None = None
        if len(tasks) > 1:
            sizes = sizes_of(tasks)
            pairs = PairGrams(gram, int(sizes[sizes <= one_set].max(initial=0)), n_workers)

        def train_one(number: int) -> Machine | None:
            task = tasks[number]
            if number in starts:
                task = replace(task, start=starts[number])
            watch.begin(first + number)
            try:
                wants_all = task.known is None  # an update wants few of the values
                part = pairs.gram_of(task.samples, task.split) if pairs is not None and wants_all else None
                part = part or _part_of(gram, task, n_workers, one_set)
            except Cancelled:
                return None
            solution = self._solve(task, part, self._settings_of(first + number, task), len(tasks))
            if part.counts is not gram.counts:
                _add_counts(gram.counts, part.counts)
            watch.end(first + number, solution.report)
            return machine_of(task, solution)

        return train_one

    def _settings_of(self, number: int, task: Task) -> Settings:
        settings = self.settings
        if task.start is not None or task.known is not None:
            settings = replace(settings, start=task.start, known=task.known)
        if not self.watch.has_listeners:
            return settings
        listen: Callable[[Progress], bool] = lambda progress: self.watch.step(number, progress)  # noqa: E731
        return replace(settings, callback=listen, time_limit=None)

    def _solve(self, task: Task, gram: Gram, settings: Settings, n_tasks: int) -> Solution:
        solution = self._settled(task, gram, settings, n_tasks)
        if settings.known is None:
            return solution
        for start in (solution.beta, None):  # where rounding ends an update it goes on as any fit, or begins anew
            if solution.report.status not in (Status.STALLED, Status.UNCERTAIN):
                break
            before, gram = solution.report, _whole_if_small(gram, task, settings.sizes.one_set)
            solution = self._settled(task, gram, replace(settings, known=None, start=start), n_tasks)
            solution = replace(solution, report=solution.report.after(before))
        return solution

    def _settled(self, task: Task, gram: Gram, settings: Settings, n_tasks: int) -> Solution:
        before: Report | None = None
        for _ in range(self.sharing.tries):
            solution = solve(task.problem, gram, settings)
            if before is not None:
                solution = replace(solution, report=solution.report.after(before))
            report = before = solution.report
            if not report.converged or solution.weights is not None:
                return solution
            try:
                solution = polish(task.problem, gram, solution, settings.tol, self.sharing.polishing / n_tasks)
            except Cancelled:
                return solution
            solution = _with_last_point(solution, settings.trace)
            report = solution.report
            if is_within(report.violation, report.rounding, settings.tol) or settings.gap_suffices(report):
                return solution
            # The solver was mistaken: let it look again.
            settings = replace(settings, start=solution.beta, known=None)
        stalled = replace(solution.report, status=Status.STALLED, message=MESSAGES[Status.STALLED])
        return replace(solution, report=stalled)


def _is_for_growth(gram: Gram) -> bool:
    """Whether kernel values of some samples are to be had in double precision, at the price of computing them."""
    samples = gram.source.samples
    return not (gram.is_single_by_wish or samples.is_apart or samples.is_given or samples.runs_on_one_thread)


def _with_last_point(solution: Solution, tracing: Tracing | None) -> Solution:
    """Let the trace end where polishing has led."""
    report = solution.report
    if tracing is None or report.trace is None or report.trace.violation[-1] == report.violation:
        return solution
    end = Recorder(tracing).trace(report, solution.beta, int(report.trace.n_active[-1]))
    return replace(solution, report=replace(report, trace=report.trace.followed_by(end)))


def _part_of(gram: Gram, task: Task, n_workers: int, one_set: int) -> Gram:
    """The Gram matrix of one task: its samples, its share of the threads and of the cache."""
    part = gram
    if n_workers > 1 or len(task.samples) != gram.n or (task.samples != np.arange(gram.n)).any():
        n_threads = max(gram.team.size // n_workers, 1)
        part = gram.part(task.samples, threads=n_threads, cache_bytes=gram.cache_bytes // n_workers)
    return part if task.known is not None else _whole_if_small(part, task, one_set)


def _whole_if_small(gram: Gram, task: Task, one_set: int) -> Gram:
    """Compute the whole matrix where a problem is one working set, which would do so in any case."""
    is_one_set = gram.n <= one_set and gram.has_room_for(task.problem.n_variables)
    return gram.stored() if is_one_set else gram


def _add_counts(total: Counts, part: Counts) -> None:
    total.evaluations += part.evaluations
    total.hits += part.hits
    total.misses += part.misses
    total.bytes = max(total.bytes, part.bytes)
