"""What is said about a malformed data file: where, what was expected, what was found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hinge.io.svmlight import parse as parse

LABEL_RANGE = -1  # a code beside the parser's own

_LONGEST_EXCERPT = 24
_NOT_FINITE = re.compile(rb"[-+]?(nan|inf|infinity)", re.IGNORECASE)
_TOKEN = re.compile(rb"[^ \t\r\n#]*")


@dataclass(frozen=True)
class LineError:
    """One malformed line.

    Attributes
    ----------
    line, column : int
        Where it is, counted from 1. Columns are bytes, or cells of a table.
    expected : str
        What should have been there.
    found : str
        What was there, shortened.

    Examples
    --------
    >>> print(LineError(3, 5, "a number behind the colon", "'x'"))
    line 3, column 5: expected a number behind the colon, found 'x'
    """

    line: int
    column: int
    expected: str
    found: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: expected {self.expected}, found {self.found}"


class DataFileError(ValueError):
    """A data file cannot be used.

    Attributes
    ----------
    path : str
        The file.
    errors : tuple of LineError
        The first malformed lines, if lines are to blame.
    n_errors : int
        How many lines are malformed in all.

    Examples
    --------
    >>> import io
    >>> from hinge.io import read_data
    >>> try:
    ...     read_data(io.BytesIO(b"1 1:0.5 3:nan\\n-1 2:1 2:1\\n"))
    ... except DataFileError as error:
    ...     print(error)
    <file>: 2 malformed lines
      line 1, column 11: expected a finite number behind the colon, found 'nan'
      line 2, column 8: expected an index above 2, since indices ascend along a line, found '2:1'
    """

    def __init__(self, message: str, path: str = "", errors: Sequence[LineError] = (), n_errors: int = 0) -> None:
        super().__init__(message, path, tuple(errors), n_errors)
        self.message, self.path, self.errors, self.n_errors = self.args

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else str(self.message)


def malformed(path: str, errors: Sequence[LineError], n_errors: int) -> DataFileError:
    """Make the error that lists the first malformed lines of a file and counts the others."""
    lines = [str(error) for error in errors]
    if n_errors == 1 == len(lines):
        return DataFileError(lines[0], path, errors, n_errors)
    if n_errors > len(lines):
        lines.append(f"and {n_errors - len(lines)} more")
    return DataFileError("\n  ".join([f"{n_errors} malformed lines", *lines]), path, errors, n_errors)


def describe(text: bytes, line: int, at: int, code: int, limit: str, dtype: str) -> LineError:
    """Explain why the parser stopped at ``text[at]``, on ``line`` counted from 0, with ``code``.

    ``limit`` tells the largest index allowed and where that limit comes from, ``dtype`` the type of values.
    """
    start = text.rfind(b"\n", 0, at) + 1
    match = _TOKEN.match(text, at)
    token = match.group() if match else b""
    expected = _expected(code, token, text[start:at], limit, dtype)
    found = _excerpt(token) if code != parse.RETURN else "a carriage return inside the line"
    return LineError(line + 1, at - start + 1, expected, found)


def _expected(code: int, token: bytes, before: bytes, limit: str, dtype: str) -> str:
    number = "a finite number" if _NOT_FINITE.fullmatch(token) else "a number"
    match code:
        case parse.LABEL if b"," in token:
            return "one label (multi-label data is not supported)"
        case parse.LABEL if b":" in token:
            return "a label in front of the features"
        case parse.LABEL:
            return f"{number} as the label"
        case parse.QID:
            return "up to 18 digits behind qid:"
        case parse.INDEX if token.startswith(b"qid:"):
            return "qid: right behind the label"
        case parse.INDEX if token.startswith(b"-"):
            return "an index of 0 or more"
        case parse.INDEX | parse.COLON:
            return "index:value"
        case parse.LIMIT:
            return f"an index up to {limit}"
        case parse.ORDER:
            previous = before.rsplit(None, 1)[-1].split(b":")[0].decode()
            return f"an index above {previous}, since indices ascend along a line"
        case _ if code == LABEL_RANGE:
            return "a label in the range of float64"
        case parse.VALUE_RANGE:
            return f"a number in the range of {dtype}"
        case parse.RETURN:
            return "a line feed behind the carriage return"
    return f"{number} behind the colon"


def _excerpt(token: bytes) -> str:
    if not token:
        return "nothing"
    text = token[:_LONGEST_EXCERPT].decode("ascii", "backslashreplace")
    if not text.isprintable():
        text = ascii(text)[1:-1]
    return f"'{text}'" if len(token) <= _LONGEST_EXCERPT else f"'{text}…'"


@dataclass
class Faults:
    """The malformed lines of a text that is read in pieces.

    Attributes
    ----------
    most : int
        How many are described.
    errors : list of LineError
        Their descriptions.
    count, n_lines : int
        How many malformed lines, and lines, there have been.
    """

    most: int
    errors: list[LineError] = field(default_factory=list)
    count: int = 0
    n_lines: int = 0

    def note(self, errors: Sequence[LineError], count: int, n_lines: int) -> None:
        """Add those of the next piece, whose lines count from its first."""
        room = max(self.most - len(self.errors), 0)
        self.errors += [replace(error, line=error.line + self.n_lines) for error in errors[:room]]
        self.count, self.n_lines = self.count + count, self.n_lines + n_lines

    def refuse(self, name: str) -> None:
        """Raise the error that describes them, if there are any."""
        if self.count:
            raise malformed(name, self.errors, self.count)
