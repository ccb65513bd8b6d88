"""Which floating-point type kernel values may have: by what rounding does to them.

Steps of training may rest on single-precision values as long as their error stays small beside the values: the
solver corrects the residual in double precision before it declares convergence. Nobody corrects a prediction:
float32 data is evaluated in single precision only where the error of the whole decision stays small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.data.cancellation import cancels_in_single, comparison_of, rounding_terms, roundings
from hinge.data.layout import LAYOUT
from hinge.data.samples import Samples, Statistic
from hinge.kernel.kernels import Kernel
from hinge.runtime.threads import lazy

# Between these two, products and squares of what float32 holds neither overflow nor lose digits.
_SMALLEST_IN_SINGLE, _LARGEST_IN_SINGLE = 1e-25, 1e30

# The smallest number with all its digits in single precision, and the distance of one from the next number.
_SINGLE_TINY, _SINGLE_EPS = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).eps)

# What rounds once however the samples are compared: the exponential, the product with a coefficient, the sum.
_OTHER_ROUNDINGS = 4.0


@dataclass(frozen=True)
class PrecisionChoice:
    """The type of the kernel values, and the comparison of samples they are computed from."""

    dtype: Any
    statistic: Statistic


# ---------------------------------------------------------------------- training


def choose_precision(
    samples: Samples, kernel: Kernel, diagonal: NDArray[np.float64], wish: str
) -> PrecisionChoice:
    """Decide from the data and the kernel's parameters; ``wish`` overrules the choice of type.

    Raises
    ------
    ValueError
        Single precision is wished for, and cannot hold the data or the kernel's values.
    """
    if wish not in ("auto", "single", "double"):
        raise ValueError(f"precision must be 'auto', 'single' or 'double', got {wish!r}")
    if samples.is_given:
        # The values of a matrix are there; those of a function come in double precision.
        auto = _by_values(diagonal) if samples.matrix is None else samples.matrix.dtype
        return PrecisionChoice(auto if wish == "auto" else _dtype(wish), kernel.statistic)
    fits = _fits_single(samples, kernel, samples.largest_norm, float(np.abs(diagonal).max(initial=0.0)))
    if wish == "single" and not fits:
        raise ValueError(
            "precision='single' cannot hold these features, their squares, or the kernel's parameters and values; "
            "scale the features, or use precision='auto'"
        )
    if wish == "auto":
        wish = "single" if fits and not cancels_in_single(samples, kernel) else "double"
    return PrecisionChoice(_dtype(wish), comparison_of(samples, kernel))


def _dtype(wish: str) -> Any:
    return np.float32 if wish == "single" else np.float64


def _by_values(diagonal: NDArray[np.float64]) -> Any:
    return np.float32 if _holds(float(np.abs(diagonal).max(initial=0.0))) else np.float64


# ---------------------------------------------------------------------- prediction


class ErrorInSingle:
    """How far single precision takes each machine's Σ coefficient · k(s, x) from its true value.

    Errors of different kernel values have nothing to do with each other: they add up like random numbers.

    Parameters
    ----------
    vectors : Samples
        The support vectors s.
    kernel : Kernel
        The kernel.
    coefficients : array of shape (n_machines, n_support)
        A line for each machine.
    """

    def __init__(self, vectors: Samples, kernel: Kernel, coefficients: NDArray[np.float64]) -> None:
        self.vectors, self._kernel, self._coefficients = vectors, kernel, coefficients
        self._norms = _norms(vectors, np.float64)
        self._largest_norm = float(self._norms.max(initial=0.0))
        self._holds_coefficients = all(_holds(size) for size in np.abs(coefficients).max(axis=1, initial=0.0))

    def beside(self, queries: Samples) -> NDArray[np.float64]:
        """Return an error for each machine; infinite where numbers on the way do not fit float32."""
        furthest = float(np.sqrt(queries.largest_norm))
        errors, largest_value = self._of_any if self._kernel.decays else self._up_to(furthest)
        largest_norm = max(self._largest_norm, furthest**2)
        fits = _fits_single(self.vectors, self._kernel, largest_norm, largest_value)
        return errors if fits and self._holds_coefficients else np.full(len(errors), np.inf)

    @lazy
    def _of_any(self) -> tuple[NDArray[np.float64], float]:
        """Errors of a kernel whose values are no larger for samples that are further away."""
        return self._up_to(0.0)

    def _up_to(self, furthest: float) -> tuple[NDArray[np.float64], float]:
        """Return the errors for samples up to this far from zero, and the largest number on the way."""
        vectors, kernel, sizes = self.vectors, self._kernel, np.abs(self._coefficients)
        values, terms = np.ones(vectors.n), rounding_terms(vectors, kernel)
        with np.errstate(over="ignore", invalid="ignore"):
            if not kernel.decays:
                values, terms = kernel.reach(np.sqrt(self._norms) * furthest)
            # A sum over many features rounds often, and for all samples in the same place.
            each = roundings(vectors) * terms + _OTHER_ROUNDINGS * values
            # Sums of a tile round as they grow, and its terms may have one sign; tiles are added up in double.
            strips = np.arange(0, vectors.n, LAYOUT.flat_tile[0])
            tiles = np.add.reduceat(sizes * values, strips, axis=1)
            total = sizes**2 @ each**2 + (tiles**2).sum(axis=1)
            errors = np.asarray(np.sqrt(total) * np.finfo(np.float32).eps / 2)
        return errors, max(float(values.max(initial=0.0)), float(terms.max()))


# ---------------------------------------------------------------------- what rounding does


def _fits_single(samples: Samples, kernel: Kernel, largest_norm: float, largest_value: float) -> bool:
    """Whether float32 holds everything on the way from the features to the kernel values."""
    if not (_holds(largest_norm) and _holds(largest_value)):
        return False
    if kernel.is_ratio and not _holds(_smallest_norm(samples, kernel)):
        return False
    if not kernel.uses:
        return True
    # Squares below the smallest number are lost, of every feature.
    lost = kernel.gamma * samples.n_features * _SINGLE_TINY
    is_lost = lost > _SINGLE_EPS
    return _holds(kernel.gamma) and not is_lost and abs(kernel.coef0) <= _LARGEST_IN_SINGLE


def _holds(size: float) -> bool:
    return size == 0 or _SMALLEST_IN_SINGLE <= size <= _LARGEST_IN_SINGLE


def _norms(samples: Samples, dtype: Any) -> NDArray[np.float64]:
    return samples.squared_norms(dtype).astype(np.float64, copy=False)


def _smallest_norm(samples: Samples, kernel: Kernel) -> float:
    norms = samples.norms(kernel.statistic, np.float64)
    return float(norms[norms > 0].min()) if norms.any() else 0.0
