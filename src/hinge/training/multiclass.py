"""Many classes from two-class machines: which machines there are, and how their decisions are read.

One-against-one trains a machine for each pair of classes and lets them vote (LIBSVM document, section 5);
one-against-rest trains one for each class. A `Duel` names the class on the positive side and the one on the
negative side; two classes are one duel, with the later class positive.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Vector, is_sparse
from hinge.runtime.jit import compiled_exactly

#: The negative side of a one-against-rest machine.
REST = -1


class Duel(NamedTuple):
    """One machine: the class where it is positive, and the class (or `REST`) where it is negative."""

    positive: int
    negative: int


def duels(n_classes: int, scheme: str = "ovo") -> list[Duel]:
    """List the machines for this many classes; pairs in the order 01, 02, …, 12, 13, ….

    Examples
    --------
    >>> duels(2)
    [Duel(positive=1, negative=0)]
    >>> [tuple(duel) for duel in duels(3)]
    [(0, 1), (0, 2), (1, 2)]
    """
    if n_classes == 2:
        return [Duel(1, 0)]
    if scheme == "ovr":
        return [Duel(c, REST) for c in range(n_classes)]
    return [Duel(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]


def count_votes(decisions: Vector, n_classes: int) -> NDArray[np.int64]:
    """Count the votes of all pairs for each class: a positive decision is one for the earlier class.

    Examples
    --------
    >>> count_votes(np.array([[1.0, -1.0, -2.0]]), 3)
    array([[1, 0, 2]])
    """
    votes = np.zeros((len(decisions), n_classes), dtype=np.int64)
    _add_votes(decisions, votes)
    return votes


def votes_with_confidence(decisions: Vector, n_classes: int) -> Vector:
    """Return votes plus a share below one half of a vote that grows with the summed decision values.

    The order of two classes with different votes stays; among equals the more confident one leads.
    """
    confidence = np.zeros((len(decisions), n_classes))
    _add_confidence(decisions, confidence)
    return np.asarray(count_votes(decisions, n_classes) + confidence / (3 * (np.abs(confidence) + 1)))


def votes_between(
    lower: Vector, upper: Vector, n_classes: int, with_confidence: bool = False
) -> tuple[Vector, Vector]:
    """Return the fewest and the most votes of each class, where the decision of each pair is between two values.

    ``with_confidence``: the least and the most that `votes_with_confidence` can be.

    Examples
    --------
    >>> votes_between(np.array([[0.5, -1.0, -2.0]]), np.array([[1.0, 1.0, -1.0]]), 3)
    (array([[1., 0., 1.]]), array([[2., 0., 2.]]))
    """
    votes, confidence = np.zeros((2, len(lower), n_classes)), np.zeros((2, len(lower), n_classes))
    for pair, (i, j) in enumerate(zip(*np.triu_indices(n_classes, 1), strict=True)):
        for side, (value, opposite) in enumerate(((lower, upper), (upper, lower))):
            votes[side, :, i] += value[:, pair] > 0
            votes[side, :, j] += opposite[:, pair] <= 0
            confidence[side, :, i] += value[:, pair]
            confidence[side, :, j] -= opposite[:, pair]
    if with_confidence:
        most = 1e300  # three times it is finite, too
        finite = np.clip(confidence, -most, most)
        votes += finite / (3 * (np.abs(finite) + 1))
    return votes[0], votes[1]


@compiled_exactly
def _add_votes(decisions: Vector, votes: NDArray[np.int64]) -> None:
    for q in range(votes.shape[0]):
        row, own, pair = decisions[q], votes[q], 0
        for i in range(own.shape[0]):
            for j in range(i + 1, own.shape[0]):
                own[i if row[pair] > 0 else j] += 1
                pair += 1


@compiled_exactly
def _add_confidence(decisions: Vector, confidence: Vector) -> None:
    for q in range(confidence.shape[0]):
        row, own, pair = decisions[q], confidence[q], 0
        for i in range(own.shape[0]):
            for j in range(i + 1, own.shape[0]):
                own[i] += row[pair]
                own[j] -= row[pair]
                pair += 1


def by_opponent(coefficients: Any, classes: NDArray[np.intp], n_classes: int) -> Vector:
    """Lay pair coefficients out with one row per opponent: LIBSVM's and scikit-learn's ``dual_coef_``.

    A support vector of class i takes part in k − 1 pairs; row r holds its coefficient against class r, or r + 1
    where r ≥ i.

    Parameters
    ----------
    coefficients : array or CSR matrix of shape (n_pairs, n_support)
        One row a pair.
    classes : array of shape (n_support,)
        Class number of each support vector.
    n_classes : int
        Number of classes, more than two.

    Returns
    -------
    array of shape (n_classes - 1, n_support)
        The same values without the zeros of pairs that a support vector has no part in.
    """
    layout = coefficients[_pairs_of(n_classes)[classes].T, np.arange(len(classes))]
    return np.asarray(layout.toarray() if is_sparse(layout) else layout)


@lru_cache(maxsize=8)
def _pairs_of(n_classes: int) -> NDArray[np.intp]:
    """Return the numbers of each class's pairs, by opponent: of three classes they take longer than the pairs."""
    pair_of = np.zeros((n_classes, n_classes), np.intp)
    first, second = np.triu_indices(n_classes, 1)
    pair_of[first, second] = pair_of[second, first] = np.arange(len(first))
    pairs = pair_of[~np.eye(n_classes, dtype=bool)].reshape(n_classes, n_classes - 1)
    pairs.flags.writeable = False
    return pairs


def by_pair(layout: Vector, classes: NDArray[np.intp], n_classes: int) -> Vector:
    """Undo `by_opponent`: return one row of coefficients for each pair of classes, zero for all other classes.

    Examples
    --------
    >>> by_pair(np.array([[1.0, -1.0, -3.0], [3.0, 2.0, -2.0]]), np.array([0, 1, 2]), 3)
    array([[ 1., -1.,  0.],
           [ 3.,  0., -3.],
           [ 0.,  2., -2.]])
    """
    first, second = np.triu_indices(n_classes, 1)
    of_first, of_second = classes == first[:, None], classes == second[:, None]
    return np.where(of_first, layout[second - 1], np.where(of_second, layout[first], 0.0))
