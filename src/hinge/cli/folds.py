"""LIBSVM's folds: the C library's ``rand()`` on Linux, never seeded, in the order in which LIBSVM calls it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hinge.arrays import Index

_DEGREE = 31
_SEPARATION = 3
_DISCARDED = 310
_MODULUS = 2**31 - 1


class GlibcRandom:
    """The GNU C library's ``rand()`` as it starts in every process: seed 1, additive feedback.

    r_i = 16807 r_{i-1} mod 2^31 - 1 for the first 31 terms, then r_i = r_{i-3} + r_{i-31} mod 2^32; the first 310
    sums are thrown away and the lowest bit of every other one is dropped.

    Examples
    --------
    >>> random = GlibcRandom()
    >>> [random() for _ in range(3)]
    [1804289383, 846930886, 1681692777]
    """

    def __init__(self, seed: int = 1) -> None:
        state = [seed]
        for _ in range(_DEGREE - 1):
            state.append(16807 * state[-1] % _MODULUS)
        self._state = state
        self._at = _SEPARATION
        for _ in range(_DISCARDED):
            self()

    def __call__(self) -> int:
        """Return the next number, 0 to 2^31 - 1."""
        state, at = self._state, self._at
        value = (state[at] + state[at - _SEPARATION]) & 0xFFFFFFFF
        state[at] = value
        self._at = (at + 1) % _DEGREE
        return value >> 1

    def shuffle(self, items: list[int]) -> None:
        """Shuffle in place as LIBSVM does."""
        n = len(items)
        for i in range(n):
            j = i + self() % (n - i)
            items[i], items[j] = items[j], items[i]


def plain_folds(n: int, n_folds: int, random: GlibcRandom) -> list[Index]:
    """Deal ``n`` samples out to folds at random: one shuffle, cut into parts of about equal length.

    Examples
    --------
    >>> [fold.tolist() for fold in plain_folds(5, 2, GlibcRandom())]
    [[3, 0], [2, 4, 1]]
    """
    order = list(range(n))
    random.shuffle(order)
    return [np.array(order[i * n // n_folds : (i + 1) * n // n_folds], np.int64) for i in range(n_folds)]


def stratified_folds(classes: Sequence[Index], n_folds: int, random: GlibcRandom) -> list[Index]:
    """Deal samples out class by class: every class is shuffled by itself and cut into as many parts as folds.

    Parameters
    ----------
    classes : sequence of int64 arrays
        The samples of each class, in the order of classes.
    n_folds : int
        Number of folds.
    random : GlibcRandom
        Where the shuffles come from.

    Returns
    -------
    list of int64 arrays
        The samples of each fold, class by class.
    """
    shuffled = []
    for members in classes:
        order = members.tolist()
        random.shuffle(order)
        shuffled.append(order)
    return [
        np.array(
            [k for order in shuffled for k in order[i * len(order) // n_folds : (i + 1) * len(order) // n_folds]],
            np.int64,
        )
        for i in range(n_folds)
    ]
