"""From a known point to the optimum nearby: what an update of a trained machine starts with.

Most of a machine stays as it is when a sample is added or left out. Its β, made feasible again, misses the new
optimum by little, and its residual follows from the old one by the rows of the variables that were changed for it.
A few small working sets do the rest; where they do not, the usual method goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hinge.arrays import Index, Vector
from hinge.dual.problem import DualProblem
from hinge.dual.residuals import ERROR_ALLOWED, Reference, exact_residual, residual_since
from hinge.runtime.interrupt import Cancelled
from hinge.solvers.block.block import solve_block
from hinge.solvers.exactness import refresh
from hinge.solvers.run import Run
from hinge.solvers.state import State


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
    state.reference = replace(reference, exact=exact)
    state.vague = np.where(exact, 0.0, reference.error)
    state.is_stale = False
    if not exact.all():
        refresh(state, tol)


def _go_over(state: State, known: Reference, everyone: Index, tol: float) -> None:
    """Set the residual by a known point, compute what is not known, and make the point feasible."""
    there = _follow(state, known, everyone)
    unknown = np.flatnonzero(~np.isfinite(there.error))
    if len(unknown):
        _compute(state, there, unknown, tol)
    for _ in range(1 + state.problem.n_groups):  # each round may find that the next sample of its order is needed
        if not _restore_sums(state):
            break
        there = _follow(state, there, everyone)


def _follow(state: State, known: Reference, everyone: Index) -> Reference:
    """Take the residual of a known point to where the state is, and return that point."""
    residual, error = residual_since(known, state.problem, state.gram, state.beta, everyone, np.inf)
    state.residual[:] = residual.ravel()
    there = Reference(state.beta.copy(), state.residual.copy(), error, np.ones(len(error), dtype=bool))
    state.reference = there
    return there


def _compute(state: State, reference: Reference, samples: Index, tol: float) -> None:
    """Compute the residual of some samples from β alone."""
    residual, error = exact_residual(state.problem, state.gram, state.beta, samples, tol)
    for residuals in (state.residual, reference.residual):
        residuals.reshape(-1, state.gram.n)[:, samples] = residual
    reference.error[samples] = error


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
        if abs(lack) > 1e-13 * (abs(total) + float(np.abs(beta[mine]).sum())):
            _fill(problem, beta, state.residual, mine, lack)
    return not np.array_equal(before, beta)


def _fill(problem: DualProblem, beta: Vector, residual: Vector, mine: Index, lack: float) -> None:
    """Add ``lack`` to the variables ``mine`` that have room for it, in the order of their residuals."""
    sign = 1.0 if lack > 0 else -1.0
    room = (problem.hi[mine] - beta[mine]) if lack > 0 else (beta[mine] - problem.lo[mine])
    able = mine[room > 0]
    able = able[np.argsort(-sign * residual[able], kind="stable")]
    room = (problem.hi[able] - beta[able]) if lack > 0 else (beta[able] - problem.lo[able])
    wanted = np.minimum(room, abs(lack))  # a box may be open
    taken = np.minimum(wanted, np.maximum(abs(lack) - (np.cumsum(wanted) - wanted), 0.0))
    moved = taken > 0
    full = moved & (taken == room)
    beta[able[moved]] += sign * taken[moved]
    bound = problem.hi if lack > 0 else problem.lo
    beta[able[full]] = bound[able[full]]


def touch_up_then(method: Callable[[State, float, Run], None]) -> Callable[[State, float, Run], None]:
    """Return a method that tries some small working sets before ``method``."""

    def work(state: State, tol: float, run: Run) -> None:
        touch = run.policy.touch
        solve_block(state, tol, run, touch.rounds, touch)
        if state.violation() > tol:
            method(state, tol, run)

    return work
