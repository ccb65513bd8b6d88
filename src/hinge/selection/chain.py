"""A chain of problems on the same kernel values, each solved from the one before.

Neighbours differ in their box: C grew, or a sample was left out. Where pair steps would be few they are taken from
the best point on the ray through the last solution; where they would be many, an active set is carried along.
Either way the answer ends with its own certificate, computed in double precision from β alone.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from scipy.linalg import LinAlgError

from hinge.gram import Gram
from hinge.optimality import count_support, gap_of, multipliers_of, objective_of, violation_of
from hinge.problem import DualProblem, Vector
from hinge.report import MESSAGES, Report, Solution, Status
from hinge.samples import Floats, GivenGram
from hinge.selection.active_set import ActiveSet, residual_of
from hinge.settings import Settings
from hinge.solvers import solve
from hinge.solvers.pairwise import CONVERGED, SECOND_ORDER, no_pair, optimise
from hinge.threads import blas_on_one_thread

# Pair steps on the whole matrix, for each variable, before something else is tried.
_PAIRS_PER_VARIABLE = 10

# Where pair steps did not suffice an active set may take longer: it is the last resort but one.
_PATIENCE_AFTER_PAIRS = 10.0

# What a pair step costs for every variable, and how many more of them the next problem takes than the last did.
_SECONDS_PER_PAIR_AND_VARIABLE = 1.2e-9
_GROWTH_OF_PAIRS = 4.0

# What a change of the active set costs for every pair of free variables; how many changes a problem takes, and how
# many more variables are free than in the last one.
_SECONDS_PER_CHANGE = 5e-10
_CHANGES = 300
_GROWTH_OF_FREE, _MORE_FREE = 1.3, 50

# Aim below the tolerance, so that what rounding moves stays within it.
_AIM, _AIM_OF_PAIRS = 0.5, 0.9


class Chain:
    """Problems that follow each other.

    Parameters
    ----------
    classes : tuple of int
        The classes whose samples the problems are about.
    is_convex : bool
        Whether the answer does not depend on the start; otherwise each problem starts afresh.
    """

    def __init__(self, classes: tuple[int, ...], is_convex: bool) -> None:
        self.classes = classes
        self._is_convex = is_convex
        self._problem: DualProblem | None = None
        self._solution: Solution | None = None
        self._active: ActiveSet | None = None

    @property
    def last(self) -> tuple[DualProblem, Solution]:
        """The last problem and its solution."""
        assert self._problem is not None
        assert self._solution is not None
        return self._problem, self._solution

    def branch(self) -> Chain:
        """Return a chain that goes on from the same place."""
        twin = Chain(self.classes, self._is_convex)
        twin._problem, twin._solution = self._problem, self._solution
        return twin

    def solve(self, problem: DualProblem, gram: Gram, settings: Settings) -> Solution:
        """Solve the next problem of the chain."""
        kernel, solution = matrix_of(gram), None
        if kernel is not None and self._is_convex and np.isfinite(problem.hi - problem.lo).all():
            solution = self._on_matrix(problem, kernel, gram, settings)
        if solution is None:
            self._active = None
            start = stretched(problem, *self.last) if self._is_continued(problem) else None
            solution = solve(problem, gram, replace(settings, start=start))
        self._problem, self._solution = problem, solution
        return solution

    def _is_continued(self, problem: DualProblem) -> bool:
        return self._is_convex and self._problem is not None and self._problem.n_variables == problem.n_variables

    def _on_matrix(self, problem: DualProblem, kernel: Floats, gram: Gram, settings: Settings) -> Solution | None:
        """Solve by an active set or by pair steps on the whole matrix; None where neither gets there."""
        started, steps = time.perf_counter(), 0

        def answer(beta: Vector, residual: Vector, method: str) -> Solution | None:
            found = certified(problem, gram, beta, residual, steps, method, started)
            return found if found.report.violation <= settings.tol else None

        is_continued = self._is_continued(problem)
        active = self._followed(problem, kernel) if is_continued and self._is_promising(problem) else None
        if active is not None and active.settle(_AIM * settings.tol):
            self._active, steps = active, active.n_changes
            return answer(*active.settled(), "active set")
        self._active = None
        beta = problem.project(stretched(problem, *self.last)) if is_continued else problem.start.copy()
        limit = min(_PAIRS_PER_VARIABLE * len(beta), settings.max_iter or len(beta) ** 2)
        tol = _AIM_OF_PAIRS * settings.tol
        is_optimal, steps = pairs_on_matrix(kernel, gram.diagonal, problem, beta, tol, limit)
        if is_optimal:
            return answer(beta, residual_of(kernel, problem, beta), "pairs")
        last = _new_active_set(kernel, problem, beta) if settings.max_iter is None else None
        if last is None or not last.settle(_AIM * settings.tol, _PATIENCE_AFTER_PAIRS):
            return None
        self._active, steps = last, steps + last.n_changes
        return answer(*last.settled(), "active set")

    def _followed(self, problem: DualProblem, kernel: Floats) -> ActiveSet | None:
        old, solution = self.last
        active = self._active or _new_active_set(kernel, old, solution.beta)
        return active if active is not None and active.follow(problem) else None

    def _is_promising(self, problem: DualProblem) -> bool:
        old, solution = self.last
        if not solution.report.converged or not np.array_equal(old.sums, problem.sums):
            return False
        if self._active is not None:
            n_free, steps = self._active.n_free, np.inf
        else:
            n_free = int(np.count_nonzero((solution.beta > old.lo) & (solution.beta < old.hi)))
            steps = solution.report.iterations
        pairs = _SECONDS_PER_PAIR_AND_VARIABLE * _GROWTH_OF_PAIRS * steps * problem.n_variables
        return _CHANGES * _SECONDS_PER_CHANGE * (_GROWTH_OF_FREE * n_free + _MORE_FREE) ** 2 < pairs


def pairs_on_matrix(
    kernel: Floats, diagonal: Vector, problem: DualProblem, beta: Vector, tol: float, limit: int
) -> tuple[bool, int]:
    """Take pair steps from ``beta``, in place; return whether they led to ``tol``, and how many there were."""
    n = len(kernel)
    residual = residual_of(kernel, problem, beta)
    code, steps, *_ = optimise(
        kernel, np.arange(n), np.zeros(n, np.int64), diagonal, beta, residual, problem.lo, problem.hi,
        problem.group, problem.n_groups, SECOND_ORDER, tol, limit, no_pair(problem.n_groups), np.zeros(2), 0,
    )  # fmt: skip
    return code == CONVERGED, steps


def _new_active_set(kernel: Floats, problem: DualProblem, beta: Vector) -> ActiveSet | None:
    try:
        with blas_on_one_thread():
            return ActiveSet(kernel, problem, beta)
    except LinAlgError:
        return None


def matrix_of(gram: Gram) -> Floats | None:
    """The whole kernel matrix in double precision, where it is in memory."""
    samples = gram.samples
    if isinstance(samples, GivenGram) and samples.index is None and samples.matrix.dtype == np.float64:
        return samples.matrix
    return None


def stretched(problem: DualProblem, old: DualProblem, solution: Solution) -> Vector:
    """Return the best point on the ray through a neighbour's solution.

    The objective along tβ is ½ t² βᵀKβ − t vᵀβ, and Kβ = v − r is known. Where C grew, t lies between 1 (the
    solution has settled and does not care about C) and the growth of the box (everything was at its bound and
    still is).
    """
    beta = solution.beta
    room, old_room = problem.hi - problem.lo, old.hi - old.lo
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = float(np.max(room / old_room, where=old_room > 0, initial=1.0))
    if not (growth > 1 and np.isfinite(growth)):
        return beta
    curvature = float(np.dot(beta, old.v - solution.residual))
    best = float(np.dot(beta, problem.v)) / curvature if curvature > 0 else growth
    return np.asarray(beta * np.clip(best, 1.0, growth))


def certified(
    problem: DualProblem, gram: Gram, beta: Vector, residual: Vector, steps: int, method: str, started: float
) -> Solution:
    """Return a solution with the report of what β proves, given its residual in double precision."""
    multipliers = multipliers_of(problem, beta, residual)
    n_support, n_bounded = count_support(problem, beta)
    report = Report(
        status=Status.CONVERGED, message=MESSAGES[Status.CONVERGED], solver=method, rule="second_order",
        reason="a problem in a chain, on a kernel matrix in memory", precision="double",
        storage=gram.samples.storage, iterations=steps, outer_steps=1,
        violation=violation_of(problem, beta, residual), objective=objective_of(problem, beta, residual),
        gap=gap_of(problem, beta, residual, multipliers), n_support=n_support, n_bounded=n_bounded,
        kernel_evaluations=0, cache_hits=0, cache_misses=0, cache_bytes=0, seconds=time.perf_counter() - started,
    )  # fmt: skip
    return Solution(beta, residual, multipliers, report)
