"""From a known point to the optimum nearby: what an update of a trained machine starts with.

Most of a machine stays as it is when a sample is added or left out. Its β, made feasible again, misses the new
optimum by little, and its residual follows from the old one by the rows of the variables that were changed for it.
A few small working sets do the rest; where they do not, the usual method goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isqrt

import numpy as np

from hinge.arrays import Index, Vector
from hinge.dual.problem import DualProblem
from hinge.dual.residuals import ERROR_ALLOWED, Reference, exact_residual, residual_since
from hinge.runtime.interrupt import Cancelled
from hinge.solvers.block.block import solve_block
from hinge.solvers.block.shrinking import ActiveSet, near_margin
from hinge.solvers.exactness import is_vague_near, refresh
from hinge.solvers.run import Run
from hinge.solvers.state import SUM_ERROR, State, keeps_sums


def resume(state: State, known: Reference, tol: float) -> None:
    """Give a state the residual that follows from a known point, and keep its sums.

    Samples whose residual is not known, or not well enough for where they are, get it computed.

    Parameters
    ----------
    state : State
        A point inside its box near the known one; its sums may be off, and are right afterwards.
    known : Reference
        Errors that are infinite mark samples of which nothing is known.
    tol : float
        The tolerance of the run.
    """
    everyone = np.arange(state.gram.n)
    state.is_stale = True
    try:
        _go_over(state, known, everyone, tol)
    except Cancelled:
        state.beta[:] = state.problem.near(state.beta)
        raise
    reference = state.reference
    assert reference is not None
    exact = reference.error <= ERROR_ALLOWED * tol
    state.reference = replace(reference, exact=exact, error=np.where(exact, reference.error, 0.0))
    state.vague = np.where(exact, 0.0, reference.error)
    state.is_stale = False
    if is_vague_near(state, tol):
        refresh(state, tol)


def _go_over(state: State, known: Reference, everyone: Index, tol: float) -> None:
    """Set the residual by a known point, compute what is not known, and make the point feasible."""
    unknown = np.flatnonzero(~np.isfinite(known.error))
    if not keeps_sums(state.problem, state.beta):
        _make_feasible(state, known, unknown, tol)
    _follow(state, known, everyone)
    if len(unknown):
        _compute(state, unknown, tol)


def _make_feasible(state: State, known: Reference, unknown: Index, tol: float) -> None:
    """Give the sums what they lack; the residual, by which that goes, is good enough for it and no more."""
    there, state.residual[:] = known.beta, known.residual
    for _ in range(1 + state.problem.n_groups):  # each round may find that the next sample of its order is needed
        moved = np.flatnonzero(state.beta != there)
        step = (state.beta - there)[moved]
        state.residual.reshape(-1, state.gram.n)[...] -= state.product(moved, step)
        if state.problem.ridge is not None:
            state.residual[moved] -= state.problem.ridge[moved] * step
        if len(unknown):
            fresh, _ = exact_residual(state.problem, state.gram, state.beta, unknown, tol)
            state.residual.reshape(-1, state.gram.n)[:, unknown] = fresh
        there = state.beta.copy()
        if not _restore_sums(state):
            return


def _follow(state: State, known: Reference, everyone: Index) -> None:
    """Take the residual of a known point to where the state is, with a bound on its error."""
    residual, error = known.residual, known.error
    if not np.array_equal(state.beta, known.beta):
        residual, error = residual_since(known, state.problem, state.gram, state.beta, everyone, np.inf)
    state.residual[:] = residual.ravel()
    state.reference = Reference(
        state.beta.copy(), state.residual.copy(), error.copy(), np.ones(len(error), dtype=bool)
    )


def _compute(state: State, samples: Index, tol: float) -> None:
    """Compute the residual of some samples from β alone."""
    assert state.reference is not None
    residual, error = exact_residual(state.problem, state.gram, state.beta, samples, tol)
    for residuals in (state.residual, state.reference.residual):
        residuals.reshape(-1, state.gram.n)[:, samples] = residual
    state.reference.error[samples] = error


def _restore_sums(state: State) -> bool:
    """Make up for what a sum lacks, or has too much, by the variables that want to move most; say if any moved.

    Few of them change, so that few rows are needed. They are as near to the sample that is gone, or has come, as
    their residuals tell.
    """
    problem, beta = state.problem, state.beta
    before = beta.copy()
    for g, total in enumerate(problem.sums):
        mine = np.flatnonzero(problem.group == g)
        lack = float(total - beta[mine].sum())
        if abs(lack) > SUM_ERROR * (abs(total) + float(np.abs(beta[mine]).sum())):
            _fill(problem, beta, state.residual, mine, lack)
    return not np.array_equal(before, beta)


def _fill(problem: DualProblem, beta: Vector, residual: Vector, mine: Index, lack: float) -> None:
    """Add ``lack`` to the variables ``mine`` that have room for it, in the order of their residuals."""
    sign = 1.0 if lack > 0 else -1.0
    room = (problem.hi[mine] - beta[mine]) if lack > 0 else (beta[mine] - problem.lo[mine])
    able = mine[room > 0]
    able = _first_with_room(able, -sign * residual[able], room[room > 0], abs(lack))
    room = (problem.hi[able] - beta[able]) if lack > 0 else (beta[able] - problem.lo[able])
    wanted = np.minimum(room, abs(lack))  # a box may be open
    taken = np.minimum(wanted, np.maximum(abs(lack) - (np.cumsum(wanted) - wanted), 0.0))
    moved = taken > 0
    full = moved & (taken == room)
    beta[able[moved]] += sign * taken[moved]
    bound = problem.hi if lack > 0 else problem.lo
    beta[able[full]] = bound[able[full]]


def _first_with_room(able: Index, keys: Vector, room: Vector, lack: float) -> Index:
    """Return those of ``able`` with the smallest keys that have room for ``lack`` together, in this order."""
    count = isqrt(len(able))  # most often one is enough
    if 0 < count < len(able):
        first = np.sort(np.argpartition(keys, count)[:count])
        if room[first].sum() >= lack:
            return able[first[np.argsort(keys[first], kind="stable")]]
    return able[np.argsort(keys, kind="stable")]


def touch_up_then(method: Callable[[State, float, Run], None]) -> Callable[[State, float, Run], None]:
    """Return a method that tries some small working sets before ``method``."""

    def work(state: State, tol: float, run: Run) -> None:
        touch = run.policy.touch
        if state.gram.is_cheap and run.settings.shrinking and state.violation() > tol:
            _touch_near(state, tol, run)
        solve_block(state, tol, run, touch.rounds, touch)
        if state.violation() > tol:
            method(state, tol, run)

    return work


def _touch_near(state: State, tol: float, run: Run) -> None:
    """Work on the samples near the margin alone: all others want the sum of what moved, not every step of it."""
    touch = run.policy.touch
    near = near_margin(state, run.policy, touch.reach * state.violation())
    if len(near) <= run.policy.aside.worthwhile * state.gram.n:
        with ActiveSet(state, near, run) as chosen:
            solve_block(chosen.part, tol, run, touch.rounds, touch)
