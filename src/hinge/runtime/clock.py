"""The clock of every time limit and every reported time: it stands still while code is compiled or fetched.

Compiling happens once on a computer and says nothing about a fit, so no limit should run out meanwhile and no
report should count it. There is one clock for the process: fits on other threads are given that time too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

# Seconds of all compilations that have ended, and when the one under way began. One tuple, replaced as a whole, so
# that readers on other threads never see half of a change.
_compiling: tuple[float, float | None] = (0.0, None)


def now() -> float:
    """Return the seconds of this clock; only differences have a meaning.

    Examples
    --------
    >>> from hinge.runtime import clock
    >>> begun = clock.now()
    >>> clock.now() >= begun
    True
    """
    past, begun = _compiling
    return (time.perf_counter() if begun is None else begun) - past


def compiled_seconds() -> float:
    """Return how long this process has compiled code so far, or fetched it from the disk."""
    past, begun = _compiling
    return past if begun is None else past + time.perf_counter() - begun


def stands_still() -> bool:
    """Whether some thread compiles just now."""
    return _compiling[1] is not None


@contextmanager
def standing_still() -> Iterator[None]:
    """Stop the clock; whoever calls this holds the compiler's lock. Inside of another such block, do nothing."""
    global _compiling
    past, begun = _compiling
    if begun is not None:
        yield
        return
    _compiling = (past, time.perf_counter())
    try:
        yield
    finally:
        _compiling = (compiled_seconds(), None)
