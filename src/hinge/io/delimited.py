"""Tables as text: columns separated by commas, semicolons or tabs."""

from __future__ import annotations

import csv
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.io.budget import Budget
from hinge.io.labels import LABEL_NAMES, Columns, LabelColumn, label_column
from hinge.io.svmlight.errors import DataFileError, LineError, malformed
from hinge.io.svmlight.read import Data
from hinge.io.svmlight.source import LONGEST_LINE, LineTooLongError, blocks, open_source

_MAX_ERRORS = 10

# Bytes that a byte of a long line of cells may take: two make a cell, which is an object in a list.
_BYTES_A_CHARACTER = 40

# What Python takes for a word beside its characters, and NumPy for each of these.
_BYTES_A_WORD, _BYTES_A_LETTER = 64, 4

Rows = list[tuple[int, str]]


class _Reader:
    """Reads the lines of one file, block by block.

    Attributes
    ----------
    names : list of str or None
        Names of the columns, if the first line has them.
    label : LabelColumn
        The label column.
    words : list of str or None
        Labels so far, where they are words.
    """

    def __init__(self, path: str, asked: str | int | None, budget: Budget) -> None:
        self.path, self.asked, self.budget = path, asked, budget
        self.width, self.delimiter = 0, ","
        self.names: list[str] | None = None
        self.label = LabelColumn(0)
        self.words: list[str] | None = None
        self.tables: list[NDArray[Any]] = []
        self.errors: list[LineError] = []
        self.n_errors = 0

    def take(self, rows: Rows) -> None:
        """Read numbered lines."""
        if rows and not self.width:
            rows = self._begin(rows)
        if not rows:
            return
        lines, words = self._without_words(rows)
        table = None if lines is None else _numbers(lines, self.delimiter, self.width)
        if table is None:
            found = self._wrong_lines(rows)
            self.n_errors += len(found)
            self.errors = (self.errors + found)[:_MAX_ERRORS]
        elif not self.n_errors:
            self.budget.keep(2 * table.nbytes)  # the pieces, and what is made of them
            self.tables.append(table)
            if self.words is not None:
                longest = max(map(len, words))
                self.budget.keep(len(words) * (_BYTES_A_WORD + (1 + _BYTES_A_LETTER) * longest))
                self.words += words

    def _begin(self, rows: Rows) -> Rows:
        """Learn from the first lines what the columns are; return the lines that hold samples."""
        self.delimiter = max(",;\t", key=rows[0][1].count)
        first, *later = (_cells(line, self.delimiter) for _, line in rows[:2])
        self.width = len(first)
        odd = [at for at, cell in enumerate(first) if not _is_number(cell)]
        if odd and not self._is_sample(first, odd, later):
            self.names, rows = first, rows[1:]
            first = later[0] if later and len(later[0]) == self.width else []
            odd = [at for at, cell in enumerate(first) if not _is_number(cell)]
        self.label = label_column(self.names, self.width, self.asked, self.path, odd)
        self.words = [] if self.label.at in odd else None
        return rows

    def _is_sample(self, first: list[str], odd: list[int], later: list[list[str]]) -> bool:
        """Whether a first line with a single word is a sample: a line below has a word there, too."""
        at = odd[0]
        is_single = len(odd) == 1 < self.width and first[at].strip().lower() not in LABEL_NAMES
        return is_single and any(len(cells) == self.width and not _is_number(cells[at]) for cells in later)

    def _without_words(self, rows: Rows) -> tuple[list[str] | None, list[str]]:
        """Return the lines with zeros in place of words, and the words; no lines if one has another width."""
        if self.words is None:
            return [line for _, line in rows], []
        cells = [_cells(line, self.delimiter) for _, line in rows]
        if any(len(row) != self.width for row in cells):
            return None, []
        words = [row[self.label.at].strip() for row in cells]
        for row in cells:
            row[self.label.at] = "0"
        return [self.delimiter.join(row) for row in cells], words

    def _wrong_lines(self, rows: Rows) -> list[LineError]:
        skipped = None if self.words is None else self.label.at
        return _csv_errors(rows, self.delimiter, self.width, skipped)

    def data(self) -> Data:
        """Return what was read."""
        if self.n_errors:
            raise malformed(self.path, self.errors, self.n_errors)
        if not self.width:
            raise DataFileError("expected a table, found no lines", self.path)
        whole = np.concatenate([np.empty((0, self.width)), *self.tables])
        self.tables.clear()
        return Columns(whole, self.label, self.words).data()


def read_delimited(path: str, label: str | int | None, budget: Budget) -> Data:
    """Read a table whose columns are separated by commas, semicolons or tabs."""
    reader, n_lines = _Reader(path, label, budget), 0
    try:
        with open_source(path) as (file, _):
            for text, stop in blocks(file, budget, bytes_a_byte=_BYTES_A_CHARACTER):
                lines = text[:stop].tobytes().decode("utf-8").split("\n")[:-1]
                reader.take([(k, line.rstrip("\r")) for k, line in enumerate(lines, n_lines + 1) if line.strip()])
                n_lines += len(lines)
    except UnicodeDecodeError as error:
        raise DataFileError(f"expected text in UTF-8 ({error.reason})", path) from error
    except LineTooLongError:
        raise DataFileError(f"line {n_lines + 1}: expected at most {LONGEST_LINE} bytes", path) from None
    return reader.data()


def _numbers(lines: list[str], delimiter: str, width: int) -> NDArray[np.float64] | None:
    """Read lines of finite numbers; None if that fails."""
    try:
        table = np.loadtxt(lines, np.float64, comments=None, delimiter=delimiter, quotechar='"', ndmin=2)
    except ValueError:
        return None
    return table if table.shape == (len(lines), width) and np.isfinite(table).all() else None


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter))
    except csv.Error:
        return line.split(delimiter)


def _is_number(text: str, finite: bool = False) -> bool:
    try:
        number = float(text)
    except ValueError:
        return False
    return "_" not in text and (not finite or math.isfinite(number))


def _csv_errors(rows: Rows, delimiter: str, width: int, words_at: int | None) -> list[LineError]:
    """Go through numbered lines again, slowly, to say which are malformed; one column may hold words."""
    errors = []
    for k, line in rows:
        cells = _cells(line, delimiter)
        bad = next(
            (c for c, cell in enumerate(cells) if c != words_at and not _is_number(cell, finite=True)), None
        )
        if len(cells) != width:
            errors.append(LineError(k, 1, f"{width} columns", f"{len(cells)}"))
        elif bad is not None:
            errors.append(LineError(k, bad + 1, "a finite number", ascii(cells[bad][:24])))
    if not errors:  # NumPy refused what Python takes for numbers: digits of other scripts, open quotes
        refused = (row for row in rows if _numbers([row[1]], delimiter, width) is None)
        k, line = next(refused, rows[0])
        errors.append(LineError(k, 1, "plain digits and closed quotes", ascii(line[:24])))
    return errors
