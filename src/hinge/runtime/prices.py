"""What operations cost on a computer: one list of prices, each with its unit.

They tell little work from much: which way is taken, never what the answer is. The unit of most is the
*multiply-add*: one term of a dense matrix product in single precision on one core. They need not be right to more
than a factor of two among each other: on a faster computer all of them are too high.

``python -m benchmarks prices`` measures them. On 19 November 2026, on a busy computer, times were 0.2 to 0.5 of
these, but for the layout of an inverse (2.7) and double-double arithmetic (0.7 and 1.6), and multiples of a
multiply-add 0.6 to 1.7.
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

#: Nanoseconds that a pair step on a kernel matrix in memory takes for every variable: of a matrix in single
#: precision, in double.
NS_PER_PAIR_STEP_IN_SINGLE, NS_PER_PAIR_STEP = 1.5, 2.2

#: Nanoseconds that a variable which a free set drags from bound to bound takes for every variable of the problem.
NS_PER_DRAGGED = 0.8

#: Nanoseconds that a change of a free set takes for every pair of free variables; its unit of work.
NS_PER_CHANGE = 0.6

#: Nanoseconds that the layout of its inverse takes for every triple of them.
NS_PER_LAYOUT = 0.1

#: Units of work of a free set that one moved variable costs for each residual.
CHANGES_PER_MOVE = 0.4

#: Seconds that a term of a comparison, and that a kernel function, takes in double-double arithmetic.
SECONDS_PER_SHARP_TERM, SECONDS_PER_SHARP_VALUE = 4e-9, 3e-7

#: Seconds that a small problem takes beside its steps, and its steps for each pair of variables.
SECONDS_PER_SMALL_PROBLEM, SECONDS_PER_SMALL_PAIR = 1e-5, 1e-8
