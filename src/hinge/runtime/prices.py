"""What operations cost on a computer: one list of prices, each with its unit.

They tell little work from much: which way is taken, never what the answer is. The unit of most is the
*multiply-add*: one term of a dense matrix product in single precision on one core. They need not be right to more
than a factor of two.
"""

from __future__ import annotations

#: Seconds that a kernel function (an exponential) of one value takes on one core in single precision.
SECONDS_PER_KERNEL_FUNCTION = 6e-10

#: Multiply-adds that take as long as a kernel function of one value.
MULTIPLY_ADDS_PER_KERNEL_FUNCTION = 10.0

#: Multiply-adds that take as long as one of sparse samples, which waits for the second-level cache.
MULTIPLY_ADDS_PER_SPARSE_ONE = 5.0

#: Multiply-adds that take as long as counting the bits that two words of 64 features share.
MULTIPLY_ADDS_PER_WORD = 2.0

#: Multiply-adds that a value of a Python function counts as: unknown, but anything in Python is expensive.
MULTIPLY_ADDS_PER_CALLED_VALUE = 1e3

#: Multiply-adds up to which computing a value again beats keeping it, be it as a row in the cache or as a mirror
#: image: a first touch of memory costs as much as computing the row a dozen times, reading it again not much less
#: than once.
MULTIPLY_ADDS_PER_KEPT_VALUE = 64.0
