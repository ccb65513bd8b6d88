"""The mutable state of a run: β and its residual, for all samples or for the active ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import DTypeLike

from hinge.arrays import Index, Vector
from hinge.dual.optimality import group_extremes, most_violation_of, objective_of, violation_of
from hinge.dual.problem import DualProblem
from hinge.dual.residuals import Reference, residual_since
from hinge.kernel.gram import Gram
from hinge.kernel.rounding import UNIT

# Rounding of weights is felt where it may be more than this share of the accuracy wanted.
FELT = 0.1

# What rounding may leave of a sum, relative to the sum of magnitudes: that of a thousand terms.
SUM_ERROR = 1e-13

# Rounding errors of many steps cancel: what is left is seldom more than this share of the bound on their sum.
_LIKELY_DRIFT = 0.01


def value_error(dtype: DTypeLike) -> float:
    """Return the error of a kernel value relative to the largest: two units in the last place."""
    return 2 * float(np.finfo(dtype).eps)


def restore_sums(problem: DualProblem, beta: Vector, diagonal: Vector) -> None:
    """Give what rounding has taken from a sum to the free variable of least curvature, k(x, x) of its sample."""
    for g, total in enumerate(problem.sums):
        mine = problem.group == g
        free = np.flatnonzero(mine & (beta > problem.lo) & (beta < problem.hi))
        if len(free):
            t = free[np.argmin(diagonal[free % len(diagonal)])]
            beta[t] = min(max(beta[t] + float(total - beta[mine].sum()), problem.lo[t]), problem.hi[t])
    if not keeps_sums(problem, beta):  # it had no room for that
        beta[:] = problem.near(beta)


def keeps_sums(problem: DualProblem, beta: Vector) -> bool:
    """Whether β sums to what it must in every group, but for rounding."""
    members = (beta[problem.group == g] for g in range(problem.n_groups))
    return all(
        abs(total - mine.sum()) <= SUM_ERROR * np.abs(mine).sum()
        for total, mine in zip(problem.sums, members, strict=True)
    )


@dataclass(eq=False)
class Lags:
    """Which samples have an old residual, and of which point.

    Attributes
    ----------
    epoch : int64 array of shape (n_samples,)
        For each sample, the number of the point that its residual belongs to; -1 where it is up to date.
    points : list of arrays
        Coefficients of the samples at those points.
    travel : list of float
        How far the weight vector has moved since each point, at most.
    """

    CURRENT: ClassVar[int] = -1  # residuals that belong to the point where the state is now

    epoch: Index
    points: list[Vector] = field(default_factory=list)
    travel: list[float] = field(default_factory=list)

    def distances(self) -> Vector:
        """Return how far the weight vector has moved since the residual of each sample, at most."""
        return np.array([*self.travel, 0.0])[self.epoch]  # the last is that of samples that are up to date

    @property
    def count(self) -> int:
        """Number of samples that lag."""
        return int(np.count_nonzero(self.epoch != self.CURRENT))


@dataclass(eq=False)
class State:
    """A feasible point of a problem on a Gram matrix.

    Attributes
    ----------
    problem : DualProblem
        What is solved.
    gram : Gram
        Its kernel values.
    beta, residual : arrays of shape (n_variables,)
        The point, and v − Kβ (less the ridge's part) as far as it is known.
    drift : float
        Bound on the error that rounding has left in the residual.
    is_stale : bool
        Whether part of the residual is out of date because a run ended early.
    reference : Reference, optional
        Where the residual was last computed in double precision or beyond; of a part, where it began.
    lagging : Lags, optional
        Which samples are out of reach, so that their residual may be an old one.
    vague : array of shape (n_samples,), optional
        How far residuals were from their true values where the run began, of samples of which that is more than
        rounding; 0 for all others.
    spent : float
        Bound on the error that rounding had left in residuals before the reference, and that was not taken out.
    """

    problem: DualProblem
    gram: Gram
    beta: Vector
    residual: Vector
    drift: float = 0.0
    is_stale: bool = False
    reference: Reference | None = None
    lagging: Lags | None = None
    vague: Vector | None = None
    spent: float = 0.0

    def violation(self) -> float:
        """Return the violation according to the residual."""
        return violation_of(self.problem, self.beta, self.residual)

    def objective(self) -> float:
        """Return the objective according to the residual."""
        return objective_of(self.problem, self.beta, self.residual)

    def extremes(self) -> tuple[Vector, Vector]:
        """Return `group_extremes` of this point."""
        return group_extremes(self.problem, self.beta, self.residual)

    def variables_of(self, samples: Index) -> Index:
        """Return the variables that belong to ``samples``, run by run."""
        copies = self.problem.n_variables // self.problem.n_samples
        return np.concatenate([samples + copy * self.problem.n_samples for copy in range(copies)])

    def product(self, changed: Index, step: Vector) -> Vector:
        """Return ``K δ`` for steps of the variables ``changed``: one value per sample."""
        n = self.problem.n_samples
        if self.problem.alike is None:
            by_sample = np.bincount(changed % n, weights=step, minlength=n).astype(np.float64, copy=False)
        else:
            everywhere = np.zeros(self.problem.n_variables)
            everywhere[changed] = step
            by_sample = self.problem.coefficients(everywhere)
        samples = np.flatnonzero(by_sample)
        result = np.zeros(self.gram.n)
        self.gram.update(result, samples, by_sample[samples])
        return -result

    def move(self, changed: Index, new: Vector) -> float:
        """Set β of ``changed`` to ``new`` and bring the residual up to date; return the objective's change.

        What rounding does to the sums does not count, which near the optimum would be more than all the rest.
        Nothing happens if the product is cancelled half-way.
        """
        step = new - self.beta[changed]
        moved = step != 0
        changed, step = changed[moved], step[moved]
        if not len(changed):
            return 0.0
        product = self.product(changed, step)
        before = self.residual[changed]
        self.beta[changed] = new[moved]
        self.residual.reshape(-1, self.problem.n_samples)[...] -= product
        if self.problem.ridge is not None:
            self.residual[changed] -= self.problem.ridge[changed] * step
        self.note_steps(float(np.dot(np.abs(step), self.gram.lengths[changed % self.problem.n_samples])))
        with np.errstate(over="ignore", invalid="ignore"):  # such a step is taken back
            slopes = before + self.residual[changed]
            for g in range(self.problem.n_groups):
                mine = self.problem.group[changed] == g
                slopes[mine] -= np.median(slopes[mine]) if mine.any() else 0.0
            return float(-0.5 * np.dot(step, slopes))

    def adopt(self, beta: Vector) -> float:
        """Take a feasible point near ``beta`` over, unless it is worse; return the violation then.

        The residual is computed anew, in double precision.
        """
        problem = self.problem
        beta = problem.near(beta)
        coefficients = problem.coefficients(beta)
        image = self.gram.product(coefficients)
        residual = problem.residual_of(beta, image)
        if self.is_stale or objective_of(problem, beta, residual) <= self.objective():
            self.beta[:], self.residual[:], self.is_stale = beta, residual, False
            self.note_reference(self.gram.rounding(coefficients))
        return self.violation()

    def note_steps(self, length: float) -> None:
        """Account for the rounding that steps left in the residual; their ``length`` is Σ |δ| √k(x, x)."""
        is_single = self.gram.precision == "single" and not self.gram.through_weights
        error = value_error(np.float32 if is_single else np.float64)
        self.drift += error * length * float(np.sqrt(self.gram.magnitude))

    @property
    def probable_drift(self) -> float:
        """What rounding has probably left in the residual."""
        return _LIKELY_DRIFT * self.drift

    def is_lost(self, violation: float) -> bool:
        """Whether the violation has sunk into what rounding has probably done, or is bound to do, to the residual.

        A unit in the last place of a variable makes a violation that no other β can be expected to lower. One huge
        sample does not hide what others violate: each is judged by its own size.
        """
        sizes = self.gram.lengths
        moved = float((np.abs(self.problem.coefficients(self.beta)) * sizes).max(initial=0.0))
        largest = float(sizes.max(initial=0.0))
        doubt = max(self.probable_drift, UNIT * moved * largest)
        if violation >= doubt or not doubt < np.inf:
            return violation < doubt
        errors = np.tile(doubt / largest * sizes, self.problem.n_variables // self.problem.n_samples)
        return most_violation_of(self.problem, self.beta, self.residual, -0.5 * errors) <= 0

    def restrict(self, samples: Index) -> State:
        """Return the state of ``samples`` alone, all others held where they are."""
        chosen = self.variables_of(samples)
        part = self.problem.restrict(chosen, len(samples), self.beta)
        gram = self.gram.restrict(samples)
        state = State(part, gram, self.beta[chosen], self.residual[chosen], self.drift)
        state.note_reference(np.zeros(len(samples)))
        return state

    def note_reference(self, error: Vector) -> None:
        """Remember this point as one whose residual is known to within ``error``."""
        everyone = np.ones(self.gram.n, dtype=bool)
        self.reference = Reference(self.beta.copy(), self.residual.copy(), error, everyone)
        self.vague, self.drift, self.spent = None, 0.0, 0.0

    def sharpen(self, tol: float) -> None:
        """Compute the residual anew, of a linear kernel, where rounding may be felt beside ``tol``."""
        assert self.reference is not None
        change = self.problem.coefficients(self.beta - self.reference.beta)
        if float(self.gram.rounding(change).max()) > FELT * tol:
            everyone = np.arange(self.gram.n)
            residual, error = residual_since(self.reference, self.problem, self.gram, self.beta, everyone, tol)
            self.residual[:] = residual.ravel()
            self.note_reference(error)
