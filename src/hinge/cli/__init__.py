"""The command line: ``hinge COMMAND ...``. Each command is a module with a `run` function, imported when used."""

from __future__ import annotations

import gc
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from hinge._version import __version__
from hinge.cli.commands import COMMANDS
from hinge.cli.streams import OutputError, give_up_output, guarded_streams

_EXIT_FAILURE = 1
_EXIT_USAGE = 2


def usage() -> str:
    """Return the text of ``hinge --help``."""
    width = max(len(name) for name in COMMANDS)
    lines = [f"  {name:<{width}}  {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        [
            "usage: hinge COMMAND [options]", "", *lines, "",
            "hinge help COMMAND tells more. Exit codes: 0 success, 1 an error, 2 wrong usage.",
            "The documentation begins at docs/index.md of the source; python -m docs builds it as a site.",
        ]
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 success, 1 failure, 2 wrong usage."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["help"] and len(words) > 1:
        words = [*words[1:], "--help"]
    if words and words[0] in COMMANDS:
        return _run(words[0], words[1:])
    return _guarded("hinge", lambda: _without_command(words))


def _without_command(words: list[str]) -> int:
    if words and words[0] == "--version":
        print(f"hinge {__version__}")
        return 0
    if words and words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if not words:
        print(usage(), file=sys.stderr)
        return _EXIT_USAGE
    from hinge.cli.options import suggestion

    print(f"hinge: unknown command {words[0]!r}{suggestion(words[0], COMMANDS)}", file=sys.stderr)
    print("usage: hinge COMMAND [options]\nhinge --help lists all commands.", file=sys.stderr)
    return _EXIT_USAGE


@contextmanager
def _ends_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process at once and without a word, as long as there is nothing to lose.

    While modules are imported KeyboardInterrupt may come up anywhere, and some of them print it and go on.
    """
    try:
        is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if is_ours:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
    except ValueError:  # not the main thread
        is_ours = False
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Let Python not look for garbage among what is imported: hundreds of thousands of objects, all of which stay.

    Only where the process begins with this command: whoever else calls it has garbage of his own.
    """
    if not gc.isenabled() or "numpy" in sys.modules:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _load(command: str) -> Any:
    """Import the module of a command."""
    with _ends_at_once(), _without_collections():
        from hinge.runtime import clock, interrupt

        module = import_module(f"hinge.cli.commands.{command.replace('-', '_')}")

    def announce() -> None:
        if sys.stderr.isatty() and clock.stands_still():
            print(f"hinge {command}: compiling; it ends after the function at hand", file=sys.stderr)

    interrupt.announce = announce
    return module


def _run(command: str, words: list[str]) -> int:
    return _guarded(f"hinge {command}", lambda: _load(command).run(words))


def _guarded(name: str, action: Callable[[], int]) -> int:
    """Run a command to its end, what it printed included; return its exit code."""
    with guarded_streams():
        try:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("default", UserWarning)
                    warnings.showwarning = _tell
                    code = action()
            except SystemExit:
                sys.stdout.flush()
                raise
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of our output, such as head, has seen enough
            give_up_output()
            return _EXIT_FAILURE
        except OutputError as error:
            print(f"{name}: cannot write to standard output: {error}", file=sys.stderr)
            give_up_output()
            return _EXIT_FAILURE
        except MemoryError:
            print(f"{name}: not enough memory", file=sys.stderr)
            return _EXIT_FAILURE
        except KeyboardInterrupt:
            print(f"{name}: interrupted", file=sys.stderr)
            return _EXIT_FAILURE
        return code


def _tell(message: Warning | str, *_: Any, **__: Any) -> None:
    """Show what the library warns of in the words of a command."""
    print(f"WARNING: {message}", file=sys.stderr)


def svm_train() -> int:
    """Run ``hinge-svm-train``: ``hinge train`` under a name of its own, for scripts that call a program."""
    return _run("train", sys.argv[1:])


def svm_predict() -> int:
    """Run ``hinge-svm-predict``."""
    return _run("predict", sys.argv[1:])


def svm_scale() -> int:
    """Run ``hinge-svm-scale``."""
    return _run("scale", sys.argv[1:])
