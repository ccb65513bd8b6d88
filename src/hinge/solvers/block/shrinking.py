"""Shrinking: work on the samples that still matter, bring the others up to date, repeat.

A sample is set aside when all its variables rest at bounds where the optimality conditions hold by a margin. The
problem of the active samples is a problem like any other, on a shorter Gram matrix, so that both solvers shrink
in the same way. Samples set aside are never forgotten: their residual is rebuilt and checked before convergence
is declared.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Index, Vector
from hinge.dual.optimality import excess_of, free_and_near, multipliers_of
from hinge.report import Status
from hinge.runtime.interrupt import Cancelled
from hinge.solvers.block.block import solve_block
from hinge.solvers.block.lagging import advance, catch_up, let_lag, settle
from hinge.solvers.block.one_set import solve_one_set
from hinge.solvers.block.working_set import is_one_set
from hinge.solvers.exactness import sharper
from hinge.solvers.pairs.smo import no_pair, solve_smo
from hinge.solvers.policies import USUAL, Policy
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

# Pairwise solver: LIBSVM shrinks after this many steps, and looks at everything again at ten times the tolerance.
_STEPS_PER_ROUND = 1000
_UNSHRINK_FACTOR = 10.0

# A subset is solved to this share of the size of v: its solution is a start, no more.
_SUBSET_TOL = 0.05


class ActiveSet:
    """Some samples of a state being worked on while the others wait.

    Parameters
    ----------
    whole : State
        All samples. Its residual belongs to the last time it was whole.
    samples : int64 array
        The active ones.
    run : Run, optional
        Who works on them: its policy says which samples are near the margin.

    Attributes
    ----------
    part : State
        The state of the active ones.
    """

    def __init__(self, whole: State, samples: Index, run: Run | None = None) -> None:
        catch_up(whole, samples)
        self.whole = whole
        self._run = run
        self._policy = USUAL if run is None else run.policy
        self.samples = samples
        self.part = whole.restrict(samples)
        self._beta = whole.beta.copy()

    def narrow(self, keep: Index) -> None:
        """Go on with only the samples at these positions among the active ones."""
        self._record()
        self.samples = self.samples[keep]
        self.part = self.part.restrict(keep)

    def absorb(self) -> None:
        """Take the progress over into the whole and bring the residual of the waiting samples up to date."""
        self._record()
        whole = self.whole
        if not whole.gram.is_cheap:  # the rows of the support vectors found will be wanted again: keep them
            whole.move(np.arange(whole.problem.n_variables), self._beta)
            return
        before = whole.problem.coefficients(whole.beta)
        step = whole.problem.coefficients(self._beta) - before
        moved = self._distance(step)
        change = self._beta - whole.beta
        self._hand_over()
        whole.note_steps(float(np.dot(np.abs(step), whole.gram.lengths)))
        whole.drift = max(whole.drift, self.part.drift)
        waiting = np.setdiff1d(np.arange(whole.gram.n), self.samples, assume_unique=True)
        waiting = advance(whole, before, moved, waiting, _width(whole, self._policy))
        product = whole.gram.product(step, waiting, whole.gram.dtype)
        whole.residual.reshape(-1, whole.gram.n)[:, waiting] -= product
        if whole.problem.ridge is not None:
            own = whole.variables_of(waiting)
            whole.residual[own] -= whole.problem.ridge[own] * change[own]

    def _distance(self, step: Vector) -> float:
        """How far ``step`` moves the weight vector: δᵀKδ = δᵀ(change of the residual), where that is known."""
        if np.count_nonzero(step) != np.count_nonzero(step[self.samples]):
            return np.inf  # a sample moved before it was set aside; its residual is not known
        if self.whole.problem.ridge is not None:
            return np.inf  # the residual has changed by the ridge's part too
        n = self.whole.gram.n
        first_run = self.whole.residual[:n][self.samples] - self.part.residual[: len(self.samples)]
        return float(np.sqrt(max(np.dot(step[self.samples], first_run), 0.0)))

    def abandon(self) -> None:
        """Save β when the run must end at once; the waiting samples' residual is then out of date."""
        self._record()
        self._hand_over()
        self.whole.is_stale = True

    def with_part(self, beta: Vector) -> Vector:
        """Return β of the whole if that of the part were ``beta``."""
        whole = self._beta.copy()
        whole[self.whole.variables_of(self.samples)] = beta
        return whole

    def _record(self) -> None:
        self._beta[self.whole.variables_of(self.samples)] = self.part.beta

    def _hand_over(self) -> None:
        self.whole.beta[:] = self._beta
        self.whole.residual[self.whole.variables_of(self.samples)] = self.part.residual

    def __enter__(self) -> Self:
        if self._run is not None:
            self._run.nest.append(self)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._run is not None:
            self._run.nest.pop()
        if error is None or (isinstance(error, Stop) and error.status is Status.STALLED):
            try:
                self.absorb()
            except Cancelled:
                self.abandon()
                raise
        elif isinstance(error, Stop | Cancelled):
            self.abandon()


def shrinking_block(state: State, tol: float, run: Run) -> None:
    """Solve by `solve_block` on active sets: small problems first, then the samples near the margin.

    Raises
    ------
    Stop
        As `solve_block`.
    """
    one_set, policy = run.settings.sizes.one_set, run.policy
    if is_one_set(state.problem, state.gram, run.settings.sizes):
        return solve_one_set(state, tol, run)
    if not run.settings.shrinking:
        return solve_block(state, tol, run)
    if not state.beta.any():
        _solve_subset_first(state, tol, run)
    if not state.gram.is_cheap:
        return solve_block(state, tol, run)
    let_lag(state)
    reached = 0.0  # by the last active set
    while (violation := state.violation()) > tol and not run.gap_is_reached(state):
        run.note_violation(state, violation)
        active = near_margin(state, policy)
        is_small = len(active) * state.problem.n_variables <= one_set * state.gram.n
        is_right = is_small or violation <= reached
        for_now = max((policy.aside.settled if is_right else policy.further) * violation, sharper(tol))
        if len(active) > policy.aside.worthwhile * state.gram.n:
            settle(state)
            solve_block(state, for_now, run)
            continue
        with ActiveSet(state, active, run) as chosen:
            solve_block(chosen.part, for_now, run)
            reached = chosen.part.violation()
        if state.lagging is not None:
            run.note_lagging(state.lagging.count)
    if state.problem is not run.problem:
        settle(state)  # whoever asked for this part takes its residual over


def shrinking_smo(state: State, tol: float, run: Run) -> None:
    """Solve by pair steps; shrink as LIBSVM does (its document, section 4.1).

    Raises
    ------
    Stop
        As `solve_smo`.
    """
    pair = no_pair(state, run)
    has_looked_again = not run.settings.shrinking
    period = steps = min(state.problem.n_variables, _STEPS_PER_ROUND)
    while not solve_smo(state, tol, run, pair, steps):
        if run.gap_is_reached(state):
            return
        keep = unsettled(state)
        if not run.settings.shrinking or len(keep) > run.policy.aside.worthwhile * state.gram.n:
            steps = period
            continue
        with ActiveSet(state, keep, run) as active:
            has_looked_again = _pairs_on(active, tol, run, has_looked_again)
        pair = no_pair(state, run)
        steps = 0  # the residual has just been rebuilt: samples are set aside again at once


def _pairs_on(active: ActiveSet, tol: float, run: Run, has_looked_again: bool) -> bool:
    """Take pair steps on an active set that grows ever smaller; return whether it ended to look at all again."""
    pair = no_pair(active.part, run)
    period = min(active.part.problem.n_variables, _STEPS_PER_ROUND)
    while not solve_smo(active.part, tol, run, pair, period):
        if not has_looked_again and active.part.violation() <= _UNSHRINK_FACTOR * tol:
            return True
        keep = unsettled(active.part)
        if len(keep) <= run.policy.aside.worthwhile * active.part.gram.n:
            active.narrow(keep)
            pair = no_pair(active.part, run)
    return has_looked_again


def _solve_subset_first(state: State, tol: float, run: Run) -> None:
    """Start from the solution of a random quarter: it shows which samples will be support vectors."""
    n, sizes = state.gram.n, run.settings.sizes
    size = int(run.policy.aside.subset * n)
    if size < (sizes.cheap_subset if state.gram.is_cheap else sizes.dear_subset):
        return
    subset = np.sort(np.random.default_rng(n).choice(n, size, replace=False))
    scale = float(np.abs(state.problem.v).mean())
    run.note_violation(state)
    run.phase = "a quarter first" if not run.nest else run.phase
    with ActiveSet(state, subset, run) as chosen:
        shrinking_block(chosen.part, max(tol, _SUBSET_TOL * scale), run)
    run.phase = "" if not run.nest else run.phase


def near_margin(state: State, policy: Policy, width: float = np.inf) -> Index:
    """Samples that violate, are free, or are near to either: within ``width`` at most."""
    multipliers = multipliers_of(state.problem, state.beta, state.residual)
    width = min(width, _width(state, policy))
    near = free_and_near(state.problem, state.beta, state.residual, multipliers, width)
    return _samples_with(state, near)


def _width(state: State, policy: Policy) -> float:
    """Distance from the margin within which samples stay active."""
    multipliers = multipliers_of(state.problem, state.beta, state.residual)
    return policy.aside.near * float(np.abs(excess_of(state.problem, state.residual, multipliers)).mean())


def unsettled(state: State) -> Index:
    """Samples that LIBSVM would not shrink: some variable of theirs could still be part of a violating pair."""
    problem, beta, residual = state.problem, state.beta, state.residual
    top, bottom = state.extremes()
    if problem.n_groups == 0:
        top, bottom = np.maximum(top, 0.0), np.minimum(bottom, 0.0)
    may_grow = (beta < problem.hi) & (residual >= bottom[problem.group])
    may_fall = (beta > problem.lo) & (residual <= top[problem.group])
    return _samples_with(state, may_grow | may_fall)


def _samples_with(state: State, variables: NDArray[np.bool_]) -> Index:
    return np.flatnonzero(variables.reshape(-1, state.gram.n).any(axis=0))
