"""Projected gradient ascent on the whole problem (lecture notes on the dual of the SVM).

Idea. Go along the gradient and come back to the feasible set by the nearest point of it: for a box with sums
that is ``clip(β − λ, lo, hi)`` with one λ per group. How far to go before projecting follows the last step
(Barzilai & Borwein): with y = Ks the inverse curvatures sᵀs / sᵀy and sᵀy / yᵀy in turn (Dai & Fletcher). That
is what makes the method usable, and it only works if the objective may rise now and then: the whole way to the
projected point is taken unless that is no better than the worst of the last points, and then the best point of
the way (the nonmonotone search of Grippo, Lampariello & Lucidi).

Cost. A kernel row for each variable that moves, at every step: at first all of them. The projection sorts.

When to use. For small problems and as a yardstick: it needs nothing but products with K.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from hinge.arrays import Vector
from hinge.dual.problem import DualProblem
from hinge.lab.algorithms.course import ANY_GROUPS, laboratory
from hinge.report import Status
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

_LONGEST = 1e10
_REMEMBERED = 30

# The share of the slope by which a point must be better than the worst of the last ones: without it the method can
# go round in a circle for ever.
_SUFFICIENT = 1e-4


def projected_gradient(state: State, tol: float, run: Run) -> None:
    """Step along projected gradients until the violation is small."""
    problem = state.problem
    length = 1.0 / max(state.gram.magnitude, 1e-200)
    recent: deque[float] = deque([run.objective], maxlen=_REMEMBERED)
    while True:
        violation = state.violation()
        if violation <= tol:
            return
        run.check(state, violation)
        beta, residual = state.beta.copy(), state.residual.copy()
        target = problem.project(beta + length * residual)
        way = target - beta
        slope = float(np.dot(residual, way))
        moving = np.flatnonzero(way)
        if slope <= 0 or not len(moving):
            raise Stop(Status.STALLED)
        image = np.tile(state.product(moving, way[moving]), problem.n_variables // problem.n_samples)
        curvature = float(np.dot(way, image))
        is_good_enough = run.objective + 0.5 * curvature - slope < max(recent) - _SUFFICIENT * slope
        share = 1.0 if is_good_enough else min(1.0, slope / curvature)
        state.beta = target if share == 1.0 else beta + share * way
        state.residual = residual - share * image
        state.note_steps(share * float(np.abs(way).sum() * state.gram.lengths.max()))
        run.count(1, share * (0.5 * share * curvature - slope))
        recent.append(run.objective)
        length = _next_length(problem, way, image, curvature, run.outer_steps)


def _next_length(problem: DualProblem, way: Vector, image: Vector, curvature: float, step: int) -> float:
    """Barzilai and Borwein's lengths in turn; y counts where β moved, and without its mean, which no sum feels."""
    if curvature <= 0:
        return _LONGEST
    if step % 2:
        return min(float(np.dot(way, way)) / curvature, _LONGEST)
    change = np.where(way != 0, image, 0.0)
    for g in range(problem.n_groups):
        inside = (problem.group == g) & (way != 0)
        change[inside] -= change[inside].mean() if inside.any() else 0.0
    return min(curvature / max(float(np.dot(change, change)), 1e-200), _LONGEST)


ALGORITHMS = (
    laboratory(
        "projected-gradient",
        "Projected gradient ascent",
        "Lecture notes on the dual of the SVM, standard solvers",
        ANY_GROUPS,
        projected_gradient,
    ),
)
