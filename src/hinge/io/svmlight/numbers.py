"""Decimal text to float64, correctly rounded, in compiled code.

A decimal number is ``w · 10^q`` with an integer ``w``. Three ways lead to the nearest double, cheapest first:

1. ``w < 2^53`` and ``|q| ≤ 22``: both ``w`` and the power of ten are exact doubles, so one division or one
   product rounds correctly (Clinger, "How to read floating point numbers accurately", 1990).
2. ``w < 2^64``: multiply ``w`` by a 128-bit approximation of ``5^q`` and read the answer off the top bits
   (Lemire, "Number parsing at a gigabyte per second", 2021, section 5).
3. The few cases that the second way cannot decide, or that leave the range of normal doubles: the caller is
   told that the number is *odd* and passes its text to Python's `float`.

Text is an array of bytes. It must go on for `PADDING` bytes behind the last one that matters, because digits
are taken eight at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.runtime.jit import bits_to_float64, compiled_exactly, popcount

Text = NDArray[np.uint8]
Int = Any  # a signed machine integer, which checkers take for int here and np.int64 there

PADDING = 8

OK, ODD, NOT_A_NUMBER = range(3)

ALWAYS_EXACT = 15  # decimal digits that always fit the 53 bits of a double
_LONGEST_WORD = 19  # decimal digits that always fit an unsigned word

EXACT_TENS = np.array([10.0**q for q in range(23)])
INTEGER_TENS = np.array([10**q for q in range(16)], np.uint64)

# The powers of ten for which w · 10^q, with 1 ≤ w < 2^64, may be a normal double.
_SMALLEST_POWER, _LARGEST_POWER = -326, 308

MINUS, PLUS, POINT, _SMALL_E, _LARGE_E = (ord(c) for c in "-+.eE")

# Words stay words only among themselves: mixed with a signed number, the compiler turns both to floats.
_U = np.uint64
_0, _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _16, _24, _32, _52, _63, _64 = (
    _U(k) for k in (*range(11), 16, 24, 32, 52, 63, 64)
)
_ZERO = _U(ord("0"))
_LOW_HALF = _U(2**32 - 1)
_ALL_ONES = _U(2**64 - 1)
_UNDECIDED = _U(2**9 - 1)  # the bits below the 55 that decide the rounding
_TWO_52, _TWO_53 = _U(2**52), _U(2**53)

# Eight digits in one word: see `digits`.
_EIGHT_ZEROS = _U(0x3030303030303030)
_ABOVE_NINE = _U(0x7676767676767676)  # brings a byte above 9 to 128 or more
_TOP_BITS = _U(0x8080808080808080)
_PAIRS = _U(0x000000FF000000FF)
_PAIR_WEIGHTS_ODD = _U(100 + (10**6 << 32))
_PAIR_WEIGHTS_EVEN = _U(1 + (10**4 << 32))


@compiled_exactly
def _eight_bytes(text: Text, at: Int) -> np.uint64:
    """Return eight bytes as one little-endian word; the compiler makes this one load."""
    k = _U(at)  # unsigned: no test for negative indices
    low = _U(text[k]) | _U(text[k + _1]) << _8 | _U(text[k + _2]) << _16 | _U(text[k + _3]) << _24
    high = _U(text[k + _4]) | _U(text[k + _5]) << _8 | _U(text[k + _6]) << _16 | _U(text[k + _7]) << _24
    return low | high << _32


@compiled_exactly
def digits(text: Text, at: Int) -> tuple[np.uint64, Int]:
    """Read the digits at ``text[at:]``; return the integer, modulo 2^64, and the position behind them.

    Takes eight bytes at a time without a branch per digit, which the processor could not predict: the digits
    are moved to the top of the word, zeros fill up in front, and three products add the digits up.
    """
    value = _0
    while True:
        word = _eight_bytes(text, at) ^ _EIGHT_ZEROS
        others = ((word + _ABOVE_NINE) | word) & _TOP_BITS
        n = _8 if others == _0 else popcount((others - _1) & ~others) >> _3
        if n == _0:
            return value, at
        word <<= _64 - (n << _3)
        word = word * _10 + (word >> _8)
        word = ((word & _PAIRS) * _PAIR_WEIGHTS_ODD + ((word >> _16) & _PAIRS) * _PAIR_WEIGHTS_EVEN) >> _32
        value = value * INTEGER_TENS[n] + word
        at += np.int64(n)
        if n < _8:
            return value, at


def _powers_of_five() -> NDArray[np.uint64]:
    """Return the top 128 bits of ``5^q`` as rows of (high, low) words; reciprocals are rounded up."""
    table = np.empty((_LARGEST_POWER - _SMALLEST_POWER + 1, 2), np.uint64)
    for row, q in enumerate(range(_SMALLEST_POWER, _LARGEST_POWER + 1)):
        five = 5 ** abs(q)
        n_bits = five.bit_length()
        bits = (1 << (127 + n_bits)) // five + 1 if q < 0 else (five << 128) >> n_bits
        table[row] = bits >> 64, bits & (2**64 - 1)
    return table


_FIVES = _powers_of_five()


@compiled_exactly
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the high and low words of the 128-bit product of two words."""
    a_high, a_low = a >> _32, a & _LOW_HALF
    b_high, b_low = b >> _32, b & _LOW_HALF
    low = a_low * b_low
    middle = a_high * b_low + (low >> _32)
    cross = a_low * b_high + (middle & _LOW_HALF)
    return a_high * b_high + (middle >> _32) + (cross >> _32), (cross << _32) | (low & _LOW_HALF)


@compiled_exactly
def nearest_double(w: np.uint64, q: Int) -> tuple[Any, int]:
    """Return the double nearest to ``w · 10^q`` and OK, or 0.0 and ODD where neither method decides."""
    if w < _TWO_53 and -22 <= q <= 22:
        exact = np.float64(w)
        return (exact / EXACT_TENS[-q] if q < 0 else exact * EXACT_TENS[q]), OK
    if w == _0:
        return 0.0, OK
    if q < _SMALLEST_POWER or q > _LARGEST_POWER:
        return 0.0, ODD
    zeros = 0
    while w >> _63 == _0:
        w <<= _1
        zeros += 1
    high, low = _product(w, _FIVES[q - _SMALLEST_POWER, 0])
    if high & _UNDECIDED == _UNDECIDED:
        carry, _ = _product(w, _FIVES[q - _SMALLEST_POWER, 1])
        low += carry
        if low < carry:
            high += _1
    if low == _ALL_ONES:
        return 0.0, ODD
    top = high >> _63
    kept = high >> (top + _9)
    # The binary exponent, biased by 1023; the product is floor(log2(10^q)) for all the powers here.
    exponent = ((217706 * q) >> 16) + 63 + np.int64(top) - zeros + 1023
    if exponent <= 0 or exponent >= 2046:
        return 0.0, ODD
    if low <= _1 and -4 <= q <= 23 and kept & _3 == _1 and kept << (top + _9) == high:
        kept &= ~_1  # exactly half-way: to even
    kept = (kept + (kept & _1)) >> _1
    if kept >= _TWO_53:
        kept = _TWO_52
        exponent += 1
    return bits_to_float64(np.int64((kept & ~_TWO_52) | (_U(exponent) << _52))), OK


@compiled_exactly
def _exponent(text: Text, at: Int) -> tuple[Int, Int]:
    """Read the sign and digits of an exponent; return it and the position behind, or -1 for no digits."""
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += 1
    exponent, end = digits(text, at)
    if end == at:
        return 0, -1
    # With 16 digits it outweighs any file's number of digits: the answer is 0 or infinite, whatever they are.
    size = np.int64(exponent) if end - at < 16 else 10**16
    return (-size if negative else size), end


@compiled_exactly
def _significand(text: Text, start: Int, stop: Int) -> tuple[np.uint64, int, bool]:
    """Read ``text[start:stop]``, digits and a point, as an integer made of its first 19 significant digits.

    Returns it, the number of digits left out, and whether those are all zeros.
    """
    w = _0
    n_taken = n_dropped = 0
    exact = True
    for at in range(start, stop):
        digit = _U(text[at]) - _ZERO
        if digit > _9:
            continue
        if n_taken < _LONGEST_WORD:
            w = w * _10 + digit
            n_taken += w != _0
        else:
            n_dropped += 1
            exact &= digit == _0
    return w, n_dropped, exact


@compiled_exactly
def number(text: Text, at: Int) -> tuple[float, Int, int]:
    """Read the decimal number at ``text[at:]``.

    Returns the value, the position behind it and a status: OK, ODD (the value is left to `float`), or
    NOT_A_NUMBER.
    """
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += 1
    start = at
    _, at = digits(text, at)
    n_digits = at - start
    q = 0
    if text[at] == POINT:
        point = at + 1
        _, at = digits(text, point)
        q = point - at
        n_digits -= q
    if n_digits == 0:
        return 0.0, start, NOT_A_NUMBER
    w, n_dropped, exact = _significand(text, start, at)
    q += n_dropped
    if text[at] == _SMALL_E or text[at] == _LARGE_E:
        exponent, at = _exponent(text, at + 1)
        if at < 0:
            return 0.0, start, NOT_A_NUMBER
        q += exponent
    value, status = nearest_double(w, q)
    if status == OK and not exact:  # the number lies between w and w + 1
        above, status = nearest_double(w + _1, q)
        if above != value:
            status = ODD
    return (-value if negative else value), at, status
