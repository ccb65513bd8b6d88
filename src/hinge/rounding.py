"""How far rounding can take Kβ from its true value: bounds in closed form, from the sizes of samples alone.

A kernel value computed in double precision is off by at most ``κ u sᵢ sⱼ``, where u is half a unit in the last
place, κ counts the operations behind it, and the *size* s of a sample bounds what these operations meet: ‖x‖ for
a linear kernel, (γ‖x‖² + |c|)^(d/2) for a polynomial one, 1 + 2γ‖x‖² where an RBF kernel takes the difference
of norms and products, 1 where it sums up squared differences. Since also |k(xᵢ, xⱼ)| ≤ sᵢ sⱼ, a sum over support
vectors is off by at most ``κ u sᵢ Σ |βⱼ| sⱼ``; with sᵢ + sⱼ − 1 in place of sᵢ sⱼ where they are sizes of an
exponent's terms. That takes no kernel value, and for most data it is far below any tolerance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hinge.given import GivenGram
from hinge.kernels import Kernel
from hinge.samples import DenseSamples, Samples, SparseSamples, Statistic
from hinge.tiles import has_few_features

Vector = NDArray[np.float64]

# Half a unit in the last place of a double.
UNIT = 2.0**-53

# Operations of a kernel function beside those of its comparison, with room to spare: about an exponential's.
_OPERATIONS = 16

# Sums run over so many support vectors before they join the others.
_SUMMED_AT_ONCE, _LEAST_SUMMED_AT_ONCE = 512, 64


def sizes_of(samples: Samples, kernel: Kernel, statistic: Statistic, diagonal: Vector) -> Vector:
    """Return the size of every sample, as the module's introduction defines it.

    Parameters
    ----------
    samples : Samples
        The samples.
    kernel : Kernel
        The kernel function.
    statistic : str
        What they are compared by.
    diagonal : array
        k(x, x) of every sample.

    Examples
    --------
    >>> samples = DenseSamples(np.array([[3.0, 4.0], [0.0, 1.0]]))
    >>> sizes_of(samples, Kernel("linear"), "dot", np.array([25.0, 1.0]))
    array([5., 1.])
    """
    with np.errstate(over="ignore"):
        if isinstance(samples, GivenGram):
            return np.sqrt(samples.largest_values())
        if kernel.label == "callable":
            return np.sqrt(np.abs(diagonal))  # true of a positive kernel; others would have to be called for all
        if kernel.label in ("laplacian", "chi2"):
            if (
                isinstance(samples, SparseSamples) and not samples.is_far_from_zero
            ):  # sums of all features, of which the shared ones are taken off
                return 1.0 + 2.0 * kernel.gamma * samples.absolute_sums()
            return np.ones(samples.n)
        norms = samples.squared_norms(np.float64).astype(np.float64)
        if kernel.label == "linear":
            return np.sqrt(norms)
        if kernel.label == "rbf":
            if statistic == "l2" or samples.is_exactly_compared:
                return np.ones(samples.n)
            if has_few_features(samples):  # differences of centred features
                return 1.0 + np.sqrt(kernel.gamma * norms)
            return 1.0 + 2.0 * kernel.gamma * norms
        base = kernel.gamma * norms + abs(kernel.coef0)
        if kernel.label == "poly":
            return base ** (kernel.degree / 2)
        if kernel.label == "sigmoid":
            return np.sqrt(1.0 + base)
    raise ValueError(f"no bound on the rounding of the kernel {kernel.label!r} is known")


def operations_of(samples: Samples, kernel: Kernel, n_support: int) -> float:
    """Return κ for an image of so many support vectors."""
    if kernel.label == "linear" and isinstance(samples, DenseSamples | SparseSamples):
        return float(samples.terms + n_support + _OPERATIONS)  # through the weight vector
    of_value = float(samples.terms + _OPERATIONS)
    if kernel.label == "poly":
        of_value *= max(kernel.degree, 1)
    return of_value + min(n_support, _SUMMED_AT_ONCE) + n_support / _LEAST_SUMMED_AT_ONCE


def rounding_of_image(kernel: Kernel, sizes: Vector, operations: float, coefficients: Vector) -> Vector:
    """Bound the error of ``K @ coefficients`` in double precision, for every sample."""
    magnitudes = np.abs(coefficients)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = float(np.dot(magnitudes, sizes))
        # Errors of an exponent add up, and the sizes of its terms do: (1 + a) + (1 + b) − 1 instead of a product.
        terms = (
            sizes * float(magnitudes.sum()) + (sums - float(magnitudes.sum())) if kernel.decays else sizes * sums
        )
        bound = operations * UNIT * terms
    return np.where(np.isnan(bound), np.inf, bound)


def rounding_of_sharp_image(kernel: Kernel, sizes: Vector, operations: float, coefficients: Vector) -> Vector:
    """As `rounding_of_image`, for double-double arithmetic: its unit is the square of that of a double."""
    return (4.0 * operations * UNIT) * rounding_of_image(kernel, sizes, operations, coefficients)
