"""Standard output and standard error of a command: full devices, closed descriptors and readers that left."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any


class OutputError(Exception):
    """Standard output cannot be written; the message says why.

    It is no OSError, so that it is not taken for trouble with a file that a command reads or writes.
    """


class _Guard:
    """A stream whose writing never raises OSError. Everything else is the stream's own."""

    def __init__(self, stream: Any, complain: Callable[[str], None]) -> None:
        self._stream, self._complain = stream, complain

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._stream, name)
        return _Guard(value, self._complain) if name == "buffer" else value

    def _try(self, method: str, *arguments: Any) -> Any:
        if self._stream is None:
            return self._complain("it is closed")
        try:
            return getattr(self._stream, method)(*arguments)
        except BrokenPipeError:
            raise
        except OSError as error:
            return self._complain(error.strerror or str(error))
        except ValueError as error:  # closed by somebody else
            return self._complain(str(error))

    def write(self, text: Any) -> Any:
        return self._try("write", text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if self._stream is not None:
            self._try("flush")

    def isatty(self) -> bool:
        return self._stream is not None and bool(self._stream.isatty())


def _fail(reason: str) -> None:
    raise OutputError(reason)


def _ignore(reason: str) -> None:
    """Nobody can be told that standard error does not work."""


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Let writing to standard output raise `OutputError`, and writing to standard error nothing.

    Python leaves the streams out where their descriptors are closed; `print` would then say nothing at all, or say
    errors on standard output.
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _Guard(before[0], _fail), _Guard(before[1], _ignore)  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def give_up_output() -> None:
    """Send what standard output still holds nowhere; Python would complain about it at its end."""
    with suppress(AttributeError, OSError, ValueError):
        descriptor = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
