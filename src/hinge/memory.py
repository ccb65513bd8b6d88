"""How much memory a cache may take when nobody says."""

from __future__ import annotations

import os
from pathlib import Path

# A quarter of what is free leaves room for the data, the user's other objects and a second fit.
DEFAULT_SHARE = 0.25

_FALLBACK_BYTES = 2 * 1024**3


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
