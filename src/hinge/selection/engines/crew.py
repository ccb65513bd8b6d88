"""Threads with nothing of their own to do help those that have."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_Call = tuple["Future[Any]", Callable[[Any], Any], Any]


class Crew:
    """Calls that whoever is free may make.

    A thread with many calls to make offers them by `spread` and makes them itself, one after the other; threads
    that are in `help` meanwhile take some of them.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> crew = Crew()
    >>> with ThreadPoolExecutor(1) as pool:
    ...     helper = pool.submit(crew.help)
    ...     roots = crew.spread(abs, [-1, 2, -3])
    ...     crew.dismiss()
    >>> roots
    [1, 2, 3]
    """

    def __init__(self) -> None:
        self._offers: list[deque[_Call]] = []
        self._news = threading.Condition()
        self._is_dismissed = False

    def spread(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return ``[function(item) for item in items]``. What a call raises is raised here."""
        calls: deque[_Call] = deque((Future(), function, item) for item in items)
        futures = [future for future, _, _ in calls]
        with self._news:
            self._offers.append(calls)
            self._news.notify_all()
        try:
            _make(calls)
        finally:
            with self._news:
                self._offers.remove(calls)
        return [future.result() for future in futures]

    def help(self) -> None:
        """Make the calls of others until the crew is dismissed."""
        while True:
            with self._news:
                self._news.wait_for(lambda: self._is_dismissed or any(self._offers))
                if self._is_dismissed:
                    return
                offer = next(filter(None, self._offers))
            _make(offer)

    def dismiss(self) -> None:
        """Let all helpers go."""
        with self._news:
            self._is_dismissed = True
            self._news.notify_all()


def _make(calls: deque[_Call]) -> None:
    """Make calls until none is left; several threads may do so at once."""
    while True:
        try:
            future, function, item = calls.popleft()
        except IndexError:
            return
        try:
            future.set_result(function(item))
        except BaseException as error:  # it belongs to whoever spread the calls
            future.set_exception(error)
