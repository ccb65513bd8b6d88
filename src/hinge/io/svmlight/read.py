"""Read LIBSVM / svmlight text: in blocks of whole lines, parsed by compiled code on several threads."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hinge.data.lines import Lines
from hinge.io.budget import Budget
from hinge.io.svmlight.errors import LABEL_RANGE, DataFileError, Faults, LineError, describe
from hinge.io.svmlight.numbers import Text
from hinge.io.svmlight.parse import VALUE_RANGE, Room, count, parse_block
from hinge.io.svmlight.source import BLOCK_BYTES, LONGEST_LINE, LineTooLongError, Source, blocks, open_source
from hinge.runtime.threads import available_threads

# With this limit, and the number of features one above it, indices fit 32 bits.
MAX_INDEX = 2**31 - 2

_NUMBER = re.compile(rb"[-+.0-9eE]+")

# Bytes that a byte of text may take, where lines hold a label of one digit and nothing else.
_MOST_BYTES_A_BYTE = 16

# Magnitudes from here on round to infinity.
_DOUBLE = np.dtype(np.float64)
_LARGEST = {_DOUBLE: np.inf, np.dtype(np.float32): 2.0**128 - 2.0**103}


@dataclass(frozen=True, eq=False)
class Data:
    """Samples and their labels.

    Unpacks into ``X, y``.

    Attributes
    ----------
    X : csr_matrix or ndarray of shape (n_samples, n_features)
        The samples: sparse from LIBSVM text, dense from dense files.
    y : ndarray of shape (n_samples,)
        The labels or targets.
    qid : int64 ndarray of shape (n_samples,) or None
        Query ids, -1 for a row without one; None if no row has one.
    zero_based : bool
        Whether index 0 of the text is column 0 of ``X``, and not index 1.
    label_guess : str
        The column of a table that was taken for the labels, where nothing said which it is; else empty.

    Examples
    --------
    >>> import io
    >>> from hinge.io import read_data
    >>> data = read_data(io.BytesIO(b"+1 1:0.5 3:2\\n-1 2:1\\n"))
    >>> data.X.toarray(), data.y
    (array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]]), array([ 1., -1.]))
    >>> X, y = data
    """

    X: Any
    y: NDArray[Any]
    qid: NDArray[np.int64] | None = None
    zero_based: bool = False
    label_guess: str = ""

    def __iter__(self) -> Iterator[Any]:
        return iter((self.X, self.y))


@dataclass
class Piece:
    """What one block of lines held: indices are as in the text, errors count lines from the block's first."""

    n_lines: int
    y: NDArray[np.float64]
    queries: NDArray[np.int64]
    ends: NDArray[np.int64]
    columns: NDArray[Any]
    values: NDArray[Any]
    top: int
    has_zero: bool
    has_query: bool
    errors: list[LineError]
    n_errors: int

    @property
    def n_bytes(self) -> int:
        """Memory that its numbers take."""
        return sum(part.nbytes for part in (self.y, self.queries, self.ends, self.columns, self.values))


class TooManyRowsError(Exception):
    """A stream holds more rows than its reader was told to expect."""


@dataclass(frozen=True)
class _Parser:
    """Turn blocks of text into numbers."""

    dtype: np.dtype[Any]
    limit: int
    limit_text: str
    max_errors: int

    def __call__(self, text: Text, stop: int) -> Piece:
        lines, colons = count(text[:stop])
        y, queries, ends = np.empty(lines), np.empty(lines, np.int64), np.empty(lines, np.int64)
        columns: NDArray[Any] = np.empty(colons, np.int32 if self.limit < 2**31 else np.int64)
        values = np.empty(colons, self.dtype)
        odd = np.empty((lines + colons, 2), np.int64)  # memory that is never touched costs nothing
        bad = np.empty((min(self.max_errors, lines), 3), np.int64)
        room = Room(y, queries, ends, columns, values, odd, bad)
        n_lines, n_rows, n, n_odd, n_bad, top, has_zero, has_query = parse_block(
            text, stop, room, self.limit, _LARGEST[self.dtype]
        )
        culprits = bad[:n_bad].tolist()
        if n_odd:
            out_of_range = self._read_odd(text[:stop], odd[:n_odd], y, values)
            culprits = sorted(culprits + out_of_range)
            n_bad += len(out_of_range)
        raw = text[:stop].tobytes() if n_bad else b""
        errors = [
            describe(raw, line, at, code, self.limit_text, self.dtype.name)
            for line, at, code in culprits[: self.max_errors]
        ]
        rows = (_trim(y, n_rows), _trim(queries, n_rows), _trim(ends, n_rows))
        return Piece(n_lines, *rows, _trim(columns, n), _trim(values, n), top, has_zero, has_query, errors, n_bad)

    def _read_odd(
        self, text: Text, odd: NDArray[np.int64], y: NDArray[np.float64], values: NDArray[Any]
    ) -> list[list[int]]:
        """Let `float` read what the compiled code left to it; return the lines where one is too large."""
        raw = text.tobytes()
        too_large = []
        for at, slot in odd.tolist():
            match = _NUMBER.match(raw, at)
            assert match is not None
            number = float(match.group())
            is_label = slot < 0
            largest = np.inf if is_label else _LARGEST[self.dtype]
            if not -largest < number < largest:
                too_large.append((at, LABEL_RANGE if is_label else VALUE_RANGE))
            elif is_label:
                y[-1 - slot] = number
            else:
                values[slot] = number
        line_ends = np.flatnonzero(text == ord("\n"))
        lines, first = np.unique(np.searchsorted(line_ends, [at for at, _ in too_large]), return_index=True)
        return [[line, *too_large[k]] for line, k in zip(lines.tolist(), first.tolist(), strict=True)]


@dataclass(frozen=True)
class Survey:
    """What a stream of lines holds.

    Attributes
    ----------
    n_rows, n_values : int
        How many samples and values.
    top : int
        The largest index; -1 if there is none.
    has_zero : bool
        Whether index 0 occurs.
    faults : Faults
        What is malformed.
    """

    n_rows: int
    n_values: int
    top: int
    has_zero: bool
    faults: Faults


def _trim(array: NDArray[Any], n: int) -> NDArray[Any]:
    return array if n == len(array) else array[:n].copy()  # a view would keep the whole array


def _in_order(
    parse: Callable[[Text, int], Piece], texts: Iterator[tuple[Text, int]], threads: int, budget: Budget
) -> Iterator[Piece]:
    """Parse blocks on threads; give the results in order, with few blocks in memory at any time."""
    pending: deque[Future[Piece]] = deque()
    most_pending = min(2 * threads, budget.limit // (_MOST_BYTES_A_BYTE * BLOCK_BYTES))
    too_long = None
    with ThreadPoolExecutor(threads, thread_name_prefix="hinge-read") as pool:
        try:
            for block in texts:
                pending.append(pool.submit(parse, *block))
                if len(pending) > most_pending:
                    yield pending.popleft().result()
        except LineTooLongError as error:
            too_long = error
        while pending:
            yield pending.popleft().result()
    if too_long is not None:
        raise too_long


def _joined(parts: list[Piece], name: str, dtype: DTypeLike, shift: int = 0) -> NDArray[Any]:
    """Put one array of all blocks together, with ``shift`` added; the blocks give theirs up on the way."""
    whole = np.empty(sum(len(getattr(part, name)) for part in parts), dtype)
    at = 0
    for part in parts:
        piece = getattr(part, name)
        here = whole[at : at + len(piece)]
        here[:] = piece
        if shift:
            here += shift
        at += len(piece)
        setattr(part, name, None)
    return whole


def _row_pointers(parts: list[Piece], dtype: DTypeLike) -> NDArray[Any]:
    pointers = np.zeros(1 + sum(len(part.ends) for part in parts), dtype)
    at = 1
    for part in parts:
        np.add(part.ends, pointers[at - 1], out=pointers[at : at + len(part.ends)], casting="same_kind")
        at += len(part.ends)
    return pointers


def _assemble(parts: list[Piece], zero_based: bool, n_features: int | None, dtype: np.dtype[Any]) -> Data:
    """Make one matrix of all blocks."""
    n_values = sum(len(part.values) for part in parts)
    width = max((part.top for part in parts), default=-1) + zero_based
    if n_features is None:
        n_features = max(width, 0)
    index_type = np.int32 if max(n_features, n_values) < 2**31 else np.int64
    qid = _joined(parts, "queries", np.int64) if any(part.has_query for part in parts) else None
    y = _joined(parts, "y", np.float64)
    pointers = _row_pointers(parts, index_type)
    columns = _joined(parts, "columns", index_type, 0 if zero_based else -1)
    values = _joined(parts, "values", dtype)
    return Data(Lines(values, columns, pointers, (len(y), n_features)), y, qid, zero_based)


def _limit(n_features: int | None, zero_based: bool | str, max_index: int) -> tuple[int, str]:
    """Return the largest index allowed and the words that explain it."""
    if not 0 <= max_index < 10**18:
        raise ValueError(f"max_index must lie between 0 and 10**18 - 1, got {max_index}")
    if n_features is None:
        return max_index, f"{max_index} (the limit max_index)"
    if n_features < 0:
        raise ValueError(f"n_features must be 0 or more, got {n_features}")
    last = n_features - 1 if zero_based is True else n_features
    if last > max_index:
        raise ValueError(f"n_features={n_features} needs a larger max_index than {max_index}")
    return last, f"{last} (n_features is {n_features})"


def read_data(
    source: Source,
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    zero_based: bool | Literal["auto"] = "auto",
    max_index: int = MAX_INDEX,
    max_errors: int = 10,
    threads: int | None = None,
) -> Data:
    """Read a data file in LIBSVM / svmlight format.

    One sample per line, ``label index:value index:value ...``, optionally with ``qid:number`` behind the
    label and a comment behind ``#``. Blank lines and lines with only a comment are skipped. Every number is
    rounded correctly, as by `float`. Zeros that are written out stay in the matrix.

    Parameters
    ----------
    source : path, "-" or binary file
        A file, plain or compressed by gzip, bzip2 or xz (told by its content); ``"-"`` is standard input.
    n_features : int or None
        Number of columns; None takes the largest index. Give it for a test set, which may lack the last ones.
    dtype : float64 or float32
        Type of the values in ``X``. Labels are float64.
    zero_based : bool or "auto"
        Whether index 0 is the first column. By default index 1 is, unless index 0 occurs in the file, as it
        does in the rows ``0:i`` of a precomputed kernel.
    max_index : int
        Indices above this are refused. Beyond the default, 2^31 - 2, columns may need 64 bits.
    max_errors : int
        How many malformed lines the error describes; the others are counted.
    threads : int or None
        Number of threads; None takes every core that this process may use.

    Returns
    -------
    Data
        ``X`` as a CSR matrix with sorted indices, ``y``, ``qid`` and ``zero_based``.

    Raises
    ------
    DataFileError
        The file is malformed: which lines and columns, what was expected and what was found. NaN, infinity,
        indices that do not ascend, and several labels on a line are malformed too. Or its numbers take more than
        half of the free memory; ``HINGE_FILE_MEMORY`` in the environment sets another limit, in megabytes.

    Examples
    --------
    >>> import io
    >>> data = read_data(io.BytesIO(b"+1 1:0.5 3:2  # a comment\\n-1 2:0.25\\n"))
    >>> data.X.toarray()
    array([[0.5 , 0.  , 2.  ],
           [0.  , 0.25, 0.  ]])
    >>> data.y
    array([ 1., -1.])
    """
    data = read_lines(source, Reader(n_features, np.dtype(dtype), zero_based, max_index, max_errors, threads))
    return replace(data, X=data.X.matrix())


def read_lines(source: Source, reader: Reader) -> Data:
    """Read a data file as `read_data` does; ``X`` are its `Lines`."""
    with open_source(source) as (file, name):
        return reader.read(file, name, Budget(name))


def read_rows(file: BinaryIO, budget: Budget, most_rows: int) -> Data:
    """Read lines of plain text, index 0 included, as `read_data` does.

    Raises
    ------
    TooManyRowsError
        There are more than ``most_rows``; the rest is not read.
    """
    data = Reader(zero_based=True).read(file, "", budget, most_rows)
    return replace(data, X=data.X.matrix())


@dataclass(frozen=True)
class Reader:
    """How a stream of plain text is read; parameters as of `read_data`.

    Raises
    ------
    ValueError
        A parameter is out of its range.
    """

    n_features: int | None = None
    dtype: np.dtype[Any] = _DOUBLE
    zero_based: bool | Literal["auto"] = "auto"
    max_index: int = MAX_INDEX
    max_errors: int = 10
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.dtype not in _LARGEST:
            raise ValueError(f"dtype must be float64 or float32, got {self.dtype}")
        if self.max_errors < 1:
            raise ValueError(f"max_errors must be at least 1, got {self.max_errors}")
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"threads must be at least 1, got {self.threads}")
        if self.zero_based not in (True, False, "auto"):
            raise ValueError(f"zero_based must be True, False or 'auto', got {self.zero_based!r}")
        _limit(self.n_features, self.zero_based, self.max_index)

    def read(self, file: BinaryIO, name: str, budget: Budget, most_rows: int | None = None) -> Data:
        """Read a stream as `Lines`; ``name`` is what errors call it."""
        parts, n_rows = [], 0
        for piece in self.sound_pieces(file, name, budget):
            parts.append(piece)
            budget.keep(piece.n_bytes)
            n_rows += len(piece.y)
            if most_rows is not None and n_rows > most_rows:
                raise TooManyRowsError
        top = max((piece.top for piece in parts), default=-1)
        starts_at_zero = self.starts_at_zero(any(piece.has_zero for piece in parts), top, name)
        return _assemble(parts, starts_at_zero, self.n_features, self.dtype)

    def starts_at_zero(self, has_zero: bool, top: int, name: str) -> bool:
        """Whether index 0 of a text is its first column, from whether it occurs and the largest index.

        Raises
        ------
        DataFileError
            The indices are not what was said of them.
        """
        if has_zero and self.zero_based is False:
            raise DataFileError("index 0 occurs in a file said to be one-based: set zero_based='auto'", name)
        if has_zero and self.n_features is not None and top >= self.n_features:
            raise DataFileError(f"indices 0 to {self.n_features} occur, but n_features is {self.n_features}", name)
        return has_zero if self.zero_based == "auto" else bool(self.zero_based)

    def sound_pieces(self, file: BinaryIO, name: str, budget: Budget) -> Iterator[Piece]:
        """Yield what the blocks of a stream hold, in order, with the indices of the text.

        Raises
        ------
        DataFileError
            At the end, which lines are malformed; nothing is yielded from the first of them on.
        """
        faults = Faults(self.max_errors)
        for piece in self._pieces(file, budget, faults):
            if not faults.count:
                yield piece
        faults.refuse(name)

    def survey(self, file: BinaryIO, budget: Budget) -> Survey:
        """Go through a stream and keep nothing of it."""
        faults, n_rows, n_values, top, has_zero = Faults(self.max_errors), 0, 0, -1, False
        for piece in self._pieces(file, budget, faults):
            n_rows, n_values = n_rows + len(piece.y), n_values + len(piece.values)
            top, has_zero = max(top, piece.top), has_zero or piece.has_zero
        return Survey(n_rows, n_values, top, has_zero, faults)

    def _pieces(self, file: BinaryIO, budget: Budget, faults: Faults) -> Iterator[Piece]:
        """Parse a stream, and note its faults."""
        parser = _Parser(self.dtype, *_limit(self.n_features, self.zero_based, self.max_index), self.max_errors)
        try:
            for piece in _in_order(parser, blocks(file, budget), self.threads or available_threads(), budget):
                faults.note(piece.errors, piece.n_errors, piece.n_lines)
                yield piece
        except LineTooLongError:
            longest = f"a line of at most {LONGEST_LINE} bytes"
            faults.note([LineError(1, 1, longest, "a longer one")], 1, 1)
