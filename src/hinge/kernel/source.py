"""Where kernel values come from: samples, a kernel, and what it compares them by.

A source knows how exact its values are. It bounds the error that rounding makes in ``Kβ``, and computes ``Kβ`` to
twice the digits of a double where that error matters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hinge.arrays import Floats, Index, Vector
from hinge.data.samples import FeatureSamples, Samples, Statistic
from hinge.kernel.image import image
from hinge.kernel.kernels import Kernel
from hinge.kernel.rounding import UNIT, operations_of, rounding_of_decaying_image, rounding_of_image, sizes_of
from hinge.kernel.sharp import Pairs, seconds_of, sharp_image, sharp_projection, sharp_weights
from hinge.kernel.tiles import Tiles
from hinge.runtime.threads import Team, blas_on_one_thread, lazy

# Largest error of an exponent at which kernel values still tell how large they are.
_SMALL_IN_EXPONENT = 0.01


class Source:
    """Samples as one kernel compares them.

    Parameters
    ----------
    samples : Samples
        The samples, stored.
    kernel : Kernel
        The kernel function.
    statistic : str
        What samples are compared by; not the kernel's own where that would round too much.
    diagonal : array of float64
        k(x, x) of every sample.
    """

    def __init__(self, samples: Samples, kernel: Kernel, statistic: Statistic, diagonal: Vector) -> None:
        self.samples, self.kernel, self.statistic, self.diagonal = samples, kernel, statistic, diagonal
        self._sizes: dict[Statistic, Vector] = {}

    @property
    def features(self) -> FeatureSamples | None:
        """The samples, where the kernel is linear in their features, so that there is a weight vector."""
        return self.samples.feature_samples if self.kernel.is_linear else None

    @lazy
    def lengths(self) -> Vector:
        """√|k(x, x)| of every sample."""
        return np.asarray(np.sqrt(np.abs(self.diagonal)))

    @lazy
    def magnitude(self) -> float:
        """The largest |k(x, x)|."""
        return float(np.abs(self.diagonal).max())

    def take(self, index: Index, dtype: Any) -> Source:
        """Return the samples ``index``, to be compared in ``dtype``: copies, unless they lie apart."""
        return Source(self.samples.view(index, dtype), self.kernel, self.statistic, self.diagonal[index])

    def tiles(self, dtype: Any, index: Index | None = None) -> Tiles:
        """Return tiles of kernel values whose columns are all samples, or those in ``index``."""
        samples = self.samples
        if index is None and samples.is_apart:
            index = np.arange(samples.n)
        if index is not None:
            samples = samples.take(index, dtype)
        return Tiles(samples, self.kernel, dtype, self.statistic)

    def between(self, rows: Index, columns: Index, dtype: Any) -> Floats:
        """Return ``K[rows, columns]``, computed on this thread."""
        tiles, values = self.tiles(dtype, columns), np.empty((len(rows), len(columns)), dtype)
        samples = self.samples
        if samples.is_apart:
            samples, rows = samples.take(rows, dtype), np.arange(len(rows))
        with blas_on_one_thread():
            for piece in tiles.pieces(len(rows)):
                tiles.fill(tiles.panel(rows[piece], samples), 0, len(columns), values[piece])
        return values

    def image(self, coefficients: Vector, rows: Index | None, dtype: Any, team: Team) -> tuple[Vector, int]:
        """Return ``K[rows] @ coefficients``, and how many kernel values were computed for it."""
        if not self.samples.is_apart:
            return image(self, coefficients, rows, dtype, team)
        support = np.flatnonzero(coefficients)
        values = self._sums("image", support, coefficients[support], rows, dtype, team)
        return values, len(support) * len(values)

    def _sums(
        self, question: str, support: Index, factors: Vector, rows: Index | None, dtype: Any, team: Team
    ) -> Any:
        function = self.kernel, self.statistic
        return self.samples.image(question, function, support, factors, rows, dtype, lambda: team.cancelled())

    def rounding(self, coefficients: Vector, sharp: bool, places: Index | None) -> Vector:
        """Bound the error of ``K @ coefficients`` of the samples ``places``: in double precision, or sharp."""
        sizes, operations = self._sizes_and_operations(coefficients, sharp, places)
        magnitudes = np.abs(coefficients)
        if self.kernel.decays:
            sums = float(magnitudes.sum()), float(np.dot(magnitudes, sizes - 1.0))
            bound = rounding_of_decaying_image(sizes, operations, *sums)
        else:
            bound = rounding_of_image(sizes, operations, coefficients)
        return 4.0 * sum(operations) * UNIT * bound if sharp else bound

    def error_terms(self, places: Index | None) -> tuple[Vector, float, bool]:
        """Return what `rounding` follows from: sizes, κ of a kernel value, whether sizes are of an exponent."""
        sizes, (operations, _) = self._sizes_and_operations(np.empty(0), False, places)
        return sizes, float(operations), self.kernel.decays

    def closer_rounding(
        self, coefficients: Vector, places: Index | None, rows: Index, product: Callable[[Vector, Index], Vector]
    ) -> Vector:
        """As `rounding`, of the samples ``rows``, by ``product`` with kernel values where that says more."""
        sizes, operations = self._sizes_and_operations(coefficients, False, places)
        of_exponent = 2.0 * UNIT * operations[0] * float(sizes.max(initial=0.0))
        if not self.kernel.decays or not of_exponent <= _SMALL_IN_EXPONENT:
            return self.rounding(coefficients, False, places)[rows]
        magnitudes = np.abs(coefficients)
        masses = product(magnitudes, rows), product(magnitudes * (sizes - 1.0), rows)
        return (1.0 + 2.0 * _SMALL_IN_EXPONENT) * rounding_of_decaying_image(sizes[rows], operations, *masses)

    def _sizes_and_operations(
        self, coefficients: Vector, sharp: bool, places: Index | None
    ) -> tuple[Vector, tuple[float, float]]:
        """Sizes of samples, and counts of operations, as `hinge.kernel.rounding` defines them."""
        statistic = (self.kernel.by_differences if sharp else None) or self.statistic
        if statistic not in self._sizes:
            self._sizes[statistic] = sizes_of(self.samples, self.kernel, statistic, self.diagonal)
        sizes = self._sizes[statistic] if places is None else self._sizes[statistic][places]
        return sizes, operations_of(self.samples, self.kernel, int(np.count_nonzero(coefficients)))

    def sharp_seconds(self, n_values: int) -> float:
        """Guess how long one thread takes for `sharp_product` of this many kernel values."""
        return 0.0 if self.features is not None else seconds_of(self.samples, n_values)

    def sharp_product(self, support: Index, factors: Vector, rows: Index, team: Team) -> Pairs:
        """Return ``K[rows, support] @ factors`` to twice the digits of a double: the sum of two lines."""
        if self.samples.is_apart:
            return self._sums("sharp_image", support, factors, rows, np.float64, team)
        if self.features is None:
            return sharp_image(self.samples, self.kernel, support, factors, rows, team)
        return sharp_projection(self.features, sharp_weights(self.features, support, factors), rows)
