"""Images of coefficients under the kernel matrix, ``K β``, of which no value is kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Floats, Index
from hinge.data.samples import Samples
from hinge.kernel.tiles import Tiles
from hinge.runtime.threads import Team, blas_on_one_thread

# Threads take sums in turn. What is added to a sum, and in which order, depends neither on who is quicker nor on
# how many they are; with several sums to a thread none has to wait long for the others.
_SUMS = 8


def image(tiles: Tiles, source: Samples, support: Index, coefficients: Floats, team: Team) -> NDArray[np.float64]:
    """Return Σ coefficient · k(support, ·) at the samples of ``tiles``; the support is of ``source``."""
    result = np.zeros(tiles.samples.n)

    def add(start: int, stop: int, tile: Floats, piece: slice) -> None:
        result[start:stop] += coefficients[piece] @ tile

    with blas_on_one_thread():
        tiles.visit(support, team, add, source)
    return result


def image_of_first(tiles: Tiles, coefficients: Floats, team: Team) -> NDArray[np.float64]:
    """Return Σ coefficient · k(·, ·) at the samples of ``tiles``, the first of which have the coefficients.

    Two of these are compared once: their kernel value serves both.
    """
    n, n_first = tiles.samples.n, len(coefficients)
    strips = tiles.pieces(n_first)
    sums = np.zeros((max(min(_SUMS, len(strips)), 1), n))

    def work(number: int, _: int) -> None:
        total = sums[number]
        for strip in strips[number :: len(sums)]:
            panel = tiles.panel(np.arange(strip.start, strip.stop))
            for left in range(strip.start, n, tiles.width):
                team.check()
                right = min(left + tiles.width, n)
                tile = tiles.values(panel, left, right)
                total[left:right] += coefficients[strip] @ tile
                low, high = max(left, strip.stop), min(right, n_first)
                if low < high:
                    total[strip] += tile[:, low - left : high - left] @ coefficients[low:high]

    with blas_on_one_thread():
        team.share(len(sums), 1, work, tiles.seconds(n * n_first))
    return sums.sum(axis=0)
