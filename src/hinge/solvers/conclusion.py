"""Around a method: where a run starts, the ways it ends, the residual made whole again, and the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hinge.arrays import Vector
from hinge.dual.optimality import count_support, doubt_of, gap_of, multipliers_of, objective_of, violation_of
from hinge.dual.problem import DualProblem
from hinge.kernel.gram import Gram
from hinge.report import Report, Solution, Status
from hinge.runtime import clock
from hinge.runtime.interrupt import Cancelled, requested
from hinge.runtime.threads import blas_on_one_thread
from hinge.settings import RULES, Settings
from hinge.solvers.exactness import (
    bound_of,
    error_of,
    is_at_reference,
    is_exact,
    is_vague_near,
    refresh,
    sharper,
    verdict,
)
from hinge.solvers.guard import Guard, may_be_above
from hinge.solvers.run import GRACE_SECONDS, Run, Stop
from hinge.solvers.state import State

#: Moves a state until its violation is at most the tolerance, or raises `Stop`.
Method = Callable[[State, float, Run], None]


def start_of(problem: DualProblem, gram: Gram, settings: Settings) -> Vector:
    """Return the feasible point where the settings say that a run begins."""
    if problem.n_samples != gram.n:
        raise ValueError(f"the problem has {problem.n_samples} samples, the Gram matrix {gram.n}")
    if settings.known is not None:
        return np.clip(settings.known.beta, problem.lo, problem.hi)  # sums are kept when residuals are there
    return problem.start.copy() if settings.start is None else problem.near(settings.start)


def conduct(
    problem: DualProblem, gram: Gram, run: Run, method: Method, beta: Vector | None = None
) -> tuple[State, Status]:
    """Let ``method`` move a state until it is optimal, and catch whatever ends it.

    Parameters
    ----------
    problem : DualProblem
        What to solve.
    gram : Gram
        Its kernel values.
    run : Run
        Clock and limits.
    method : callable
        Moves a state until its violation, as far as its residual tells, is at most a tolerance.
    beta : array, optional
        A feasible point to begin at; by default `start_of` the settings.

    Returns
    -------
    State, Status
        The last point, with its residual up to date if there was time for it, and how the run ended. Steps never
        raise the objective but for rounding; where that may have taken the point above a better one, the start
        included, it is the lowest between the two.
    """
    beta = start_of(problem, gram, run.settings) if beta is None else beta
    state = State(problem, gram, beta.copy(), problem.v.copy(), is_stale=bool(beta.any()))
    guard = Guard(run.settings.tol)
    run.whole = state
    with run, blas_on_one_thread():
        try:
            if run.settings.known is not None:
                from hinge.solvers.resumption import resume  # and with it all of `block`

                resume(state, run.settings.known, run.settings.tol)
                beta = state.beta.copy()
            elif state.is_stale:
                _rebuild_residual(state)
            else:
                state.note_reference(np.zeros(gram.n))
            first = objective_of(problem, state.beta, state.residual)
            if not (np.isfinite(first) and np.isfinite(state.residual).all()):
                raise ValueError("kernel values times costs overflow; scale the features, or lower the costs")
            run.objective = first
            status = _refine(state, method, run, guard)
        except Stop as stop:
            status = stop.status
        except Cancelled:
            status = run.why_stopped()
    if state.is_stale:
        _rebuild_in_time(state)
    may_be_worse = status in (Status.STALLED, Status.ITERATION_LIMIT, Status.UNCERTAIN)
    if may_be_worse and may_be_above(state, min(first, guard.least)):
        guard.note(state, beta)
        guard.lead(state)
        if state.violation() > run.settings.tol and status is Status.UNCERTAIN:
            status = Status.STALLED
    return state, status


def _refine(state: State, method: Method, run: Run, guard: Guard) -> Status:
    """Run the method until the residual, checked in double precision, meets the tolerance.

    The guard is shown every point where the method gave up: the next try may well end at a worse one.
    """
    tol = aim = run.settings.tol
    best, vain = np.inf, 0
    while True:
        try:
            method(state, aim, run)
        except Stop as stop:
            may_stall = RULES[run.settings.rule].may_stall and is_exact(state, tol)
            is_final = is_at_reference(state) and state.gram.precision == "double"
            if stop.status is not Status.STALLED or may_stall or is_final:
                raise  # maximum gain may well end without an optimum (Glasmachers & Igel, theorem 7)
            guard.lead(state)
        if not is_exact(state, tol) or is_vague_near(state, tol):
            refresh(state, tol)
            run.objective = state.objective()
        violation = state.violation()
        if violation <= tol:
            outcome = verdict(state, tol)
            if outcome is Status.CONVERGED or aim < tol:
                return outcome
            aim = sharper(tol)
            continue
        if run.gap_is_reached(state):
            return Status.CONVERGED
        if state.is_lost(violation):
            return Status.STALLED
        vain = vain + 1 if violation > 0.5 * best else 0
        aim, best = sharper(tol), min(best, violation)
        if vain >= run.policy.patience:
            if state.gram.precision == "double":
                return Status.STALLED
            state.gram = state.gram.in_double()  # single precision makes no more progress
            vain = 0


def _rebuild_residual(state: State) -> None:
    """Compute the residual of every sample from β."""
    product = state.gram.product(state.problem.coefficients(state.beta))
    state.residual[:] = state.problem.residual_of(state.beta, product)
    state.note_reference(state.gram.rounding(state.problem.coefficients(state.beta)))
    state.is_stale = False
    state.lagging = None


def _rebuild_in_time(state: State) -> None:
    """After an interrupt: rebuild the residual if that is quick, so that the report can tell the violation."""
    deadline = clock.now() + GRACE_SECONDS
    state.gram.team.cancelled = lambda: clock.now() > deadline
    try:
        _rebuild_residual(state)
    except Cancelled:
        pass
    finally:
        state.gram.team.cancelled = requested


def conclude(state: State, status: Status, method: str, reason: str, run: Run) -> Solution:
    """Report on the point that a run ended at."""
    gram, error = state.gram, None if state.is_stale else error_of(state)
    solution = solution_at(
        state.problem, state.beta, state.residual, error,
        status=status,
        solver=method,
        rule=run.settings.rule if method == "smo" else "second_order",
        reason=reason,
        precision=gram.precision,
        storage=gram.storage,
        iterations=run.iterations,
        outer_steps=run.outer_steps,
        objective=run.objective,
        kernel_evaluations=gram.counts.evaluations,
        cache_hits=gram.counts.hits,
        cache_misses=gram.counts.misses,
        cache_bytes=gram.counts.bytes,
        seconds=run.seconds,
        compile_seconds=run.compile_seconds,
        largest_set=run.largest_set,
        fewest_active=run.fewest_active,
        most_lagging=run.most_lagging,
    )  # fmt: skip
    report = solution.report
    if state.drift:
        # Where rounding has touched the residual, the sum of changes since it was exact is the better figure.
        report = replace(report, objective=run.objective)
    if not state.is_stale:
        solution = replace(solution, error=bound_of(state))
    if run.recorder is not None:
        report = replace(report, trace=run.recorder.trace(report, state.beta, gram.n))
    return replace(solution, report=report)


def solution_at(
    problem: DualProblem, beta: Vector, residual: Vector, error: Vector | None, **course: Any
) -> Solution:
    """Return a point with its multipliers and the report of how it was found. Every run ends here.

    Parameters
    ----------
    problem : DualProblem
        What was solved.
    beta, residual : arrays of shape (n_variables,)
        The point and v − Kβ.
    error : array of shape (n_samples,) or None
        Bound on the rounding error of each sample's residual; None where the residual is not that of the point,
        so that its violation and gap are not known.
    course
        How the run went: fields of the `Report`. What the point itself proves comes from the point.
    """
    multipliers = multipliers_of(problem, beta, residual)
    course["n_support"], course["n_bounded"] = count_support(problem, beta)
    if error is not None:
        course["violation"] = violation_of(problem, beta, residual)
        course["rounding"] = doubt_of(problem, beta, residual, error)
        course["objective"] = objective_of(problem, beta, residual)
        course["gap"] = gap_of(problem, beta, residual, multipliers)
    return Solution(beta, residual, multipliers, Report(**course), error)
