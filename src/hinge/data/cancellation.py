"""Where distances cancel: what rounding leaves of a difference of large sums decides how samples are compared.

Distances are computed as ``|x|² + |y|² − 2xy``; where the norms are huge beside 1/γ this difference cancels, first
in single precision and, for extreme data, in double precision too. Then distances are summed feature by feature
instead, as they are wherever features are few: what is left is the rounding of the features themselves.
"""

from __future__ import annotations

import numpy as np

from hinge.arrays import Vector
from hinge.data.samples import Demands, Samples, Statistic

# Largest error of a single-precision kernel value that a correction in double precision still absorbs, and of a
# double-precision one that a certificate may rest on.
_ERROR_ALLOWED_IN_SINGLE, _ERROR_ALLOWED_IN_DOUBLE = 1e-5, 1e-11

# Distance of one from the next number.
_SINGLE, _DOUBLE = float(np.finfo(np.float32).eps), float(np.finfo(np.float64).eps)


def comparison_of(samples: Samples, kernel: Demands) -> Statistic:
    """What samples are compared by: the kernel's statistic, or distances feature by feature."""
    if kernel.by_differences is not None and cancels_in_double(samples, kernel):
        return kernel.by_differences
    return kernel.statistic


def cancels_in_single(samples: Samples, kernel: Demands) -> bool:
    """Whether single precision has too few digits for sums over all features to be subtracted."""
    most = _ERROR_ALLOWED_IN_SINGLE / _SINGLE
    return not (_largest(samples, kernel) <= most or _mean(rounding_terms(samples, kernel)) <= most)


def cancels_in_double(samples: Samples, kernel: Demands) -> bool:
    """Whether not even double precision has digits enough for sums over all features to be subtracted."""
    most = _ERROR_ALLOWED_IN_DOUBLE / _DOUBLE / roundings(samples)
    if _largest(samples, kernel, of_dots=True) <= most:
        return False
    return _mean(rounding_terms(samples, kernel, of_dots=True)) > most


def rounding_terms(samples: Samples, kernel: Demands, of_dots: bool = False) -> Vector:
    """Size of the terms whose rounding enters the exponent of a kernel value, for every sample; 0 where none does.

    Two samples whose norms differ are far from each other, and their kernel value is small: it is enough to look
    at one of them. ``of_dots``: distances come from dot products even where features are few.
    """
    if not kernel.decays or samples.is_exactly_compared:
        return np.zeros(samples.n)
    with np.errstate(over="ignore"):
        if kernel.by_differences is None:
            return 2 * kernel.gamma * samples.rounded_sums()
        terms = 4 * kernel.gamma * samples.squared_norms(np.float64).astype(np.float64, copy=False)
        # With z = √γ|x − y| the value changes by no more than 2z exp(−z²) < 1 times the change of z.
        return np.sqrt(terms) if samples.has_few_features and not of_dots else terms


def _largest(samples: Samples, kernel: Demands, of_dots: bool = False) -> float:
    """Bound what `rounding_terms` would answer, by the largest norm alone; infinite where that tells nothing."""
    if not kernel.decays or samples.is_exactly_compared:
        return 0.0
    if kernel.by_differences is None:
        return float("inf")
    largest = 4 * kernel.gamma * samples.largest_norm
    return float(largest**0.5) if samples.has_few_features and not of_dots else largest


def roundings(samples: Samples) -> float:
    """How much more a sum over all features rounds than one over a few dozen."""
    return max(samples.n_features**0.5 / 8, 1.0)


def _mean(terms: Vector) -> float:
    with np.errstate(over="ignore"):
        return float(terms.mean()) if len(terms) else 0.0
