"""Ctrl-C and time limits: one request to stop, heard by everything that a call does, on whatever thread.

The outermost public call catches Ctrl-C (`catching`), a fit sets its time limit (`within`), and whatever takes
long asks now and then: `pressed` or `requested` where there is something to keep, `check` where there is not.
Threads hear of it because they run in a copy of the context of whoever started them (`submit`).
"""

from __future__ import annotations

# What `signal` wraps: to look for members of its enumerations takes longer than many a prediction.
import _signal  # type: ignore[import-not-found]
import contextvars
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

from hinge.runtime import clock

T = TypeVar("T")

_NEVER = float("inf")


class Cancelled(BaseException):  # an event, not an error: nobody's `except Exception` may swallow it
    """Work was dropped where it stood: somebody asked to stop, or the time was up."""


class Interrupt:
    """A request to stop, and a time by which to end.

    Parameters
    ----------
    outer : Interrupt, optional
        What this is part of: its requests and its deadline count here too.
    seconds : float, optional
        Time from now on.

    Attributes
    ----------
    deadline : float
        When the time is up, by `hinge.runtime.clock`; infinite without a limit.
    is_heard : bool
        Whether Ctrl-C leads here.
    """

    def __init__(self, outer: Interrupt | None = None, seconds: float | None = None) -> None:
        self._outer = outer
        self._pressed_at = _NEVER
        self.is_heard: bool = outer is not None and outer.is_heard
        self.deadline: float = _NEVER if outer is None else outer.deadline
        if seconds is not None:
            self.deadline = min(self.deadline, clock.now() + seconds)

    @property
    def pressed_at(self) -> float:
        """When somebody asked to stop; infinite if nobody did."""
        at, outer = self._pressed_at, self._outer
        while outer is not None:  # this is asked millions of times
            if outer._pressed_at < at:
                at = outer._pressed_at
            outer = outer._outer
        return at

    def press(self) -> None:
        """Ask everybody in reach to stop."""
        self._pressed_at = min(self._pressed_at, clock.now())


_current: contextvars.ContextVar[Interrupt] = contextvars.ContextVar("hinge-interrupt", default=Interrupt())  # noqa: B039

#: Called at the first Ctrl-C that is caught; the command line says here what a person is waiting for.
announce: Callable[[], None] = lambda: None  # noqa: E731


def current() -> Interrupt:
    """Return the request to stop that concerns whoever calls this."""
    return _current.get()


def pressed() -> bool:
    """Whether somebody asked to stop."""
    return _current.get().pressed_at < _NEVER


def requested() -> bool:
    """Whether somebody asked to stop, or the time is up."""
    interrupt = _current.get()
    return interrupt.pressed_at < _NEVER or (interrupt.deadline < _NEVER and clock.now() > interrupt.deadline)


def check() -> None:
    """Raise `Cancelled` if somebody asked to stop, or the time is up."""
    if requested():
        raise Cancelled


class _Foreign:
    """Inside, a function runs that asks nobody whether to stop: Ctrl-C raises `Cancelled` in the midst of it.

    Python handles signals on the main thread, so that only functions that run there can be ended.

    Attributes
    ----------
    is_running : bool
        Whether the main thread is inside.
    """

    def __init__(self) -> None:
        self.is_running = False

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self.is_running = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if threading.current_thread() is threading.main_thread():
            self.is_running = False


#: Around functions that callers bring along.
foreign = _Foreign()


class catching:  # noqa: N801 - used like a function
    """Turn the first Ctrl-C into a request to stop; a second one raises KeyboardInterrupt as usual.

    The outermost such context raises KeyboardInterrupt at its end if there was a request, unless its call says
    that it has answered it. In threads other than the main one, and inside of another such context, nothing is
    done.

    Attributes
    ----------
    is_answered : bool
        Whether the caller is told in another way than by KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self.is_answered = False
        self._interrupt: Interrupt | None = None

    def __enter__(self) -> Self:
        outer = _current.get()
        if outer.is_heard or threading.current_thread() is not threading.main_thread():
            return self
        old = _signal.getsignal(signal.SIGINT)
        if not callable(old):  # Ctrl-C is ignored, ends the process, or belongs to somebody else
            return self
        self._interrupt, self._outer, self._old = Interrupt(outer), outer, old
        self._interrupt.is_heard = True
        _signal.signal(signal.SIGINT, self._handle)
        _current.set(self._interrupt)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        assert self._interrupt is not None
        if self._interrupt.pressed_at < _NEVER:
            self._old(number, frame)
        self._interrupt.press()
        announce()
        if foreign.is_running:
            raise Cancelled

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._interrupt is None:
            return
        _current.set(self._outer)
        _signal.signal(signal.SIGINT, self._old)
        is_pressed = self._interrupt.pressed_at < _NEVER
        if is_pressed and (isinstance(error, Cancelled) or (error is None and not self.is_answered)):
            raise KeyboardInterrupt from None


class _Entered:
    """Inside, a request to stop is the one that concerns everybody."""

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt

    def __enter__(self) -> Interrupt:
        self._outer = _current.get()
        _current.set(self._interrupt)
        return self._interrupt

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.set(self._outer)  # a generator may be closed in another context than it was begun in: no token


def within(seconds: float | None) -> _Entered:
    """Let everything inside end within this many seconds, if any are given."""
    return _Entered(Interrupt(_current.get(), seconds))


@contextmanager
def together() -> Iterator[None]:
    """Let everything that is begun inside stop when the block fails.

    Dropped work is no failure: the others are asked to stop by whoever asked for that.
    """
    with _Entered(Interrupt(_current.get())) as interrupt:
        try:
            yield
        except Cancelled:
            raise
        except BaseException:
            interrupt.press()
            raise


def submit(pool: Executor, function: Callable[..., T], *arguments: Any, **options: Any) -> Future[T]:
    """Call a function on a thread of the pool, where it hears the same requests to stop."""
    return pool.submit(contextvars.copy_context().run, function, *arguments, **options)
