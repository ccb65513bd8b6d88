"""Block decomposition (Bottou & Lin algorithm 1.2) with a large working set.

An outer step picks a working set, asks for its kernel matrix, solves that small problem by pair steps and
brings the residual of all samples up to date by matrix products. A few hundred outer steps do the work of a
hundred thousand pair steps, so the outer loop can be plain Python.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hinge.report import Status
from hinge.solvers import pairwise
from hinge.solvers.hard_margin import stretch
from hinge.solvers.newton import newton_seconds, newton_steps
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State
from hinge.solvers.working_set import WorkingSet

# The inner problem need not be much more exact than the outer one is yet.
_INNER_SHARE = 0.1

# Pair steps come in bursts; where a burst does not suffice, Newton steps on the free variables help along.
_BURST_PER_VARIABLE = 5
_INNER_BURSTS = 4
_NEWTON_ROUNDS = 20

# What a pair step costs for every variable of its working set.
_SECONDS_PER_PAIR_AND_VARIABLE = 1.5e-9
_LEAST_CREDIT = 4e-3  # nobody misses a few milliseconds, and small problems need no more

# A residual in single precision is good enough for an inner solve to a tolerance above this share of its size. The
# true residual does not suffer: it is brought up to date from β afterwards.
_SINGLE_SUFFICES = 1e-5

_STUCK_ROUNDS = 3


@dataclass
class Credit:
    """Seconds that Newton steps have earned because pair steps did not suffice."""

    seconds: float = 0.0


def solve_block(state: State, tol: float, run: Run) -> None:
    """Bring the violation of ``state`` down to ``tol``.

    Raises
    ------
    Stop
        A limit was reached, or no working set makes progress.
    """
    working_set, credit = WorkingSet(), Credit()
    stuck = 0
    while (violation := state.violation()) > tol and not run.gap_is_reached(state):
        run.check(violation, state.gram.n)
        chosen = working_set.choose(state)
        inner_tol = max(0.5 * tol, _INNER_SHARE * violation)
        if len(chosen) == state.problem.n_variables and run.settings.gap_tol is None:
            inner_tol = tol  # nothing is outside the working set
        beta, steps = _solve_inner(state, chosen, inner_tol, run, credit)
        change = state.move(chosen, beta) + stretch(state)
        run.count(steps, change)
        stuck = stuck + 1 if change >= 0 else 0  # steps and residual disagree: rounding rules
        if stuck >= _STUCK_ROUNDS or state.is_lost(violation):
            raise Stop(Status.STALLED)


def _solve_inner(state: State, chosen: np.ndarray, tol: float, run: Run, credit: Credit) -> tuple[np.ndarray, int]:
    """Solve the problem of the variables ``chosen`` alone; return their new β and the number of pair steps."""
    problem = state.problem
    samples = chosen % problem.n_samples
    kernel = state.gram.block(samples)
    everyone = np.arange(len(chosen))
    beta = state.beta[chosen]
    residual = state.residual[chosen]
    if _SINGLE_SUFFICES * float(np.abs(residual).max()) < tol:
        residual = residual.astype(kernel.dtype)
    box = problem.lo[chosen], problem.hi[chosen]
    pair = pairwise.no_pair(problem.n_groups)
    arguments = (
        kernel, everyone, np.zeros(len(chosen), np.int64), state.gram.diagonal[samples], beta, residual, *box,
        problem.group[chosen], problem.n_groups, pairwise.SECOND_ORDER, tol,
    )  # fmt: skip
    steps = 0
    for _ in range(_INNER_BURSTS):
        burst = min(_BURST_PER_VARIABLE * len(chosen), run.steps_left - steps)
        code, taken, *_ = pairwise.optimise(*arguments, burst, pair, np.zeros(2), 0)
        steps += taken
        if code == pairwise.UNBOUNDED:
            raise Stop(Status.INFEASIBLE)
        if code != pairwise.STEP_LIMIT or steps >= run.steps_left or run.must_stop():
            break
        # Newton steps may take as long as the pair steps that did not suffice: at worst both are tried in vain.
        credit.seconds += max(_SECONDS_PER_PAIR_AND_VARIABLE * taken * len(chosen), _LEAST_CREDIT)
        price = newton_seconds(len(chosen), int(np.count_nonzero((beta > box[0]) & (beta < box[1]))))
        rounds = int(min(credit.seconds / price, _NEWTON_ROUNDS))
        group = problem.group[chosen]
        done = newton_steps(kernel, beta, residual, *box, group, problem.n_groups, rounds, run.must_stop)
        credit.seconds -= done * price if done else 0.0
        steps += done
    return beta, steps
