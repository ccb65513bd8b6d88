"""``hinge man``: manual pages, made from the option tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from hinge._version import __version__
from hinge.cli.commands import COMMANDS
from hinge.cli.data import leave
from hinge.cli.options import EXIT_OK, EXIT_USAGE, HELP, Command, Option, explained, suggestion
from hinge.cli.outputs import check_folder
from hinge.cli.tables import MAN, TABLES
from hinge.io import atomic_write


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    parsed = MAN.parse(arguments)
    pages = {"hinge": _overview()} | {command.name: page(command) for command in TABLES}
    if parsed["out"] is not None:
        return _write_all(parsed["out"], pages)
    name = parsed.files[0] if parsed.files else "hinge"
    if name not in pages:
        MAN.fail(f"hinge man: no command is called {name!r}{suggestion(name, pages)}", EXIT_USAGE)
    print(pages[name], end="")
    return EXIT_OK


def page(command: Command) -> str:
    """Return the manual page of a command."""
    title = f"hinge-{command.name}".replace(" ", "-")
    lines = [*_head(title, command.summary), ".SH SYNOPSIS"]
    for number, form in enumerate(command.forms):
        lines += [*([".br"] if number else []), f".B hinge {command.name}", _escaped(form)]
    lines.append(".SH OPTIONS")
    for option in (*command.options, HELP):
        lines += _option(option)
    if command.notes:
        lines += [".SH NOTES", ".nf", *map(_escaped, command.notes.strip().splitlines()), ".fi"]
    lines += [".SH SEE ALSO", ".BR hinge (1)"]
    return "\n".join(lines) + "\n"


def _overview() -> str:
    lines = [*_head("hinge", "Support vector machines: exact, fast, and with a certificate for every answer.")]
    lines += [".SH SYNOPSIS", ".B hinge", "COMMAND [options]", ".SH COMMANDS"]
    for name, what in COMMANDS.items():
        lines += [".TP", f".B {_escaped(name)}", _escaped(what)]
    lines += [".SH EXIT STATUS", "0 success, 1 an error, 2 wrong usage."]
    return "\n".join(lines) + "\n"


def _head(title: str, summary: str) -> Iterator[str]:
    yield f'.TH "{title.upper()}" "1" "" "hinge {__version__}" "User Commands"'
    yield ".SH NAME"
    yield f"{_escaped(title)} \\- {_escaped(summary)}"


def _option(option: Option) -> Iterator[str]:
    yield ".TP"
    yield f".B {_escaped(option.spelling)}"
    yield _escaped(explained(option))
    for value in option.values:
        yield ".br"
        yield _escaped(value)


def _escaped(text: str) -> str:
    """Return a line that means itself: no backslash, dash or leading dot has a meaning to man."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def _write_all(folder: str, pages: dict[str, str]) -> int:
    folder = os.path.expanduser(folder)
    check_folder(folder)
    try:
        os.makedirs(folder, exist_ok=True)
        for name, text in pages.items():
            title = "hinge" if name == "hinge" else f"hinge-{name}".replace(" ", "-")
            with atomic_write(os.path.join(folder, f"{title}.1")) as file:
                file.write(text)
    except OSError as error:
        leave(f"hinge man: {error}")
    print(f"{len(pages)} pages: {folder}")
    return EXIT_OK
