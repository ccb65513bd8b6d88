"""Working sets for block decomposition: the worst violators, and part of the last set."""

from __future__ import annotations

import numpy as np

from hinge.arrays import Index, Vector
from hinge.dual.problem import DualProblem
from hinge.kernel.gram import Gram
from hinge.settings import Sizes
from hinge.solvers.policies import Policy
from hinge.solvers.state import State


def is_one_set(problem: DualProblem, gram: Gram, sizes: Sizes) -> bool:
    """Whether one working set holds all variables: they are few, and the budget has room for their matrix."""
    return problem.n_variables <= sizes.one_set and gram.has_room_for(problem.n_variables)


class WorkingSet:
    """Chooses the variables of the next inner problem.

    The newest members of the last set stay, and the variables that violate most take the other places: half of
    them where r is largest and β may grow, half where r is smallest and β may fall, in each group.

    Parameters
    ----------
    sizes : Sizes
        How large sets may be, and up to which size all variables are one.
    policy : Policy
        How large sets are beside the free variables, and how much of them stays.
    """

    def __init__(self, sizes: Sizes, policy: Policy) -> None:
        self._sizes, self._policy = sizes, policy
        self._last: Index = np.empty(0, dtype=np.int64)

    def choose(self, state: State) -> Index:
        """Return the next working set, in ascending order."""
        problem, beta, residual = state.problem, state.beta, state.residual
        n_free = int(np.count_nonzero((beta > problem.lo) & (beta < problem.hi)))
        sizes = self._sizes
        size = max(min(int(self._policy.per_free * n_free), sizes.largest_set), sizes.smallest_set)
        size = min(size, state.gram.largest_block, problem.n_variables)
        if is_one_set(problem, state.gram, sizes):
            return np.arange(problem.n_variables)
        kept = self._last[: int(self._policy.kept * size)]
        taken = np.zeros(problem.n_variables, dtype=bool)
        taken[kept] = True
        top, bottom = state.extremes()
        if problem.n_groups == 0:
            top, bottom = np.zeros(1), np.zeros(1)
        n_places = max((size - len(kept)) // (2 * len(top)), 1)
        fresh = []
        for g in range(len(top)):
            mine = ~taken & (problem.group == g)
            growing = np.flatnonzero(mine & (beta < problem.hi) & (residual > bottom[g]))
            fresh.append(_largest(growing, residual[growing], n_places))
            taken[fresh[-1]] = True
            mine &= ~taken
            falling = np.flatnonzero(mine & (beta > problem.lo) & (residual < top[g]))
            fresh.append(_largest(falling, -residual[falling], n_places))
            taken[fresh[-1]] = True
        self._last = np.concatenate([*fresh, kept])
        return np.sort(self._last)


def _largest(index: Index, values: Vector, count: int) -> Index:
    if len(index) <= count:
        return index
    return index[np.argpartition(values, -count)[-count:]]
