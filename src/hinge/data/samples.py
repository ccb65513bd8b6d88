"""Samples: the only code that knows how data is stored.

A storage class answers the same few questions for dense rows, CSR rows and packed bits. The Gram matrix asks
for a *panel*, the samples of a working set laid out for comparison, and then compares it with ranges of
columns. Comparisons are dot products, except for kernels built on sums of differences.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import FeatureRows, Floats, Index

Statistic = Literal["dot", "l1", "l2", "chi2", "value"]

# How the compiled loops number the statistics that are sums over features.
KINDS: dict[Statistic, int] = {"dot": 0, "l1": 1, "l2": 2, "chi2": 3}

# Rows converted at once while the data is read, so that no second full copy ever exists.
READ_ROWS = 4096


class Samples(ABC):
    """Rows of data that can be compared with each other.

    Attributes
    ----------
    n : int
        Number of samples.
    n_features : int
        Number of features.
    storage : str
        What a report calls this storage.
    cost : float
        Rough cost of one comparison, in multiply-add steps of dense samples.
    terms : int
        Most terms that the sum of one comparison has.
    is_exactly_compared : bool
        Whether comparisons in double precision have no rounding error.
    """

    n: int
    n_features: int
    storage: str
    cost: float
    terms: int = 0
    is_exactly_compared = True

    def __init__(self) -> None:
        self._norms: dict[Any, Floats] = {}
        self._sums: dict[Any, Floats] = {}

    def squared_norms(self, dtype: Any) -> Floats:
        """Return the squared norm of every sample as comparisons in ``dtype`` see it."""
        dtype = np.dtype(dtype)
        if dtype not in self._norms:
            with np.errstate(over="ignore"):  # whoever needs them looks whether they are finite
                self._norms[dtype] = self._compute_norms(dtype).astype(dtype, copy=False)
        return self._norms[dtype]

    def norms(self, statistic: Statistic, dtype: Any) -> Floats:
        """Return the statistic of every sample with zero (of dot products with itself): ‖x‖² or Σ|x|."""
        if statistic not in ("l1", "chi2"):
            return self.squared_norms(dtype)
        dtype = np.dtype(dtype)
        if dtype not in self._sums:
            with np.errstate(over="ignore"):
                self._sums[dtype] = self.absolute_sums().astype(dtype, copy=False)
        return self._sums[dtype]

    def absolute_sums(self) -> NDArray[np.float64]:
        """Return Σ|x| over the features of every sample; 0 where there are no features."""
        return np.zeros(self.n)

    @abstractmethod
    def _compute_norms(self, dtype: Any) -> NDArray[np.float64]:
        """Compute `squared_norms`, summed in double precision."""

    @abstractmethod
    def panel(self, index: Index, dtype: Any) -> Any:
        """Lay out the samples ``index`` for `compare`."""

    @abstractmethod
    def compare(self, statistic: Statistic, panel: Any, start: int, stop: int, out: Floats) -> None:
        """Fill ``out[w, t]`` with the statistic of panel sample w and sample ``start + t``."""

    @abstractmethod
    def take(self, index: Index, dtype: Any) -> Self:
        """Copy the samples ``index`` into a storage of their own, for comparisons in ``dtype``."""

    def exact_rows(self) -> FeatureRows:
        """Return the rows as they were given, where comparing them may round."""
        raise NotImplementedError(f"{self.storage} samples are compared exactly as they are")

    def has_negatives(self) -> bool:
        """Whether some feature is negative."""
        return False

    def diagonal_statistic(self, statistic: Statistic) -> NDArray[np.float64]:
        """Return the statistic of every sample with itself."""
        return self.squared_norms(np.float64).astype(np.float64) if statistic == "dot" else np.zeros(self.n)
