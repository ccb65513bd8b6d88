"""Arithmetic with twice the digits: a number is the unevaluated sum of two doubles, one far below the other.

Sums and products are those of Dekker and Knuth. Every operation must be rounded as it is written, so that all of
this is compiled without any freedom to re-order or to fuse.
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from math import factorial, frexp, ldexp

import numpy as np

from hinge.kernel.exponential import LOG2E
from hinge.runtime.jit import compiled_literally, fused

Pair = tuple[float, float]


def _parts(number: Fraction, bits: tuple[int, ...]) -> tuple[float, ...]:
    """Cut a number into doubles of this many bits each, the largest first."""
    parts = []
    for n_bits in bits:
        _, exponent = frexp(float(number))
        part = ldexp(round(number * Fraction(2) ** (n_bits - exponent)), exponent - n_bits)
        parts.append(part)
        number -= Fraction(part)
    return tuple(parts)


# Products of the first two parts with a power of two's exponent are exact.
_LN2 = _parts(Fraction(Decimal(2).ln(Context(prec=60))), (40, 40, 53))

# e^f − 1 = f + f²/2! + … for |f| below ln 2 / 2 / 2^8: ten terms reach 1e-33.
_HALVINGS = 8
_TERMS = np.array([_parts(Fraction(1, factorial(k)), (53, 53)) for k in range(1, 11)])

# Below this e^x is less than the smallest double.
_UNDERFLOW = -745.0


@compiled_literally
def two_sum(a: float, b: float) -> Pair:
    """a + b exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@compiled_literally
def two_product(a: float, b: float) -> Pair:
    """a · b exactly, barring underflow."""
    product = a * b
    return product, fused(a, b, -product)


@compiled_literally
def add(a: Pair, b: Pair) -> Pair:
    """a + b."""
    high, low = two_sum(a[0], b[0])
    other_high, other_low = two_sum(a[1], b[1])
    high, low = two_sum(high, low + other_high)
    return two_sum(high, low + other_low)


@compiled_literally
def multiply(a: Pair, b: Pair) -> Pair:
    """a · b."""
    high, low = two_product(a[0], b[0])
    return two_sum(high, low + (a[0] * b[1] + a[1] * b[0]))


@compiled_literally
def divide(a: Pair, b: Pair) -> Pair:
    """a / b."""
    first = a[0] / b[0]
    product = multiply((first, 0.0), b)
    rest = add(a, (-product[0], -product[1]))
    return two_sum(first, rest[0] / b[0])


@compiled_literally
def exponential(x: Pair) -> Pair:
    """e^x for x ≤ 0."""
    if not x[0] > _UNDERFLOW:  # also −∞
        return 0.0, 0.0
    n = np.rint(x[0] * LOG2E)
    f = add(add(add(x, (-n * _LN2[0], 0.0)), (-n * _LN2[1], 0.0)), (-n * _LN2[2], 0.0))
    scale = 1.0 / (1 << _HALVINGS)
    f = (f[0] * scale, f[1] * scale)
    # m = e^f − 1; squaring e^f turns it into m² + 2m, which keeps its leading digits.
    m = (_TERMS[-1, 0], _TERMS[-1, 1])
    for k in range(_TERMS.shape[0] - 2, -1, -1):
        m = add(multiply(m, f), (_TERMS[k, 0], _TERMS[k, 1]))
    m = multiply(m, f)
    for _ in range(_HALVINGS):
        m = add(multiply(m, m), (2.0 * m[0], 2.0 * m[1]))
    value = add(m, (1.0, 0.0))
    return np.ldexp(value[0], np.int64(n)), np.ldexp(value[1], np.int64(n))
