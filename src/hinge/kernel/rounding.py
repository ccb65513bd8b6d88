"""How far rounding can take Kβ from its true value: bounds in closed form, from the sizes of samples alone.

A kernel value computed in double precision is off by at most ``κ u sᵢ sⱼ``, where u is half a unit in the last
place, κ counts the operations behind it, and the *size* s of a sample bounds what these operations meet: ‖x‖ for
a linear kernel, (γ‖x‖² + |c|)^(d/2) for a polynomial one (`Kernel.sizes`), 1 + 2γ‖x‖² where an RBF kernel takes
the difference of norms and products, 1 where it sums up squared differences. Since also |k(xᵢ, xⱼ)| ≤ sᵢ sⱼ,
a sum over support vectors is off by at most ``κ u sᵢ Σ |βⱼ| sⱼ``; with sᵢ + sⱼ − 1 in place of sᵢ sⱼ where they
are sizes of an exponent's terms. That takes no kernel value, and for most data it is far below any tolerance.
"""

from __future__ import annotations

import numpy as np

from hinge.arrays import Vector
from hinge.data.layout import LAYOUT
from hinge.data.samples import Samples, Statistic
from hinge.kernel.kernels import Kernel

# Half a unit in the last place of a double.
UNIT = 2.0**-53

# Operations of a kernel function beside those of its comparison, with room to spare: about an exponential's.
_OPERATIONS = 16


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
    >>> from hinge.data.dense import DenseSamples
    >>> samples = DenseSamples(np.array([[3.0, 4.0], [0.0, 1.0]]))
    >>> sizes_of(samples, Kernel("linear"), "dot", np.array([25.0, 1.0]))
    array([5., 1.])
    """
    with np.errstate(over="ignore"):
        if kernel.is_precomputed:
            return np.sqrt(samples.largest_values())
        if not kernel.decays:
            return kernel.sizes(samples, diagonal)
        if samples.is_exactly_compared:
            return np.ones(samples.n)
        norms = samples.norms(statistic, np.float64).astype(np.float64)
        if statistic == "dot":  # few features: differences of centred ones
            of_few = samples.has_few_features
            return 1.0 + (np.sqrt(kernel.gamma * norms) if of_few else 2.0 * kernel.gamma * norms)
        return 1.0 + 2.0 * kernel.gamma * samples.subtracted_sums(statistic)


def operations_of(samples: Samples, kernel: Kernel, n_support: int) -> tuple[float, float]:
    """Return κ of a kernel value, and of the sum over this many support vectors."""
    of_value = (samples.terms + _OPERATIONS) * kernel.amplification
    if kernel.is_linear and samples.feature_samples is not None:
        return of_value, float(n_support)  # through the weight vector
    # Sums run over the rows of a tile before they join the others: over four times as many in tall tiles, where
    # BLAS has several sums for them, and over some of the rows of a cache.
    return of_value, min(n_support, LAYOUT.flat_tile[0]) + n_support / LAYOUT.whole_rows


def rounding_of_image(sizes: Vector, operations: tuple[float, float], coefficients: Vector) -> Vector:
    """Bound the error of ``K @ coefficients`` in double precision, for every sample."""
    with np.errstate(over="ignore", invalid="ignore"):
        bound = sum(operations) * UNIT * sizes * float(np.dot(np.abs(coefficients), sizes))
    return np.where(np.isnan(bound), np.inf, bound)


def rounding_of_decaying_image(
    sizes: Vector, operations: tuple[float, float], mass: Vector | float, mass_of_sizes: Vector | float
) -> Vector:
    """As `rounding_of_image` for kernels e^−z: the sizes of an exponent's terms add up instead.

    ``mass`` is Σ|β| k(x, ·) and ``mass_of_sizes`` Σ|β|(s − 1) k(x, ·), or both with 1 for every kernel value.
    """
    of_value, of_sum = operations
    with np.errstate(over="ignore", invalid="ignore"):
        bound = UNIT * (of_value * (sizes * mass + mass_of_sizes) + of_sum * mass)
    return np.where(np.isnan(bound), np.inf, bound)
