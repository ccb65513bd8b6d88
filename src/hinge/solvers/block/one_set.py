"""Problems that are one working set: pair steps and free sets, and proximal steps where these crawl.

Unscaled features and samples of very different sizes make a problem ill-conditioned: pair steps become tiny, and
there are millions of them. A small matrix has a weight vector whatever its kernel (`Gram.with_weights`), and the
proximal method finds the optimum in some dozens of factorisations. It takes turns with the others, which are
faster on nearly everything else.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hinge.kernel.rounding import UNIT
from hinge.report import Status
from hinge.solvers.block.block import solve_block, solve_by_size
from hinge.solvers.exactness import refresh
from hinge.solvers.guard import Guard, may_be_above
from hinge.solvers.hard_margin import is_unbounded
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State
from hinge.solvers.weights.proximal import proximal_steps

# A turn is in vain if it leaves more than half of the violation and takes less than this share off the objective.
_FALL = 1e-6


def solve_one_set(state: State, tol: float, run: Run) -> None:
    """Bring the violation of ``state`` down to ``tol``.

    Raises
    ------
    Stop
        A limit was reached, or no step makes progress.
    """
    guard, twin, vain, start = Guard(tol), None, 0, state.beta.copy()
    least, objective = state.violation(), state.objective()
    rounds = run.policy.turns.first
    while rounds <= run.policy.turns.last(state.problem.n_variables):
        try:
            is_stuck = _take_turn(state, tol, run, rounds)
        except Stop:
            if rounds > run.policy.turns.first:
                guard.lead(state)
            raise
        violation = state.violation()
        if _is_done(state, tol, guard) or run.gap_is_reached(state):
            return
        if rounds == run.policy.turns.first:
            _join_alike(state, run)
            twin = _with_weights(state)
            guard.note(state, start)
        run.effort.is_alone = not guard.lead(state)
        solve_by_size(state, tol, run)
        if twin is not None:
            _advance(state, twin, tol, run)
            if _is_done(state, tol, guard):
                return
            guard.lead(state)
        now = run.objective = guard.least
        is_progress = violation <= 0.5 * least or objective - now > _FALL * abs(now)
        least, objective = min(least, violation), now
        vain = 0 if is_progress else vain + 1
        if vain >= run.policy.patience and (is_stuck or twin is not None):
            break
        rounds *= 2
    raise Stop(Status.STALLED)


def _is_done(state: State, tol: float, guard: Guard) -> bool:
    """Whether the violation is at most ``tol``, looked at again where rounding may hide that steps led astray."""
    if state.violation() <= tol and may_be_above(state, guard.least):
        refresh(state, tol)
    return state.violation() <= tol


def _take_turn(state: State, tol: float, run: Run, rounds: int) -> bool:
    """Take pair steps and move free sets for some rounds; return whether rounding ended them."""
    try:
        solve_block(state, tol, run, rounds)
    except Stop as stop:
        if stop.status is not Status.STALLED:
            raise
        return True
    return False


def _join_alike(state: State, run: Run) -> None:
    """Look for samples that are there more than once: from now on their variables meet K added up.

    Beside large kernel values rounding hides from all steps what is gained by moving mass between them.
    """
    problem = state.problem
    if problem.alike is not None or problem.ridge is not None or is_unbounded(problem):
        return
    alike = state.gram.alike()
    if (alike != np.arange(len(alike))).any():
        state.problem = replace(problem, alike=alike)
        if run.problem is problem:
            run.problem = state.problem


def _with_weights(state: State) -> State | None:
    """Return the same problem on a Gram matrix that has a weight vector, if there is one."""
    problem = state.problem
    if is_unbounded(problem):
        return None
    is_zero_sum = problem.n_groups > 0 and abs(problem.sums.sum()) <= 4 * UNIT * np.abs(problem.sums).sum()
    gram = state.gram.with_weights(centered=bool(is_zero_sum))
    return None if gram is None else State(problem, gram, state.beta.copy(), problem.v.copy(), is_stale=True)


def _advance(state: State, twin: State, tol: float, run: Run) -> None:
    """Take proximal steps from where the state is, and go where they lead."""
    tally = run.objective
    twin.adopt(state.beta)
    try:
        proximal_steps(twin, tol, run)
    finally:
        change = state.move(np.arange(state.problem.n_variables), twin.beta)
        run.objective = tally
        run.count(0, change)
