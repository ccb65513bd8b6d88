"""Sums over all pairs of a ranking in O(n log n): scores are sorted, grades kept in a tree of sums.

A pair (i, j) of samples of one query, of which i has the higher grade, falls short by u = 1 − (s_i − s_j) of the
margin between their scores s. Whoever is *full* falls short by more than a width h, whoever is in the *band* by
between −h and h. For a given i these are stretches of the sorted scores, whose ends only advance while s_i grows
(Joachims 2006, algorithm 3; Airola et al. 2011 and Lee & Lin 2014 for more than two grades). Everybody computes u
in these very operations, so that all agree about a pair at the edge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hinge.arrays import Index, Vector
from hinge.runtime.jit import compiled_exactly, inlined


class Sorted(NamedTuple):
    """The samples of all queries, sorted by query and then by score.

    Attributes
    ----------
    order : int64 array of shape (n,)
        The samples.
    starts : int64 array of shape (n_queries + 1,)
        Where each query begins among them.
    grade : int64 array of shape (n,)
        Rank of each sample's grade among those of its query.
    n_grades : int64 array of shape (n_queries,)
        Different grades of each query.
    score : array of shape (n,)
        What they are sorted by.
    """

    order: Index
    starts: Index
    grade: Index
    n_grades: Index
    score: Vector


@inlined
def _add(trees: Vector, which: int, grade: int, top: int, moments: Vector, k: int) -> None:
    place = grade + 1
    while place <= top:
        for m in range(moments.shape[1]):
            trees[which, place, m] += moments[k, m]
        place += place & -place


@inlined
def _below(trees: Vector, which: int, grade: int, m: int) -> float:
    """Sum of what has been added for lower grades."""
    total, place = 0.0, grade
    while place > 0:
        total += trees[which, place, m]
        place -= place & -place
    return total


@compiled_exactly
def sums_below(
    samples: Sorted, width: float, moments: Vector, trees: Vector,
    full: Vector, band: Vector,
) -> None:  # fmt: skip
    """For every sample i add up ``moments`` over the samples j of lower grade: full pairs, and those in the band.

    Parameters
    ----------
    samples : Sorted
        The samples.
    width : float
        h; 0 for no band.
    moments : array of shape (n, m)
        What is added up.
    trees : array of shape (3, most grades + 1, m)
        Room to work in.
    full, band : arrays of shape (n, m)
        The sums.
    """
    order, score, grade = samples.order, samples.score, samples.grade
    for q in range(samples.n_grades.shape[0]):
        begin, end, top = samples.starts[q], samples.starts[q + 1], samples.n_grades[q]
        for which in range(3):
            for place in range(top + 1):
                for m in range(moments.shape[1]):
                    trees[which, place, m] = 0.0
        for at in range(begin, end):
            _add(trees, 0, grade[order[at]], top, moments, order[at])
        settled = reached = begin  # of the sorted samples, those before have u ≤ −h, and u ≤ h
        for at in range(begin, end):
            i = order[at]
            while settled < end and 1.0 - (score[i] - score[order[settled]]) <= -width:
                _add(trees, 1, grade[order[settled]], top, moments, order[settled])
                settled += 1
            while reached < end and 1.0 - (score[i] - score[order[reached]]) <= width:
                _add(trees, 2, grade[order[reached]], top, moments, order[reached])
                reached += 1
            for m in range(moments.shape[1]):
                inside = _below(trees, 2, grade[i], m)
                full[i, m] = _below(trees, 0, grade[i], m) - inside
                band[i, m] = inside - _below(trees, 1, grade[i], m)


@inlined
def _raise(tree: Vector, grade: int, top: int, value: float) -> None:
    place = grade + 1
    while place <= top:
        tree[place] = max(tree[place], value)
        place += place & -place


@inlined
def _highest_below(tree: Vector, grade: int) -> float:
    highest, place = -np.inf, grade
    while place > 0:
        highest = max(highest, tree[place])
        place -= place & -place
    return highest


@compiled_exactly
def worst_pairs(samples: Sorted, width: float, now: Vector, tree: Vector) -> tuple[float, float]:
    """Return the largest u by scores ``now`` of pairs that are not full, and the largest −u of those above none.

    Which pairs are full, and which none, say the scores that the samples are sorted by.
    """
    order, score, grade = samples.order, samples.score, samples.grade
    short = over = -np.inf
    for q in range(samples.n_grades.shape[0]):
        begin, end, top = samples.starts[q], samples.starts[q + 1], samples.n_grades[q]
        tree[: top + 1] = -np.inf
        ahead = begin
        for at in range(begin, end):
            i = order[at]
            while ahead < end:
                u = 1.0 - (score[i] - score[order[ahead]])
                if u > 0.0 and u >= width:
                    break
                _raise(tree, grade[order[ahead]], top, now[order[ahead]])
                ahead += 1
            short = max(short, 1.0 - (now[i] - _highest_below(tree, grade[i])))
        tree[: top + 1] = -np.inf
        ahead = end - 1
        for at in range(end - 1, begin - 1, -1):
            i = order[at]
            while ahead >= begin and 1.0 - (score[i] - score[order[ahead]]) > -width:
                _raise(tree, grade[order[ahead]], top, -now[order[ahead]])
                ahead -= 1
            over = max(over, now[i] + _highest_below(tree, grade[i]) - 1.0)
    return short, over


@compiled_exactly
def changed_pairs(samples: Sorted, before: Vector, width: float, radius: Vector, pairs: Index) -> int:
    """Find pairs that are full or none by the scores they are sorted by, and something else by those ``before``.

    Parameters
    ----------
    samples : Sorted
        The samples, sorted by the scores as they are.
    before : array of shape (n,)
        Other scores.
    width : float
        h of the other scores.
    radius : array of shape (n_queries,)
        Only pairs with \\|u\\| up to this are looked at.
    pairs : int64 array of shape (room, 2)
        The pairs that are found, as far as there is room.

    Returns
    -------
    int
        How many there are.
    """
    order, score, grade = samples.order, samples.score, samples.grade
    count = 0
    for q in range(samples.n_grades.shape[0]):
        begin, end, reach = samples.starts[q], samples.starts[q + 1], radius[q]
        first = begin
        for at in range(begin, end):
            i = order[at]
            while first < end and 1.0 - (score[i] - score[order[first]]) < -reach:
                first += 1
            for place in range(first, end):
                j = order[place]
                u = 1.0 - (score[i] - score[j])
                if u > reach:
                    break
                if grade[j] >= grade[i]:
                    continue
                old = 1.0 - (before[i] - before[j])
                is_same = old > 0.0 and old >= width if u > 0.0 else old <= -width
                if not is_same:
                    if count < pairs.shape[0]:
                        pairs[count, 0], pairs[count, 1] = i, j
                    count += 1
    return count
