"""The one place where Python meets the compiler.

Hot loops are plain Python functions under `compiled`. They release the interpreter lock, so that Python
threads run them side by side, and their machine code is kept on disk, so that only the first use on a
computer compiles. Where no folder can be written, or a disk is full, Numba keeps the code in memory only, and what
it cannot read it compiles anew (`code_cache.py`). How a function is compiled says `compiler.py`.

With ``NUMBA_DISABLE_JIT=1`` everything runs as the Python that it is written in, a hundred times slower: for
debuggers and for measuring what tests cover. Intrinsics have a plain form for that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from hinge.runtime.compiler import Function

F = TypeVar("F", bound=Callable[..., Any])

# Sums may be re-ordered and fused, so that they vectorise; infinities and NaN keep their meaning, because the
# working-set rules mark forbidden moves with -inf.
_SAFE_FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}

# Exact range reduction needs its operations in the order written: contraction only.
_EXACT_MATH = {"contract"}


_IS_OFF = bool(numba.config.DISABLE_JIT)  # type: ignore[attr-defined]


def _decorator(fastmath: set[str], is_apart: bool = False, **more: bool) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        if _IS_OFF:
            return function
        # What is not said here a function would inherit from the caller that it is first compiled for.
        options: dict[str, Any] = {
            "nogil": True,
            "error_model": "numpy",
            "fastmath": fastmath,
            "forceinline": False,
        }
        options |= more
        return cast(F, Function(function, options, is_apart))

    return decorate


def compiled(function: F) -> F:
    """Compile ``function`` at its first call; sums may be re-ordered."""
    return _decorator(_SAFE_FAST_MATH)(function)


def borrowing(function: F) -> F:
    """Compile ``function``, which makes no array and counts no references: its caller holds whatever it is given.

    Counting takes as long as a hundred additions for each NamedTuple that a function is passed. Its code stays
    apart from that of its callers.
    """
    return _decorator(_SAFE_FAST_MATH, is_apart=True, _nrt=False)(function)


def inlined(function: F) -> F:
    """Compile ``function``, which borrows too, into its callers: a small part of a hot loop."""
    return _decorator(_SAFE_FAST_MATH, _nrt=False, forceinline=True)(function)


def compiled_exactly(function: F) -> F:
    """Compile ``function``; floating-point operations keep the order in which they are written."""
    return _decorator(_EXACT_MATH)(function)


def compiled_literally(function: F) -> F:
    """Compile ``function``; every operation is done and rounded as it is written, nothing is fused."""
    return _decorator(set())(function)


def _intrinsic(plain: Callable[..., Any]) -> Callable[[Any], Any]:
    """Make a typing function an intrinsic; ``plain`` takes its place where the compiler is off."""
    return lambda typed: plain if _IS_OFF else intrinsic(typed)


def _extremum(name: str, plain: Callable[..., Any]) -> Any:
    # `max(a, b)` compiles to a comparison that keeps NaN rules, which stops reductions from vectorising.
    def typed(typing_context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = arguments[0].type
            function = builder.module.declare_intrinsic(name, [kind], ir.FunctionType(kind, [kind, kind]))
            return builder.call(function, arguments, fastmath=("nnan", "nsz", "reassoc"))

        return a(a, a), generate

    typed.__name__ = name.rsplit(".")[-1]
    return _intrinsic(plain)(typed)


#: The larger of two floats of one type, as a reduction that vectorises.
larger = _extremum("llvm.maxnum", max)
#: The smaller of two floats of one type, as a reduction that vectorises.
smaller = _extremum("llvm.minnum", min)


@_intrinsic(lambda word: int(word).bit_count())
def popcount(typing_context: Any, word: Any) -> Any:
    """Count the one bits of an unsigned 64-bit word (a vector instruction where the processor has one)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@_intrinsic(lambda bits: np.int32(bits).view(np.float32))
def bits_to_float32(typing_context: Any, bits: Any) -> Any:
    """Read the bits of an int32 as a float32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@_intrinsic(lambda bits: np.int64(bits).view(np.float64))
def bits_to_float64(typing_context: Any, bits: Any) -> Any:
    """Read the bits of an int64 as a float64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


def _plain_fused(a: float, b: float, c: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    return float(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


@_intrinsic(_plain_fused)
def fused(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c of float64, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate
