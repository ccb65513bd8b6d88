"""The one problem that every solver sees.

    minimise  ½ βᵀKβ − vᵀβ    subject to   lo ≤ β ≤ hi   and in every group  Σβ = constant

K is the plain kernel matrix between samples and β the *signed* dual variable (β = yα): no label ever multiplies
K. The residual r = v − Kβ is the negative gradient. Mass moves inside a group from j (β_j > lo_j) to i
(β_i < hi_i) where r_i > r_j; the point is optimal when in every group

    max { r_i : β_i < hi_i }  ≤  min { r_j : β_j > lo_j },

and the amount by which this fails is the *violation*. The value between the two is the group's multiplier. A
problem without groups has no sum to keep: its multiplier is zero and each variable moves alone.

Squared losses add a *ridge* to the diagonal of the matrix, ½ Σ ρ_t β_t² to the objective and −ρ_t β_t to the
residual of each variable (Bottou & Lin section 1.2.4): the box has no upper bound then, and needs none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Index, Vector
from hinge.dual.alike import Sums, best_shared
from hinge.runtime.jit import compiled

# Most variables that take up what rounding left of a sum.
_ABSORBERS = 8


@dataclass(frozen=True, eq=False)
class DualProblem:
    """A support vector machine's dual, whatever its formulation.

    Parameters
    ----------
    v : array of shape (n_variables,)
        Linear part.
    lo, hi : arrays of shape (n_variables,)
        Box; infinite bounds are allowed.
    group : int8 array of shape (n_variables,)
        Group of every variable, 0 to n_groups - 1; all 0 where there is no group.
    sums : array of shape (n_groups,)
        What β must sum to in each group; empty for a problem without threshold.
    n_samples : int
        Variable t belongs to sample ``t % n_samples``.
    start : array of shape (n_variables,)
        A feasible point.
    ridge : array of shape (n_variables,), optional
        What is added to the diagonal, variable by variable; positive.
    alike : int64 array of shape (n_samples,), optional
        For each sample the first that is the same, where somebody has looked: theirs is the coefficient of all.

    Examples
    --------
    >>> from hinge.dual.formulations import c_svc
    >>> problem = c_svc(np.array([1, -1, 1]), C=2.0)
    >>> problem.lo, problem.hi, problem.sums
    (array([ 0., -2.,  0.]), array([2., 0., 2.]), array([0.]))
    """

    v: Vector
    lo: Vector
    hi: Vector
    group: NDArray[np.int8]
    sums: Vector
    n_samples: int
    start: Vector
    ridge: Vector | None = None
    alike: Index | None = None

    @property
    def n_variables(self) -> int:
        """Number of dual variables: one or two a sample."""
        return len(self.v)

    @property
    def n_groups(self) -> int:
        """Number of equality constraints."""
        return len(self.sums)

    @property
    def sample(self) -> NDArray[np.int64]:
        """Sample of every variable."""
        return np.arange(self.n_variables, dtype=np.int64) % self.n_samples

    def coefficients(self, beta: Vector) -> Vector:
        """Add up the variables of each sample: Σβ over the variables that belong to it."""
        if self.alike is not None:
            return self.change(beta, np.zeros_like(beta))[0]
        return beta.reshape(-1, self.n_samples).sum(axis=0)

    def change(self, beta: Vector, former: Vector) -> tuple[Vector, Vector]:
        """Add up the changes of the variables of each sample, and what rounding took off these sums."""
        sums = Sums.none(self.n_samples)
        for term in (*beta.reshape(-1, self.n_samples), *-former.reshape(-1, self.n_samples)):
            sums = sums.plus(term)
        if self.alike is not None:
            sums = sums.merged(self.alike)
        return sums.settled()

    def best_shared(self, beta: Vector) -> Vector:
        """Return the best point with the same coefficients as ``beta``, of variables with bounds and no ridge."""
        kinds = self.group * np.int64(self.n_samples)
        kinds += self.sample if self.alike is None else self.alike[self.sample]
        return best_shared(beta, self.v, self.lo, self.hi, kinds)

    def residual_of(self, beta: Vector, image: Vector) -> Vector:
        """Return the residual of every variable, given ``image``, which is Kβ: one value per sample."""
        residual = (self.v.reshape(-1, self.n_samples) - image).ravel()
        return residual if self.ridge is None else residual - self.ridge * beta

    def image_of(self, beta: Vector, residual: Vector) -> Vector:
        """Return Kβ, one value per sample, given the residual of every variable."""
        n = self.n_samples
        image = self.v[:n] - residual[:n]
        return image if self.ridge is None else image - self.ridge[:n] * beta[:n]

    def restrict(self, chosen: NDArray[np.int64], n_samples: int, beta: Vector) -> DualProblem:
        """Return the problem of the variables ``chosen``, runs of ``n_samples``, all others held at ``beta``."""
        group, start = self.group[chosen], beta[chosen]
        sums = np.array([start[group == g].sum() for g in range(self.n_groups)])
        ridge = None if self.ridge is None else self.ridge[chosen]
        return DualProblem(self.v[chosen], self.lo[chosen], self.hi[chosen], group, sums, n_samples, start, ridge)

    def check_point(self, beta: Any, name: str = "beta") -> Vector:
        """Return ``beta`` as an array of one finite value per variable, or raise ValueError."""
        beta = np.asarray(beta, dtype=np.float64)
        if beta.shape != self.v.shape:
            raise ValueError(f"{name} must have one value per variable: shape {self.v.shape}, got {beta.shape}")
        if not np.isfinite(beta).all():
            raise ValueError(f"{name} contains NaN or infinity; every value must be finite")
        return beta

    def project(self, beta: Any) -> Vector:
        """Return the feasible point nearest to ``beta``.

        In each group that is ``clip(β − λ, lo, hi)`` for the shift λ at which the sum comes out right.
        """
        beta = self.check_point(beta, "the start")
        projected = np.clip(beta, self.lo, self.hi)
        for g, target in enumerate(self.sums):
            members = slice(None) if self.n_groups == 1 else np.flatnonzero(self.group == g)
            box = self.lo[members], self.hi[members]
            projected[members] = _clip_to_sum(beta[members], *box, float(target))
        return projected

    def near(self, beta: Any) -> Vector:
        """Return a feasible point near ``beta`` with the same variables at their bounds, as far as possible.

        A start for a solver: the nearest point would move every variable a little, and samples that are no
        support vectors would become some.
        """
        point = np.clip(self.check_point(beta, "the start"), self.lo, self.hi)
        for g, target in enumerate(self.sums):
            mine = self.group == g
            inside = np.flatnonzero(mine & (point > self.lo) & (point < self.hi))
            rest = float(target - point[mine].sum() + point[inside].sum())
            lo, hi = self.lo[inside], self.hi[inside]
            if not lo.sum() <= rest <= hi.sum():
                return self.project(beta)
            if len(inside):
                point[inside] = _clip_to_sum(point[inside], lo, hi, rest)
        return point


def _clip_to_sum(beta: Vector, lo: Vector, hi: Vector, target: float) -> Vector:
    """Return ``clip(beta - shift, lo, hi)`` with the shift for which it sums to ``target``."""
    clipped = np.clip(beta, lo, hi)
    if abs(clipped.sum() - target) > 1e-13 * (np.abs(beta).sum() + abs(target)):
        shift = shift_for(beta, lo, hi, np.ones(len(beta)), target)
        clipped = np.clip(beta - shift, lo, hi)
        # What is at a bound but for the rounding of the shift is meant to be there.
        rounding = 8 * np.finfo(np.float64).eps * (np.abs(beta).max() + abs(shift))
        clipped = np.where(np.abs(clipped - lo) <= rounding, lo, clipped)
        clipped = np.where(np.abs(clipped - hi) <= rounding, hi, clipped)
    return _absorb_rounding(clipped, lo, hi, target)


def shift_for(beta: Vector, lo: Vector, hi: Vector, pace: Vector, target: float) -> float:
    """Return the shift at which ``Σ clip(beta - shift * pace, lo, hi)``, falling with the shift, is ``target``."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # out of reach of this pace: no breakpoint
        breaks = np.concatenate([(beta - hi) / pace, (beta - lo) / pace])
    breaks = np.sort(breaks[np.isfinite(breaks)])

    def total(shift: float) -> float:
        return float(_clipped_sum(beta, lo, hi, pace, shift))

    low, high = -1, len(breaks)  # total(breaks[low]) > target >= total(breaks[high]), as far as they exist
    while high - low > 1:
        middle = (low + high) // 2
        if total(breaks[middle]) > target:
            low = middle
        else:
            high = middle
    # Between neighbouring breakpoints the total is linear; beyond the ends only unbounded variables move it.
    if not len(breaks):
        return 0.0  # every bound is too far away for a double: no shift of this pace is felt
    if low < 0 or high == len(breaks):
        edge = breaks[high if low < 0 else low]
        moving = float(pace[~np.isfinite(hi if low < 0 else lo)].sum())
        return float(edge + (total(edge) - target) / moving) if moving else float(edge)
    left, right = total(breaks[low]), total(breaks[high])
    return float(breaks[low] + (breaks[high] - breaks[low]) * (left - target) / (left - right))


@compiled
def _clipped_sum(beta: Vector, lo: Vector, hi: Vector, pace: Vector, shift: float) -> float:
    """Return ``Σ clip(beta - shift * pace, lo, hi)``."""
    total = 0.0
    for t in range(beta.shape[0]):
        total += min(max(beta[t] - shift * pace[t], lo[t]), hi[t])
    return total


def _absorb_rounding(beta: Vector, lo: Vector, hi: Vector, target: float) -> Vector:
    """Put what rounding left of ``target - Σβ`` on the variables that have room for it."""
    excess = target - beta.sum()
    room = np.minimum(hi - beta, beta - lo)
    for _ in range(min(_ABSORBERS, len(beta))):
        t = int(np.argmax(room))
        if excess == 0 or not room[t] > 0:  # what rests at a bound stays there
            break
        moved = float(np.clip(beta[t] + excess, lo[t], hi[t]))
        excess -= moved - beta[t]
        beta[t], room[t] = moved, 0.0
    return beta
