"""Kernels: small values that turn comparisons of samples into kernel values, in place, tile by tile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hinge.arrays import Floats
from hinge.data.given import CalledKernel
from hinge.data.samples import Samples, Statistic
from hinge.data.storage import as_samples, given_gram
from hinge.data.structure import canonical
from hinge.kernel.exponential import exp32, exp64
from hinge.runtime.jit import compiled_exactly

KERNELS = ("linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "precomputed")

_STATISTIC: dict[str, Statistic] = {"laplacian": "l1", "chi2": "chi2", "precomputed": "value", "callable": "value"}


@dataclass(frozen=True)
class Kernel:
    """A kernel function with its parameters.

    Parameters
    ----------
    name : str or callable
        ``"linear"`` x·y; ``"poly"`` (γ x·y + c)^d; ``"rbf"`` exp(−γ‖x − y‖²); ``"sigmoid"`` tanh(γ x·y + c);
        ``"laplacian"`` exp(−γ Σ|x − y|); ``"chi2"`` exp(−γ Σ(x − y)²/(x + y)) for features that are not
        negative; ``"precomputed"``: the data *is* the kernel matrix. A callable takes two sets of rows and
        returns the matrix of their kernel values.
    gamma : float
        γ above.
    coef0 : float
        c above.
    degree : int
        d above.

    Examples
    --------
    >>> Kernel("rbf", gamma=0.5).matrix(np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    name: str | Callable[[Any, Any], Any]
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3

    def __post_init__(self) -> None:
        if not callable(self.name) and self.name not in KERNELS:
            known = ", ".join(KERNELS)
            raise ValueError(f"unknown kernel {self.name!r}; known are {known}, or a function of two sets of rows")
        if not (np.isfinite(self.gamma) and self.gamma >= 0):
            raise ValueError(f"gamma must be a finite number that is not negative, got {self.gamma}")
        if not np.isfinite(self.coef0):
            raise ValueError(f"coef0 must be finite, got {self.coef0}")
        if self.degree < 0 or self.degree != int(self.degree):
            raise ValueError(f"degree must be a whole number that is not negative, got {self.degree}")

    @property
    def label(self) -> str:
        """The kernel's name, "callable" for a function."""
        return self.name if isinstance(self.name, str) else "callable"

    @property
    def statistic(self) -> Statistic:
        """What two samples are compared by."""
        return _STATISTIC.get(self.label, "dot")

    @property
    def decays(self) -> bool:
        """Whether the kernel is e^(−γd) of some distance d."""
        return self.label in ("rbf", "laplacian", "chi2")

    @property
    def is_positive(self) -> bool:
        """Whether the kernel is known to be positive semi-definite, so that it has a weight vector."""
        if self.label == "poly":
            return self.coef0 >= 0
        return self.label in ("linear", "rbf", "laplacian", "chi2")

    def store(self, X: Any, skip_zeros: bool = True) -> Samples:
        """Choose the storage in which this kernel compares the rows of X; see `as_samples` for ``skip_zeros``."""
        if self.label == "precomputed":
            return given_gram(X)
        if callable(self.name):
            rows = X if hasattr(X, "shape") else np.asarray(X)
            rows = canonical(rows) if sp.issparse(rows) else rows
            return CalledKernel(rows, self.name, np.arange(rows.shape[0]))
        # A weight vector needs the features themselves.
        samples = as_samples(X, pack=self.label != "linear", skip_zeros=skip_zeros)
        self.check(samples)
        return samples

    def check(self, samples: Samples) -> None:
        """Raise ValueError if this kernel is not defined for the samples."""
        if self.label == "chi2" and samples.has_negatives():
            raise ValueError("the chi2 kernel needs features that are not negative; shift or rescale X first")

    def apply(self, tile: Floats, row_norms: Floats, column_norms: Floats, from_distance: bool = False) -> None:
        """Turn the comparisons in ``tile`` into kernel values, in place.

        ``from_distance``: the comparisons of an RBF kernel are squared distances, not dot products.
        """
        label, kind = self.label, tile.dtype.type
        gamma, coef0 = kind(self.gamma), kind(self.coef0)
        if label in ("laplacian", "chi2") or from_distance:
            _decay(tile, gamma)
        elif label == "rbf":
            _rbf(tile, row_norms, column_norms, gamma)
        elif label == "poly":
            _poly(tile, gamma, coef0, int(self.degree))
        elif label == "sigmoid":
            _sigmoid(tile, gamma, coef0)

    def of_self(self, samples: Samples) -> NDArray[np.float64]:
        """Return k(x, x) for every sample, in double precision."""
        if self.decays:
            return np.ones(samples.n)
        tile = samples.diagonal_statistic(self.statistic).reshape(-1, 1)
        no_norms = np.zeros(1)
        with np.errstate(over="ignore"):
            self.apply(tile, no_norms, no_norms)
        return tile.ravel()

    def matrix(self, X: Any) -> NDArray[np.float64]:
        """Return the whole kernel matrix of X in double precision, for small data and for tests."""
        samples = self.store(X)
        everyone = np.arange(samples.n)
        tile = np.empty((samples.n, samples.n))
        samples.compare(self.statistic, samples.panel(everyone, np.float64), 0, samples.n, tile)
        norms = samples.squared_norms(np.float64)
        self.apply(tile, norms, norms)
        return tile


@compiled_exactly
def _exp(like: Any, x: Any) -> Any:
    # The type of `like` is known when this is compiled, so that only one branch remains.
    return exp32(x) if like.itemsize == 4 else exp64(x)


@compiled_exactly
def _rbf(tile: Any, row_norms: Any, column_norms: Any, gamma: Any) -> None:
    zero = tile.dtype.type(0)
    for w in range(tile.shape[0]):
        row, norm = tile[w], row_norms[w]
        for t in range(row.shape[0]):
            exponent = gamma * (row[t] + row[t] - norm - column_norms[t])
            if exponent > zero:  # rounding; no two samples are closer than 0
                exponent = zero
            row[t] = _exp(tile, exponent)


@compiled_exactly
def rbf_of_few_features(panel: Any, features: Any, gamma: Any, out: Any) -> None:
    """RBF values of samples with few features, where a matrix product would cost more than it computes.

    ``panel[w]`` holds the features of a row and ``features[f]`` feature f of all columns, a multiple of four of
    them. Differences are squared, four features at a time: no large norms cancel, and it takes no longer.
    """
    for w in range(out.shape[0]):
        row, mine = out[w], panel[w]
        for k in range(0, features.shape[0], 4):
            a, b, c, d = features[k], features[k + 1], features[k + 2], features[k + 3]
            xa, xb, xc, xd = mine[k], mine[k + 1], mine[k + 2], mine[k + 3]
            for t in range(row.shape[0]):
                ya, yb, yc, yd = xa - a[t], xb - b[t], xc - c[t], xd - d[t]
                distance = ya * ya + yb * yb + yc * yc + yd * yd
                row[t] = distance if k == 0 else row[t] + distance
        for t in range(row.shape[0]):  # a loop of its own, or neither would vectorise
            row[t] = _exp(out, -gamma * row[t])


@compiled_exactly
def _decay(tile: Any, gamma: Any) -> None:
    for w in range(tile.shape[0]):
        row = tile[w]
        for t in range(row.shape[0]):
            row[t] = _exp(tile, -gamma * row[t])


@compiled_exactly
def _sigmoid(tile: Any, gamma: Any, coef0: Any) -> None:
    one = tile.dtype.type(1)
    for w in range(tile.shape[0]):
        row = tile[w]
        for t in range(row.shape[0]):
            z = gamma * row[t] + coef0
            e = _exp(tile, -abs(z + z))  # tanh|z| = (1 - e^-2|z|) / (1 + e^-2|z|)
            value = (one - e) / (one + e)
            row[t] = value if z >= 0 else -value


@compiled_exactly
def _poly(tile: Any, gamma: Any, coef0: Any, degree: int) -> None:
    base = np.empty(tile.shape[1], tile.dtype)
    for w in range(tile.shape[0]):
        row = tile[w]
        for t in range(row.shape[0]):
            base[t] = gamma * row[t] + coef0
            row[t] = tile.dtype.type(1)
        for _ in range(degree):
            for t in range(row.shape[0]):
                row[t] *= base[t]
