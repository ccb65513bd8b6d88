"""How much memory a cache may take when nobody says, and memory that begins where processors like it."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A quarter of what is free leaves room for the data, the user's other objects and a second fit.
DEFAULT_SHARE = 0.25

_FALLBACK_BYTES = 2 * 1024**3

_CACHE_LINE = 64


def aligned(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return an array, not filled yet, that begins at a cache line.

    Vectors that straddle two lines take twice as long to load, and NumPy's own arrays begin at any multiple of 16
    bytes. It matters to loops that read an array many times.

    Examples
    --------
    >>> lines = aligned((3, 5), np.float32)
    >>> lines.shape, lines.flags.c_contiguous, lines.ctypes.data % 64
    ((3, 5), True, 0)
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.empty(size + _CACHE_LINE, np.uint8)
    start = -room.__array_interface__["data"][0] % _CACHE_LINE
    return room[start : start + size].view(dtype).reshape(shape)


def free_bytes() -> int:
    """Estimate the memory this process could still use, within its container."""
    candidates = [_available_on_machine(), _left_in_container()]
    known = [size for size in candidates if size is not None]
    return min(known) if known else _FALLBACK_BYTES


def default_cache_bytes() -> int:
    """Return the default budget of a row cache: `DEFAULT_SHARE` of the free memory."""
    return int(DEFAULT_SHARE * free_bytes())


def _available_on_machine() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return None


def _left_in_container() -> int | None:
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text().strip()
        used = int((group / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(int(limit) - used, 0)
