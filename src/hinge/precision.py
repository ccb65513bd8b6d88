"""Which floating-point type the kernel values may have.

Steps may be computed from single-precision kernel values as long as their error stays small beside the values:
the solver corrects the residual in double precision before it declares convergence. Distances are computed as
``|x|² + |y|² − 2xy``; where the norms are huge beside 1/γ this difference cancels, first in single precision
and, for extreme data, in double precision too. Then distances are summed feature by feature instead, as they are
wherever features are few: what is left is the rounding of the features themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.given import GivenGram
from hinge.kernels import Kernel
from hinge.samples import BitSamples, DenseSamples, Samples, SparseSamples, Statistic
from hinge.tiles import has_few_features

# Largest error of a single-precision kernel value that the correction in double precision still absorbs.
_ERROR_ALLOWED_IN_SINGLE = 1e-5

# Largest error of a double-precision kernel value that a certificate may rest on.
_ERROR_ALLOWED_IN_DOUBLE = 1e-11

_LARGEST_IN_SINGLE = 1e30


@dataclass(frozen=True)
class PrecisionChoice:
    """The type of the kernel values, and the comparison of samples they are computed from."""

    dtype: Any
    statistic: Statistic


def choose_precision(
    samples: Samples, kernel: Kernel, diagonal: NDArray[np.float64], wish: str
) -> PrecisionChoice:
    """Decide from the data and the kernel's parameters; ``wish`` overrules the choice of type."""
    if wish not in ("auto", "single", "double"):
        raise ValueError(f"precision must be 'auto', 'single' or 'double', got {wish!r}")
    magnitude = exponent_magnitude(samples, kernel)
    statistic = kernel.statistic
    if wish == "auto" and isinstance(samples, GivenGram):
        return PrecisionChoice(samples.matrix.dtype, statistic)  # its values are there; none is computed
    if magnitude * np.finfo(np.float64).eps > _ERROR_ALLOWED_IN_DOUBLE and isinstance(samples, DenseSamples):
        statistic = "l2"
    if wish == "auto":
        representable = float(np.abs(diagonal).max(initial=0.0)) < _LARGEST_IN_SINGLE
        # With z = √γ|x − y| the value changes by no more than 2z exp(−z²) < 1 times the change of z.
        terms = magnitude**0.5 if has_few_features(samples) else magnitude
        wish = "single" if representable and _are_small(terms) else "double"
    return PrecisionChoice(np.float32 if wish == "single" else np.float64, statistic)


def store(X: Any, kernel: Kernel) -> Samples:
    """Choose the storage in which ``kernel`` compares the rows of X, as exactly as it can."""
    samples = kernel.store(X)
    if isinstance(samples, SparseSamples) and cancels(samples, kernel):
        samples = kernel.store(X, skip_zeros=False)
    if kernel.label == "rbf" and isinstance(samples, DenseSamples):
        samples = samples.centered()
    return samples


def cancels(samples: SparseSamples, kernel: Kernel) -> bool:
    """Whether samples are so far from zero that they had better be seen from their centre, zeros and all."""
    return not _are_small(exponent_magnitude(samples, kernel))


def _are_small(terms: float) -> bool:
    """Whether the difference of ``terms`` can be taken in single precision."""
    return terms * float(np.finfo(np.float32).eps) <= _ERROR_ALLOWED_IN_SINGLE


def exponent_magnitude(samples: Samples, kernel: Kernel) -> float:
    """Size of the terms whose difference is an RBF kernel's exponent; 0 where nothing cancels."""
    if kernel.label != "rbf" or isinstance(samples, BitSamples):
        return 0.0
    return float(4 * kernel.gamma * np.mean(samples.squared_norms(np.float64)))
