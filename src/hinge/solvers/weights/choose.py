"""Linear kernels: methods that work on the weight vector, and block decomposition for what they leave."""

from __future__ import annotations

import numpy as np

from hinge.dual.problem import DualProblem
from hinge.kernel.gram import Gram
from hinge.solvers.block.shrinking import ActiveSet, near_margin, shrinking_block
from hinge.solvers.exactness import sharper
from hinge.solvers.hard_margin import is_unbounded
from hinge.solvers.run import Run
from hinge.solvers.state import State
from hinge.solvers.weights.descent import descend
from hinge.solvers.weights.proximal import proximal_steps

# Few features: a matrix of their size is factorised at every step. Many: samples are nearly orthogonal, so that
# variables can be moved one by one. In between neither is sure to pay, unless variables have no sums to keep: they
# are moved one by one until that crawls, and the matrix is factorised for the rest.
_FEW_FEATURES, _MANY_FEATURES, _MOST_FACTORISED = 400, 1000, 2000

# Active sets that do not suffice will not: the samples near the margin are found at once or by blocks.
_MOST_ACTIVE_SETS = 10


def has_weight_method(problem: DualProblem, gram: Gram) -> bool:
    """Whether there are weights to work on, and bounded variables."""
    return gram.through_weights and not is_unbounded(problem)


def may_be_factorised(problem: DualProblem, gram: Gram) -> bool:
    """Whether there are weights to work on, and few enough for a matrix of their size."""
    return has_weight_method(problem, gram) and gram.weights.n_features <= _MOST_FACTORISED


def weight_method(problem: DualProblem, gram: Gram) -> str | None:
    """Return which method on the weight vector suits a problem: "proximal", "descent" or None."""
    if not has_weight_method(problem, gram):
        return None
    d = gram.weights.n_features
    if d <= _FEW_FEATURES:
        return "proximal"
    if not gram.weights.most_visited:
        return None
    return "descent" if d >= _MANY_FEATURES or problem.n_groups == 0 else None


def descent_then_block(state: State, tol: float, run: Run) -> None:
    """Move variables one by one as far as that takes, and all or blocks of them for the rest of the way.

    Raises
    ------
    Stop
        A limit was reached, or no working set makes progress.
    """
    descend(state, tol, run)
    if (
        state.violation() > tol
        and state.problem.n_groups == 0
        and state.gram.weights.n_features <= _MOST_FACTORISED
    ):
        proximal_then_block(state, tol, run)
    elif state.violation() > tol:
        shrinking_block(state, tol, run)


def proximal_then_block(state: State, tol: float, run: Run) -> None:
    """Take proximal steps, first on all samples, then on those near the margin; blocks for what they leave.

    Raises
    ------
    Stop
        A limit was reached, or no working set makes progress.
    """
    rough = tol
    if state.problem.ridge is None:  # else one step, nearly always, does it all
        rough = max(tol, run.policy.proximal.share * state.violation())  # most samples are settled by then
    proximal_steps(state, rough, run)
    is_solved = state.violation() <= rough
    for _ in range(_MOST_ACTIVE_SETS):
        if not is_solved or state.violation() <= tol or run.gap_is_reached(state):
            break
        active = near_margin(state, run.policy) if run.settings.shrinking else np.arange(state.gram.n)
        with ActiveSet(state, active, run) as chosen:
            proximal_steps(chosen.part, sharper(tol), run)
            is_solved = chosen.part.violation() <= sharper(tol)
    if state.violation() > tol and not run.gap_is_reached(state) and run.settings.weights_gap is None:
        shrinking_block(state, tol, run)  # else weights of their own get further
