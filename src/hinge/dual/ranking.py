"""Ranking: the dual with a variable for each pair of samples of one query that have different grades.

    minimise  ½ αᵀKα − Σβ    subject to   0 ≤ β_p ≤ C_p,   α = Σ β_p (e_i − e_j) over pairs p = (i, j)

where sample i has the higher grade (Joachims 2002, section 4). C_p = C w_i w_j: a sample of weight k stands for k
samples. The residual of a pair is u_p = 1 − (s_i − s_j) for the scores s = Kα; a pair violates by u_p where
β_p < C_p, and by −u_p where β_p > 0. There is no threshold, because it cancels in differences.

Nobody can keep n² variables, and nobody has to. At an optimum β_p is C_p where u_p > 0 and 0 where u_p < 0; only
pairs whose margin is met exactly lie between. A `PairPoint` is just that: scores which say where all pairs are,
and the few pairs that are elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.arrays import Index, Vector
from hinge.dual.pair_sums import Sorted, changed_pairs, sums_below, worst_pairs

# Share of what is added up that its rounding is smaller than.
_ROUNDING = 1e-14

# A pair that an evaluation finds to have changed costs two numbers; more than these are found in a second pass.
_ROOM = 1 << 16


@dataclass(frozen=True, eq=False)
class PairPoint:
    """β of all pairs: what scores imply, but for some pairs.

    Attributes
    ----------
    reference : array of shape (n_samples,)
        Scores. They imply the share ½ + u / 2h of C_p, cut off at 0 and 1; for h = 0 all of it where u > 0.
    width : float
        h.
    pairs : int64 array of shape (n_pairs, 2)
        Pairs that have a value of their own.
    values : array of shape (n_pairs,)
        Their β.
    """

    reference: Vector
    width: float
    pairs: Index
    values: Vector

    @classmethod
    def implied(cls, reference: Vector, width: float) -> PairPoint:
        """Return the point that scores imply for all pairs."""
        return cls(reference, width, np.empty((0, 2), np.int64), np.empty(0))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a point proves, given the scores that its coefficients make.

    Attributes
    ----------
    violation : float
        Largest violation of any pair.
    objective : float
        ½ αᵀKα − Σβ.
    gap : float
        The primal objective less the dual one.
    box_error : float
        Largest distance of a value outside of its box.
    """

    violation: float
    objective: float
    gap: float
    box_error: float


class RankingProblem:
    """Which samples are to be ranked above which, and at what price.

    Parameters
    ----------
    y : array of shape (n_samples,)
        Grades: the higher, the further up.
    query : array of shape (n_samples,)
        Samples are compared with others of the same query.
    C : float
        Price of a violated pair.
    weights : array, optional
        Weight of each sample; the price of a pair is C times both.

    Attributes
    ----------
    n_samples, n_queries : int
        How many there are.
    n_pairs : int
        Pairs of one query with different grades.

    Examples
    --------
    >>> problem = RankingProblem(np.array([2.0, 1.0, 1.0, 5.0]), np.array([0, 0, 0, 1]), C=1.0)
    >>> problem.n_pairs, problem.loss(np.array([0.5, 0.0, -3.0, 0.0]))
    (2, 0.5)
    """

    def __init__(self, y: Any, query: Any, C: float = 1.0, weights: Any = None) -> None:
        y, query = np.asarray(y, np.float64), np.asarray(query)
        self.n_samples = len(y)
        self.C = float(C)
        self.weights: Vector = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
        self._query: Index = np.unique(query, return_inverse=True)[1].astype(np.int64)
        self.n_queries = int(self._query.max(initial=-1)) + 1
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(self._query, minlength=self.n_queries))])
        self._grade, self._n_grades = _grades(y, self._query, self._starts)
        ones = np.ones((self.n_samples, 1))
        full, band = self.sums(np.zeros(self.n_samples), 0.0, ones)[:2]
        self.n_pairs = round(float((full + band).sum()))

    def sorted_by(self, score: Vector, is_mirrored: bool = False) -> Sorted:
        """Sort the samples; mirrored, the lower of two grades is the higher one and scores change their sign."""
        score, grade = np.ascontiguousarray(score), self._grade
        if is_mirrored:
            score, grade = -score, self._n_grades[self._query] - 1 - grade
        order = np.lexsort((score, self._query)).astype(np.int64, copy=False)
        return Sorted(order, self._starts, grade, self._n_grades, score)

    def sums(self, score: Vector, width: float, *moments: Vector) -> list[Vector]:
        """Add up moments over the lower samples of all pairs, and over the higher ones: full, band, full, band."""
        found = []
        for number, moment in enumerate(moments):
            full, band = np.empty_like(moment), np.empty_like(moment)
            trees = np.empty((3, int(self._n_grades.max(initial=0)) + 1, moment.shape[1]))
            sums_below(self.sorted_by(score, number == 1), width, moment, trees, full, band)
            found += [full, band]
        return found

    # ------------------------------------------------------------------ what scores imply

    def loss(self, score: Vector) -> float:
        """Return Σ C_p max(0, u_p)."""
        moments = np.column_stack([self.weights, self.weights * score])
        full = self.sums(score, 0.0, moments)[0]
        return self.C * float(np.dot(self.weights, full[:, 0] * (1 - score) + full[:, 1]))

    def smooth_loss(self, score: Vector, width: float) -> float:
        """Return Σ C_p ℓ(u_p), where ℓ is u beyond h and (u + h)² / 4h in the band."""
        w = self.weights
        full, band = self.sums(score, width, np.column_stack([w, w * score, w * score**2]))
        ahead = 1 - score + width  # u + h = ahead + s_j
        inside = band[:, 0] * ahead**2 + 2 * band[:, 1] * ahead + band[:, 2]
        return self.C * float(np.dot(w, full[:, 0] * (1 - score) + full[:, 1] + inside / (4 * width)))

    def implied(self, score: Vector, width: float) -> tuple[Vector, float]:
        """Return the coefficients α and the sum of β that scores imply."""
        w = self.weights
        moments = np.column_stack([w, w * score])
        up_full, up_band, down_full, down_band = self.sums(score, width, moments, moments)
        up, down = up_full[:, 0], down_full[:, 0]
        if width > 0:
            scale = 1 / (2 * width)
            up = up + up_band[:, 0] * (0.5 + (1 - score) * scale) + up_band[:, 1] * scale
            down = down + down_band[:, 0] * (0.5 + (1 + score) * scale) - down_band[:, 1] * scale
        up, down = self.C * w * up, self.C * w * down
        return up - down, float(up.sum())

    def curvature(self, score: Vector, width: float) -> tuple[Vector, Any]:
        """Return Λ of the band as a Laplacian L = DᵀΛD: its diagonal, and a function that applies it."""
        w, scale = self.weights, self.C / (2 * width)
        ordered = self.sorted_by(score), self.sorted_by(score, is_mirrored=True)
        trees = np.empty((3, int(self._n_grades.max(initial=0)) + 1, 1))
        full, band = np.empty((2, self.n_samples, 1))

        def both_ways(moment: Vector) -> Vector:
            total = np.zeros(self.n_samples)
            for samples in ordered:
                sums_below(samples, width, moment[:, None], trees, full, band)
                total += band[:, 0]
            return scale * w * total

        diagonal = both_ways(w)
        return diagonal, lambda z: diagonal * z - both_ways(w * z)

    def n_in_band(self, score: Vector, width: float) -> int:
        """Count the pairs in the band."""
        band = self.sums(score, width, np.ones((self.n_samples, 1)))[1]
        return round(float(band.sum()))

    # ------------------------------------------------------------------ points

    def prices(self, pairs: Index) -> Vector:
        """Return C_p of some pairs."""
        return self.C * self.weights[pairs[:, 0]] * self.weights[pairs[:, 1]]

    def nowhere(self) -> PairPoint:
        """Return β = 0, by scores that meet all margins with room."""
        return PairPoint.implied(2.0 * self._grade.astype(np.float64), 0.0)

    def coefficients(self, point: PairPoint) -> tuple[Vector, float]:
        """Return α and Σβ of a point."""
        alpha, total = self.implied(point.reference, point.width)
        change = point.values - self.prices(point.pairs) * shares(point.reference, point.width, point.pairs)
        moved = alpha + self.spread(point.pairs, change)
        # What pairs above and below leave of each other where they cancel is rounding, and no support vector.
        sizes = np.abs(alpha)
        np.add.at(sizes, point.pairs.ravel(), np.repeat(np.abs(change), 2))
        return np.where(np.abs(moved) <= _ROUNDING * sizes, 0.0, moved), total + float(change.sum())

    def spread(self, pairs: Index, values: Vector) -> Vector:
        """Return Σ value (e_i − e_j) over some pairs."""
        n = self.n_samples
        up = np.bincount(pairs[:, 0], weights=values, minlength=n)
        return np.asarray(up - np.bincount(pairs[:, 1], weights=values, minlength=n), np.float64)

    def moved(self, point: PairPoint, score: Vector) -> PairPoint:
        """Return the same β as seen from other scores, without a band."""
        travel = np.zeros(self.n_queries)
        np.maximum.at(travel, self._query, np.abs(score - point.reference))
        # |u| of a pair changes by at most twice the travel, and rounds; a pair in the band may be anywhere in it.
        radius = 2 * travel * (1 + 1e-12) + point.width + 1e-12
        samples, before, pairs = self.sorted_by(score), point.reference, np.empty((_ROOM, 2), np.int64)
        count = changed_pairs(samples, before, point.width, radius, pairs)
        if count > len(pairs):
            pairs = np.empty((count, 2), np.int64)
            changed_pairs(samples, before, point.width, radius, pairs)
        pairs = pairs[:count]
        pairs = pairs[~np.isin(self._keys(pairs), self._keys(point.pairs))]
        values = self.prices(pairs) * shares(before, point.width, pairs)
        pairs, values = np.concatenate([point.pairs, pairs]), np.concatenate([point.values, values])
        is_own = values != self.prices(pairs) * shares(score, 0.0, pairs)
        return PairPoint(score, 0.0, pairs[is_own], values[is_own])

    def _keys(self, pairs: Index) -> Index:
        return pairs[:, 0] * self.n_samples + pairs[:, 1]

    def evidence(self, point: PairPoint, alpha: Vector, total: float, score: Vector) -> Evidence:
        """Return what a point proves; α and Σβ are its own, and the scores are Kα."""
        objective = 0.5 * float(np.dot(alpha, score)) - total
        gap = float(np.dot(alpha, score)) + self.loss(score) - total
        prices = self.prices(point.pairs)
        violation = self.violations(point, score).max(initial=0.0)
        if self.n_pairs:
            tree = np.empty(int(self._n_grades.max(initial=0)) + 1)
            violation = max(violation, *worst_pairs(self.sorted_by(point.reference), point.width, score, tree))
        outside = np.maximum(-point.values, point.values - prices).max(initial=0.0)
        return Evidence(float(violation), objective, gap, float(outside))

    def violations(self, point: PairPoint, score: Vector) -> Vector:
        """Return the violation of each pair that has a value of its own."""
        u = shortfall(score, point.pairs)
        short = np.where(point.values < self.prices(point.pairs), u, 0.0)
        over = np.where(point.values > 0, -u, 0.0)
        return np.maximum(np.maximum(short, over), 0.0)


def shortfall(score: Vector, pairs: Index) -> Vector:
    """Return u of some pairs: how much their scores fall short of the margin."""
    return np.asarray(1.0 - (score[pairs[:, 0]] - score[pairs[:, 1]]))


def shares(score: Vector, width: float, pairs: Index) -> Vector:
    """Return the shares of C_p that scores imply for some pairs."""
    u = shortfall(score, pairs)
    return (u > 0).astype(np.float64) if width == 0 else np.clip(0.5 + u / (2 * width), 0.0, 1.0)


def _grades(y: Vector, query: Index, starts: Index) -> tuple[Index, Index]:
    """Return the rank of each sample's grade among those of its query, and how many these are."""
    order = np.lexsort((y, query))
    rises = np.concatenate([[0], (np.diff(y[order]) != 0) & (np.diff(query[order]) == 0)]).astype(np.int64)
    level = np.cumsum(rises)
    level -= level[starts[:-1]][query[order]]
    grade = np.empty(len(y), np.int64)
    grade[order] = level
    n_grades = np.zeros(len(starts) - 1, np.int64)
    np.maximum.at(n_grades, query, grade + 1)
    return grade, n_grades


def order_of_pairs(problem: RankingProblem, score: Vector) -> tuple[float, float, float]:
    """Return the weights of pairs that scores put in the right order, leave equal, and swap.

    Examples
    --------
    >>> order_of_pairs(RankingProblem(np.array([2, 1, 0]), np.zeros(3)), np.array([5.0, 1.0, 1.0]))
    (2.0, 1.0, 0.0)
    """
    # Ranks in steps of four: u is −3 or less, 1, and 5 or more.
    ranks = 4.0 * np.unique(score, return_inverse=True)[1].astype(np.float64)
    w = problem.weights
    weight = w[:, None].copy()
    full, band = problem.sums(ranks, 2.0, weight)
    everything = problem.sums(np.zeros(problem.n_samples), 2.0, weight)[1]
    swapped, equal, total = (float(np.dot(w, part[:, 0])) for part in (full, band, everything))
    return total - equal - swapped, equal, swapped
