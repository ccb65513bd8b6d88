"""The clock of every time limit and every reported time: it stands still while code is compiled or fetched.

Compiling happens once on a computer and says nothing about a fit, so no limit should run out meanwhile and no
report should count it. There is one clock for the process: fits on other threads are given that time too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

# Seconds of all compilations that have ended, on the wall and of the processor, and both clocks when the one under
# way began. One tuple, replaced as a whole, so that readers on other threads never see half of a change.
_Begun = tuple[float, float]
_compiling: tuple[float, float, _Begun | None] = (0.0, 0.0, None)


def now() -> float:
    """Return the seconds of this clock; only differences have a meaning.

    Examples
    --------
    >>> from hinge.runtime import clock
    >>> begun = clock.now()
    >>> clock.now() >= begun
    True
    """
    past, _, begun = _compiling
    return (time.perf_counter() if begun is None else begun[0]) - past


def processor_seconds() -> float:
    """Return the seconds that this process has had of a processor, all threads together, compiling apart."""
    _, past, begun = _compiling
    return (time.process_time() if begun is None else begun[1]) - past


def compiled_seconds() -> float:
    """Return how long this process has compiled code so far, or fetched it from the disk."""
    past, _, begun = _compiling
    return past if begun is None else past + time.perf_counter() - begun[0]


def stands_still() -> bool:
    """Whether some thread compiles just now."""
    return _compiling[2] is not None


@contextmanager
def standing_still() -> Iterator[None]:
    """Stop the clock; whoever calls this holds the compiler's lock. Inside of another such block, do nothing."""
    global _compiling
    past, past_of_processor, begun = _compiling
    if begun is not None:
        yield
        return
    begun = (time.perf_counter(), time.process_time())
    _compiling = (past, past_of_processor, begun)
    try:
        yield
    finally:
        spent = time.perf_counter() - begun[0], time.process_time() - begun[1]
        _compiling = (past + spent[0], past_of_processor + spent[1], None)
