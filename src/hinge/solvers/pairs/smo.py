"""Pairwise sequential minimal optimisation over cached rows, with the working-set rule as a part.

Rows are computed when a step asks for them, and none ahead: a row computed ahead spares no kernel value, and of
the rows of the worst violators too few are ever used (docs/laboratory.md has the figures).
"""

from __future__ import annotations

import numpy as np

from hinge.arrays import Index
from hinge.report import Status
from hinge.solvers.hard_margin import stretch
from hinge.solvers.pairs import pairwise
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

RULES = {
    "mvp": pairwise.MVP,
    "second_order": pairwise.SECOND_ORDER,
    "mg": pairwise.MG,
    "hmg": pairwise.HMG,
}


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
    rows_a_use = 2 if problem.n_groups else 1
    done, n_asked = 0, 0
    while True:
        cache = gram.cache
        began, tally = cache.clock, np.zeros(2)
        code, steps, violation, first, second, cache.clock = pairwise.optimise(
            cache.rows, cache.slot_of, cache.last_use, gram.diagonal, state.beta, state.residual,
            problem.lo, problem.hi, problem.group, problem.n_groups, rule, tol,
            min(max_steps - done, run.steps_left), pair, tally, cache.clock,
        )  # fmt: skip
        done += steps
        # The clock ticks whenever rows are used: by a step, or by a search among the pairs of maximum gain. Those
        # that had to be asked for have been counted then.
        gram.counts.hits += rows_a_use * (cache.clock - began) - n_asked
        n_asked = 0
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
            needed = np.unique(np.array([row for row in (first, second) if row >= 0], dtype=np.int64))
            gram.rows(needed)
            n_asked = len(needed)
        elif done >= max_steps:
            return False
