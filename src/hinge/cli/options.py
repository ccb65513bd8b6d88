"""Command lines: one table of options drives parsing, help and completion.

Short options follow LIBSVM's rules: only the character behind the dash counts, the value is the next word, and
options end at the first word without a dash. Long options, ``--name value`` or ``--name=value``, may stand
anywhere, also behind the files.
"""

from __future__ import annotations

import difflib
import math
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

EXIT_OK = 0
EXIT_FAILURE = 1
EXIT_USAGE = 2

Kind = Literal["flag", "int", "float", "size", "range", "choice", "file", "weight"]

_HELP_WIDTH = 100
_N_WORDS = {"flag": 0, "range": 2}


@dataclass(frozen=True)
class Option:
    """One option of a command.

    Parameters
    ----------
    long : str
        Its long name, without dashes; also its name among the parsed values.
    help : str
        What it does.
    short : str
        LIBSVM's letter, if LIBSVM has this option.
    kind : str
        What it takes: nothing, a whole number, a number, a number of bytes, two numbers, one of ``choices``, a
        file; ``"weight"`` is LIBSVM's ``-wi``, whose class is glued to the letter.
    default : object
        Its value where it is not given.
    metavar : str
        How the help calls the value.
    choices : tuple of str
        Allowed words.
    values : tuple of str
        Lines of the help that explain single values.
    least, most : int, optional
        The smallest and the largest number allowed.
    is_positive : bool
        Whether numbers must be above 0.
    """

    long: str
    help: str
    short: str = ""
    kind: Kind = "flag"
    default: Any = None
    metavar: str = ""
    choices: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    is_positive: bool = False

    @property
    def n_words(self) -> int:
        """How many words it takes."""
        return _N_WORDS.get(self.kind, 1)

    @property
    def spelling(self) -> str:
        """How the help writes it."""
        short = f"-{self.short}" if self.short else ""
        if self.kind == "weight":
            return f"-{self.short}LABEL {self.metavar}, --{self.long} LABEL={self.metavar}"
        both = ", ".join(part for part in (short, f"--{self.long}") if part)
        taken = self.metavar or ("|".join(self.choices) if self.kind == "choice" else "")
        return f"{both} {taken}".rstrip()

    def convert(self, words: Sequence[str]) -> Any:
        """Return the value that words stand for; ValueError says what was expected."""
        if self.kind == "flag":
            return True
        if self.kind == "choice" and words[0] not in self.choices:
            raise ValueError(f"one of {', '.join(self.choices)}, got {words[0]!r}")
        if self.kind in ("choice", "file"):
            return words[0]
        if self.kind == "size":
            return _bytes(words[0])
        numbers = [_number(word, whole=self.kind == "int") for word in words]
        if self.least is not None and min(numbers) < self.least:
            raise ValueError(f"a number from {self.least}, got {words[0]!r}")
        if self.most is not None and max(numbers) > self.most:
            raise ValueError(f"a number up to {self.most}, got {words[0]!r}")
        if self.is_positive and min(numbers) <= 0:
            raise ValueError(f"a number above 0, got {words[0]!r}")
        return tuple(numbers) if self.kind == "range" else numbers[0]


_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def _bytes(word: str) -> int:
    """Return the bytes that a size like 2GB means."""
    digits = word.rstrip("BbKkMmGgTt")
    unit = _UNITS.get(word[len(digits) :].upper())
    number = _number(digits, whole=False) if unit else 0.0
    if unit is None or not number > 0:
        raise ValueError(f"a size such as 500MB or 2GB, got {word!r}")
    return int(number * unit)


@dataclass(frozen=True)
class Command:
    """One command: what it takes and what its help says.

    Parameters
    ----------
    name : str
        Its name behind ``hinge``.
    summary : str
        One line about it.
    options : tuple of Option
        Its options.
    files : tuple of str
        Its positional arguments; those in brackets may be left out.
    notes : str
        The end of the help.
    unknown : str
        What is said of an unknown short option, with ``{}`` for its letter.
    anywhere : bool
        Whether short options may also stand behind files; LIBSVM's tools take them for files there.
    several_with : str
        Long name of the option with which the first argument may be several files, and none may be left out.
    """

    name: str
    summary: str
    options: tuple[Option, ...]
    files: tuple[str, ...]
    notes: str = ""
    unknown: str = "Unknown option: -{}"
    anywhere: bool = False
    several_with: str = ""

    @property
    def synopsis(self) -> str:
        """The first line of the help."""
        return f"Usage: hinge {self.name} {self.forms[0]}".rstrip()

    @property
    def forms(self) -> list[str]:
        """What may stand behind the name: options and files."""
        forms = [" ".join(["[options]", *self.files])]
        if option := next((one for one in self.options if one.long == self.several_with), None):
            first, *rest = (file.strip("[]") for file in self.files)
            forms.append(" ".join([f"--{option.long} {option.metavar} [options]", f"{first}...", *rest]))
        return forms

    def parse(self, words: Sequence[str]) -> Parsed:
        """Read a command line, or print what is wrong with it, or the help, and leave."""
        return _Parser(self, list(words)).parse()

    def help_text(self) -> str:
        """Return the text of ``--help``."""
        others = [f"       hinge {self.name} {form}" for form in self.forms[1:]]
        lines = [self.synopsis, *others, "", *_wrapped(self.summary, ""), "", "options:"]
        for option in (*self.options, HELP):
            lines.append(f"  {option.spelling}")
            lines += _wrapped(explained(option), "        ")
            lines += [f"          {value}" for value in option.values]
        return "\n".join([*lines, *([""] if self.notes else []), *self.notes.strip().splitlines()])

    def fail(self, message: str, code: int = EXIT_FAILURE, usage: bool = True) -> NoReturn:
        """Say what is wrong, show the line of usage, and leave."""
        print(message, file=sys.stderr)
        if usage:
            print(f"{self.synopsis}\nhinge {self.name} --help explains all options.", file=sys.stderr)
        raise SystemExit(code)


@dataclass(frozen=True)
class Parsed:
    """A command line that was read.

    Attributes
    ----------
    values : dict
        Value of every option by its long name.
    weights : tuple of (int, float)
        The class weights, in the order given.
    files : tuple of str
        The positional arguments.
    given : frozenset of str
        Long names of the options that were given.
    """

    values: dict[str, Any]
    weights: tuple[tuple[int, float], ...]
    files: tuple[str, ...]
    given: frozenset[str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


HELP = Option("help", "Show this text.")

QUIET = Option("quiet", "Print nothing but the result of a cross-validation, warnings and errors.", "q")


class _Parser:
    """Reads the words of one command line."""

    def __init__(self, command: Command, words: list[str]) -> None:
        self.command, self.words = command, words
        self.values = {option.long: option.default for option in command.options}
        self.weights: list[tuple[int, float]] = []
        self.files: list[str] = []
        self.given: set[str] = set()
        self.short = {option.short: option for option in command.options if option.short}
        self.long = {option.long: option for option in command.options}

    def parse(self) -> Parsed:
        while self.words:
            word = self.words.pop(0)
            if word == "--":
                self.files += self.words
                break
            if word.startswith("--"):
                self._take_long(word[2:])
            elif word.startswith("-") and len(word) > 1 and (self.command.anywhere or not self.files):
                self._take_short(word[1:])
            else:
                self.files.append(word)
        has_several = self.command.several_with in self.given
        needed = [file.strip("[]") for file in self.command.files if has_several or not file.startswith("[")]
        if len(self.files) < len(needed):
            self._fail(f"{needed[len(self.files)]} is missing")
        if len(self.files) > len(self.command.files) and not has_several:
            self._fail(f"{self.files[len(self.command.files)]!r} is one argument too many")
        return Parsed(self.values, tuple(self.weights), tuple(self.files), frozenset(self.given))

    def _take_short(self, letters: str) -> None:
        option = self.short.get(letters[0])
        if option is None:
            self.command.fail(self.command.unknown.format(letters[0]))
        if len(self.words) < option.n_words:
            self._fail(f"-{letters[0]} needs a value: {option.spelling}")
        words = [self.words.pop(0) for _ in range(option.n_words)]
        if option.kind == "weight":
            self._add_weight(f"-{letters}", letters[1:], words[0])
        else:
            self._store(option, words, f"-{letters[0]}")

    def _take_long(self, text: str) -> None:
        name, equals, glued = text.partition("=")
        if name == HELP.long:
            print(self.command.help_text())
            raise SystemExit(EXIT_OK)
        option = self.long.get(name)
        if option is None:
            known = [f"--{known}" for known in (*self.long, HELP.long)]
            self._fail(f"unknown option --{name}{suggestion(f'--{name}', known)}", EXIT_USAGE)
        words = [glued] if equals else []
        n_missing = option.n_words - len(words)
        if n_missing < 0:
            self._refuse(f"--{name} takes no value")
        if len(self.words) < n_missing:
            self._fail(f"--{name} needs a value: {option.spelling}", EXIT_USAGE)
        words += [self.words.pop(0) for _ in range(n_missing)]
        if option.kind == "weight":
            label, _, weight = words[0].partition("=")
            self._add_weight(f"--{name}", label, weight)
        else:
            self._store(option, words, f"--{name}")

    def _add_weight(self, spelling: str, label: str, weight: str) -> None:
        try:
            self.weights.append((_number(label, whole=True), _number(weight)))
        except ValueError as error:
            self._refuse(f"{spelling} needs a label and a number: {error}")

    def _store(self, option: Option, words: list[str], spelling: str) -> None:
        try:
            self.values[option.long] = option.convert(words)
        except ValueError as error:
            self._refuse(f"{spelling} takes {error}")
        self.given.add(option.long)

    def _fail(self, message: str, code: int = EXIT_FAILURE) -> NoReturn:
        self.command.fail(f"hinge {self.command.name}: {message}", code)

    def _refuse(self, message: str) -> NoReturn:
        self.command.fail(f"hinge {self.command.name}: {message}", EXIT_USAGE, usage=False)


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a question about the known word that this one is most like, or nothing.

    Examples
    --------
    >>> suggestion("--treads", ["--threads", "--quiet"]), suggestion("xyz", ["--threads"])
    ('; did you mean --threads?', '')
    """
    alike = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {alike[0]}?" if alike else ""


def _number(word: str, whole: bool = False) -> Any:
    """Read a number in C's notation; what C would cut off silently, such as ``1x``, is refused."""
    expected = "a whole number" if whole else "a number"
    try:
        value = float(word) if "_" not in word else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or (whole and (value != int(value) or abs(value) >= 2**31)):
        raise ValueError(f"{expected}, got {word!r}")
    return int(value) if whole else value


def explained(option: Option) -> str:
    """Return what an option does, and its default."""
    shown = "" if option.default is None or option.kind == "flag" else f" [default: {option.default}]"
    return option.help + shown


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _HELP_WIDTH, initial_indent=indent, subsequent_indent=indent)
