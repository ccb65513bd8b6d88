"""A cache of matrix rows with a byte budget; the least recently used row goes first.

It knows nothing of kernels. Rows live in one array whose pages the system provides only when they are first
written, so a large budget costs nothing until it is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Index

MIN_ROWS = 3  # maximum gain looks at the rows of the last pair and needs that of a new partner


class RowCache:
    """Rows of an ``n_keys``-row matrix, each ``width`` values long.

    Parameters
    ----------
    n_keys : int
        Rows are known by the keys 0 to n_keys - 1.
    width : int
        Length of a row.
    dtype : dtype
        Type of the values.
    budget : int
        Most bytes to use; three rows are always kept, whatever it says.

    Attributes
    ----------
    rows : array of shape (capacity, width)
        The storage; line ``slot_of[key]`` holds row ``key``.
    slot_of : array of int64
        Slot of each key, -1 where the row is absent.
    last_use : array of int64
        When each slot was last used; compiled loops may set it from `clock`.

    Examples
    --------
    >>> cache = RowCache(n_keys=5, width=3, dtype=np.float32, budget=3 * 3 * 4)
    >>> cache.admit(np.array([0, 1, 2])), cache.find(np.array([0, 2])), cache.admit(np.array([4]))
    (array([0, 1, 2]), array([0, 2]), array([1]))
    >>> cache.find(np.array([0, 1, 4]))
    array([ 0, -1,  1])
    """

    def __init__(self, n_keys: int, width: int, dtype: Any, budget: int) -> None:
        self.row_bytes = width * np.dtype(dtype).itemsize
        self.capacity = int(min(max(budget // max(self.row_bytes, 1), MIN_ROWS), max(n_keys, 1)))
        self.rows = np.empty((self.capacity, width), dtype=dtype)
        self.slot_of = np.full(n_keys, -1, dtype=np.int64)
        self.last_use = np.zeros(self.capacity, dtype=np.int64)
        self.clock = 1
        self.n_used = 0
        self._key_in = np.full(self.capacity, -1, dtype=np.int64)

    @classmethod
    def of(cls, matrix: NDArray[np.floating]) -> RowCache:
        """Return a cache that holds every row of ``matrix``, without a copy."""
        n = len(matrix)
        cache = cls(n, 0, matrix.dtype, 0)
        cache.capacity, cache.n_used, cache.row_bytes = n, n, matrix.strides[0]
        cache.rows, cache.slot_of, cache.last_use = matrix, np.arange(n), np.zeros(n, dtype=np.int64)
        cache._key_in = np.arange(n)
        return cache

    @property
    def bytes_used(self) -> int:
        """Bytes that have ever been written."""
        return self.n_used * self.row_bytes

    def find(self, keys: Index) -> Index:
        """Return the slots of ``keys`` (-1 where absent) and count the present ones as used now."""
        slots = self.slot_of[keys]
        self.clock += 1
        self.last_use[slots[slots >= 0]] = self.clock
        return slots

    def admit(self, keys: Index) -> Index:
        """Give slots to absent ``keys``, the least recently used rows making room; the caller fills them.

        Rows used since the last `find` are pinned. Returns one slot a key, -1 for keys that found no room.
        """
        slots = np.full(len(keys), -1, dtype=np.int64)
        n_new = min(len(keys), self.capacity - self.n_used)
        slots[:n_new] = np.arange(self.n_used, self.n_used + n_new)
        if n_new < len(keys):
            evictable = np.flatnonzero(self.last_use[: self.n_used] < self.clock)
            by_age = evictable[np.argsort(self.last_use[evictable], kind="stable")]
            freed = by_age[: len(keys) - n_new]
            gone = self._key_in[freed]
            self.slot_of[gone[gone >= 0]] = -1
            slots[n_new : n_new + len(freed)] = freed
        self.n_used += n_new
        given = slots >= 0
        self.slot_of[keys[given]] = slots[given]
        self._key_in[slots[given]] = keys[given]
        self.last_use[slots[given]] = self.clock
        return slots

    def keys(self) -> Index:
        """Return the keys whose rows are here, least recently used first."""
        keys = self._key_in[np.argsort(self.last_use[: self.n_used], kind="stable")]
        return keys[keys >= 0]

    def discard(self, keys: Index) -> None:
        """Forget rows that were admitted but could not be filled."""
        slots = self.slot_of[keys]
        slots = slots[slots >= 0]
        self.last_use[slots] = 0
        self._key_in[slots] = -1
        self.slot_of[keys] = -1
