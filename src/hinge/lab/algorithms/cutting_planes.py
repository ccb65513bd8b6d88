"""Cutting planes on the loss, which is simplicial decomposition of the dual (lecture notes on the dual).

Idea. In the primal, ½‖w‖² plus the loss of all samples is to be small. The loss is convex: the largest of all its
tangent planes. Keep only some, minimise with these, look for the plane that is violated most at the new w, add
it (Kelley 1960; Joachims, *Training Linear SVMs in Linear Time*, 2006). The loss is

    max { βᵀ(v − f) : β within the box, sums kept },

so a plane is a vertex of the dual's feasible set, the most violated one is that which makes βᵀr largest, and
minimising with some planes means: the best point in the convex hull of some vertices. How much larger βᵀr is there
than at the present point is the duality gap.

Cost. The vertex: sort residuals. Its kernel rows: a product with all samples at a bound there, which a linear
kernel has for one pass over the data. The hull: a small problem, one variable a plane. The number of planes for a
given gap does not depend on n.

When to use. For a small gap, and linear kernels with very many samples. A small *violation* asks for every free
support vector's own value, and as many planes as there are of them.
"""

from __future__ import annotations

import numpy as np

from hinge.arrays import Floats, Vector
from hinge.dual.problem import DualProblem
from hinge.lab.algorithms.course import ANY_GROUPS, laboratory
from hinge.lab.algorithms.decomposition import by_pair_steps
from hinge.lab.algorithms.subproblem import Subproblem
from hinge.report import Status
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

# What a mixture of bounds leaves between a variable and its bound, relative to the box, is rounding below this.
_ROUNDING = 1e-12

# A hull is minimised until its own violation is this share of the gap: then a new plane is missing, not a better
# mixture of the old ones.
_SHARE_OF_GAP = 1e-3


def cutting_planes(state: State, tol: float, run: Run) -> None:
    """Add the most violated plane until none is violated."""
    problem = state.problem
    planes = _Planes(state)
    while True:
        violation = state.violation()
        if violation <= tol:
            return
        run.check(state, violation)
        vertex = farthest(problem, state.residual)
        gap = float(np.dot(vertex - state.beta, state.residual))
        if gap <= 0 or not planes.add(vertex):
            raise Stop(Status.STALLED)
        beta = planes.best_mixture(_SHARE_OF_GAP * gap)
        change = state.move(np.arange(problem.n_variables), beta)
        run.count(1, change)
        if change >= 0:
            raise Stop(Status.STALLED)


def farthest(problem: DualProblem, residual: Vector) -> Vector:
    """Return the feasible point that makes βᵀr largest: each group is filled from its largest residual down."""
    if problem.n_groups == 0:
        return np.where(residual > 0, problem.hi, problem.lo)
    beta, room = problem.lo.copy(), problem.hi - problem.lo
    for g in range(problem.n_groups):
        mine = np.flatnonzero(problem.group == g)
        mine = mine[np.argsort(-residual[mine], kind="stable")]
        wanted = problem.sums[g] - problem.lo[mine].sum()
        before = np.concatenate([[0.0], np.cumsum(room[mine])[:-1]])
        beta[mine] += np.clip(wanted - before, 0.0, room[mine])
    return beta


class _Planes:
    """Vertices so far, their products with K, and the share of each in the present point."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._vertices: Floats = state.beta[None].copy()
        self._images: Floats = (state.problem.v - state.residual)[None]
        self._shares: Vector = np.ones(1)

    def add(self, vertex: Vector) -> bool:
        """Add a plane; False if it is there already."""
        if (self._vertices == vertex).all(axis=1).any():
            return False
        state = self._state
        changed = np.flatnonzero(vertex)
        copies = state.problem.n_variables // state.problem.n_samples
        image = np.tile(state.product(changed, vertex[changed]), copies)
        self._vertices = np.vstack([self._vertices, vertex])
        self._images = np.vstack([self._images, image])
        self._shares = np.append(self._shares, 0.0)
        return True

    def best_mixture(self, tol: float) -> Vector:
        """Return the best point of the hull, and drop the planes that have no share in it."""
        matrix = self._vertices @ self._images.T
        matrix = 0.5 * (matrix + matrix.T)
        linear = self._vertices @ self._state.problem.v
        n = len(linear)
        simplex = DualProblem(
            v=linear, lo=np.zeros(n), hi=np.ones(n), group=np.zeros(n, np.int8), sums=np.ones(1), n_samples=n,
            start=self._shares,
        )  # fmt: skip
        sub = Subproblem(np.arange(n), matrix, simplex, self._shares.copy(), linear - matrix @ self._shares)
        by_pair_steps(sub, tol)
        kept = sub.beta > 0
        self._vertices, self._images, self._shares = self._vertices[kept], self._images[kept], sub.beta[kept]
        return self._clean(self._shares @ self._vertices)

    def _clean(self, beta: Vector) -> Vector:
        """Put variables on the bound from which only rounding keeps them."""
        problem = self._state.problem
        width = _ROUNDING * (problem.hi - problem.lo)
        beta = np.where(beta - problem.lo <= width, problem.lo, beta)
        return problem.near(np.where(problem.hi - beta <= width, problem.hi, beta))


ALGORITHMS = (
    laboratory(
        "cutting-planes",
        "Cutting planes on the loss",
        "Lecture notes on the dual of the SVM, standard solvers; Joachims 2006",
        ANY_GROUPS,
        cutting_planes,
    ),
)
