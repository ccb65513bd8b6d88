"""Ranking: from pairs that nobody lists to a certified solution.

Newton's method on a rounded hinge (`smooth`) comes near enough for the pairs that meet their margin to be listed,
and working sets of these (`finish`) come to the optimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hinge.dual.ranking import PairPoint, RankingProblem
from hinge.kernel.gram import Gram
from hinge.report import Report, Status
from hinge.runtime import clock, interrupt
from hinge.runtime.interrupt import Cancelled
from hinge.runtime.threads import blas_on_one_thread
from hinge.settings import Progress, Settings
from hinge.solvers.exactness import is_within
from hinge.solvers.ranking.finish import Standing, listed, solve_pairs, standing_at, working_set
from hinge.solvers.ranking.smooth import Newton, NotPositiveError, Place, newton_step, slope_at
from hinge.solvers.run import Stop

# Matrices as large as that of a working set that are in memory while it is made and solved.
_MATRICES = 4


@dataclass(frozen=True)
class Schedule:
    """How the corner of the hinge is sharpened.

    Attributes
    ----------
    first : float
        Width that it is rounded over at first; margins are 1.
    factor : float
        By how much the width shrinks.
    accuracy : float
        Share of the loss that rounding may change, to which the rounded problem is solved.
    flat : float
        A slope that is this share of its terms is nothing but their rounding.
    steps : int
        Newton steps of one width, at most.
    crowding : float
        Share of the pairs in the band that have to leave it when the width shrinks, for another width to be tried.
    patience : int
        Working sets without progress after which the end stalls.
    matrix_share : float
        Share of the cache's budget that the whole kernel matrix may take.
    """

    first: float = 1.0
    factor: float = 4.0
    accuracy: float = 0.01
    flat: float = 1e-12
    steps: int = 50
    crowding: float = 0.2
    patience: int = 5
    matrix_share: float = 0.5


@dataclass(frozen=True, eq=False)
class Ranked:
    """A solution of a ranking problem.

    Attributes
    ----------
    standing : Standing
        β of all pairs, the coefficients of the samples, their scores, and what that proves.
    report : Report
        How the run went.
    """

    standing: Standing
    report: Report


def rank(
    problem: RankingProblem, gram: Gram, settings: Settings | None = None, schedule: Schedule | None = None
) -> Ranked:
    """Minimise ½ αᵀKα − Σβ over 0 ≤ β ≤ C of all pairs.

    Parameters
    ----------
    problem : RankingProblem
        What to solve.
    gram : Gram
        Kernel values of the samples.
    settings : Settings, optional
        Tolerance, limits, callback; the start is one of coefficients of the samples.
    schedule : Schedule, optional
        How the solver proceeds.

    Returns
    -------
    Ranked
        Look at ``report.status``: limits and interrupts return the best point so far instead of raising.

    Examples
    --------
    >>> from hinge import Kernel
    >>> gram = Gram(np.array([[0.0], [1.0], [3.0]]), Kernel("linear"))
    >>> ranked = rank(RankingProblem(np.array([0, 1, 2]), np.zeros(3)), gram, Settings(tol=1e-9))
    >>> ranked.standing.alpha.round(6), str(ranked.report.status)
    (array([-1.,  1.,  0.]), 'converged')
    """
    settings = settings or Settings()
    with interrupt.catching() as scope:
        run = _Run(problem, gram, settings, schedule or Schedule())
        with blas_on_one_thread():
            try:
                status = run.finish(run.approach())
            except Stop as stop:
                status = stop.status
            except Cancelled:
                status = Status.INTERRUPTED if interrupt.pressed() else Status.TIME_LIMIT
        scope.is_answered = status is Status.INTERRUPTED
        return run.conclude(status)


class _Run:
    """One run: clock, limits, counts, and the best point so far."""

    def __init__(self, problem: RankingProblem, gram: Gram, settings: Settings, schedule: Schedule) -> None:
        kernel = gram.source.kernel
        if kernel.has_features and not kernel.is_positive:  # of others, curvatures will show
            raise NotPositiveError(kernel.label)
        self.problem, self.settings, self.schedule = problem, settings, schedule
        self.started, self._compiled_before = clock.now(), clock.compiled_seconds()
        seconds = np.inf if settings.time_limit is None else settings.time_limit
        self.deadline = self.started + seconds
        self.iterations = self.outer_steps = self.largest_set = self.n_listed = 0
        self.gram = gram.in_double() if gram.precision == "single" else gram
        self.n_together = settings.sizes.one_set
        nothing, point = np.zeros(problem.n_samples), problem.nowhere()
        self.best = Standing(point, nothing, nothing, problem.evidence(point, nothing, 0.0, nothing))

    # ------------------------------------------------------------------ two halves

    def approach(self) -> PairPoint:
        """Solve rounded problems, each sharper than the last, until few pairs are left in the band."""
        problem, schedule, settings = self.problem, self.schedule, self.settings
        self._store()
        start = settings.start
        alpha = np.zeros(problem.n_samples) if start is None else np.asarray(start, np.float64)
        place, policy, crowd = Place(alpha, alpha if start is None else self.gram.product(alpha)), Newton(), np.inf
        for width in self._widths():
            for _ in range(schedule.steps):
                slope = slope_at(problem, self.gram.product, place, width)
                self._note(PairPoint.implied(place.score, width), slope.feasible, slope.total)
                self._check(f"margins rounded over {width:.2g}")
                n_band = problem.n_in_band(place.score, width)
                rounding = 0.25 * width * problem.C * n_band  # what the band may add to the gap, by its size
                if 0.5 * slope.size <= schedule.accuracy * rounding or slope.size <= schedule.flat * slope.total:
                    break
                there, n_products = newton_step(problem, self.gram.product, place, slope, width, policy)
                self.iterations += n_products
                if there is place:
                    break
                place = Place(there.alpha, self.gram.product(there.alpha))
            if n_band <= settings.sizes.one_set or n_band > (1 - schedule.crowding) * crowd:
                break
            crowd = n_band
        return PairPoint.implied(place.score, width)

    def _widths(self) -> Iterator[float]:
        width = self.schedule.first
        while width > 0.5 * self.settings.tol:
            yield width
            width /= self.schedule.factor
        yield 0.5 * self.settings.tol

    def finish(self, point: PairPoint) -> Status:
        """Solve working sets of listed pairs until all pairs are as they should be."""
        problem, gram, settings = self.problem, self.gram, self.settings
        standing, vain, least = self._taken(point), 0, np.inf
        while True:
            violation = standing.evidence.violation
            rounding = 2 * float(gram.rounding(standing.alpha).max(initial=0.0))
            if violation <= settings.tol:
                is_sure = is_within(violation, rounding, settings.tol)
                return Status.CONVERGED if is_sure else Status.UNCERTAIN
            if settings.gap_suffices(standing.evidence):
                return Status.CONVERGED
            self._check("pairs near their margin")
            vain = vain + 1 if violation > 0.5 * least else 0
            least = min(least, violation)
            if vain > self.schedule.patience and not self.is_lower:
                return Status.STALLED
            if vain and self.n_together < self._most_together:
                self.n_together *= 2
            chosen = working_set(problem, standing, self.n_together)
            self.largest_set = max(self.largest_set, len(chosen))
            point, report = solve_pairs(problem, gram, standing, chosen, settings)
            self.iterations += report.iterations
            standing = self._taken(point)

    @property
    def _most_together(self) -> int:
        """Pairs up to which their matrix, and what it is made of, fit the budget."""
        return int((self.schedule.matrix_share * self.gram.cache_bytes / (8 * _MATRICES)) ** 0.5)

    def _taken(self, point: PairPoint) -> Standing:
        """Return the standing of a point, listed, and keep it if it is the best."""
        standing = listed(self.problem, self.gram, standing_at(self.problem, self.gram, point))
        self.n_listed = max(self.n_listed, len(standing.point.pairs))
        self._keep(standing)
        return standing

    # ------------------------------------------------------------------ around them

    def _store(self) -> None:
        gram = self.gram
        fits = 8 * gram.n**2 <= self.schedule.matrix_share * gram.cache_bytes
        if fits and not gram.through_weights and gram.matrix is None:
            self.gram = gram.stored()

    def _note(self, point: PairPoint, feasible: Place, total: float) -> None:
        self.outer_steps += 1
        evidence = self.problem.evidence(point, feasible.alpha, total, feasible.score)
        self._keep(Standing(point, feasible.alpha, feasible.score, evidence))
        if self.settings.gap_suffices(self.best.evidence):
            raise Stop(Status.CONVERGED)

    def _keep(self, standing: Standing) -> None:
        self.is_lower = standing.evidence.objective < self.best.evidence.objective
        if self.is_lower or standing.evidence.violation <= self.settings.tol:
            self.best = standing

    def _check(self, phase: str) -> None:
        """Let those who listen know, and raise `Stop` where a limit is reached."""
        evidence, settings = self.best.evidence, self.settings
        if settings.callback is not None:
            seconds, n = clock.now() - self.started, self.problem.n_samples
            figures = evidence.violation, evidence.objective, seconds, n, evidence.violation, settings.tol, phase
            if settings.callback(Progress(self.iterations, self.outer_steps, *figures)):
                raise Stop(Status.INTERRUPTED)
        if interrupt.pressed():
            raise Stop(Status.INTERRUPTED)
        if interrupt.requested() or clock.now() > self.deadline:
            raise Stop(Status.TIME_LIMIT)
        if settings.max_iter is not None and self.iterations >= settings.max_iter:
            raise Stop(Status.ITERATION_LIMIT)

    def conclude(self, status: Status) -> Ranked:
        """Report on the best point."""
        standing, gram, problem = self.best, self.gram, self.problem
        is_support = standing.alpha != 0
        is_free = np.zeros(problem.n_samples, dtype=bool)
        is_free[standing.point.pairs.ravel()] = True
        report = Report(
            status,
            solver="pairs",
            reason=f"{problem.n_pairs:,} pairs in {problem.n_queries:,} queries, of which {self.n_listed:,} were "
            "listed at a time",
            precision=gram.precision,
            storage=gram.storage,
            iterations=self.iterations,
            outer_steps=self.outer_steps,
            violation=standing.evidence.violation,
            rounding=2 * float(gram.rounding(standing.alpha).max(initial=0.0)),
            objective=standing.evidence.objective,
            gap=standing.evidence.gap,
            n_support=int(np.count_nonzero(is_support)),
            n_bounded=int(np.count_nonzero(is_support & ~is_free)),
            kernel_evaluations=gram.counts.evaluations,
            cache_hits=gram.counts.hits,
            cache_misses=gram.counts.misses,
            cache_bytes=gram.counts.bytes,
            seconds=clock.now() - self.started,
            compile_seconds=clock.compiled_seconds() - self._compiled_before,
            largest_set=self.largest_set,
            fewest_active=problem.n_samples,
        )
        return Ranked(standing, report)
