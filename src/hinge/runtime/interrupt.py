"""Ctrl-C and time limits: one request to stop, heard by everything that a call does, on whatever thread.

The outermost public call catches Ctrl-C (`catching`), a fit sets its time limit (`within`), and whatever takes
long asks now and then: `pressed` or `requested` where there is something to keep, `check` where there is not.
Threads hear of it because they run in a copy of the context of whoever started them (`submit`).
"""

from __future__ import annotations

import contextvars
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeVar

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


@dataclass
class Scope:
    """One call that catches Ctrl-C.

    Attributes
    ----------
    is_answered : bool
        Whether the caller is told in another way than by KeyboardInterrupt.
    """

    is_answered: bool = False


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


@contextmanager
def catching() -> Iterator[Scope]:
    """Turn the first Ctrl-C into a request to stop; a second one raises KeyboardInterrupt as usual.

    The outermost such context raises KeyboardInterrupt at its end if there was a request, unless its call says
    that it has answered it. In threads other than the main one, and inside of another such context, nothing is
    done.
    """
    scope, outer = Scope(), _current.get()
    is_main = threading.current_thread() is threading.main_thread()
    old = signal.getsignal(signal.SIGINT) if is_main and not outer.is_heard else None
    if not callable(old):  # Ctrl-C is ignored, ends the process, or belongs to somebody else
        yield scope
        return
    interrupt = Interrupt(outer)
    interrupt.is_heard = True

    def handle(number: int, frame: FrameType | None) -> None:
        if interrupt.pressed_at < _NEVER:
            old(number, frame)
        interrupt.press()
        announce()

    signal.signal(signal.SIGINT, handle)
    try:
        with _entered(interrupt):
            yield scope
    except Cancelled:
        if interrupt.pressed_at < _NEVER:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, old)
    if interrupt.pressed_at < _NEVER and not scope.is_answered:
        raise KeyboardInterrupt


@contextmanager
def within(seconds: float | None) -> Iterator[Interrupt]:
    """Let everything inside end within so many seconds, if any are given."""
    with _entered(Interrupt(_current.get(), seconds)) as interrupt:
        yield interrupt


@contextmanager
def together() -> Iterator[None]:
    """Let everything that is begun inside stop when the block fails.

    Dropped work is no failure: the others are asked to stop by whoever asked for that.
    """
    with _entered(Interrupt(_current.get())) as interrupt:
        try:
            yield
        except Cancelled:
            raise
        except BaseException:
            interrupt.press()
            raise


@contextmanager
def _entered(interrupt: Interrupt) -> Iterator[Interrupt]:
    outer = _current.get()
    _current.set(interrupt)
    try:
        yield interrupt
    finally:
        _current.set(outer)  # a generator may be closed in another context than it was begun in: no token


def submit(pool: Executor, function: Callable[..., T], *arguments: Any, **options: Any) -> Future[T]:
    """Call a function on a thread of the pool, where it hears the same requests to stop."""
    return pool.submit(contextvars.copy_context().run, function, *arguments, **options)
