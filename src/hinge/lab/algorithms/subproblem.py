"""The small problem of a working set, and the one way from the whole problem to it and back.

Decomposition holds all variables but a few and solves for those (Bottou & Lin, eq. 1.20). Because the residual
is kept for the whole problem, nothing more is needed for the small one than its kernel matrix: its residual is
the part of the whole residual, and the sums to keep are those that its variables have now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hinge.arrays import Floats, Index, Vector
from hinge.dual.optimality import violation_of
from hinge.dual.problem import DualProblem
from hinge.solvers.state import State


@dataclass(eq=False)
class Subproblem:
    """Some variables of a problem, the others held.

    Attributes
    ----------
    variables : int64 array
        Which they are.
    kernel : float64 array of shape (q, q)
        Kernel values between them, one row per variable.
    problem : DualProblem
        Their box and groups.
    beta, residual : arrays of shape (q,)
        Where they stand; solvers change both in place.
    """

    variables: Index
    kernel: Floats
    problem: DualProblem
    beta: Vector
    residual: Vector

    def violation(self) -> float:
        """Return the violation among these variables."""
        return violation_of(self.problem, self.beta, self.residual)


#: Solves a small problem in place to a violation of at most the tolerance; returns the number of its steps.
InnerSolver = Callable[[Subproblem, float], int]


def extract(state: State, variables: Index) -> Subproblem:
    """Return the subproblem of ``variables``."""
    whole = state.problem
    samples, place = np.unique(variables % whole.n_samples, return_inverse=True)
    block = state.gram.block(samples)
    kernel = np.ascontiguousarray(block[np.ix_(place, place)])
    beta = state.beta[variables]
    group = whole.group[variables]
    part = DualProblem(
        v=state.residual[variables] + kernel @ beta,
        lo=whole.lo[variables],
        hi=whole.hi[variables],
        group=group,
        sums=np.array([beta[group == g].sum() for g in range(whole.n_groups)]),
        n_samples=len(variables),
        start=beta,
    )
    return Subproblem(variables, kernel, part, beta.copy(), state.residual[variables])


def worst_violators(state: State, count: int) -> Index:
    """Return up to ``count`` variables that violate most, half of them above and half below (LIBSVM doc. eq. 3.8).

    In each group those of largest residual that may grow, and those of smallest that may fall: the solution of
    SVM-light's problem of the steepest direction with ``count`` non-zero entries. The variables of the maximal
    violating pair are always among them.
    """
    problem, beta, residual = state.problem, state.beta, state.residual
    top, bottom = state.extremes()
    if problem.n_groups == 0:
        top, bottom = np.zeros(1), np.zeros(1)
    places = max(count // (2 * len(top)), 1)
    chosen = []
    for g in range(len(top)):
        growing = np.flatnonzero((problem.group == g) & (beta < problem.hi) & (residual > bottom[g]))
        falling = np.flatnonzero((problem.group == g) & (beta > problem.lo) & (residual < top[g]))
        chosen += [_largest(growing, residual[growing], places), _largest(falling, -residual[falling], places)]
    return np.unique(np.concatenate(chosen))


def _largest(index: Index, values: Vector, count: int) -> Index:
    return index if len(index) <= count else index[np.argpartition(values, -count)[-count:]]
