"""Square kernel matrices: of expensive kernels every pair is compared once, and memory is used again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.arrays import Floats, Index
from hinge.data.layout import LAYOUT
from hinge.kernel import accumulate
from hinge.kernel.tiles import Tiles
from hinge.runtime.prices import MULTIPLY_ADDS_PER_KEPT_VALUE
from hinge.runtime.threads import Team, blas_on_one_thread


@dataclass(frozen=True)
class BlockSizes:
    """How large the matrix of a working set may be.

    Attributes
    ----------
    share : float
        Share of the budget that it may take, with the two matrices that its free variables may need.
    smallest : int
        Samples that a working set may have whatever the budget: smaller ones make little progress, and the matrix
        of these takes 25 kB.
    largest : int
        Most samples, whatever the budget: the matrix and the work on it grow by their square.
    """

    share: float = 0.5
    smallest: int = 32
    largest: int = 4096

    def most(self, budget: int, dtype: np.dtype[Any]) -> int:
        """Return how many samples a working set may have within a budget of bytes."""
        fitting = (self.share * budget / block_bytes(1, dtype)) ** 0.5
        return min(max(int(fitting), self.smallest), self.largest)


def block_bytes(n: int, dtype: Any = np.float64) -> int:
    """Return the bytes of a matrix of n samples, and of two in double precision that a free set may need."""
    return (np.dtype(dtype).itemsize + 2 * np.dtype(np.float64).itemsize) * n**2


class Workspace:
    """Memory for the matrix of a working set, one after the other: a first touch costs more than its use."""

    def __init__(self) -> None:
        self._values: Floats = np.empty(0, np.float32)

    @property
    def size(self) -> int:
        """Number of values that there is room for."""
        return self._values.size

    def square(self, n: int, dtype: Any, n_later: int) -> Floats:
        """Return memory for n × n values; where it has to grow, for ``n_later`` samples at once."""
        if self._values.size < n * n or self._values.dtype != dtype:
            self._values = np.empty(max(n, n_later) ** 2, dtype)
        return self._values[: n * n].reshape(n, n)


def fill_square(tiles: Tiles, team: Team, values: Floats) -> int:
    """Fill ``values`` with the kernel matrix of all samples of ``tiles``; return how many were computed.

    Where comparisons are expensive, lines are computed from the diagonal on; the other half is their mirror image.
    """
    n = len(values)
    is_mirrored = tiles.samples.cost > MULTIPLY_ADDS_PER_KEPT_VALUE

    def work(start: int, stop: int) -> None:
        panel = tiles.panel(np.arange(start, stop))
        if is_mirrored:
            accumulate.mirror(tiles.values(panel, start, n), start, values)
        else:
            tiles.fill(panel, 0, n, values[start:stop])

    (most_lines, width), seconds = LAYOUT.flat_tile, tiles.seconds(n * n)
    lines = min(max(most_lines * width // max(n, 1), LAYOUT.few_rows), most_lines)
    if not is_mirrored and team.block(n, seconds) == n:  # to lay out many panels would take as long
        lines = max(n, 1)
    with blas_on_one_thread():
        team.share(n, lines, work, seconds)
    return n * (n + 1) // 2 if is_mirrored else n * n


def fill_from_rows(rows: Floats, slots: Index, index: Index, fresh: Index, team: Team, values: Floats) -> None:
    """Fill ``values`` with the kernel matrix of the samples ``index`` as far as it is known.

    Parameters
    ----------
    rows : array of shape (n_slots, n_samples)
        Kernel values of some samples with all others.
    slots : int64 array of shape (n,)
        Which line of ``rows`` belongs to each of the samples ``index``; -1 for those ``fresh``.
    index, fresh : int64 arrays
        The samples; places of those among them without a row. Values between two of these are left alone.
    team : Team
        The threads.
    values : array of shape (n, n)
        The matrix.
    """

    def work(start: int, stop: int) -> None:
        accumulate.gather_and_mirror(rows, slots, index, fresh, start, stop, values)

    team.share(len(index), LAYOUT.flat_tile[0], work)
