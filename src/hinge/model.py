"""A trained machine: support vectors, coefficients and intercepts, frozen; it evaluates decisions in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hinge.given import CalledKernel
from hinge.intake import as_csr, as_samples
from hinge.kernels import Kernel
from hinge.precision import cancels
from hinge.samples import BitSamples, DenseSamples, Floats, Samples, SparseSamples
from hinge.threads import Team, blas_on_one_thread
from hinge.tiles import Tiles


@dataclass(frozen=True, eq=False)
class Model:
    """One or several machines that share their support vectors: f(x) = Σ coefficient · k(s, x) + intercept.

    Parameters
    ----------
    kernel : Kernel
        The kernel, with its parameters resolved to numbers.
    support_vectors : array or CSR matrix of shape (n_support, n_features)
        The support vectors; empty rows for a precomputed kernel.
    support : int64 array of shape (n_support,)
        Their places among the training samples. A precomputed kernel finds its columns by them.
    coefficients : array of shape (n_machines, n_support)
        Signed dual coefficients.
    intercepts : array of shape (n_machines,)
        One intercept a machine.

    Examples
    --------
    >>> model = Model(Kernel("linear"), np.array([[1.0], [2.0]]), np.array([1, 2]),
    ...               np.array([[-2.0, 2.0]]), np.array([-3.0]))
    >>> model.decide(np.array([[0.0], [3.0]]))
    array([[-3.],
           [ 3.]])
    """

    kernel: Kernel
    support_vectors: Any
    support: NDArray[np.int64]
    coefficients: NDArray[np.float64]
    intercepts: NDArray[np.float64]

    def decide(self, X: Any, threads: int | None = None) -> NDArray[np.float64]:
        """Return the decision value of every machine for every row of X, one column a machine.

        Parameters
        ----------
        X : array or CSR matrix
            Samples; for a precomputed kernel, their kernel values with all training samples. float32 data is
            evaluated in single precision, all other data in double.
        threads : int, optional
            Number of threads; by default every core that this process may use.

        Returns
        -------
        array of shape (n_rows, n_machines)
            Decision values.
        """
        if self.kernel.label == "precomputed":
            return np.asarray(X, dtype=np.float64)[:, self.support] @ self.coefficients.T + self.intercepts
        n = X.shape[0]
        decisions = np.tile(self.intercepts, (n, 1))
        if len(self.support) == 0 or n == 0:
            return decisions
        if self.kernel.label == "linear":
            return self._decide_by_weights(X)
        dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        vectors, queries = _alike(self.kernel, self.support_vectors, X)
        tiles = Tiles(queries, self.kernel, dtype)
        coefficients = self.coefficients.astype(dtype)
        team = Team(1 if isinstance(queries, CalledKernel) else threads)

        def add(start: int, stop: int, tile: Floats, piece: slice) -> None:
            decisions[start:stop] += tile.T @ coefficients[:, piece].T

        with blas_on_one_thread():
            tiles.visit(np.arange(vectors.n), team, add, vectors)
        return decisions

    def weights(self) -> NDArray[np.float64]:
        """Return the weight vectors of a linear machine, one row a machine."""
        if self.kernel.label != "linear":
            raise ValueError(f"only a linear machine has a weight vector; this kernel is {self.kernel.label}")
        return np.asarray((sp.csr_array(self.coefficients) @ self.support_vectors).toarray()
                          if sp.issparse(self.support_vectors)
                          else self.coefficients @ self.support_vectors)  # fmt: skip

    def _decide_by_weights(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(X @ self.weights().T, dtype=np.float64) + self.intercepts


def _alike(kernel: Kernel, first: Any, second: Any) -> tuple[Samples, Samples]:
    """Store both sets of rows in the same way, so that one can be compared with the other."""
    if callable(kernel.name):
        return CalledKernel(first, kernel.name), CalledKernel(second, kernel.name)
    if is_sparse := sp.issparse(first) or sp.issparse(second):
        first, second = as_csr(first), as_csr(second)
    vectors, queries = as_samples(first), as_samples(second)
    if isinstance(vectors, BitSamples) and isinstance(queries, BitSamples):
        return vectors, queries
    if is_sparse:
        return SparseSamples.of(first), SparseSamples.of(second)
    if isinstance(vectors, SparseSamples) and isinstance(queries, SparseSamples) and not cancels(vectors, kernel):
        return vectors, queries
    rows: list[Floats] = [np.asarray(part) for part in (first, second)]
    center = rows[0].mean(axis=0, dtype=np.float64) if kernel.label == "rbf" else None
    return DenseSamples(rows[0], center), DenseSamples(rows[1], center)
