"""A chain of problems on the same kernel values, each solved from the one before.

Neighbours differ in their box: C grew, or a sample was left out. Where pair steps would be few they are taken from
the last solution, or from the best point on the ray through it; where they would be many, an active set is carried
along.
Either way the answer ends with its own certificate, in double precision: its residual is computed from β alone, or
carried along as long as rounding can have done it no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.linalg import LinAlgError

from hinge.arrays import Floats, Vector
from hinge.dual.optimality import free_and_near, violation_of
from hinge.dual.problem import DualProblem
from hinge.kernel.gram import Gram
from hinge.report import Solution, Status
from hinge.runtime import clock
from hinge.runtime.interrupt import pressed, requested
from hinge.runtime.jit import compiled
from hinge.runtime.prices import NS_PER_CHANGE, NS_PER_DRAGGED, NS_PER_PAIR_STEP
from hinge.runtime.threads import blas_on_one_thread
from hinge.settings import Settings
from hinge.solvers import solve
from hinge.solvers.active_set.free_set import FreeSet, layout_ns, residual_of
from hinge.solvers.active_set.steps import subtract_image
from hinge.solvers.conclusion import solution_at
from hinge.solvers.exactness import is_within, sharper
from hinge.solvers.pairs.loop import optimise
from hinge.solvers.pairs.rules import SECOND_ORDER
from hinge.solvers.pairs.step import CONVERGED, ROUNDING, STEP_LIMIT, Point, Rows
from hinge.solvers.policies import USUAL, Neighbours

# Nanoseconds of pair steps between two looks whether somebody wants to stop.
_NS_AT_ONCE = 1e8

# What one rounding may do, as a share.
_ROUNDING = ROUNDING * float(np.finfo(np.float64).eps)

# What the report says of how a problem was solved.
_REASON = "a problem in a chain, on a kernel matrix in memory"


@dataclass
class _Point:
    """A feasible point on its way.

    Attributes
    ----------
    beta, residual : arrays
        The point and its residual.
    drift : float
        How far rounding may have taken the residual from v − Kβ.
    """

    beta: Vector
    residual: Vector
    drift: float


class Chain:
    """Problems that follow each other.

    Parameters
    ----------
    is_convex : bool
        Whether the answer does not depend on the start; otherwise each problem starts afresh.
    policy : Neighbours
        How long each method is tried.
    """

    def __init__(self, is_convex: bool, policy: Neighbours = USUAL.neighbours) -> None:
        self._is_convex = is_convex
        self._policy = policy
        self._problem: DualProblem | None = None
        self._solution: Solution | None = None
        self._free_set: FreeSet | None = None
        self._cost = 0.0  # of what solved the last problem, in nanoseconds by our reckoning
        self._trial = policy.trial
        self._drift = np.inf  # of the last solution's residual

    @property
    def last(self) -> tuple[DualProblem, Solution]:
        """The last problem and its solution."""
        assert self._problem is not None
        assert self._solution is not None
        return self._problem, self._solution

    def branch(self) -> Chain:
        """Return a chain that goes on from the same place."""
        twin = Chain(self._is_convex, self._policy)
        twin._problem, twin._solution = self._problem, self._solution
        return twin

    def solve(self, problem: DualProblem, gram: Gram, settings: Settings) -> Solution:
        """Solve the next problem of the chain."""
        kernel, solution = matrix_of(gram), None
        is_bounded = bool(np.isfinite(problem.hi - problem.lo).all())
        if kernel is not None and self._is_convex and is_bounded and settings.max_iter is None:
            solution = self._on_matrix(problem, kernel, gram, settings)
        if solution is None:
            self._free_set, self._drift = None, np.inf  # where no sample is near, solvers leave residuals behind
            start = None
            if self._is_continued(problem):
                start = stretch(problem, *self.last) * self.last[1].beta
            solution = solve(problem, gram, replace(settings, start=start))
        self._problem, self._solution = problem, solution
        return solution

    def _is_continued(self, problem: DualProblem) -> bool:
        return self._is_convex and self._problem is not None and self._problem.n_variables == problem.n_variables

    def _on_matrix(self, problem: DualProblem, kernel: Floats, gram: Gram, settings: Settings) -> Solution | None:
        """Solve by an active set and by pair steps, in turn, until one of them gets there; None if neither does.

        Which is better is known only afterwards. So each has a budget and goes on from where the other came to:
        the objective falls all the way, and little is lost by a wrong guess.
        """
        started, n, steps, policy = clock.now(), problem.n_variables, 0, self._policy
        if self._still_holds(problem, settings.tol):
            self._free_set, self._cost, self._trial = None, 0.0, policy.trial
            _, last = self.last
            found = _concluded(problem, gram, _Point(last.beta, last.residual, 0.0), started)
            if is_within(found.report.violation, found.report.rounding, settings.tol):
                return found
        tol = sharper(settings.tol)
        least = policy.least * n**2

        def answer(method: str) -> Solution | None:
            if point.drift > policy.drift * settings.tol:
                point.residual, point.drift = _fresh_residual(kernel, gram, problem, point.beta)
            self._drift = point.drift
            found = _concluded(problem, gram, point, started, steps, method)
            return found if is_within(found.report.violation, found.report.rounding, settings.tol) else None

        expected = self._expected(problem)
        by_pairs = max(policy.growth * self._cost, least) if expected is None else self._trial * expected
        budget = by_pairs if expected is None else max(policy.growth * expected, least)
        point = self._begun(problem, kernel, gram, settings.tol)
        free_set: FreeSet | None = None
        for turn in range(policy.turns):
            most = int(by_pairs / (NS_PER_PAIR_STEP * n))
            is_optimal, n_pairs = _pairs_on_matrix(kernel, gram, problem, point, tol, most)
            steps += n_pairs
            if is_optimal:
                self._free_set, self._cost, self._trial = None, NS_PER_PAIR_STEP * n_pairs * n, policy.trial
                return answer("pairs")
            if turn == 0 and expected is not None:
                self._trial *= 0.5
                free_set = self._followed(problem, kernel)
            else:
                budget *= policy.growth
                free_set = _new_free_set(kernel, problem, point.beta, budget)
            if free_set is not None:
                is_optimal = free_set.settle(tol, budget / NS_PER_CHANGE)
                steps += free_set.n_changes
                point = _Point(*free_set.settled(), _drift_of_fresh(gram, free_set.beta))
                if is_optimal:
                    self._free_set, self._cost = free_set, NS_PER_CHANGE * free_set.work
                    return answer("active set")
            if requested():
                point.residual, self._drift = _fresh_residual(kernel, gram, problem, point.beta)
                status = Status.INTERRUPTED if pressed() else Status.TIME_LIMIT
                return _concluded(problem, gram, point, started, steps, status=status)
            by_pairs = budget
        return None

    def _still_holds(self, problem: DualProblem, tol: float) -> bool:
        """Whether the last solution solves the next problem too, as it does where no bound that moved held it."""
        if not self._is_continued(problem) or self._drift > self._policy.drift * tol:
            return False
        old, solution = self.last
        return (
            _stays_feasible(solution.beta, old, problem)
            and violation_of(problem, solution.beta, solution.residual) <= sharper(tol)
            and np.array_equal(old.v, problem.v)
            and np.array_equal(old.group, problem.group)
        )

    def _begun(self, problem: DualProblem, kernel: Floats, gram: Gram, tol: float) -> _Point:
        """Return a feasible point to start from."""
        if not self._is_continued(problem):
            start = problem.start.copy()
            return _Point(start, *_fresh_residual(kernel, gram, problem, start))
        old, solution = self.last
        factor = stretch(problem, old, solution)
        ray = self._scaled(factor, problem, kernel, gram)
        # Where few are at bounds they may have nothing to do with the others, whom the ray would take away from
        # where they should be: samples of both classes at the same place are such.
        if factor > 1 and 2 * solution.report.n_bounded < solution.report.n_support:
            there = self._scaled(1.0, problem, kernel, gram)
            return min(there, ray, key=lambda point: _n_wrong(problem, point, tol))
        return ray

    def _scaled(self, factor: float, problem: DualProblem, kernel: Floats, gram: Gram) -> _Point:
        """Return the feasible point nearest to ``factor`` times the last solution."""
        old, solution = self.last
        wanted = factor * solution.beta
        is_feasible = factor == 1.0 and _stays_feasible(wanted, old, problem)
        beta = wanted.copy() if is_feasible else problem.project(wanted)
        if not np.isfinite(self._drift):
            return _Point(beta, *_fresh_residual(kernel, gram, problem, beta))
        image = factor * (old.v - solution.residual)
        residual = problem.v - image
        moved = np.flatnonzero(beta != wanted)
        subtract_image(kernel, residual, moved, beta[moved] - wanted[moved])
        return _Point(beta, residual, factor * self._drift + _ROUNDING * float(np.abs(image).max()))

    def _followed(self, problem: DualProblem, kernel: Floats) -> FreeSet | None:
        old, solution = self.last
        free_set = self._free_set or _new_free_set(kernel, old, solution.beta, np.inf)
        return free_set if free_set is not None and free_set.follow(problem) else None

    def _expected(self, problem: DualProblem) -> float | None:
        """What an active set is expected to cost; None where there can be none, or pair steps should cost less."""
        if not self._is_continued(problem):
            return None
        old, solution = self.last
        if not solution.report.converged or not np.array_equal(old.sums, problem.sums):
            return None
        if self._free_set is not None:
            return self._cost
        n_free = int(np.count_nonzero((solution.beta > old.lo) & (solution.beta < old.hi)))
        policy = self._policy
        n_flips = policy.flips * solution.report.n_bounded
        cost = (
            layout_ns(old, solution.beta)
            + NS_PER_CHANGE * policy.changes * n_free**2
            + NS_PER_DRAGGED * n_flips * problem.n_variables
        )
        return cost if cost < policy.growth * self._cost else None


def _concluded(
    problem: DualProblem, gram: Gram, point: _Point, started: float, steps: int = 0, method: str = "pairs",
    status: Status = Status.CONVERGED,
) -> Solution:  # fmt: skip
    """Return the point as a solution; what its report claims is proved by its residual."""
    return solution_at(
        problem, point.beta, point.residual, gram.rounding(problem.coefficients(point.beta)),
        status=status, solver=method, rule="second_order", reason=_REASON, storage=gram.storage,
        iterations=steps, outer_steps=1, seconds=clock.now() - started, largest_set=problem.n_variables,
        fewest_active=problem.n_samples,
    )  # fmt: skip


def _pairs_on_matrix(
    kernel: Floats, gram: Gram, problem: DualProblem, point: _Point, tol: float, limit: int
) -> tuple[bool, int]:
    """Take pair steps, in place; return whether they led to ``tol``, and how many there were."""
    residual, rows = point.residual, Rows.of_matrix(kernel, gram.diagonal)
    place = Point.of(problem, point.beta, residual)
    largest = float(np.abs(residual).max())
    at_once = int(_NS_AT_ONCE / (NS_PER_PAIR_STEP * problem.n_variables)) + 1
    steps, way, code = 0, 0.0, STEP_LIMIT
    while code == STEP_LIMIT and steps < limit and not requested():
        outcome = optimise(place, rows, SECOND_ORDER, None, tol, min(at_once, limit - steps))
        code, steps, way = outcome.code, steps + outcome.steps, way + outcome.way
    largest = max(largest, float(np.abs(residual).max()))
    point.drift += _ROUNDING * (steps * largest + np.sqrt(gram.magnitude) * way)
    return code == CONVERGED, steps


def _stays_feasible(beta: Vector, old: DualProblem, problem: DualProblem) -> bool:
    """Whether a feasible point of the old problem is one of the new: inside its box, with the same sums."""
    return bool(((problem.lo <= beta) & (beta <= problem.hi)).all()) and np.array_equal(old.sums, problem.sums)


def _n_wrong(problem: DualProblem, point: _Point, tol: float) -> int:
    """Count the variables that violate, taking the median of a group's free residuals for its multiplier."""
    beta, residual = point.beta, point.residual
    is_free = (beta > problem.lo) & (beta < problem.hi)
    levels = np.zeros(problem.n_groups)
    for g in range(problem.n_groups):
        mine = residual[is_free & (problem.group == g)]
        levels[g] = np.median(mine) if len(mine) else 0.0
    return int(np.count_nonzero(free_and_near(problem, beta, residual, levels, -tol)))


def _fresh_residual(kernel: Floats, gram: Gram, problem: DualProblem, beta: Vector) -> tuple[Vector, float]:
    return residual_of(kernel, problem, beta), _drift_of_fresh(gram, beta)


def _drift_of_fresh(gram: Gram, beta: Vector) -> float:
    return _ROUNDING * gram.magnitude * float(np.abs(beta).sum())


def _new_free_set(kernel: Floats, problem: DualProblem, beta: Vector, budget: float) -> FreeSet | None:
    if layout_ns(problem, beta) > budget:
        return None
    try:
        with blas_on_one_thread():
            return FreeSet(kernel, problem, beta)
    except LinAlgError:
        return None


def matrix_of(gram: Gram) -> Floats | None:
    """The whole kernel matrix in double precision, where it is in memory."""
    matrix = gram.given_matrix
    return matrix if matrix is not None and matrix.dtype == np.float64 else None


def stretch(problem: DualProblem, old: DualProblem, solution: Solution) -> float:
    """Return the factor t of the best point tβ on the ray through a neighbour's solution.

    The objective along tβ is ½ t² βᵀKβ − t vᵀβ, and Kβ = v − r is known. Where C grew, t lies between 1 (the
    solution has settled and does not care about C) and the growth of the box (everything was at its bound and
    still is).
    """
    beta = solution.beta
    growth = _growth(problem.lo, problem.hi, old.lo, old.hi)
    if not (growth > 1 and np.isfinite(growth)) or solution.report.n_bounded == 0:
        return 1.0
    curvature = float(np.dot(beta, old.v - solution.residual))
    best = float(np.dot(beta, problem.v)) / curvature if curvature > 0 else growth
    return min(max(best, 1.0), growth)


@compiled
def _growth(lo: Vector, hi: Vector, old_lo: Vector, old_hi: Vector) -> float:
    """Return how many times wider the box is than it was, where it grew most; 1 where it did not."""
    growth = 1.0
    for t in range(lo.shape[0]):
        if old_hi[t] > old_lo[t]:
            growth = max(growth, (hi[t] - lo[t]) / (old_hi[t] - old_lo[t]))
    return growth
