"""Decimal text to doubles: always the bits that `float` gives."""

import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hinge.io.svmlight.numbers import NOT_A_NUMBER, ODD, OK, PADDING, digits, nearest_double, number


def as_text(string):
    return np.frombuffer(bytearray(string.encode() + b"\n" + b"7" * PADDING), np.uint8)


def check(string):
    value, end, status = number(as_text(string), 0)
    assert end == len(string)
    assert status in (OK, ODD)
    if status == OK:
        assert struct.pack("d", value) == struct.pack("d", float(string))
    return status


@settings(max_examples=1000)
@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 25))
@example(5e-324, 1)
@example(2.2250738585072014e-308, 17)
@example(1.7976931348623157e308, 17)
@example(-0.0, 1)
def test_written_doubles(x, precision):
    check(repr(x))
    check(f"{x:.{precision}e}")
    check(f"{x:.{precision}g}")


@settings(max_examples=1000)
@given(st.integers(0, 2**70), st.integers(-400, 400))
def test_integers_with_exponents(w, q):
    check(f"{w}e{q}")


@settings(max_examples=1000)
@given(st.integers(2**52, 2**53 - 1), st.integers(-30, 12), st.sampled_from(["", "0", "00000000001", "9" * 30]))
def test_half_way(w, shift, tail):
    half = 2 * w + 1
    text = str(half << shift) if shift >= 0 else str(half * 5**-shift)
    check(text)
    check(f"{text}.{tail}")
    check(f"{int(text) - 1}.{tail}")


def test_the_compiled_code_decides_nearly_always():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=2000) * 10.0 ** rng.integers(-290, 290, 2000)
    assert all(check(repr(x)) == OK for x in numbers.tolist())


@pytest.mark.parametrize("string", ["", ".", "+", "-", "e5", "-.e5", "1e", "1e+", "1.e-", "x"])
def test_not_numbers(string):
    assert number(as_text(string), 0)[2] == NOT_A_NUMBER


@pytest.mark.parametrize(("w", "q"), [(1, 309), (1, -400), (2**64 - 1, 300), (1, -320)])
def test_left_to_float(w, q):
    assert nearest_double(np.uint64(w), q)[1] == ODD


@given(st.text("0123456789", max_size=19), st.sampled_from(["\n", ":", "/", " ", ".", "\x7f", "é"]))
def test_digits(string, close):
    value, end = digits(as_text(string + close), 0)
    assert (value, end) == (int(string or "0"), len(string))
