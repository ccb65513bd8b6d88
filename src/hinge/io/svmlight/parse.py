"""The grammar of a data line, in compiled code that fills arrays. ::

    line    = [label [qid] {feature}] [comment]        tokens are separated by spaces and tabs
    label   = number
    qid     = "qid:" digits
    feature = digits ":" number                        indices ascend strictly along a line
    number  = [sign] (digits ["." [digits]] | "." digits) [("e" | "E") [sign] digits]
    comment = "#" anything

A carriage return may stand before the line feed. A block of text is a sequence of whole lines, each ended by
a line feed, so no loop below needs to look for the end of the block: every token ends there at the latest.

Almost all time is spent in `_features`. It calls nothing that the compiler does not inline, because around
every real call Numba counts references to the arrays, which would take longer than reading a number. What is
not plain, `_features` hands back to its caller, and resumes behind it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hinge.io.svmlight.numbers import (
    ALWAYS_EXACT,
    EXACT_TENS,
    INTEGER_TENS,
    MINUS,
    NOT_A_NUMBER,
    ODD,
    OK,
    PLUS,
    POINT,
    Int,
    Text,
    digits,
    number,
)
from hinge.runtime.jit import compiled_exactly

# What a malformed line failed to hold; UNCOMMON never leaves this file.
LABEL, QID, INDEX, COLON, LIMIT, ORDER, VALUE, VALUE_RANGE, RETURN, UNCOMMON = range(10, 20)

_U = np.uint64
_15 = _U(15)
_TAB, _LINE_FEED, _RETURN, _SPACE, _HASH, _COLON = (ord(c) for c in "\t\n\r #:")
_QID = np.frombuffer(b"qid:", np.uint8)
_MOST_DIGITS = 18  # of an index or a query id: they always fit an int64


@compiled_exactly
def count(text: Text) -> tuple[int, int]:
    """Return the numbers of line feeds and of colons: bounds on the rows and features of a block."""
    lines = 0
    colons = 0
    for c in text:
        lines += c == _LINE_FEED
        colons += c == _COLON
    return lines, colons


@compiled_exactly
def last_line_end(text: Text) -> int:
    """Return the position behind the last line feed, or 0."""
    at: int = text.shape[0]
    while at > 0 and text[at - 1] != _LINE_FEED:
        at -= 1
    return at


@compiled_exactly
def _skip_blanks(text: Text, at: Int) -> Int:
    while text[_U(at)] == _SPACE or text[_U(at)] == _TAB:
        at += 1
    return at


@compiled_exactly
def _closes_line(c: Int) -> bool:
    return c in (_LINE_FEED, _HASH, _RETURN)


@compiled_exactly
def _closes_token(c: Int) -> bool:
    return c in (_SPACE, _LINE_FEED, _TAB, _HASH, _RETURN)


@compiled_exactly
def _integer(text: Text, start: Int) -> tuple[float, Int, int]:
    """Read a short integer, which most labels are; return it, the position behind it, and a status."""
    negative = text[_U(start)] == MINUS
    first = start + (negative or text[_U(start)] == PLUS)
    size, at = digits(text, first)
    value = np.float64(size)
    fits = _closes_token(text[_U(at)]) and 0 < at - first <= ALWAYS_EXACT
    return (-value if negative else value), at, (OK if fits else NOT_A_NUMBER)


@compiled_exactly
def _query(text: Text, at: Int) -> tuple[Int, Int, int]:
    """Read ``qid:digits`` if it is there; return the id or -1, the position behind it, and a code."""
    k = 0
    while k < _QID.shape[0] and text[at + k] == _QID[k]:
        k += 1
    if k < _QID.shape[0]:
        return -1, at, OK
    query, end = digits(text, at + k)
    if not 0 < end - at - k <= _MOST_DIGITS or not _closes_token(text[end]):
        return -1, at, QID
    return np.int64(query), end, OK


@compiled_exactly
def _features(
    text: Text,
    at: Int,
    columns: NDArray[np.integer],
    values: NDArray[np.floating],
    n: int,
    previous: Int,
    limit: int,
) -> tuple[Int, int, Int, int]:
    """Read features into ``columns[n:]`` and ``values[n:]``, as far as their values are plain decimals.

    Returns the position of what closes the line or does not fit, the new ``n``, the last index, and a code.
    After UNCOMMON the position is that of a value whose index is already stored.
    """
    code = OK
    start = _skip_blanks(text, at)
    while code == OK and not _closes_line(text[_U(start)]):
        word, at = digits(text, start)
        index = np.int64(word)
        if at == start:
            code = INDEX
        elif text[_U(at)] != _COLON:
            code = COLON
        elif at - start > _MOST_DIGITS or index > limit:
            code = LIMIT
        elif index <= previous:
            code = ORDER
        else:
            columns[_U(n)] = index
            previous = index
            start = at + 1
            negative = text[_U(start)] == MINUS
            first = start + negative
            w, at = digits(text, first)
            n_digits = at - first
            q = 0
            if text[_U(at)] == POINT:
                point = at + 1
                fraction, at = digits(text, point)
                q = at - point
                n_digits += q
                w = w * INTEGER_TENS[_U(q) & _15] + fraction
            if 0 < n_digits <= ALWAYS_EXACT and _closes_token(text[_U(at)]):
                value = np.float64(w) / EXACT_TENS[_U(q)]
                values[_U(n)] = -value if negative else value
                n += 1
                start = _skip_blanks(text, at)
            else:
                code = UNCOMMON
    return start, n, previous, code


@compiled_exactly
def _value(
    text: Text,
    start: Int,
    values: NDArray[np.floating],
    n: int,
    odd: NDArray[np.int64],
    n_odd: int,
    largest: float,
) -> tuple[Int, int, int]:
    """Read any number into ``values[n]`` or, if odd, note it.

    Returns the position behind it, or where it starts if it does not fit; ``n_odd``; and a code.
    """
    value, at, status = number(text, start)
    if status == NOT_A_NUMBER or not _closes_token(text[at]):
        return start, n_odd, VALUE
    if not -largest < value < largest:
        return start, n_odd, VALUE_RANGE
    values[n] = value
    if status == ODD:
        odd[n_odd, 0] = start
        odd[n_odd, 1] = n
        n_odd += 1
    return at, n_odd, OK


class Room(NamedTuple):
    """Where `parse_block` writes.

    Attributes
    ----------
    y, queries, ends : arrays, one entry per line at least
        Filled with each row's label, query id (-1 for none) and the number of features up to its end.
    columns, values : arrays, one entry per colon at least
        Filled with the indices as they stand in the text, and the values.
    odd : int64 array of shape (lines + colons, 2)
        Filled with the numbers left to `float`: position of the token, and its slot in ``values`` or, for a
        label, minus one minus its row.
    bad : int64 array of shape (any, 3)
        Filled with the first malformed lines: line from 0, position of the culprit, code.
    """

    y: NDArray[np.float64]
    queries: NDArray[np.int64]
    ends: NDArray[np.int64]
    columns: NDArray[np.integer]
    values: NDArray[np.floating]
    odd: NDArray[np.int64]
    bad: NDArray[np.int64]


@compiled_exactly
def parse_block(
    text: Text, stop: int, room: Room, limit: int, largest: float
) -> tuple[int, int, int, int, int, int, bool, bool]:
    """Read whole lines of text. A line that does not fit is noted and skipped.

    Parameters
    ----------
    text : uint8 array
        Whole lines up to ``stop``, where the last one ends; then padding.
    stop : int
        Length without the padding.
    room : Room
        Where to write.
    limit : int
        The largest index allowed.
    largest : float
        The bound that the magnitudes of values must stay below.

    Returns
    -------
    tuple
        Numbers of lines, rows, features, odd numbers and malformed lines, the largest index, whether index 0
        occurs, and whether a query id occurs.
    """
    y, queries, ends, columns, values, odd, bad = room
    n_lines = n_rows = n_odd = n_bad = 0
    zero: Int = np.int64(0)  # a literal would have the functions above compiled once more
    none: Int = np.int64(-1)
    at, n, top = zero, zero, none
    has_zero = has_query = False
    while at < stop:
        at = _skip_blanks(text, at)
        is_row = not _closes_line(text[_U(at)])
        row_start, row_odd, label, query, last, code = n, n_odd, 0.0, none, none, OK
        if is_row:
            label, end, status = _integer(text, at)
            if status != OK:
                label, end, status = number(text, at)
            if status == NOT_A_NUMBER or not _closes_token(text[_U(end)]):
                code = LABEL
            else:
                if status == ODD:
                    odd[n_odd, 0] = at
                    odd[n_odd, 1] = -1 - n_rows
                    n_odd += 1
                at = _skip_blanks(text, end)
                if text[_U(at)] == _QID[0]:
                    query, at, code = _query(text, at)
            if code == OK:
                at, n, last, code = _features(text, at, columns, values, n, none, limit)
            while code == UNCOMMON:
                at, n_odd, code = _value(text, at, values, n, odd, n_odd, largest)
                if code == OK:
                    at, n, last, code = _features(text, at, columns, values, n + 1, last, limit)
        if code == OK and text[_U(at)] == _RETURN and text[_U(at + 1)] != _LINE_FEED:
            code = RETURN
        if code != OK:
            if n_bad < bad.shape[0]:
                bad[n_bad, 0] = n_lines
                bad[n_bad, 1] = at
                bad[n_bad, 2] = code
            n_bad += 1
            n, n_odd = row_start, row_odd
        elif is_row:
            y[_U(n_rows)] = label
            queries[_U(n_rows)] = query
            ends[_U(n_rows)] = n
            n_rows += 1
            top = max(top, last)
            has_query |= query >= 0
            has_zero |= n > row_start and columns[_U(row_start)] == 0
        while text[_U(at)] != _LINE_FEED:
            at += 1
        at += 1
        n_lines += 1
    return n_lines, n_rows, n, n_odd, n_bad, top, has_zero, has_query
