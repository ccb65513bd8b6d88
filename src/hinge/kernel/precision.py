"""How samples are stored and compared, and which floating-point type their kernel values may have.

Training and prediction decide alike, by what rounding does to a kernel value. Distances are computed as
``|x|² + |y|² − 2xy``; where the norms are huge beside 1/γ this difference cancels, first in single precision and,
for extreme data, in double precision too. Then distances are summed feature by feature instead, as they are
wherever features are few: what is left is the rounding of the features themselves.

Steps of training may rest on single-precision values as long as their error stays small beside the values: the
solver corrects the residual in double precision before it declares convergence. Nobody corrects a prediction:
float32 data is evaluated in single precision only where the error of the whole decision stays small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hinge.data.bits import BitSamples
from hinge.data.dense import DenseSamples
from hinge.data.given import CalledKernel, GivenGram
from hinge.data.samples import Samples, Statistic
from hinge.data.sparse import SparseSamples
from hinge.data.storage import dense_from, is_mostly_zero, packed, refuse_nonfinite
from hinge.data.structure import compact
from hinge.kernel.kernels import Kernel
from hinge.kernel.tiles import has_few_features

# Largest error of a single-precision kernel value that the correction in double precision still absorbs.
_ERROR_ALLOWED_IN_SINGLE = 1e-5

# Largest error of a double-precision kernel value that a certificate may rest on.
_ERROR_ALLOWED_IN_DOUBLE = 1e-11

# Between these two, products and squares of what float32 holds neither overflow nor lose digits.
_SMALLEST_IN_SINGLE, _LARGEST_IN_SINGLE = 1e-25, 1e30

# What rounds once however the samples are compared: the exponential, the product with a coefficient, the sum.
_OTHER_ROUNDINGS = 4.0

# Terms of a decision that are added up in single precision, before the sums are added up in double.
_SUMMED_IN_SINGLE = 128


@dataclass(frozen=True)
class PrecisionChoice:
    """The type of the kernel values, and the comparison of samples they are computed from."""

    dtype: Any
    statistic: Statistic


# ---------------------------------------------------------------------- training


def store(X: Any, kernel: Kernel) -> Samples:
    """Choose the storage in which ``kernel`` compares the rows of X, as exactly as it can.

    Raises
    ------
    ValueError
        Squares of the features overflow.
    """
    samples = kernel.store(X)
    if isinstance(samples, SparseSamples) and _cancels(samples, kernel):
        samples = kernel.store(X, skip_zeros=False)
    if isinstance(samples, SparseSamples):
        samples.is_far_from_zero = _cancels_in_double(samples, kernel)
    if kernel.by_differences is not None and isinstance(samples, DenseSamples):
        samples = samples.centered()
    _refuse_overflow(samples, kernel)
    return samples


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
    if isinstance(samples, GivenGram | CalledKernel):
        # The values of a matrix are there; those of a function come in double precision.
        auto = samples.matrix.dtype if isinstance(samples, GivenGram) else _by_values(diagonal)
        return PrecisionChoice(auto if wish == "auto" else _dtype(wish), kernel.statistic)
    terms = rounding_terms(samples, kernel)
    statistic = comparison_of(samples, kernel)
    fits = _fits_single(samples, kernel, _largest_norm(samples), float(np.abs(diagonal).max(initial=0.0)))
    if wish == "single" and not fits:
        raise ValueError(
            "precision='single' cannot hold these features, their squares, or the kernel's parameters and values; "
            "scale the features, or use precision='auto'"
        )
    if wish == "auto":
        wish = "single" if fits and _are_small(_mean(terms)) else "double"
    return PrecisionChoice(_dtype(wish), statistic)


def _dtype(wish: str) -> Any:
    return np.float32 if wish == "single" else np.float64


def _by_values(diagonal: NDArray[np.float64]) -> Any:
    return np.float32 if _holds(float(np.abs(diagonal).max(initial=0.0))) else np.float64


# ---------------------------------------------------------------------- prediction


def store_alike(vectors: Any, queries: Any, kernel: Kernel) -> tuple[Samples, Samples]:
    """Store support vectors and new samples in the same way, so that one can be compared with the other.

    Either are the rows of an array or of a CSR matrix in the form of `canonical`.

    Raises
    ------
    ValueError
        New samples are not finite, or so large that their squares overflow.
    """
    if callable(kernel.name):
        return CalledKernel(vectors, kernel.name), CalledKernel(queries, kernel.name)
    if sp.issparse(vectors) or sp.issparse(queries):
        _, (vectors, queries) = compact(sp.csr_array(vectors), sp.csr_array(queries))
    else:
        vectors, queries = np.ascontiguousarray(vectors), np.ascontiguousarray(queries)
    refuse_nonfinite(queries.data if sp.issparse(queries) else queries, "X")
    pair = _stored_alike(vectors, queries, kernel)
    kernel.check(pair[1])
    _refuse_overflow(pair[1], kernel)
    return pair


def _stored_alike(vectors: Any, queries: Any, kernel: Kernel) -> tuple[Samples, Samples]:
    bits = packed(vectors)
    others = None if bits is None else packed(queries)
    if bits is not None and others is not None:
        return bits, others
    is_sparse = sp.issparse(vectors)
    if is_sparse or (is_mostly_zero(vectors) and is_mostly_zero(queries)):
        pair = SparseSamples.of(vectors), SparseSamples.of(queries)
        if not _cancels(pair[0], kernel) or (is_sparse and vectors.nnz <= dense_from(vectors.shape, False)):
            pair[1].is_far_from_zero = _cancels_in_double(pair[0], kernel)
            return pair
    rows = [part.toarray() if is_sparse else part for part in (vectors, queries)]
    dense = DenseSamples(rows[0])
    if kernel.by_differences is not None:
        centered = dense.centered()
        if comparison_of(centered, kernel) == "dot":
            return centered, DenseSamples(rows[1], centered.center)
    return dense, DenseSamples(rows[1])  # differences need no centre; moving to it would round


def error_in_single(
    vectors: Samples, queries: Samples, kernel: Kernel, coefficients: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Estimate how far single precision takes each machine's Σ coefficient · k(s, x) from its true value.

    Errors of different kernel values have nothing to do with each other: they add up like random numbers.

    Returns
    -------
    array
        An error for each line of ``coefficients``; infinite where numbers on the way do not fit float32.
    """
    norms = _norms(vectors, np.float64)
    furthest = float(np.sqrt(_largest_norm(queries)))
    values, terms = np.ones(vectors.n), rounding_terms(vectors, kernel)
    if not kernel.decays:
        with np.errstate(over="ignore"):
            values, terms = kernel.reach(np.sqrt(norms) * furthest)
    sizes = np.abs(coefficients).max(axis=1, initial=0.0)
    largest_norm = max(float(norms.max(initial=0.0)), furthest**2)
    fits = _fits_single(vectors, kernel, largest_norm, max(float(values.max(initial=0.0)), float(terms.max())))
    if not (fits and all(_holds(size) for size in sizes)):
        return np.full(len(coefficients), np.inf)
    # A sum over many features rounds often, and for all samples in the same place.
    each = np.abs(coefficients) * (_roundings(vectors) * terms + _OTHER_ROUNDINGS * values)
    # Sums of a tile round as they grow, and all of its terms may have one sign.
    tiles = np.add.reduceat(np.abs(coefficients) * values, np.arange(0, vectors.n, _SUMMED_IN_SINGLE), axis=1)
    total = (each**2).sum(axis=1) + (tiles**2).sum(axis=1)
    return np.asarray(np.sqrt(total) * np.finfo(np.float32).eps / 2)


# ---------------------------------------------------------------------- what rounding does


def comparison_of(samples: Samples, kernel: Kernel) -> Statistic:
    """What samples are compared by: the kernel's statistic, or distances feature by feature."""
    if kernel.by_differences is not None and _cancels_in_double(samples, kernel):
        return kernel.by_differences
    return kernel.statistic


def rounding_terms(samples: Samples, kernel: Kernel, of_dots: bool = False) -> NDArray[np.float64]:
    """Size of the terms whose rounding enters the exponent of a kernel value, for every sample; 0 where none does.

    Two samples whose norms differ are far from each other, and their kernel value is small: it is enough to look
    at one of them. ``of_dots``: distances come from dot products even where features are few.
    """
    if not kernel.decays or isinstance(samples, BitSamples):
        return np.zeros(samples.n)
    with np.errstate(over="ignore"):
        if kernel.by_differences is not None:
            terms = 4 * kernel.gamma * _norms(samples, np.float64)
            # With z = √γ|x − y| the value changes by no more than 2z exp(−z²) < 1 times the change of z.
            return np.sqrt(terms) if has_few_features(samples) and not of_dots else terms
        if isinstance(samples, DenseSamples) and samples.rows.dtype == np.float32:
            return np.zeros(samples.n)  # differences of the features themselves
        if isinstance(samples, SparseSamples):
            return 2 * kernel.gamma * samples.absolute_sums()
        # A sum of absolute values is at most √length times the norm.
        return 2 * kernel.gamma * np.sqrt(samples.n_features * _norms(samples, np.float64))


def _cancels(samples: SparseSamples, kernel: Kernel) -> bool:
    """Whether samples are so far from zero that they had better be seen from their centre, zeros and all."""
    return not _are_small(_mean(rounding_terms(samples, kernel)))


def _cancels_in_double(samples: Samples, kernel: Kernel) -> bool:
    """Whether not even double precision has digits enough for sums over all features to be subtracted."""
    terms = _mean(rounding_terms(samples, kernel, of_dots=True)) * _roundings(samples)
    return terms * float(np.finfo(np.float64).eps) > _ERROR_ALLOWED_IN_DOUBLE


def _roundings(samples: Samples) -> float:
    """How much more a sum over all features rounds than one over a few dozen."""
    return max(samples.n_features**0.5 / 8, 1.0)


def _mean(terms: NDArray[np.float64]) -> float:
    with np.errstate(over="ignore"):
        return float(terms.mean()) if len(terms) else 0.0


def _are_small(terms: float) -> bool:
    """Whether the difference of ``terms`` can be taken in single precision."""
    return terms * float(np.finfo(np.float32).eps) <= _ERROR_ALLOWED_IN_SINGLE


def _fits_single(samples: Samples, kernel: Kernel, largest_norm: float, largest_value: float) -> bool:
    """Whether float32 holds everything on the way from the features to the kernel values."""
    if not (_holds(largest_norm) and _holds(largest_value)):
        return False
    if kernel.is_ratio and not _holds(_smallest_norm(samples, kernel)):
        return False
    if not kernel.uses:
        return True
    # Squares below the smallest number are lost, of every feature.
    lost = kernel.gamma * samples.n_features * float(np.finfo(np.float32).tiny)
    is_lost = lost > float(np.finfo(np.float32).eps)
    return _holds(kernel.gamma) and not is_lost and abs(kernel.coef0) <= _LARGEST_IN_SINGLE


def _holds(size: float) -> bool:
    return size == 0 or _SMALLEST_IN_SINGLE <= size <= _LARGEST_IN_SINGLE


def _norms(samples: Samples, dtype: Any) -> NDArray[np.float64]:
    return samples.squared_norms(dtype).astype(np.float64, copy=False)


def _largest_norm(samples: Samples) -> float:
    return float(samples.squared_norms(np.float64).max(initial=0.0))


def _smallest_norm(samples: Samples, kernel: Kernel) -> float:
    norms = samples.norms(kernel.statistic, np.float64)
    return float(norms[norms > 0].min()) if norms.any() else 0.0


def _refuse_overflow(samples: Samples, kernel: Kernel) -> None:
    if not kernel.squares:
        return
    norms = samples.squared_norms(np.float64)
    if not np.isfinite(norms).all():
        row = int(np.argmin(np.isfinite(norms)))
        raise ValueError(
            f"X has values so large that their squares overflow, in row {row} for one; scale the features, for "
            "instance with StandardScaler"
        )
