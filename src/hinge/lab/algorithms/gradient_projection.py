"""Modified gradient projection: the solver of the first support vector machines (Bottou & Lin, algorithm 1.1).

Idea. Without the box, the best direction is the gradient projected onto Σu = 0 in every group. A variable that
the direction would push out of its box is *evicted* from the working set B and the projection is done again, so
that what is left can move. An exact search along the direction follows (eq. 1.18). When B is done, violators
are added and the game begins anew. With *conjugate* directions, uᵀ(g − g') = 0 where g' is the gradient before
the last search, the zigzag of steepest ascent goes away; after every eviction conjugacy starts afresh.

Cost. A product with the kernel matrix of B per step; a step ends at the first bound it meets, so that every
bounded support vector costs at least one. All of B's kernel matrix is kept.

When to use. Few support vectors, or as the inner solver of a decomposition (as in SVQP and Royal Holloway SVM).
Steepest ascent alone is slow where free variables are strongly coupled: conjugate directions need tens of times
fewer steps.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from hinge.dual.optimality import free_and_near, multipliers_of
from hinge.lab.algorithms.course import ANY_GROUPS, laboratory
from hinge.lab.algorithms.subproblem import Subproblem, extract, worst_violators
from hinge.report import Status
from hinge.runtime.jit import compiled
from hinge.solvers.pairs.step import Point
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

# Violators that join the working set at a time: enough for a short outer loop, few enough for B to stay small.
_ADDED = 200

# Searches before B is left as it is.
_MOST_STEPS = 1_000_000


def ascend(sub: Subproblem, tol: float, conjugate: bool, least_gain: float = 0.0) -> tuple[int, Any]:
    """Climb from where the subproblem stands until B is done (lines 5 to 16 of algorithm 1.1).

    Parameters
    ----------
    sub : Subproblem
        Changed in place; its free and its violating variables are in B at first.
    tol : float
        B is done when its residuals differ by no more than this.
    conjugate : bool
        Whether successive directions are made conjugate.
    least_gain : float
        Also stop at a step, not cut short by a bound, that gains less than this share of the objective.

    Returns
    -------
    steps, is_member
        Searches made, and which variables are left in B.
    """
    part = sub.problem
    multipliers = multipliers_of(part, sub.beta, sub.residual)
    is_member = free_and_near(part, sub.beta, sub.residual, multipliers, width=0.0)
    is_member |= (sub.beta > part.lo) & (sub.beta < part.hi)  # also where r is the multiplier itself
    figures = np.array([-0.5 * np.dot(sub.beta, part.v + sub.residual), 0.0])
    is_done = False
    while is_member.any() and not is_done:
        b = np.flatnonzero(is_member)
        kernel = np.ascontiguousarray(sub.kernel[np.ix_(b, b)])
        point = Point(sub.beta[b], sub.residual[b], part.lo[b], part.hi[b], part.group[b], part.n_groups)
        stays = np.ones(len(b), dtype=np.bool_)
        is_done = _climb(kernel, point, stays, conjugate, tol, least_gain, figures)
        sub.beta[b], sub.residual[b], is_member[b] = point.beta, point.residual, stays
    sub.residual[:] = part.v - sub.kernel @ sub.beta  # of the evicted too
    return int(figures[1]), is_member


@compiled
def _project(g: Any, group: Any, n_groups: int, u: Any) -> None:
    """u ← g minus its mean in every group (lines 9 and 10)."""
    if n_groups == 0:
        u[:] = g
        return
    for label in range(n_groups):
        rho, count = 0.0, 0
        for k in range(g.shape[0]):
            if group[k] == label:
                rho += g[k]
                count += 1
        for k in range(g.shape[0]):
            if group[k] == label:
                u[k] = g[k] - rho / count


@compiled
def _spread(u: Any, group: Any, n_groups: int) -> float:
    """How far B is from done: the range of u in the worst group; without groups its largest size."""
    worst = 0.0
    for label in range(max(n_groups, 1)):
        top, bottom = 0.0, 0.0
        for k in range(u.shape[0]):
            if group[k] == label:
                top, bottom = max(top, u[k]), min(bottom, u[k])
        worst = max(worst, top - bottom if n_groups > 0 else max(top, -bottom))
    return worst


@compiled
def _mark_inside(u: Any, beta: Any, lo: Any, hi: Any, stays: Any) -> bool:
    """Note which variables the direction does not push out of the box; return whether that is all of them."""
    everyone = True
    for k in range(u.shape[0]):
        stays[k] = not ((u[k] > 0 and beta[k] >= hi[k]) or (u[k] < 0 and beta[k] <= lo[k]))
        everyone = everyone and stays[k]
    return everyone


@compiled
def _search(u: Any, g: Any, image: Any, beta: Any, lo: Any, hi: Any) -> tuple[float, float, bool]:
    """Direction search (eq. 1.18): the step λ*, what it gains, and whether a bound cut it short."""
    slope, curvature = np.dot(g, u), np.dot(u, image)
    newton = slope / curvature if curvature > 1e-14 * np.dot(u, u) else np.inf
    room = np.inf
    for k in range(u.shape[0]):
        if u[k] > 0:
            room = min(room, (hi[k] - beta[k]) / u[k])
        elif u[k] < 0:
            room = min(room, (lo[k] - beta[k]) / u[k])
    step = max(min(newton, room), 0.0)
    return step, step * (slope - 0.5 * step * curvature), room < newton


@compiled
def _climb(h: Any, point: Point, stays: Any, conjugate: bool, tol: float, least_gain: float, figures: Any) -> bool:
    """Search along one direction after the other until B is done (True) or some must be evicted (False).

    ``figures`` holds the objective and the number of steps; ``stays`` says at the end who is not evicted.
    """
    beta, g, lo, hi, group, n_groups = point
    u, bent, last_u, last_g = np.empty_like(g), np.empty_like(g), np.zeros_like(g), g.copy()
    first_step = figures[1]
    while True:
        _project(g, group, n_groups, u)
        _project(u, group, n_groups, u)  # where g is all but constant, rounding would outweigh what is left
        if not _mark_inside(u, beta, lo, hi, stays):  # line 11
            return False
        if _spread(u, group, n_groups) <= tol or figures[1] >= _MOST_STEPS:
            return True
        if conjugate and figures[1] > first_step:  # uᵀ(g − g') = 0
            turn, overlap = 0.0, 0.0
            for k in range(u.shape[0]):
                turn += last_u[k] * (g[k] - last_g[k])
                overlap += u[k] * (g[k] - last_g[k])
            if turn != 0:
                for k in range(u.shape[0]):
                    bent[k] = u[k] - overlap / turn * last_u[k]
                _project(bent, group, n_groups, bent)
                if np.dot(bent, g) > 0 and _mark_inside(bent, beta, lo, hi, stays):
                    u[:] = bent
                stays[:] = True
        image = np.dot(h, u)
        step, gain, was_cut = _search(u, g, image, beta, lo, hi)
        for k in range(u.shape[0]):
            last_u[k], last_g[k] = u[k], g[k]
            g[k] -= step * image[k]
            room = hi[k] - beta[k] if u[k] > 0 else beta[k] - lo[k]
            if abs(step * u[k]) >= room * (1 - 1e-15) and u[k] != 0:
                beta[k] = hi[k] if u[k] > 0 else lo[k]
            else:
                beta[k] += step * u[k]
        figures[0] -= gain
        figures[1] += 1
        if not was_cut and gain <= least_gain * abs(figures[0]):
            return True


def modified_gradient_projection(conjugate: bool, state: State, tol: float, run: Run) -> None:
    """Algorithm 1.1: B keeps what was not evicted, and takes in violators until there are none."""
    working_set = np.empty(0, dtype=np.int64)
    while True:
        violation = state.violation()
        if violation <= tol:
            return
        run.check(state, violation)
        working_set = np.union1d(working_set, worst_violators(state, _ADDED))
        sub = extract(state, working_set)
        steps, is_member = ascend(sub, max(0.5 * tol, 0.1 * violation), conjugate)
        change = state.move(sub.variables, sub.beta)
        run.count(steps, change)
        if change == 0:
            raise Stop(Status.STALLED)
        working_set = working_set[is_member]


ALGORITHMS = (
    laboratory(
        "gradient-projection",
        "Modified gradient projection",
        "Bottou & Lin, algorithm 1.1",
        ANY_GROUPS,
        partial(modified_gradient_projection, False),
    ),
    laboratory(
        "gradient-projection-conjugate",
        "Modified gradient projection with conjugate directions",
        "Bottou & Lin, section 1.5.3",
        ANY_GROUPS,
        partial(modified_gradient_projection, True),
    ),
)
