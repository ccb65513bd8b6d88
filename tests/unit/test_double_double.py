"""Arithmetic with twice the digits, against whole numbers and long decimals."""

from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

from hinge.kernel import double_double

# Half a unit in the last place of two doubles, and room for a few operations.
UNIT = 2.0**-106
ALLOWED = 16 * UNIT


def pairs(rng, n, low=-20.0, high=20.0):
    """Numbers of both signs with digits far behind those of a double."""
    heads = rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(low, high, n)
    return [(float(h), float(h * t)) for h, t in zip(heads, rng.uniform(-1, 1, n) * 2.0**-54, strict=True)]


def value(pair):
    return Fraction(pair[0]) + Fraction(pair[1])


@pytest.mark.parametrize(
    ("operation", "truth"),
    [
        (double_double.multiply, lambda a, b: a * b),
        (double_double.divide, lambda a, b: a / b),
    ],
)
def test_products_and_quotients_keep_twice_the_digits(operation, truth):
    rng = np.random.default_rng(0)
    for a, b in zip(pairs(rng, 300), pairs(rng, 300), strict=True):
        wanted = truth(value(a), value(b))
        assert abs(value(operation(a, b)) - wanted) <= ALLOWED * abs(wanted)


def test_sums_keep_twice_the_digits_even_where_most_of_them_cancel():
    rng = np.random.default_rng(1)
    for a, b in zip(pairs(rng, 300, -1, 1), pairs(rng, 300, -1, 1), strict=True):
        near = (-a[0], b[1])
        for other in (b, near):
            wanted = value(a) + value(other)
            assert abs(value(double_double.add(a, other)) - wanted) <= ALLOWED * max(
                abs(value(a)) / 2**50, abs(wanted)
            )


def test_two_sum_and_two_product_are_exact():
    rng = np.random.default_rng(2)
    for a, b in 10.0 ** rng.uniform(-30, 30, (300, 2)) * rng.choice([-1, 1], (300, 2)):
        assert value(double_double.two_sum(a, b)) == Fraction(a) + Fraction(b)
        assert value(double_double.two_product(a, b)) == Fraction(a) * Fraction(b)


def test_exponentials_have_thirty_digits():
    rng = np.random.default_rng(3)
    context = Context(prec=50)
    for a, _ in pairs(rng, 300, -6, 2.8):
        x = (-abs(a), -abs(a) * 1e-17)
        wanted = context.add(Decimal(x[0]), Decimal(x[1])).exp(context)
        high, low = double_double.exponential(x)
        found = context.add(Decimal(high), Decimal(low))
        if wanted > Decimal("1e-280"):  # below that the second double is too small to be one
            assert abs(context.divide(found, wanted) - 1) < Decimal("1e-30")


def test_exponentials_that_underflow_are_zero():
    assert double_double.exponential((-1e4, 0.0)) == (0.0, 0.0)
    assert double_double.exponential((-np.inf, 0.0)) == (0.0, 0.0)
    assert double_double.exponential((0.0, 0.0)) == (1.0, 0.0)
