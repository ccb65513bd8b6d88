"""Pairwise sequential minimal optimisation over cached rows, with the working-set rule as a part."""

from __future__ import annotations

import numpy as np

from hinge.report import Status
from hinge.samples import Index
from hinge.solvers import pairwise
from hinge.solvers.hard_margin import stretch
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

RULES = {
    "mvp": pairwise.MVP,
    "second_order": pairwise.SECOND_ORDER,
    "mg": pairwise.MG,
    "hmg": pairwise.HMG,
}

# Rows computed beside a missing one: those of the worst violators are likely to be asked for next, and a product
# of several rows costs little more than one. Of dear rows only as many as cost nothing beside the reading of the
# data: on MNIST one guess in ten was used.
_PREFETCHED, _PREFETCHED_DEAR = 16, 3
_SLOTS_PER_PREFETCH = 16  # in a small cache guesses would push out what is known to be needed


def no_pair(state: State, run: Run) -> Index | None:
    """Return what `solve_smo` takes for the last pairs when there are none yet."""
    if RULES[run.settings.rule] < pairwise.MG:
        return None
    return np.full((max(state.problem.n_groups, 1), 2), -1, dtype=np.int64)


def solve_smo(state: State, tol: float, run: Run, pair: Index | None, max_steps: int) -> bool:
    """Take up to ``max_steps`` pair steps; return whether the violation came down to ``tol``.

    Parameters
    ----------
    state : State
        The point; changed in place.
    tol : float
        Largest violation allowed.
    run : Run
        Limits.
    pair : int64 array of shape (max(n_groups, 1), 2) or None
        The last pair of each group, -1 where there is none; changed in place. None for a rule without memory.
    max_steps : int
        Return after this many steps in any case.

    Raises
    ------
    Stop
        A limit was reached, or no pair makes progress.
    """
    problem, gram = state.problem, state.gram
    rule = RULES[run.settings.rule]
    done = 0
    while True:
        cache = gram.cache
        tally = np.zeros(2)
        code, steps, violation, first, second, cache.clock = pairwise.optimise(
            cache.rows, cache.slot_of, cache.last_use, gram.diagonal, state.beta, state.residual,
            problem.lo, problem.hi, problem.group, problem.n_groups, rule, tol,
            min(max_steps - done, run.steps_left), pair, tally, cache.clock,
        )  # fmt: skip
        done += steps
        gram.counts.hits += 2 * steps
        state.note_steps(tally[1])
        run.count(steps, tally[0])
        if code == pairwise.CONVERGED:
            return True
        if code == pairwise.UNBOUNDED:
            raise Stop(Status.INFEASIBLE)
        if code == pairwise.STUCK or state.is_lost(violation):
            raise Stop(Status.STALLED)
        if steps:  # else rounding alone would change r, and with it the rows that are asked for, without end
            run.objective += stretch(state)
        run.check(violation, gram.n)
        if code == pairwise.NEEDS_ROWS:
            _fetch(state, [row for row in (first, second) if row >= 0])
        elif done >= max_steps:
            return False


def _fetch(state: State, needed: list[int]) -> None:
    """Bring the ``needed`` rows into the cache, and those of the worst violators while we are at it."""
    gram, problem = state.gram, state.problem
    room = min(_PREFETCHED if gram.is_cheap else _PREFETCHED_DEAR, gram.cache.capacity // _SLOTS_PER_PREFETCH)
    if room > 0:
        growing = np.where(state.beta < problem.hi, state.residual, -np.inf)
        falling = np.where(state.beta > problem.lo, -state.residual, -np.inf)
        merit = np.maximum(growing, falling).reshape(-1, problem.n_samples).max(axis=0)
        merit[gram.cache.slot_of >= 0] = -np.inf
        likely = np.argpartition(merit, -min(room, gram.n))[-room:]
        needed = [*needed, *(int(t) for t in likely[np.isfinite(merit[likely])])]
    gram.rows(np.unique(np.array(needed, dtype=np.int64)))
