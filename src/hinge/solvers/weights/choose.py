"""Linear kernels: methods that work on the weight vector, and block decomposition for what they leave."""

from __future__ import annotations

import numpy as np

from hinge.dual.problem import DualProblem
from hinge.kernel.gram import Gram
from hinge.settings import Settings
from hinge.solvers.block.shrinking import ActiveSet, near_margin, shrinking_block
from hinge.solvers.run import Run
from hinge.solvers.state import State
from hinge.solvers.weights.descent import descend
from hinge.solvers.weights.proximal import proximal_steps

# Few features: a matrix of their size is factorised at every step. Many: samples are nearly orthogonal, so that
# variables can be moved one by one. In between neither is sure to pay.
_FEW_FEATURES, _MANY_FEATURES = 400, 1000

# Proximal steps on all samples end where the violation has fallen to this share; most samples are settled by then.
_ROUGH = 0.5

# The samples near the margin are solved a little beyond the tolerance, since the others have not moved with them.
_ACTIVE_SHARE = 0.9
_MOST_ACTIVE_SETS = 10


def weight_method(problem: DualProblem, gram: Gram, settings: Settings) -> str | None:
    """Return which method on the weight vector suits a problem: "proximal", "descent" or None.

    Both need bounded variables and do not watch a duality gap on their way.
    """
    if not gram.through_weights or settings.gap_tol is not None:
        return None
    if not (np.isfinite(problem.lo).all() and np.isfinite(problem.hi).all()):
        return None
    d = gram.weights.n_features
    return "proximal" if d <= _FEW_FEATURES else "descent" if d >= _MANY_FEATURES else None


def descent_then_block(state: State, tol: float, run: Run) -> None:
    """Move variables one by one as far as that takes, and blocks of them for the rest of the way.

    Raises
    ------
    Stop
        A limit was reached, or no working set makes progress.
    """
    descend(state, tol, run)
    if state.violation() > tol:
        shrinking_block(state, tol, run)


def proximal_then_block(state: State, tol: float, run: Run) -> None:
    """Take proximal steps, first on all samples, then on those near the margin; blocks for what they leave.

    Raises
    ------
    Stop
        A limit was reached, or no working set makes progress.
    """
    rough = max(tol, _ROUGH * state.violation())
    proximal_steps(state, rough, run)
    is_solved = state.violation() <= rough
    for _ in range(_MOST_ACTIVE_SETS):
        if not is_solved or state.violation() <= tol:
            break
        active = near_margin(state) if run.settings.shrinking else np.arange(state.gram.n)
        with ActiveSet(state, active) as chosen:
            proximal_steps(chosen.part, _ACTIVE_SHARE * tol, run)
            is_solved = chosen.part.violation() <= _ACTIVE_SHARE * tol
    if state.violation() > tol:
        shrinking_block(state, tol, run)
