"""Images of coefficients under the kernel matrix, ``K β``, of which no value is kept."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from hinge.arrays import Floats, Index, Vector
from hinge.data.samples import Samples, Statistic
from hinge.kernel.tiles import Tiles
from hinge.runtime.threads import EVEN, Team, blas_on_one_thread

# From this share of support vectors among the samples whose image is wanted, comparing two of them only once
# spares more than putting them first takes.
_SYMMETRIC_SHARE = 0.3


class Comparing(Protocol):
    """Samples and tiles of their kernel values, as `hinge.kernel.source.Source` has them."""

    samples: Samples
    statistic: Statistic

    def tiles(self, dtype: Any, index: Index | None = None) -> Tiles:
        """Return tiles whose columns are all samples, or those in ``index``."""


def image(
    source: Comparing, coefficients: Vector, rows: Index | None, dtype: Any, team: Team
) -> tuple[Vector, int]:
    """Return ``K[rows] @ coefficients``, from kernel values in ``dtype``, and how many of these were computed."""
    support = np.flatnonzero(coefficients)
    factors = coefficients[support].astype(dtype)
    n_rows = len(coefficients) if rows is None else len(rows)
    if rows is not None:
        others = np.setdiff1d(rows, support, assume_unique=True)
        n_inside = n_rows - len(others)
        if n_inside == len(support) >= _SYMMETRIC_SHARE * n_rows:
            order, everywhere = np.concatenate([support, others]), np.empty(len(coefficients))
            everywhere[order] = _image_of_first(source.tiles(dtype, order), factors, team)
            return everywhere[rows], n_inside * n_rows - n_inside * (n_inside - 1) // 2
        if n_rows <= source.samples.tile_shape(source.statistic)[0] < len(support):
            return _image_of_few(source, support, factors, rows, dtype, team), len(support) * n_rows
    tiles, result = source.tiles(dtype, rows), np.zeros(n_rows)

    def add(start: int, stop: int, tile: Floats, piece: slice) -> None:
        result[start:stop] += factors[piece] @ tile

    with blas_on_one_thread():
        tiles.visit(support, team, add, source.samples)
    return result, len(support) * n_rows


def _image_of_few(
    source: Comparing, support: Index, factors: Floats, rows: Index, dtype: Any, team: Team
) -> Vector:
    """Return Σ factor · k(·, ·) of the samples ``support`` at the ``rows`` of one panel.

    The support vectors are the long side of the tiles here; what ranges of them come to is added in their order.
    """
    tiles = source.tiles(dtype, support)
    sums: dict[int, Vector] = {}

    def add(start: int, stop: int, tile: Floats, _: slice) -> None:
        sums[start] = np.asarray(tile @ factors[start:stop], dtype=np.float64)

    with blas_on_one_thread():
        tiles.visit(rows, team, add, source.samples)
    return np.sum([sums[start] for start in sorted(sums)], axis=0)


def _image_of_first(tiles: Tiles, coefficients: Floats, team: Team) -> Vector:
    """Return Σ coefficient · k(·, ·) at the samples of ``tiles``, the first of which have the coefficients.

    Two of these are compared once: their kernel value serves both. Threads take sums in turn. What is added to a
    sum, and in which order, depends neither on who is quicker nor on how many they are.
    """
    n, n_first = tiles.samples.n, len(coefficients)
    strips = tiles.pieces(n_first)
    sums = np.zeros((max(min(EVEN, len(strips)), 1), n))

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
