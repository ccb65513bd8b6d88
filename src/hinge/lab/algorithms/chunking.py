"""Chunking: Vapnik's way to a problem that does not fit into memory (Platt, sections 1.2 and 3).

Idea. Zero variables do not matter: solve for all non-zero ones and the M worst violators, drop what came out
zero, add violators again. When none is left, the last chunk held every support vector.

Inside, projected conjugate gradients, as Burges advised and Platt measured: conjugate directions on the face of
the box where the point is, a new face whenever a bound is met or a variable leaves one. They stop at a step
that gains less than a threshold share of the objective; the threshold starts at 3e-10 and is divided by 3 after
each chunk whose free samples disagree on the intercept by more than the tolerance (Platt, section 3; his samples
may be off by 1e-3 on either side, ours by half the tolerance). A chunk that gained nothing at all lowers it too.

Cost. The square of the number of support vectors in memory, and at least one product with it for each bounded
one: cubic on noisy data.

When to use. Few support vectors. Where many are at their bound every pair method is much faster.
"""

from __future__ import annotations

import numpy as np

from hinge.arrays import Index
from hinge.lab.algorithms.course import ANY_GROUPS, laboratory
from hinge.lab.algorithms.gradient_projection import ascend
from hinge.lab.algorithms.subproblem import Subproblem, extract, worst_violators
from hinge.report import Status
from hinge.solvers.run import Run, Stop
from hinge.solvers.state import State

# M: how many violators join a chunk.
_ADDED = 500

_FIRST_THRESHOLD = 3e-10
_THRESHOLD_CUT = 3.0
_LAST_THRESHOLD = 1e-18  # beyond, steps gain nothing that a double could hold


def chunking(state: State, tol: float, run: Run) -> None:
    """Solve chunk after chunk; each starts from the last one's answer."""
    threshold = _FIRST_THRESHOLD
    while True:
        violation = state.violation()
        if violation <= tol:
            return
        run.check(state, violation)
        chunk = np.union1d(np.flatnonzero(state.beta), worst_violators(state, _ADDED))
        sub = extract(state, chunk)
        steps = projected_conjugate_gradient(sub, 0.5 * tol, threshold)
        change = state.move(sub.variables, sub.beta)
        run.count(steps, change)
        if change == 0 and threshold < _LAST_THRESHOLD:
            raise Stop(Status.STALLED)
        if change == 0 or disagreement(state) > tol:
            threshold /= _THRESHOLD_CUT


def projected_conjugate_gradient(sub: Subproblem, tol: float, threshold: float) -> int:
    """Solve a chunk: climb on a face until it is done, then let go of the bounds that hold wrongly.

    It ends when the chunk is solved to ``tol``, or when a face gains less than ``threshold`` of the objective.
    """
    total = 0
    part = sub.problem
    while sub.violation() > tol:
        before = -0.5 * float(np.dot(sub.beta, part.v + sub.residual))
        steps, _ = ascend(sub, tol, conjugate=True, least_gain=threshold)
        total += steps
        after = -0.5 * float(np.dot(sub.beta, part.v + sub.residual))
        if before - after <= threshold * abs(after):
            break
    return total


def disagreement(state: State) -> float:
    """Return how far apart the intercepts are that the free variables of one group propose."""
    problem = state.problem
    is_free = (state.beta > problem.lo) & (state.beta < problem.hi)
    groups: list[Index] = [np.flatnonzero(is_free & (problem.group == g)) for g in range(max(problem.n_groups, 1))]
    return max(float(np.ptp(state.residual[free])) if len(free) else 0.0 for free in groups)


ALGORITHMS = (
    laboratory(
        "chunking",
        "Chunking with projected conjugate gradients",
        "Vapnik; Platt, sections 1.2 and 3",
        ANY_GROUPS,
        chunking,
    ),
)
