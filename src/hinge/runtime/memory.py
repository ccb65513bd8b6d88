"""How much memory a cache may take when nobody says, and memory that begins where processors like it."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A quarter of what is free leaves room for the data, the user's other objects and a second fit.
DEFAULT_SHARE = 0.25

_FALLBACK_BYTES = 2 * 1024**3

#: Values of float32 in a cache line: panels, blocks and strips of columns have a multiple of it.
CACHE_LINE = 16

# Asking the system takes half a millisecond, as long as a small fit: a budget may be this old.
_LOOK_SECONDS = 0.5
_last_look = (-np.inf, 0)  # when, and what was free

#: Where Linux tells of processes and of control groups.
PROCESSES, GROUPS = Path("/proc"), Path("/sys/fs/cgroup")


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
    line = 4 * CACHE_LINE
    room = np.empty(size + line, np.uint8)
    start = -room.__array_interface__["data"][0] % line
    return room[start : start + size].view(dtype).reshape(shape)


def free_bytes() -> int:
    """Estimate the memory this process could still use.

    The least of what the machine, the limits of the process (``ulimit``) and those of its control groups leave.
    """
    machine = _available_on_machine()
    known = [*([] if machine is None else [machine]), *_left_by_limits(), *_left_in_groups()]
    return max(min(known), 0) if known else _FALLBACK_BYTES


def resident_bytes() -> int:
    """Return the memory that this process has; where nobody tells, the most that it ever had, or 0."""
    try:
        import resource  # not on Windows

        pages = (PROCESSES / "self/statm").read_text().split()
        return int(pages[1]) * resource.getpagesize()
    except ImportError:
        return 0
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def default_cache_bytes() -> int:
    """Return the default budget of a row cache: `DEFAULT_SHARE` of the memory that was free a moment ago."""
    global _last_look
    now = time.monotonic()
    if now - _last_look[0] > _LOOK_SECONDS:
        _last_look = now, free_bytes()
    return max(int(DEFAULT_SHARE * _last_look[1]), 1)


def _available_on_machine() -> int | None:
    try:
        for line in (PROCESSES / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return None


def _left_by_limits() -> Iterator[int]:
    """Yield what is left of the address space and of the data segment, where they are limited."""
    try:
        import resource  # not on Windows
    except ImportError:
        return
    try:
        pages = [int(word) for word in (PROCESSES / "self/statm").read_text().split()]
    except (OSError, ValueError):
        return
    for limit, used in ((resource.RLIMIT_AS, pages[0]), (resource.RLIMIT_DATA, pages[5])):
        most = resource.getrlimit(limit)[0]
        if most != resource.RLIM_INFINITY:
            yield most - used * resource.getpagesize()


def _left_in_groups() -> Iterator[int]:
    """Yield what the control groups of this process leave, their own and those of all groups above them.

    In a container the path that the system names may begin above the root that can be seen; what does not exist
    there is passed over, down to the root, which has the container's own limit.
    """
    try:
        lines = (PROCESSES / "self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        roots: tuple[Path, ...]
        if not controllers:
            roots, names = (GROUPS, GROUPS / "unified"), ("memory.max", "memory.current", "")
        elif "memory" in controllers.split(","):
            roots, names = (GROUPS / "memory",), ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
        else:
            continue
        inner = PurePosixPath(path.lstrip("/"))
        for root in roots:
            for group in (inner, *inner.parents):
                left = _left_in_group(root / group, *names)
                if left is not None:
                    yield left


def _left_in_group(group: Path, limit_name: str, usage_name: str, prefix: str) -> int | None:
    try:
        limit = (group / limit_name).read_text().strip()
        used = int((group / usage_name).read_text())
        if limit == "max":
            return None
        counts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        # Pages of files count as used, but make room when somebody wants it.
        kept = sum(int(counts.get(f"{prefix}{state}_file", 0)) for state in ("active", "inactive"))
        return int(limit) - max(used - kept, 0)
    except (OSError, ValueError):
        return None
