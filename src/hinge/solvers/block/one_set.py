"""Problems that are one working set: pair steps and free sets, and proximal steps where these crawl.

Unscaled features and samples of very different sizes make a problem ill-conditioned: pair steps become tiny, and
there are millions of them. A small matrix has a weight vector whatever its kernel (`Gram.with_weights`), and the
proximal method finds the optimum in some dozens of factorisations. It takes turns with the others, which are
faster on nearly everything else.
"""

from __future__ import annotations

import numpy as np

from hinge.dual.residuals import objective_at_most
from hinge.report import Status
from hinge.solvers.block.block import solve_block
from hinge.solvers.hard_margin import is_unbounded
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State
from hinge.solvers.weights.proximal import proximal_steps

# Rounds of pair steps and free sets in the first turn, more of few variables; every turn has twice as many.
_FIRST_ROUNDS, _VARIABLE_ROUNDS = 6, 1000

# A turn is in vain if it leaves more than this share of the violation and takes less than that of the objective.
_PROGRESS, _FALL = 0.5, 1e-6
_MOST_VAIN = 3

# Turns that still make a little progress when they have grown this many times will not get there in useful time.
_MOST_GROWTH = 32


def solve_one_set(state: State, tol: float, run: Run) -> None:
    """Bring the violation of ``state`` down to ``tol``.

    Raises
    ------
    Stop
        A limit was reached, or no step makes progress.
    """
    rounds = first = max(_FIRST_ROUNDS, _VARIABLE_ROUNDS // state.problem.n_variables)
    vain, is_stuck = 0, False
    least, objective = state.violation(), state.objective()
    twin, best = None, _Best(tol)
    while True:
        try:
            solve_block(state, tol, run, rounds)
        except Stop as stop:
            if stop.status is not Status.STALLED:
                best.restore(state)
                raise
            is_stuck = True
        violation = state.violation()
        if violation <= tol or run.gap_is_reached(state):
            return
        if rounds == first:
            twin = _with_weights(state)
        best.note(state)
        if twin is not None:
            _advance(state, twin, tol, run)
            best.note(state)
        now = state.objective()
        is_progress = violation <= _PROGRESS * least or objective - now > _FALL * abs(now)
        least, objective = min(least, violation), now
        vain = 0 if is_progress else vain + 1
        is_late = rounds >= _MOST_GROWTH * first
        if (twin is not None and is_late) or (vain >= _MOST_VAIN and (is_stuck or twin is not None)):
            best.restore(state)
            raise Stop(Status.STALLED)
        rounds *= 2


class _Best:
    """The best point at the end of a turn, by objectives that hold whatever rounding did."""

    def __init__(self, tol: float) -> None:
        self.tol = tol
        self.objective, self.beta = np.inf, np.empty(0)

    def note(self, state: State) -> None:
        """Remember the state's point if it is better than all before."""
        objective, _, _ = objective_at_most(state.problem, state.gram, state.beta, self.tol)
        if objective < self.objective:
            self.objective, self.beta = objective, state.beta.copy()

    def restore(self, state: State) -> None:
        """Go back to the best point if the state is worse now."""
        if len(self.beta):
            self.note(state)
            state.move(np.arange(len(self.beta)), self.beta)


def _with_weights(state: State) -> State | None:
    """Return the same problem on a Gram matrix that has a weight vector, if there is one."""
    problem = state.problem
    if is_unbounded(problem):
        return None
    is_zero_sum = problem.n_groups > 0 and abs(problem.sums.sum()) <= 1e-15 * np.abs(problem.sums).sum()
    gram = state.gram.with_weights(centered=bool(is_zero_sum))
    return None if gram is None else State(problem, gram, state.beta.copy(), problem.v.copy(), is_stale=True)


def _advance(state: State, twin: State, tol: float, run: Run) -> None:
    """Take proximal steps from the better of the two points, and take over where they lead."""
    tally = run.objective
    twin.adopt(state.beta)
    try:
        proximal_steps(twin, tol, run)
    finally:
        everyone, before = np.arange(state.problem.n_variables), state.beta.copy()
        change = state.move(everyone, twin.beta)
        if change > 0 and not state.gram.has_features:  # a factor is rounded as the matrix is: it knows no better
            change += state.move(everyone, before)
        run.objective = tally
        run.count(0, change)
