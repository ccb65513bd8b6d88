"""Samples: the only code that knows how data is stored.

A storage class answers the same few questions for dense rows, CSR rows and packed bits. The Gram matrix asks
for a *panel*, the samples of a working set laid out for comparison, and then compares it with ranges of
columns. Comparisons are dot products, except for kernels built on sums of differences.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import FeatureRows, Floats, Index
from hinge.data.layout import LAYOUT
from hinge.runtime.threads import lazy

Statistic = Literal["dot", "l1", "l2", "chi2", "value"]

# How the compiled loops number the statistics that are sums over features.
KINDS: dict[Statistic, int] = {"dot": 0, "l1": 1, "l2": 2, "chi2": 3}


class Demands(Protocol):
    """What storing data asks of a kernel: attributes of `hinge.kernel.base.Kernel`, which says what they mean."""

    @property
    def name(self) -> str | Callable[[Any, Any], Any]: ...
    @property
    def gamma(self) -> float: ...
    @property
    def statistic(self) -> Statistic: ...
    @property
    def by_differences(self) -> Statistic | None: ...
    @property
    def decays(self) -> bool: ...
    @property
    def squares(self) -> bool: ...
    @property
    def is_linear(self) -> bool: ...
    @property
    def is_precomputed(self) -> bool: ...
    def check(self, samples: Samples) -> None:
        """Raise ValueError if the kernel is not defined for the samples."""


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
    is_given : bool
        Whether these are kernel values themselves, which nothing can compute more sharply.
    matrix : array, optional
        The kernel matrix of these samples, where it is in memory.
    n_computed : int
        Kernel values that were computed for it when the samples were stored.
    has_few_features : bool
        Whether distances are better summed up feature by feature than taken from a matrix product.
    counts_differences : bool
        Whether distances are whole numbers, so that `look_up` finds their kernel values in a table.
    runs_on_one_thread : bool
        Whether comparisons call Python code of the user.
    is_apart : bool
        Whether they lie in shards, which are asked for copies of some (`take`) and for images of all.
    most_visited : int
        Rows that may be visited in any order before `let_go` is called; 0 where they cannot be visited like that.
    reserved_bytes : int
        What it may use of the budget of kernel values, for samples that it reads when they are compared.
    panel_bytes : int
        Bytes of panels that are laid out before threads begin with them.
    takes_symmetric_part : bool
        Whether values turned out not to be symmetric: those from before have to be computed again.
    keeps_double : bool
        Whether rows that are compared from a centre are kept like that in double precision too, because they will
        be compared often.
    """

    n: int
    n_features: int
    storage: str
    cost: float
    terms: int = 0
    is_exactly_compared = True
    is_given = False
    matrix: Floats | None = None
    n_computed = 0
    has_few_features = False
    counts_differences = False
    runs_on_one_thread = False
    is_apart = False
    most_visited = np.iinfo(np.int64).max
    reserved_bytes = 0
    panel_bytes = LAYOUT.batch_bytes
    keeps_double = False

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

    @lazy
    def largest_norm(self) -> float:
        """The largest squared norm; not finite if one of them is not."""
        return float(self.squared_norms(np.float64).max(initial=0.0))

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

    def view(self, index: Index, dtype: Any) -> Samples:
        """Return the samples ``index`` to be worked on: a copy, unless they lie apart."""
        return self.take(index, dtype)

    def joined(self, others: Sequence[Self]) -> Self:
        """Return these samples followed by others that are stored alike."""
        raise NotImplementedError(f"{self.storage} samples are in one place")

    def image(
        self,
        question: str,
        function: tuple[Any, ...],
        support: Index,
        factors: NDArray[np.float64],
        rows: Index | None,
        dtype: Any,
        cancelled: Callable[[], bool],
    ) -> Any:
        """Return sums over the samples ``support``, where samples lie apart: see `ShardedSamples`."""
        raise NotImplementedError(f"{self.storage} samples are here")

    @property
    def feature_samples(self) -> FeatureSamples | None:
        """These samples, if their features are there: then a linear kernel has a weight vector."""
        return None

    @property
    def takes_symmetric_part(self) -> bool:
        return False

    def tile_shape(self, statistic: Statistic) -> tuple[int, int]:
        """Return rows and columns of a tile whose comparisons and kernel values are computed at a good pace."""
        return LAYOUT.flat_tile

    def look_up(self, panel: Any, start: int, stop: int, table: Floats, out: Floats) -> None:
        """Fill ``out[w, t]`` with ``table[d]``, d the distance of panel sample w and sample ``start + t``."""
        raise NotImplementedError(f"distances of {self.storage} samples are no whole numbers")

    def features(self, dtype: Any) -> Floats:
        """Return a line for each feature, with lines of zeros up to a multiple of four, where they are few."""
        raise NotImplementedError(f"features of {self.storage} samples are not laid out in lines")

    def centered(self) -> Samples:
        """Return the same samples, seen from their mean where that keeps products small."""
        return self

    def rounded_sums(self) -> NDArray[np.float64]:
        """Bound Σ|x| over those features of every sample that single precision rounds before they are compared."""
        return np.zeros(self.n)

    def subtracted_sums(self, statistic: Statistic) -> NDArray[np.float64]:
        """Return Σ|x| over those features of every sample that sums of differences add and take off again."""
        return np.zeros(self.n)

    def largest_values(self) -> NDArray[np.float64]:
        """Return the largest |k(x, ·)| of every sample, where kernel values themselves are stored."""
        raise NotImplementedError(f"{self.storage} samples hold no kernel values")

    def exact_rows(self) -> FeatureRows:
        """Return the rows as they were given, where comparing them may round."""
        raise NotImplementedError(f"{self.storage} samples are compared exactly as they are")

    def exact_rows_of(self, index: Index) -> tuple[FeatureRows, Index]:
        """Return `exact_rows` that hold the samples ``index`` at least, and where each of them is."""
        return self.exact_rows(), index

    def alike(self, index: Index) -> Index:
        """Return, for each of the samples ``index``, the place of the first that is the same to the last bit."""
        first: dict[Any, int] = {}
        return np.array([first.setdefault(key, place) for place, key in enumerate(self._contents(index))])

    def _contents(self, index: Index) -> Iterable[Any]:
        """What tells samples from each other; where nobody can say, each is one of its own."""
        return index.tolist()

    def has_negatives(self) -> bool:
        """Whether some feature is negative."""
        return False

    def diagonal_statistic(self, statistic: Statistic) -> NDArray[np.float64]:
        """Return the statistic of every sample with itself."""
        return self.squared_norms(np.float64).astype(np.float64) if statistic == "dot" else np.zeros(self.n)


class FeatureSamples(Samples):
    """Samples that hold their features as numbers.

    Attributes
    ----------
    is_dense : bool
        Whether a panel is an array of features, one row per sample.
    """

    is_exactly_compared = False
    is_dense = False

    @property
    def feature_samples(self) -> FeatureSamples:
        return self

    @abstractmethod
    def combine(self, index: Index, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weight vector ``Xᵀ coefficients`` of the samples ``index``."""

    @abstractmethod
    def project(self, weights: NDArray[np.float64], start: int, stop: int) -> NDArray[np.float64]:
        """Return the dot products of the samples ``start`` to ``stop`` with a weight vector."""

    @abstractmethod
    def moments(self, index: Index, factors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of ``factor x xᵀ`` over the samples ``index``; its lower half counts."""

    @abstractmethod
    def feature_rows(self) -> FeatureRows:
        """Return the rows as `products.row_dot` takes them."""

    def let_go(self) -> None:
        """Rows that were visited need not stay in memory."""
