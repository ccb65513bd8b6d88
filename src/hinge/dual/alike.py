"""Samples that are there more than once: their variables meet K as one coefficient.

What two copies of a sample do to Kβ cancels where they are labelled differently, however large they are and
whatever k(x, x) is. Added up before they meet K they leave no rounding behind; and mass that moves between them
changes the linear part of the objective alone, so that where it is best is known without a step.

Which samples are alike is said by an array: for each sample the first that is the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hinge.arrays import Index, Vector

# Most variables of a kind that take up what rounding left of their sum, each a smaller rest.
_ABSORBERS = 8


class Sums(NamedTuple):
    """Sums, what rounding has taken from them, and what it has taken from that.

    Terms of 1e14 may cancel to 1e-17: that is beyond twice the digits of a double, and it is all that is left.
    """

    total: Vector
    lost: Vector
    dust: Vector

    @classmethod
    def none(cls, n: int) -> Sums:
        """Return sums of nothing."""
        return cls(np.zeros(n), np.zeros(n), np.zeros(n))

    def plus(self, term: Vector) -> Sums:
        """Add a term to each sum."""
        total, spill = _exactly(self.total, term)
        lost, dust = _exactly(self.lost, spill)
        return Sums(total, lost, self.dust + dust)

    def merged(self, alike: Index) -> Sums:
        """Give all that samples have to the first of those alike."""
        sums = Sums.none(len(alike))
        for samples in _one_of_each(alike):
            first = alike[samples]
            those = Sums(*(part[first] for part in sums))
            for part in self:
                those = those.plus(part[samples])
            for part, new in zip(sums, those, strict=True):
                part[first] = new
        return sums

    def settled(self) -> tuple[Vector, Vector]:
        """Return the double next to each sum, and what is left."""
        lost, dust = _exactly(self.lost, self.dust)
        total, left = _exactly(self.total, lost)
        return _exactly(total, left + dust)  # where the first two cancel, the dust is much of what is left


def _exactly(a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """Return ``a + b`` and what rounding took from it (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _one_of_each(alike: Index) -> Iterator[Index]:
    """Yield the first samples of all kinds, the second samples, and so on."""
    order = np.argsort(alike, kind="stable")
    ranks = np.arange(len(alike)) - np.searchsorted(alike[order], alike[order])
    by_rank = order[np.argsort(ranks, kind="stable")]
    yield from np.split(by_rank, np.cumsum(np.bincount(ranks))[:-1])


def best_shared(beta: Vector, v: Vector, lo: Vector, hi: Vector, kinds: Index) -> Vector:
    """Return the best point at which the variables of each kind have the same sum as at ``beta``.

    Where mass does not meet K it belongs to the variables of largest v. One variable of a kind is inside its box
    then, and some small ones that take what rounding left of the sum, as k(x, x) may be huge.

    Parameters
    ----------
    beta, v, lo, hi : arrays of shape (n_variables,)
        Point, linear part and box, which is bounded.
    kinds : int64 array
        The kind of each variable.
    """
    best = beta.copy()
    order = np.lexsort((-v, kinds))
    ends = np.flatnonzero(np.diff(kinds[order])) + 1
    for members in np.split(order, ends):
        if len(members) > 1 and v[members[0]] > v[members[-1]]:
            best[members] = _filled(beta[members], lo[members], hi[members])
    return best


def _filled(beta: Vector, lo: Vector, hi: Vector) -> Vector:
    """Return the point of the same sum whose first variables are at their upper bound, the last at their lower."""
    rest = float(np.sum(beta - lo))
    place = min(int(np.searchsorted(np.cumsum(hi - lo), rest)), len(beta) - 1)
    while True:  # rounding may have missed the place by one or two
        filled = np.concatenate([hi[:place], lo[place:]])
        filled[place] = math.fsum([*beta, *-hi[:place], *-lo[place + 1 :]])
        step = int(filled[place] > hi[place]) - int(filled[place] < lo[place])
        if step == 0 or not 0 <= place + step < len(beta):
            break
        place += step
    filled[place] = min(max(filled[place], lo[place]), hi[place])
    for trial in range(_ABSORBERS):
        left = math.fsum([*beta, *-filled])
        after = filled + left
        able = np.flatnonzero((after != filled) & (after >= lo) & (after <= hi))
        if left == 0 or (trial and not len(able)):
            break
        if not len(able):  # those at bounds have room the other way
            able = np.array([place])
            after[place] = min(max(np.nextafter(filled[place], np.copysign(np.inf, left)), lo[place]), hi[place])
        smallest = able[np.argmin(np.maximum(np.abs(filled), np.abs(after))[able])]
        filled[smallest] = after[smallest]
    return filled
