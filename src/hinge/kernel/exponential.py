"""The exponential function as range reduction plus a polynomial, so that it vectorises on every computer.

``e^x = 2^n e^f`` with ``n = round(x / ln 2)`` and ``|f| <= ln 2 / 2``. The product ``n ln 2`` is subtracted in
two parts (Cody & Waite), ``e^f`` is ``1 + f p(f)`` with a polynomial that is best in the Chebyshev sense, so
that ``e^0`` is exactly one, and ``2^n`` is written straight into the exponent bits. Kernels only ever need
arguments that are not positive; very negative ones are clamped where the type would underflow.
"""

from __future__ import annotations

import numpy as np

from hinge.runtime.jit import bits_to_float32, bits_to_float64, compiled_exactly

#: 1 / ln 2, rounded.
LOG2E = 1.4426950408889634
# The high parts have trailing zero bits, so that their product with n is exact.
_LN2_HIGH_32 = np.float32(0.693359375)
_LN2_LOW_32 = np.float32(-2.12194440e-4)
_LN2_HIGH_64 = 0.6931471803691238
_LN2_LOW_64 = 1.9082149292705877e-10


@compiled_exactly
def exp32(x: np.float32) -> np.float32:
    """e^x for x <= 0 in single precision, relative error below 3e-7."""
    if x < np.float32(-87.0):
        x = np.float32(-87.0)
    n = np.rint(x * np.float32(LOG2E))
    f = (x - n * _LN2_HIGH_32) - n * _LN2_LOW_32
    p = np.float32(0.0083631730745137109)
    p = p * f + np.float32(0.0418756444523373694)
    p = p * f + np.float32(0.166665770255979882)
    p = p * f + np.float32(0.499993721386254823)
    p = p * f + np.float32(1.0)
    p = p * f + np.float32(1.0)
    return p * bits_to_float32((np.int32(n) + np.int32(127)) << np.int32(23))


@compiled_exactly
def exp64(x: float) -> float:
    """e^x for x <= 0 in double precision, relative error below 4e-16."""
    if x < -708.0:
        x = -708.0
    n = np.rint(x * LOG2E)
    f = (x - n * _LN2_HIGH_64) - n * _LN2_LOW_64
    p = 2.092157996495030007e-9
    p = p * f + 2.5114869528657764941e-8
    p = p * f + 2.7557251904174912593e-7
    p = p * f + 2.7557224958392622686e-6
    p = p * f + 2.480158735011079562e-5
    p = p * f + 1.9841269909217101366e-4
    p = p * f + 1.388888888887188822e-3
    p = p * f + 8.3333333333095270794e-3
    p = p * f + 4.1666666666666692193e-2
    p = p * f + 0.16666666666666702412
    p = p * f + 0.5
    p = p * f + 1.0
    p = p * f + 1.0
    return p * bits_to_float64((np.int64(n) + 1023) << 52)
