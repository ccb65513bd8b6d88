"""The weight vector of a linear kernel: what kernel values are not needed for (Platt section 2.4)."""

from __future__ import annotations

import numpy as np

from hinge.arrays import FeatureRows, Floats, Index, Vector
from hinge.data.layout import LAYOUT
from hinge.data.samples import FeatureSamples
from hinge.kernel.rounding import UNIT
from hinge.kernel.sharp import Pairs, sharp_projection, sharp_weights
from hinge.runtime.threads import Team

# Error of decisions, which are 1 at the margin, that the rounding of sums may cause.
_FELT = 1e-8


def are_rounded_too_often(coefficients: Floats, squared_norms: Floats) -> bool:
    """Whether sums ``Σ coefficient · x`` in double precision would be felt in decisions of the same samples.

    Rounding errors add up like a random walk: to about u √n Σ|coefficient| ‖x‖, where u is half a unit in
    the last place.

    Parameters
    ----------
    coefficients : array of shape (n,) or (n_machines, n)
        The coefficients.
    squared_norms : array of shape (n,)
        ‖x‖² of their samples.

    Examples
    --------
    >>> are_rounded_too_often(np.array([1.0, -1.0]), np.array([2.0, 3.0]))
    False
    >>> are_rounded_too_often(np.array([1.0, -1.0]), np.array([1e13, 3.0]))
    True
    """
    norms = np.sqrt(squared_norms, dtype=np.float64)
    error = UNIT * np.sqrt(len(norms)) * (np.abs(coefficients) @ norms) * norms.max(initial=0.0)
    return bool(np.max(error, initial=0.0) > _FELT)


class Weights:
    """Weight vectors ``w = Xᵀβ`` of samples whose features are there, and their products with samples.

    Parameters
    ----------
    samples : FeatureSamples
        The rows of X.
    team : Team
        The threads.

    Examples
    --------
    >>> from hinge.data.dense import DenseSamples
    >>> weights = Weights(DenseSamples(np.array([[1.0, 0.0], [2.0, 1.0]])), Team(1))
    >>> weights.of(np.array([0.5, 1.0]))
    array([2.5, 1. ])
    >>> weights.project(weights.of(np.array([0.5, 1.0])))
    array([2.5, 6. ])
    """

    def __init__(self, samples: FeatureSamples, team: Team) -> None:
        self._samples, self._team = samples, team
        self.n_features = samples.n_features
        self.most_visited, self.let_go = samples.most_visited, samples.let_go

    def of(self, coefficients: Vector) -> Vector:
        """Return ``Xᵀ coefficients``."""
        support = np.flatnonzero(coefficients)
        return self._samples.combine(support, coefficients[support])

    def sharp(self, coefficients: Vector) -> Pairs:
        """As `of`, to twice the digits of a double: the sum of two lines."""
        support = np.flatnonzero(coefficients)
        return sharp_weights(self._samples, support, coefficients[support])

    def rounded_once(self, coefficients: Vector) -> Vector:
        """As `of`, for whoever keeps the weights and not the coefficients: as exact as decisions can feel."""
        support = np.flatnonzero(coefficients)
        norms = self._samples.squared_norms(np.float64)[support]
        if are_rounded_too_often(coefficients[support], norms):
            return np.asarray(self.sharp(coefficients).sum(axis=0))
        return self.of(coefficients)

    def project(self, weights: Vector) -> Vector:
        """Return ``X weights``."""
        image = np.empty(self._samples.n)

        def work(start: int, stop: int) -> None:
            image[start:stop] = self._samples.project(weights, start, stop)

        self._team.share(self._samples.n, LAYOUT.read_rows, work)
        return image

    def project_sharply(self, weights: Vector) -> Vector:
        """As `project`, to the last digit of a double."""
        image = np.empty(self._samples.n)

        def work(start: int, stop: int) -> None:
            pair = np.stack([weights, np.zeros_like(weights)])
            image[start:stop] = sharp_projection(self._samples, pair, np.arange(start, stop)).sum(axis=0)

        self._team.share(self._samples.n, LAYOUT.read_rows, work)
        return image

    def image(self, index: Index, step: Vector) -> Vector:
        """Return ``K[:, index] @ step``, which is ``X (X[index]ᵀ step)``."""
        return self.project(self._samples.combine(index, step))

    def moments(self, index: Index, factors: Vector) -> Vector:
        """Return ``Σ factor x xᵀ`` over the samples ``index``; its lower half counts."""
        return self._samples.moments(index, factors)

    def dense_rows(self, index: Index) -> Floats:
        """Return the samples ``index`` with all their features, in double precision."""
        exact, places = self._samples.exact_rows_of(index)
        if exact.values.ndim == 2:
            return exact.values[places].astype(np.float64)
        dense = np.zeros((len(places), self.n_features))
        for row, place in zip(dense, places.tolist(), strict=True):
            part = slice(exact.indptr[place], exact.indptr[place + 1])
            row[exact.indices[part]] = exact.values[part]
        return dense

    def rows(self) -> FeatureRows:
        """Return the samples for `hinge.data.products.row_dot`."""
        return self._samples.feature_rows()
