"""Threads: Python threads over blocks of columns, calling code that releases the interpreter lock.

Each thread runs its own matrix products, so BLAS is held to one thread while a team works. That limit belongs
to the whole process; it is counted, so that fits from several threads at once restore it exactly once.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Generic, TypeVar

from numba.core.compiler_lock import global_compiler_lock
from threadpoolctl import OpenBLASController, ThreadpoolController

from hinge.runtime.interrupt import Cancelled, requested, submit, together
from hinge.runtime.memory import CACHE_LINE, GROUPS

# Work that one thread does in less time is done before a second one has heard of it.
_WORTH_A_HELPER = 5e-4

# Where a range has several blocks, their number is a multiple of this one: as many to each of 2, 4 or 8 threads.
# It must not depend on how many there are: rounding depends on where blocks end, and all later steps on rounding.
EVEN = 8


# Containers tell their limit in files, and reading them takes as long as a prediction: the answer may be this old.
_LOOK_SECONDS = 0.5
_last_look: tuple[float, Any, int] = (-float("inf"), None, 1)  # when, for which cores, and how many it were


def available_threads() -> int:
    """Count the cores that this process may use: affinity, containers and joblib's inner limits respected."""
    global _last_look
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None  # not on macOS and Windows
    # How joblib tells its workers their share.
    limits = tuple(os.environ.get(name, "") for name in ("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"))
    asked = cores, limits  # what may change from one call to the next
    now = time.monotonic()
    if now - _last_look[0] > _LOOK_SECONDS or asked != _last_look[1]:
        counts = [os.cpu_count() or 1, *_quota()]
        if cores is not None:
            counts.append(len(cores))
        counts += [int(limit) for limit in limits if limit.isdigit() and int(limit) > 0]
        _last_look = now, asked, max(min(counts), 1)
    return _last_look[2]


def _quota() -> Iterator[int]:
    """Yield the cores that a container may use: quota over period of its control group, rounded up.

    joblib counts the same, but takes a tenth of a second to import: too long for a command.
    """
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with suppress(OSError, ValueError):  # no such file, or "max", or not our business
            quota, period = (int(word) for name in names for word in (GROUPS / name).read_text().split())
            if quota > 0 and period > 0:
                yield -(-quota // period)


#: Two functions: how many threads a library takes, and one that sets it.
_Switch = tuple[Callable[[], int], Callable[[int], Any]]


def _switch_of(library: Any) -> _Switch:
    """Return the functions of a BLAS library that tell and set its threads.

    Those of OpenBLAS itself: threadpoolctl looks them up at each call, which takes longer than they do, and from
    3.8 on it lets the thread that set a limit alone lift it, for as long as that lives.
    """
    if isinstance(library, OpenBLASController) and library.threading_layer != "openmp":
        return library._get_symbol("openblas_get_num_threads"), library._get_symbol("openblas_set_num_threads")
    return library.get_num_threads, library.set_num_threads


class _BlasLimit:
    """Hold BLAS to one thread while at least one team is at work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._switches: list[_Switch] | None = None
        self._held: list[tuple[Callable[[int], Any], int]] = []  # of libraries that had more threads: how many

    def __call__(self) -> _BlasLimit:
        return self

    def hold(self) -> None:
        """Keep all threads from setting the limit until `release`."""
        self._lock.acquire()

    def release(self) -> None:
        """Let threads set the limit again."""
        self._lock.release()

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                if self._switches is None:
                    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
                    self._switches = [_switch_of(library) for library in libraries]
                # By hand: threadpoolctl's own context asks every library for all that it knows of itself.
                for ask, hold in self._switches:
                    if (count := ask()) != 1:
                        self._held.append((hold, count))
                        hold(1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                while self._held:
                    hold, count = self._held.pop()
                    hold(count)


blas_on_one_thread = _BlasLimit()


def _forget_parent_teams() -> None:
    # A fork may happen while another thread holds the limit, which does not exist in the child.
    blas_on_one_thread.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    # While another thread is in the midst of setting the limit a fork waits: OpenBLAS has a lock of its own there,
    # which nobody would ever release in the child.
    os.register_at_fork(
        before=blas_on_one_thread.hold,
        after_in_parent=blas_on_one_thread.release,
        after_in_child=_forget_parent_teams,
    )
    # While another thread compiles a fork waits: nobody would ever finish that in the child, nor release the lock.
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 - used like `property`
    """A property that is computed at its first use and kept.

    Unlike `functools.cached_property` before Python 3.12 it takes no lock: that one is shared by all instances, so
    that fits wait for each other, and a fork may leave it locked in the child for ever.

    Examples
    --------
    >>> class Circle:
    ...     @lazy
    ...     def area(self):
    ...         print("computing")
    ...         return 3.14
    >>> circle = Circle()
    >>> circle.area + circle.area
    computing
    6.28
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type) -> T:
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


# Helpers of all teams: starting a thread takes longer than many a fit. There are as many as are ever busy at once.
_MOST_HELPERS = 1000
_helpers: tuple[int, ThreadPoolExecutor | None] = (0, None)  # of which process


def _pool() -> ThreadPoolExecutor:
    global _helpers
    owner, pool = _helpers
    if pool is None or owner != os.getpid():  # threads do not survive a fork: a child starts its own
        pool = ThreadPoolExecutor(_MOST_HELPERS, thread_name_prefix="hinge")
        _helpers = os.getpid(), pool
    return pool


class Team:
    """A fixed number of threads that share the blocks of a range.

    Parameters
    ----------
    size : int or None
        Number of threads; None takes every core that this process may use.

    Attributes
    ----------
    cancelled : callable
        Whether to stop; asked between blocks. By default whatever concerns the caller: Ctrl-C, a time limit.

    Examples
    --------
    >>> done = []
    >>> Team(1).share(5, 2, lambda start, stop: done.append((start, stop)))
    >>> done
    [(0, 2), (2, 4), (4, 5)]
    """

    def __init__(self, size: int | None = None) -> None:
        if size is not None and size < 1:
            raise ValueError(f"threads must be at least 1, got {size}")
        if size is not None:
            self.size = size
        self.cancelled: Callable[[], bool] = requested

    @lazy
    def size(self) -> int:
        """Number of threads; nobody counts cores for work that one thread does alone."""
        return available_threads()

    def share(
        self,
        length: int,
        block: int,
        work: Callable[[int, int], None],
        seconds: float = float("inf"),
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        """Call ``work(start, stop)`` for the blocks of ``range(length)``, on all threads.

        Blocks are at most ``block`` long, and shorter where that leaves as many to each thread. They are the same
        for every number of threads. ``seconds`` is a guess at how long one thread takes for all of them.
        ``cancelled`` is asked in the place of the team's own.

        Raises
        ------
        Cancelled
            Some blocks were left undone because `cancelled` answered True.
        """
        n_blocks = -(-length // block)
        if n_blocks > 1:
            n_even = -(-n_blocks // EVEN) * EVEN
            block = min(block, -(-length // (n_even * CACHE_LINE)) * CACHE_LINE)
        is_cancelled = cancelled or self.cancelled
        n_helpers = min(self.size, -(-length // block)) - 1 if length > block and seconds > _WORTH_A_HELPER else 0
        if n_helpers <= 0:
            for start in range(0, length, block):
                if is_cancelled():
                    raise Cancelled
                work(start, min(start + block, length))
            return
        starts: Iterator[int] = iter(range(0, length, block))
        lock = threading.Lock()

        def run() -> None:
            nonlocal starts
            try:
                while True:
                    with lock:
                        start = next(starts, None)
                    if start is None:
                        return
                    if is_cancelled():
                        raise Cancelled
                    work(start, min(start + block, length))
            except BaseException:
                with lock:  # nobody begins another block
                    starts = iter(())
                raise

        helpers: list[Future[None]] = []
        try:
            with together():
                helpers += [submit(_pool(), run) for _ in range(n_helpers)]
                run()
        finally:  # helpers that have not begun by now would find nothing to do
            failures = [helper.exception() for helper in helpers if not helper.cancel()]
        for failure in failures:
            if failure is not None:
                raise failure

    @staticmethod
    def block(length: int, seconds: float) -> int:
        """Return the length of blocks for `share` where they have none of their own: one block of little work.

        ``seconds`` is the same guess as there; blocks are the same for every number of threads.
        """
        return length if seconds <= _WORTH_A_HELPER else -(-length // EVEN)

    def check(self) -> None:
        """Raise `Cancelled` if the team was told to stop; long work asks now and then."""
        if self.cancelled():
            raise Cancelled

    def __getstate__(self) -> dict[str, Any]:
        return {"size": self.size}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["size"])  # type: ignore[misc]
