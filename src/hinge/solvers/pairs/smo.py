"""Pairwise sequential minimal optimisation over cached rows, with the working-set rule as a part.

Rows are computed when a step asks for them, and none ahead: a row computed ahead spares no kernel value, and of
the rows of the worst violators too few are ever used (docs/laboratory.md has the figures).
"""

from __future__ import annotations

import numpy as np

from hinge.arrays import Index
from hinge.report import Status
from hinge.settings import RULES
from hinge.solvers.hard_margin import stretch
from hinge.solvers.pairs.loop import optimise
from hinge.solvers.pairs.rules import NUMBER_OF
from hinge.solvers.pairs.step import CONVERGED, NEEDS_ROWS, STUCK, UNBOUNDED, Point, Rows
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State


def no_pair(state: State, run: Run) -> Index | None:
    """Return what `solve_smo` takes for the last pairs when there are none yet."""
    if not RULES[run.settings.rule].looks_back:
        return None
    return np.full((max(state.problem.n_groups, 1), 2), -1, dtype=np.int64)


def solve_smo(state: State, tol: float, run: Run, last: Index | None, max_steps: int) -> bool:
    """Take up to ``max_steps`` pair steps; return whether the violation came down to ``tol``.

    Parameters
    ----------
    state : State
        The point; changed in place.
    tol : float
        Largest violation allowed.
    run : Run
        Limits.
    last : int64 array of shape (max(n_groups, 1), 2) or None
        The last pair of each group, -1 where there is none; changed in place. None for a rule that does not look
        back.
    max_steps : int
        Return after this many steps in any case.

    Raises
    ------
    Stop
        A limit was reached, or no pair makes progress.
    """
    problem, gram = state.problem, state.gram
    rule = NUMBER_OF[run.settings.rule]
    rows_a_use = 2 if problem.n_groups else 1
    done, n_asked = 0, 0
    while True:
        point, rows, began = Point.of(problem, state.beta, state.residual), Rows.of_cache(gram), gram.cache.clock
        outcome = optimise(point, rows, rule, last, tol, min(max_steps - done, run.steps_left, run.stride))
        gram.cache.clock = int(rows.clock[0])
        done += outcome.steps
        # The clock ticks whenever rows are used: by a step, or by a search among the pairs of maximum gain. Those
        # that had to be asked for have been counted then.
        gram.counts.hits += rows_a_use * (gram.cache.clock - began) - n_asked
        n_asked = 0
        state.note_steps(outcome.way)
        run.count(outcome.steps, outcome.change)
        if outcome.code == CONVERGED:
            return True
        if outcome.code == UNBOUNDED:
            raise Stop(Status.INFEASIBLE)
        if outcome.code == STUCK or state.is_lost(outcome.violation):
            raise Stop(Status.STALLED)
        if outcome.steps:  # else rounding alone would change r, and the rows that are asked for, without end
            run.objective += stretch(state)
        run.check(state, outcome.violation)
        if outcome.code == NEEDS_ROWS:
            needed = np.unique([row for row in (outcome.first, outcome.second) if row >= 0])
            gram.rows(needed)
            n_asked = len(needed)
        elif done >= max_steps:
            return False
