"""Block decomposition (Bottou & Lin algorithm 1.2) with a large working set.

An outer step picks a working set, asks for its kernel matrix, solves that small problem by pair steps and
brings the residual of all samples up to date by matrix products. A few hundred outer steps do the work of a
hundred thousand pair steps, so the outer loop can be plain Python.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.linalg import LinAlgError

from hinge.arrays import Floats, Index, Vector
from hinge.dual.problem import DualProblem
from hinge.report import Status
from hinge.runtime.prices import NS_PER_CHANGE, NS_PER_PAIR_STEP, NS_PER_PAIR_STEP_IN_SINGLE
from hinge.solvers.active_set.free_set import FreeSet, layout_ns
from hinge.solvers.block.working_set import WorkingSet
from hinge.solvers.exactness import sharper
from hinge.solvers.hard_margin import is_unbounded, stretch
from hinge.solvers.pairs.loop import optimise
from hinge.solvers.pairs.rules import SECOND_ORDER
from hinge.solvers.pairs.step import STEP_LIMIT, UNBOUNDED, Point, Rows
from hinge.solvers.policies import Touch
from hinge.solvers.run import Effort, Run, Stop
from hinge.solvers.state import State, restore_sums

# A residual in single precision is good enough for an inner solve to a tolerance above this share of its size. The
# true residual does not suffer: it is brought up to date from β afterwards.
_SINGLE_SUFFICES = 1e-5


def solve_block(
    state: State, tol: float, run: Run, most_rounds: float = np.inf, touch: Touch | None = None
) -> None:
    """Bring the violation of ``state`` down to ``tol``, or as far as ``most_rounds`` working sets take it.

    ``touch``: the point is near its end, and how such a one is worked on.

    Raises
    ------
    Stop
        A limit was reached, or no working set makes progress.
    """
    policy, sizes = run.policy, run.settings.sizes
    further = policy.further if touch is None else touch.further
    working_set = WorkingSet(
        sizes if touch is None else replace(sizes, one_set=1, smallest_set=touch.size), policy
    )
    stuck, rounds = 0, 0
    while (violation := state.violation()) > tol and rounds < most_rounds and not run.gap_is_reached(state):
        run.check(state, violation)
        chosen = working_set.choose(state)
        run.note_set(len(chosen))
        inner_tol = max(sharper(tol), further * violation)
        if len(chosen) == state.problem.n_variables and run.settings.gap_tol is None:
            inner_tol = tol  # nothing is outside the working set
        steps, change, is_taken_back = _move_set(state, chosen, inner_tol, run)
        if is_taken_back:  # rounding of many steps: fewer of them may do better
            single = 0.5 / len(chosen)
            run.effort.burst = single if stuck else max(0.25 * run.effort.burst, policy.bursts.least)
        rounds += 1
        run.count(steps, change)
        stuck = stuck + 1 if change >= 0 else 0  # steps and residual disagree: rounding rules
        if stuck >= policy.patience or state.is_lost(violation):
            raise Stop(Status.STALLED)


def solve_by_size(state: State, tol: float, run: Run) -> None:
    """Solve for the smallest samples, then for these and somewhat larger ones, up to all but the largest.

    The residuals of huge samples hide what others violate: they are the worst violators, and move by so little
    that nothing is gained. A sample is small beside another by its k(x, x).
    """
    sizes = np.abs(state.gram.diagonal)
    order = np.argsort(sizes, kind="stable")
    sizes, last = sizes[order], 0
    while True:
        with np.errstate(over="ignore"):
            last = int(np.searchsorted(sizes, run.policy.proximal.huge * sizes[last], side="right"))
        if last == len(sizes):
            return
        chosen = state.variables_of(np.sort(order[:last]))
        run.check(state, state.violation())
        steps, change, _ = _move_set(state, chosen, tol, run)
        run.count(steps, change)


def _move_set(state: State, chosen: Index, tol: float, run: Run) -> tuple[int, float, bool]:
    """Solve for the variables ``chosen``, unless rounding makes that worse.

    Returns the number of steps, the objective's change, and whether that was taken back.
    """
    beta, steps = _solve_inner(state, chosen, tol, run)
    before, residual, drift = state.beta[chosen], state.residual.copy(), state.drift
    change = state.move(chosen, beta) + stretch(state)
    if np.isfinite(change) and (change <= 0 or is_unbounded(state.problem)):
        return steps, change, False
    state.beta[chosen], state.residual[:], state.drift = before, residual, drift
    return steps, 0.0, True


def _solve_inner(state: State, chosen: Index, tol: float, run: Run) -> tuple[Vector, int]:
    """Solve the problem of the variables ``chosen`` alone; return their new β and the number of steps."""
    problem = state.problem
    samples = chosen % problem.n_samples
    kernel, diagonal = state.gram.block(samples), state.gram.diagonal[samples]
    if problem.ridge is not None:  # variables of one sample have each their own: here every variable has a row
        kernel, diagonal = kernel.copy(), diagonal + problem.ridge[chosen]
        np.fill_diagonal(kernel, diagonal)
    beta = state.beta[chosen]
    residual = state.residual[chosen]
    if _SINGLE_SUFFICES * float(np.abs(residual).max()) < tol:
        residual = residual.astype(kernel.dtype)
    inner = problem.restrict(chosen, len(chosen), state.beta)
    point, rows = Point.of(inner, beta, residual), Rows.of_matrix(kernel, diagonal)
    steps, effort, policy = 0, run.effort, run.policy.bursts
    price = NS_PER_PAIR_STEP if kernel.dtype == np.float64 else NS_PER_PAIR_STEP_IN_SINGLE
    for _ in range(policy.turns):
        burst = min(int(effort.burst * len(chosen)) + 1, run.steps_left - steps)
        code, taken, *_ = optimise(point, rows, SECOND_ORDER, None, tol, burst)
        steps += taken
        if code == UNBOUNDED:
            raise Stop(Status.INFEASIBLE)
        if code != STEP_LIMIT or steps >= run.steps_left or run.must_stop():
            break
        if effort.is_alone:
            continue
        effort.credit += max(policy.credit * price * taken * len(chosen), effort.grant)
        is_settled, n_changes = _move_together(kernel, inner, beta, residual, tol, effort, run.steps_left - steps)
        steps += n_changes
        effort.burst = max(0.5 * effort.burst, policy.least) if is_settled else min(2 * effort.burst, policy.most)
        if is_settled:
            break
        effort.grant *= 0.5
    restore_sums(problem if len(chosen) == problem.n_variables else inner, beta, rows.diagonal)
    return beta, steps


def _move_together(
    kernel: Floats, problem: DualProblem, beta: Vector, residual: Vector, tol: float, effort: Effort, most: int
) -> tuple[bool, int]:
    """Move the free variables together, in place, as far as the credit goes and in ``most`` steps.

    Returns whether that led to the tolerance, and how often a variable became free or came to a bound.
    """
    left = effort.credit - layout_ns(problem, beta)
    most_changes = most - 3 * problem.n_variables  # a round more, and the first walk
    if left <= 0 or most_changes <= 0:
        return False, 0
    effort.credit = left
    try:
        free_set = FreeSet(kernel, problem, beta, residual)
    except LinAlgError:
        return False, 0
    is_settled = free_set.settle(tol, left / NS_PER_CHANGE, most_changes)
    free_set.restore_sums()
    effort.credit -= NS_PER_CHANGE * free_set.work
    with np.errstate(over="ignore", invalid="ignore"):
        fall = 0.5 * np.dot(free_set.beta - beta, residual + free_set.residual)
    if not fall > 0:  # rounding rules, or numbers overflow on the way
        return False, free_set.n_changes
    beta[:], residual[:] = free_set.beta, free_set.residual
    return is_settled, free_set.n_changes
