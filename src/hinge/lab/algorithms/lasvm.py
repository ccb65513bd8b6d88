"""LASVM: one pass over the samples, and a machine on the way (Bordes, Ertekin, Weston & Bottou 2005).

Idea. Keep a small set S of variables and the residuals of these alone. *Process*: the next sample joins, with a
pair step if it violates together with a member. *Reprocess*: a step of the pair of S that violates most; then
members at zero leave that nobody in S would move. One of each for every sample: after a single pass the machine is
about as accurate as the optimum's (Bottou & Lin, section 1.8).

*One pass* ends there, but for reprocessing S until its own violation is small. *To the tolerance* goes on with
passes over the samples that violate then, until there are none.

Cost. Two kernel rows per step. Whole ones here, because the laboratory's cache keeps whole rows; but residuals of
samples outside S are not kept up to date: that is done once after each pass.

When to use. Where one look at each sample is all there is time for, or as a start for another method.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from hinge.arrays import Index
from hinge.lab.algorithms.course import ONE_GROUP, laboratory, row_of
from hinge.lab.algorithms.pairs import curvature_of, move
from hinge.lab.algorithms.subproblem import worst_violators
from hinge.report import Status
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

_SEED = 5


def lasvm(passes: int | None, state: State, tol: float, run: Run) -> None:
    """Pass over the samples, then over those that violate, as often as asked or until none does."""
    random = np.random.default_rng(_SEED)
    done, steps = 0, -1
    while True:
        violation = state.violation()
        if violation <= tol:
            return
        run.check(state, violation)
        if done == passes:
            raise Stop(Status.ITERATION_LIMIT)
        if run.iterations == steps:
            raise Stop(Status.STALLED)
        steps, done = run.iterations, done + 1
        waiting = np.arange(state.problem.n_variables) if done == 1 else _violators(state, tol)
        _Pass(state, tol, run).over(random.permutation(waiting))


def _violators(state: State, tol: float) -> Index:
    (top,), (bottom,) = state.extremes()
    problem = state.problem
    above = (state.beta < problem.hi) & (state.residual > bottom + tol)
    below = (state.beta > problem.lo) & (state.residual < top - tol)
    return np.flatnonzero(above | below)


class _Pass:
    """One pass: S, whose residuals are kept up to date, grows and shrinks.

    Parameters
    ----------
    state, tol, run
        As every body.
    """

    def __init__(self, state: State, tol: float, run: Run) -> None:
        self._state, self._tol, self._run = state, tol, run
        self._origin, self._before = state.beta.copy(), state.residual.copy()  # what those outside S rest on
        self._is_member = state.beta != 0
        self._is_member[worst_violators(state, 2)] = (
            True  # two that violate with nobody but each other would not meet
        )

    def over(self, waiting: Index) -> None:
        """Process and reprocess, sample by sample; then bring everything up to date."""
        state, run = self._state, self._run
        try:
            for t in waiting:
                if not self._is_member[t]:
                    self._process(int(t))
                    self._reprocess()
                    self._forget()
                    run.check(state, float("nan"), state.beta)
            while self._reprocess():
                run.check(state, float("nan"), state.beta)
        finally:
            end = state.beta.copy()
            state.beta[:], state.residual[:] = self._origin, self._before
            moved = np.flatnonzero(end != self._origin)
            state.move(moved, end[moved])

    def _process(self, t: int) -> None:
        """Let the sample in, with a step if it violates together with a member."""
        state, problem = self._state, self._state.problem
        row = row_of(state, t)
        moved = np.flatnonzero(state.beta != self._origin)
        gone = state.beta[moved] - self._origin[moved]
        state.residual[t] = self._before[t] - float(np.dot(row[moved % state.gram.n], gone))
        i, j = self._extremes()
        self._is_member[t] = True
        if state.beta[t] < problem.hi[t] and j >= 0 and state.residual[t] - state.residual[j] > self._tol:
            self._step(t, j)
        elif state.beta[t] > problem.lo[t] and i >= 0 and state.residual[i] - state.residual[t] > self._tol:
            self._step(i, t)

    def _reprocess(self) -> bool:
        """Move the pair of S that violates most; False if it is within the tolerance."""
        i, j = self._extremes()
        if i < 0 or j < 0 or self._state.residual[i] - self._state.residual[j] <= self._tol:
            return False
        return self._step(i, j)

    def _forget(self) -> None:
        """Members at zero leave if they are beyond the extremes of S on the side where they cannot move."""
        state, problem = self._state, self._state.problem
        i, j = self._extremes()
        if i < 0 or j < 0:
            return
        idle = np.flatnonzero(self._is_member & (state.beta == 0))
        r = state.residual[idle]
        only_falls, only_rises = problem.hi[idle] <= 0, problem.lo[idle] >= 0
        settled = (only_falls & (r >= state.residual[i])) | (only_rises & (r <= state.residual[j]))
        self._is_member[idle[settled]] = False

    def _extremes(self) -> tuple[int, int]:
        """The maximal violating pair of S; -1 where nobody may rise, or fall."""
        state, problem = self._state, self._state.problem
        members = np.flatnonzero(self._is_member)
        rising = members[state.beta[members] < problem.hi[members]]
        falling = members[state.beta[members] > problem.lo[members]]
        i = rising[np.argmax(state.residual[rising])] if len(rising) else -1
        j = falling[np.argmin(state.residual[falling])] if len(falling) else -1
        return int(i), int(j)

    def _step(self, i: int, j: int) -> bool:
        """Move mass from j to i, and bring the residuals of S up to date; False if nothing moved."""
        state, problem, n = self._state, self._state.problem, self._state.gram.n
        members = np.flatnonzero(self._is_member)
        row_i = row_of(state, i)[members % n]
        between = float(row_of(state, i)[j % n])
        row_j = row_of(state, j)[members % n]
        diagonal = state.gram.diagonal
        curvature = curvature_of(diagonal[i % n], diagonal[j % n], between)
        slope = float(state.residual[i] - state.residual[j])
        step = min(slope / curvature, problem.hi[i] - state.beta[i], state.beta[j] - problem.lo[j])
        before = state.beta[i], state.beta[j]
        move(i, step, state.beta, problem.lo, problem.hi)
        move(j, -step, state.beta, problem.lo, problem.hi)
        state.residual[members] -= step * (row_i - row_j)
        self._run.count(1, -step * (slope - 0.5 * curvature * step))
        return before != (state.beta[i], state.beta[j])


_REFERENCE = "Bordes, Ertekin, Weston & Bottou 2005; Bottou & Lin, section 1.8"

ALGORITHMS = (
    laboratory("lasvm", "LASVM, passes to the tolerance", _REFERENCE, ONE_GROUP, partial(lasvm, None)),
    laboratory("lasvm-one-pass", "LASVM, one pass", _REFERENCE, ONE_GROUP, partial(lasvm, 1)),
)
