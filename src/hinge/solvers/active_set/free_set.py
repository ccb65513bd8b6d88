"""To the optimum by linear algebra on the free variables.

At large C the free variables are strongly coupled and pair steps zigzag (Bottou & Lin section 1.6.3): many
variables must move a little, together. An active-set method moves them together. With F the free variables it
holds the inverse M of

    [ 0   E'  ]        E: one column a group, marking its free variables
    [ E  K_FF ]

and changes it by one rank when a variable comes to a bound or leaves one. There are two kinds of steps:

* *settle*: free the variables that violate most, step to the optimum of the free ones or to the first bound on the
  way, and so on. The objective falls with every step;
* *drag*, from a neighbour's solution to one's own: some variables are taken to given values (to their new bound
  where C grew, to zero where a sample is left out) while the free ones follow, so that their residuals stay equal.

This is a primal active-set method; the path of solutions that `drag` follows is that of Hastie et al. (2004)
without its breakpoints for variables at bounds. The result is checked by whoever asked for it: nothing here claims
to be optimal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dsymm, dsyrk
from scipy.linalg.lapack import dpotri, dpstrf

from hinge.arrays import Floats, Index, Vector
from hinge.dual.optimality import violation_of
from hinge.dual.problem import DualProblem
from hinge.runtime.interrupt import requested
from hinge.solvers.active_set.inverse import remove
from hinge.solvers.active_set.steps import (
    PASS,
    TOO_MANY,
    UNDER_WAY,
    can_drop,
    drag,
    free_worst,
    subtract_image,
    to_optimum,
)

# Most variables that may be free: the inverse takes 8 bytes a pair of them, and a change as many multiplications.
MOST_FREE = 2500

# Places for variables still to be freed when the inverse is laid out, as a share of those free and at least.
_SPARE_SHARE, _SPARE = 0.5, 64

# Violators freed between two updates of all residuals.
_MOST_FREED = 16

# Nanoseconds that a change takes for every pair of free variables, and the layout of the inverse for every triple.
NS_OF_CHANGE, _NS_OF_LAYOUT = 0.6, 0.1

# Kernel values in single precision do not tell curvatures below a millionth.
_DEPENDENT_IN_SINGLE, _DEPENDENT = 1e-6, 1e-9

# Work before giving up, in multiplications for each pair of variables; rounds without a lower violation.
_MOST_WORK = 60.0
_PATIENCE = 60

# Looking at all residuals is like some moved variables more.
_LOOKS = 10


class FreeSet:
    """A feasible point, its residual, its free variables and the inverse of their system.

    Parameters
    ----------
    kernel : array of shape (n, n)
        Kernel values.
    problem : DualProblem
        The problem.
    beta : array
        A feasible point; copied.
    residual : array, optional
        Its residual, where that is known; copied.

    Raises
    ------
    LinAlgError
        The free variables are none, too many, or have no positive definite matrix.
    """

    def __init__(self, kernel: Floats, problem: DualProblem, beta: Vector, residual: Vector | None = None) -> None:
        self.kernel = kernel
        self.problem = problem
        self.beta = beta.copy()
        free = np.flatnonzero((beta > problem.lo) & (beta < problem.hi))
        n_groups = problem.n_groups
        present = np.unique(problem.group[free]) if n_groups else np.empty(0)
        if not 0 < len(free) <= MOST_FREE or len(present) < n_groups:
            raise LinAlgError("no free set: there must be some free variables in every group, and not too many")
        self._members = np.empty(0, np.int64)
        self._inverse = np.empty((0, 0))
        self._n_free = 0
        self._lay_out(free)
        self.n_changes, self.work = 0, 0.0
        self.residual = residual_of(kernel, problem, beta) if residual is None else residual.astype(np.float64)

    @property
    def _dependent(self) -> float:
        """Share of k(x, x) at which a variable's curvature says that it depends on the free ones."""
        return _DEPENDENT_IN_SINGLE if self.kernel.dtype == np.float32 else _DEPENDENT

    def _lay_out(self, free: Index) -> None:
        """Take those of the free variables that do not depend on others for members, and invert their system."""
        problem, n_groups, samples = self.problem, self.problem.n_groups, free % self.problem.n_samples
        matrix = self.kernel[np.ix_(samples, samples)].astype(np.float64)
        # Each sample is measured by its own size: beside one that is huge all others would look dependent.
        scale = 1 / np.sqrt(np.maximum(matrix.diagonal(), np.finfo(np.float64).tiny))
        matrix *= scale
        matrix *= scale[:, None]
        # The transpose is the same matrix, in the order that LAPACK overwrites without a copy.
        factor, order, rank, _ = dpstrf(matrix.T, lower=1, tol=self._dependent, overwrite_a=1)
        free, scale = free[order[:rank] - 1], scale[order[:rank] - 1]
        marks = np.equal.outer(problem.group[free], np.arange(n_groups)).astype(np.float64)
        # LAPACK would print of an empty matrix, to standard output, that it is none.
        is_regular = rank > 0 and bool(marks.any(axis=0).all())
        lower, failure = dpotri(factor[:rank, :rank], lower=1, overwrite_c=1) if is_regular else (factor, 1)
        if failure:
            raise LinAlgError("the kernel matrix of the free variables is singular")
        lower *= scale
        lower *= scale[:, None]
        self._make_room(rank)
        size = n_groups + rank
        if n_groups > 0:
            pulls = dsymm(1.0, lower, marks, lower=1)
            small = np.linalg.inv(marks.T @ pulls)
            lower = dsyrk(-1.0, pulls @ np.linalg.cholesky(small), beta=1.0, c=lower, lower=1, overwrite_c=1)
            self._inverse[:n_groups, :n_groups] = -small
            self._inverse[n_groups:size, :n_groups] = pulls @ small
        self._inverse[n_groups:size, n_groups:size] = lower
        self._members[:rank], self._n_free = free, rank

    def _make_room(self, n_free: int) -> None:
        n_groups = self.problem.n_groups
        spare = max(int(_SPARE_SHARE * n_free), _SPARE)
        room = min(n_free + spare, MOST_FREE, self.problem.n_variables) + n_groups
        old, size = self._inverse, self._n_free + n_groups if self._n_free else 0
        members = np.full(room, -1, dtype=np.int64)
        members[: self._n_free] = self._members[: self._n_free]
        self._members = members
        self._inverse = np.empty((room, room))
        self._inverse[:size, :size] = old[:size, :size]

    def copy(self) -> FreeSet:
        """Return an independent copy."""
        twin = object.__new__(FreeSet)
        twin.kernel, twin.problem, twin.n_changes, twin.work = self.kernel, self.problem, 0, 0.0
        twin.beta, twin.residual = self.beta.copy(), self.residual.copy()
        twin._members, twin._inverse, twin._n_free = self._members, self._inverse, self._n_free
        twin._make_room(self._n_free)
        return twin

    def follow(self, problem: DualProblem) -> bool:
        """Go over to a problem with another box: variables at bounds, or outside the box, are taken to new ones.

        Returns
        -------
        bool
            Whether the free variables could follow.
        """
        old = self.problem
        self.problem = problem
        target = np.where(self.beta >= old.hi, problem.hi, np.where(self.beta <= old.lo, problem.lo, self.beta))
        free = self._members[: self._n_free]
        is_inside = (self.beta[free] >= problem.lo[free]) & (self.beta[free] <= problem.hi[free])
        target[free] = self.beta[free]
        target = np.clip(target, problem.lo, problem.hi)
        if not self._release(free[~is_inside]):  # who is taken to a bound cannot follow the others
            return False
        self.residual += problem.v - old.v
        dragged = np.flatnonzero(target != self.beta)
        return self._drag(dragged, target[dragged])

    def leave_out(self, problem: DualProblem, dragged: Index) -> bool:
        """Go over to a problem in which the variables ``dragged`` have an empty box at zero."""
        self.problem = problem
        return self._release(dragged) and self._drag(np.asarray(dragged, dtype=np.int64), np.zeros(len(dragged)))

    def settle(self, tol: float, most_work: float | None = None, most_changes: float = np.inf) -> bool:
        """Free what violates until the violation is at most ``tol``; return whether it got there.

        It gives up after ``most_work`` multiplications: where very many variables become free, pair steps are
        better. No round begins after ``most_changes``, of which each changes every variable twice at most, nor
        when somebody asked to stop.
        """
        most_work = _MOST_WORK * self.problem.n_variables**2 if most_work is None else most_work
        self.n_changes, self.work = 0, 0.0
        least, vain = np.inf, 0
        while True:
            is_there = self._to_optimum()
            violation = violation_of(self.problem, self.beta, self.residual)
            if is_there and violation <= tol:
                return True
            least, vain = (violation, 0) if violation < 0.9 * least else (least, vain + 1)
            if not is_there or vain > _PATIENCE or self.work > most_work or self.n_changes > most_changes:
                return False
            if requested():
                return False
            if not self._free_worst(tol, most_work):
                return False

    def settled(self) -> tuple[Vector, Vector]:
        """Return copies of the point and its residual, with rounding taken out of them."""
        self.refresh()
        return self.beta.copy(), self.residual.copy()

    def refresh(self) -> None:
        """Take rounding out of the point: what the sums lack goes to the free variables, the residual is new."""
        self.restore_sums()
        self.residual = residual_of(self.kernel, self.problem, self.beta)

    def restore_sums(self) -> None:
        """Give what rounding has taken from the sums to a free variable of each group."""
        problem, free = self.problem, self._members[: self._n_free]
        for g, total in enumerate(problem.sums):
            mine = free[problem.group[free] == g]
            lack = float(total - self.beta[problem.group == g].sum())
            if len(mine):
                room = np.minimum(problem.hi[mine] - self.beta[mine], self.beta[mine] - problem.lo[mine])
                roomiest = mine[np.argmax(room)]
                before = self.beta[roomiest]
                self.beta[roomiest] = min(max(before + lack, problem.lo[roomiest]), problem.hi[roomiest])
                row = self.kernel[roomiest % problem.n_samples].astype(np.float64)
                self.residual.reshape(-1, problem.n_samples)[...] -= (self.beta[roomiest] - before) * row

    @property
    def _box(self) -> tuple[Vector, Vector, NDArray[np.int8], int]:
        problem = self.problem
        return problem.lo, problem.hi, problem.group, problem.n_groups

    def _to_optimum(self) -> bool:
        """Take the free variables to their optimum; return whether they got there."""
        n_moved = self._n_free + _LOOKS
        is_there, self._n_free, dropped = to_optimum(
            self.kernel, self.beta, self.residual, *self._box, self._members, self._n_free, self._inverse
        )
        self.n_changes += dropped
        self.work += dropped * self._n_free**2 + PASS * n_moved * self.problem.n_variables
        return bool(is_there)

    def _free_worst(self, tol: float, most_work: float) -> bool:
        """Free what violates most; return whether there is a point in going on."""
        code, self._n_free, changes, work = free_worst(
            self.kernel, self.beta, self.residual, *self._box, self._members, self._n_free, self._inverse,
            self._dependent, tol, most_work - self.work, _MOST_FREED,
        )  # fmt: skip
        self.n_changes += changes
        self.work += work
        if code == TOO_MANY and self._n_free < min(MOST_FREE, self.problem.n_variables):
            self._make_room(self._n_free)
            return True
        return bool(code == UNDER_WAY)

    def _drop(self, place: int) -> bool:
        n_groups = self.problem.n_groups
        size = self._n_free + n_groups
        if not can_drop(self._inverse, self._members, self._n_free, self.problem.group, n_groups, place):
            return False
        remove(self._inverse, size, n_groups + place, np.empty(size))
        self._n_free -= 1
        self._members[place] = self._members[self._n_free]
        return True

    def _release(self, variables: Index) -> bool:
        """Let the variables be free no more, those of them that are; return whether enough others stay free."""
        for variable in variables:
            place = np.flatnonzero(self._members[: self._n_free] == variable)
            if len(place) and not self._drop(int(place[0])):
                return False
        return True

    def _drag(self, dragged: Index, target: Vector) -> bool:
        if not len(dragged):
            return True
        ok, self._n_free = drag(
            self.kernel, self.beta, self.residual, *self._box, self._members, self._n_free, self._inverse, dragged,
            target,
        )  # fmt: skip
        return bool(ok)


def layout_ns(problem: DualProblem, beta: Vector) -> float:
    """Nanoseconds that the inverse of the free variables at ``beta`` takes to lay out, roughly."""
    return _NS_OF_LAYOUT * float(np.count_nonzero((beta > problem.lo) & (beta < problem.hi))) ** 3


def residual_of(kernel: Floats, problem: DualProblem, beta: Vector) -> Vector:
    """Return v − Kβ in double precision."""
    residual, used = problem.v.copy(), np.flatnonzero(beta)
    subtract_image(kernel, residual, used, beta[used])
    return residual
