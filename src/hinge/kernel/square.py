"""Square kernel matrices: of dear kernels every pair is compared once, and memory is used again."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.arrays import Floats, Index
from hinge.kernel import accumulate
from hinge.kernel.tiles import Tiles
from hinge.runtime.threads import Team, blas_on_one_thread

# A strip of the matrix has about so many values, which stay in the second-level cache of a processor, and so many
# lines: fewer would leave a matrix product nothing to be fast with.
_STRIP_VALUES = 1 << 17
_LEAST_LINES, _MOST_LINES = 16, 128

# Up to so many multiply-adds, two comparisons cost less than writing down the mirror image of one.
_CHEAPER_THAN_A_MIRROR = 64.0


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

    Where comparisons are dear, lines are computed from the diagonal on, and the other half is their mirror image.
    """
    n = len(values)
    is_mirrored = tiles.samples.cost > _CHEAPER_THAN_A_MIRROR

    def work(start: int, stop: int) -> None:
        panel = tiles.panel(np.arange(start, stop))
        if is_mirrored:
            accumulate.mirror(tiles.values(panel, start, n), start, values)
        else:
            tiles.fill(panel, 0, n, values[start:stop])

    lines = int(np.clip(_STRIP_VALUES // max(n, 1), _LEAST_LINES, _MOST_LINES))
    with blas_on_one_thread():
        team.share(n, lines, work, tiles.seconds(n * n))
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

    team.share(len(index), _MOST_LINES, work)
