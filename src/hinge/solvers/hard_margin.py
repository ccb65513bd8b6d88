"""Problems without upper bounds: the hard margin, whose dual has no solution when the data is inseparable.

For such data the classes' convex hulls meet: β/Σ|β| tends to a combination for which Kβ = 0 while vᵀβ > 0, and
the objective falls without end. Pair steps alone would walk that ray for ever, a constant length at a time.
Scaling β to the best point of its own ray makes it grow geometrically, so that the end is seen soon.
"""

from __future__ import annotations

import numpy as np

from hinge.dual.problem import DualProblem
from hinge.report import Status
from hinge.solvers.run import Stop
from hinge.solvers.state import State

# Squared distance between the hulls, relative to the data's size, below which no margin is believed.
_NO_MARGIN = 1e-10


def is_unbounded(problem: DualProblem) -> bool:
    """Whether some variable may grow without limit, and no ridge holds it back."""
    if problem.ridge is not None:
        return False
    return bool(problem.lo.min() == -np.inf or problem.hi.max() == np.inf)


def stretch(state: State) -> float:
    """Scale β to the best point of its ray; return the objective's change. Bounded problems stay as they are.

    Every finite bound of an unbounded problem is 0 and so is every sum, so that the ray is feasible.

    Raises
    ------
    Stop
        The margin is nought: the problem has no solution.
    """
    problem, beta = state.problem, state.beta
    if not is_unbounded(problem):
        return 0.0
    image = problem.v - state.residual
    pull, energy = float(np.dot(problem.v, beta)), float(np.dot(beta, image))
    if pull <= 0:
        return 0.0
    size = float(np.abs(beta).sum())
    if 4 * energy <= _NO_MARGIN * state.gram.magnitude * size**2:
        raise Stop(Status.INFEASIBLE)
    factor = pull / energy
    before = 0.5 * energy - pull
    beta *= factor
    state.residual[:] = problem.v - factor * image
    return 0.5 * factor**2 * energy - factor * pull - before
