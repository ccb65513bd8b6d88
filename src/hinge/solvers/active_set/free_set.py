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
from numpy.linalg import LinAlgError

from hinge.arrays import Floats, Index, Vector
from hinge.dual.optimality import violation_of
from hinge.dual.problem import DualProblem
from hinge.runtime.interrupt import requested
from hinge.runtime.prices import NS_PER_LAYOUT
from hinge.solvers.active_set.steps import (
    CHANGES,
    FREE,
    TOO_MANY,
    UNDER_WAY,
    System,
    drag,
    drop,
    free_worst,
    subtract_image,
    to_optimum,
)

# Most variables that may be free: the inverse takes 8 bytes per pair of them, and a change as many products.
MOST_FREE = 2500

# Places for variables still to be freed in a new inverse: moving it once in as many changes is cheap.
_SPARE = 64

# Violators freed between two updates of all residuals.
_MOST_FREED = 16

# Kernel values in single precision do not tell curvatures below a millionth.
_DEPENDENT_IN_SINGLE, _DEPENDENT = 1e-6, 1e-9

# Work before giving up, in multiplications for each pair of variables; rounds without a lower violation.
_MOST_WORK = 60.0
_PATIENCE = 60


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
        free = np.flatnonzero((beta > problem.lo) & (beta < problem.hi))
        n_groups = problem.n_groups
        present = np.unique(problem.group[free]) if n_groups else np.empty(0)
        if not 0 < len(free) <= MOST_FREE or len(present) < n_groups:
            raise LinAlgError("no free set: there must be some free variables in every group, and not too many")
        residual = residual_of(kernel, problem, beta) if residual is None else residual.astype(np.float64)
        dependent = _DEPENDENT_IN_SINGLE if kernel.dtype == np.float32 else _DEPENDENT
        nobody, nothing = np.empty(0, np.int64), np.empty(0)
        self._system = System(
            kernel, beta.copy(), residual, problem.lo, problem.hi, problem.group, n_groups, dependent,
            nobody, np.empty((0, 0)), nothing, nothing, nothing, np.zeros(2, np.int64), np.zeros(1),
        )  # fmt: skip
        self._lay_out(free)

    @property
    def beta(self) -> Vector:
        """The point."""
        beta: Vector = self._system.beta
        return beta

    @property
    def residual(self) -> Vector:
        """Its residual, up to date but for rounding."""
        residual: Vector = self._system.residual
        return residual

    @property
    def n_changes(self) -> int:
        """How often a variable was freed or dropped, since `settle` began."""
        return int(self._system.counts[CHANGES])

    @property
    def work(self) -> float:
        """Multiplications since `settle` began."""
        return float(self._system.work[0])

    @property
    def _free(self) -> Index:
        """The free variables that have a row in the system."""
        members: Index = self._system.members[: self._system.counts[FREE]]
        return members

    def _lay_out(self, free: Index) -> None:
        """Take those of the free variables that do not depend on others for members, and invert their system."""
        from scipy.linalg.blas import dsymm, dsyrk  # takes long, and most fits end without it
        from scipy.linalg.lapack import dpotri, dpstrf

        problem, n_groups, samples = self.problem, self.problem.n_groups, free % self.problem.n_samples
        matrix = self.kernel[np.ix_(samples, samples)].astype(np.float64)
        # Each sample is measured by its own size: beside one that is huge all others would look dependent. Of an
        # indefinite kernel k(x, x) need not be positive; such a sample is none that a system can have.
        sizes, tiny = matrix.diagonal(), np.finfo(np.float64).tiny
        scale = np.where(sizes > tiny, 1 / np.sqrt(np.maximum(sizes, tiny)), 0.0)
        matrix *= scale
        matrix *= scale[:, None]
        # The transpose is the same matrix, in the order that LAPACK overwrites without a copy.
        factor, order, rank, _ = dpstrf(matrix.T, lower=1, tol=self._system.dependent, overwrite_a=1)
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
        inverse, size = self._system.inverse, n_groups + rank
        if n_groups > 0:
            pulls = dsymm(1.0, lower, marks, lower=1)
            small = np.linalg.inv(marks.T @ pulls)
            lower = dsyrk(-1.0, pulls @ np.linalg.cholesky(small), beta=1.0, c=lower, lower=1, overwrite_c=1)
            inverse[:n_groups, :n_groups] = -small
            inverse[n_groups:size, :n_groups] = pulls @ small
        inverse[n_groups:size, n_groups:size] = lower
        self._system.members[:rank], self._system.counts[FREE] = free, rank

    def _make_room(self, n_free: int) -> None:
        """Move the system to arrays that have room for more than ``n_free`` members."""
        old, n_groups, n_members = self._system, self.problem.n_groups, len(self._free)
        room = min(n_free + _SPARE, MOST_FREE, self.problem.n_variables) + n_groups
        members, inverse = np.full(room, -1, dtype=np.int64), np.empty((room, room))
        members[:n_members] = old.members[:n_members]
        if n_members:
            size = n_members + n_groups
            inverse[:size, :size] = old.inverse[:size, :size]
        right, direction, column = np.zeros((3, room))
        self._system = old._replace(
            members=members, inverse=inverse, right=right, direction=direction, column=column
        )

    def copy(self) -> FreeSet:
        """Return an independent copy."""
        twin, old = object.__new__(FreeSet), self._system
        twin.kernel, twin.problem = self.kernel, self.problem
        twin._system = old._replace(
            beta=old.beta.copy(), residual=old.residual.copy(), counts=old.counts.copy(), work=old.work.copy()
        )
        twin._make_room(len(self._free))
        return twin

    def follow(self, problem: DualProblem) -> bool:
        """Go over to a problem with another box: variables at bounds, or outside the box, are taken to new ones.

        Returns
        -------
        bool
            Whether the free variables could follow.
        """
        old = self.problem
        self._set_problem(problem)
        target = np.where(self.beta >= old.hi, problem.hi, np.where(self.beta <= old.lo, problem.lo, self.beta))
        free = self._free
        is_inside = (self.beta[free] >= problem.lo[free]) & (self.beta[free] <= problem.hi[free])
        target[free] = self.beta[free]
        target = np.clip(target, problem.lo, problem.hi)
        if not self._release(free[~is_inside]):  # who is taken to a bound cannot follow the others
            return False
        self._system.residual[:] += problem.v - old.v
        dragged = np.flatnonzero(target != self.beta)
        return self._drag(dragged, target[dragged])

    def leave_out(self, problem: DualProblem, dragged: Index) -> bool:
        """Go over to a problem in which the variables ``dragged`` have an empty box at zero."""
        self._set_problem(problem)
        return self._release(dragged) and self._drag(np.asarray(dragged, dtype=np.int64), np.zeros(len(dragged)))

    def settle(self, tol: float, most_work: float | None = None, most_changes: float = np.inf) -> bool:
        """Free what violates until the violation is at most ``tol``; return whether it got there.

        It gives up after ``most_work`` multiplications: where very many variables become free, pair steps are
        better. No round begins after ``most_changes``, of which each changes every variable twice at most, nor
        when somebody asked to stop.
        """
        most_work = _MOST_WORK * self.problem.n_variables**2 if most_work is None else most_work
        self._system.counts[CHANGES], self._system.work[0] = 0, 0.0
        least, vain = np.inf, 0
        while True:
            is_there = to_optimum(self._system)
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
        self._system.residual[:] = residual_of(self.kernel, self.problem, self.beta)

    def restore_sums(self) -> None:
        """Give what rounding has taken from the sums to a free variable of each group."""
        problem, free = self.problem, self._free
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

    def _set_problem(self, problem: DualProblem) -> None:
        self.problem = problem
        self._system = self._system._replace(lo=problem.lo, hi=problem.hi)

    def _free_worst(self, tol: float, most_work: float) -> bool:
        """Free what violates most; return whether there is a point in going on."""
        code = free_worst(self._system, tol, most_work - self.work, _MOST_FREED)
        if code == TOO_MANY and len(self._free) < min(MOST_FREE, self.problem.n_variables):
            self._make_room(len(self._free))
            return True
        return bool(code == UNDER_WAY)

    def _release(self, variables: Index) -> bool:
        """Let the variables be free no more, those of them that are; return whether enough others stay free."""
        for variable in variables:
            place = np.flatnonzero(self._free == variable)
            if len(place) and not drop(self._system, int(place[0]), 0.0):
                return False
        return True

    def _drag(self, dragged: Index, target: Vector) -> bool:
        return not len(dragged) or bool(drag(self._system, dragged, target))


def layout_ns(problem: DualProblem, beta: Vector) -> float:
    """Nanoseconds that the inverse of the free variables at ``beta`` takes to lay out, roughly."""
    return NS_PER_LAYOUT * float(np.count_nonzero((beta > problem.lo) & (beta < problem.hi))) ** 3


def residual_of(kernel: Floats, problem: DualProblem, beta: Vector) -> Vector:
    """Return v − Kβ in double precision."""
    residual, used = problem.v.copy(), np.flatnonzero(beta)
    subtract_image(kernel, residual, used, beta[used])
    return residual
