"""The command line: ``hinge COMMAND ...``. Each command is a module with a `run` function, imported when used."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from hinge._version import __version__

COMMANDS = {
    "demo": "train, cross-validate and report on a data set that ships with scikit-learn",
}

_EXIT_USAGE = 2


def usage() -> str:
    """Return the text of ``hinge --help``."""
    width = max(len(name) for name in COMMANDS)
    lines = [f"  {name:<{width}}  {what}" for name, what in COMMANDS.items()]
    return "\n".join(["usage: hinge COMMAND [options]", "", *lines, "", "hinge COMMAND --help tells more."])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 success, 1 failure, 2 wrong usage."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] in COMMANDS:
        code: int = import_module(f"hinge.cli.{words[0]}").run(words[1:])
        return code
    if words and words[0] == "--version":
        print(f"hinge {__version__}")
        return 0
    asked = bool(words) and words[0] in ("-h", "--help")
    if words and not asked:
        print(f"hinge: unknown command {words[0]!r}", file=sys.stderr)
    print(usage(), file=sys.stdout if asked else sys.stderr)
    return 0 if asked else _EXIT_USAGE
