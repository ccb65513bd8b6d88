"""Linear kernels: methods that work on the weight vector, and block decomposition for what they leave."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hinge.gram import Gram
from hinge.problem import DualProblem
from hinge.settings import Settings
from hinge.solvers.descent import descend
from hinge.solvers.proximal import proximal_steps
from hinge.solvers.run import Run
from hinge.solvers.shrinking import shrinking_block
from hinge.solvers.state import State

# Few features: a matrix of their size is factorised at every step. Many: samples are nearly orthogonal, so that
# variables can be moved one by one. In between neither is sure to pay.
_FEW_FEATURES, _MANY_FEATURES = 400, 1000


def weight_method(problem: DualProblem, gram: Gram, settings: Settings) -> str | None:
    """Return which method on the weight vector suits a problem: "proximal", "descent" or None.

    Both need bounded variables and do not watch a duality gap on their way.
    """
    if not gram.through_weights or settings.gap_tol is not None:
        return None
    if not (np.isfinite(problem.lo).all() and np.isfinite(problem.hi).all()):
        return None
    d = gram.samples.n_features
    return "proximal" if d <= _FEW_FEATURES else "descent" if d >= _MANY_FEATURES else None


def through_weights(method: Callable[[State, float, Run], None]) -> Callable[[State, float, Run], None]:
    """Return a solver that goes as far as ``method`` takes it, and the rest of the way by `shrinking_block`."""

    def solve(state: State, tol: float, run: Run) -> None:
        method(state, tol, run)
        if state.violation() > tol:
            shrinking_block(state, tol, run)

    return solve


descent, proximal = through_weights(descend), through_weights(proximal_steps)
