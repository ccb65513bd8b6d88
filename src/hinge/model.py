"""A trained machine: support vectors, coefficients and intercepts, frozen; it evaluates decisions in blocks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import is_sparse, sparse
from hinge.data.cancellation import comparison_of
from hinge.data.collection import Collection
from hinge.data.dense import DenseSamples
from hinge.data.given import RowKernel
from hinge.data.samples import Samples
from hinge.data.sparse import SparseSamples
from hinge.data.storage import DENSE_SHARE_OF_FEW, Reference, store
from hinge.data.structure import canonical, compact
from hinge.kernel.combination import Combination
from hinge.kernel.kernels import Kernel
from hinge.kernel.precision import ErrorInSingle
from hinge.kernel.tiles import Panel, Tiles
from hinge.kernel.weights import Weights, are_rounded_too_often
from hinge.runtime.interrupt import catching
from hinge.runtime.memory import default_cache_bytes
from hinge.runtime.threads import Team, blas_on_one_thread, lazy

# The error of a decision in single precision, as a share of the largest, beyond which it is made in double.
_ERROR_IN_SINGLE = 1e-4

# Decisions that are nearer to zero than this many times their error are made again in double precision.
_DOUBT = 10.0

# Where more than this share of the rows would be decided again in double, single precision saves no time.
_MOST_DOUBTFUL = 0.25

# Predictions that take less time, in seconds, are made in double: to justify single would take as long.
_WORTH_SINGLE = 1e-4


# CSR rows that are laid out dense: this many values at a time.
_MOST_DENSE = 1 << 24


def self_values(X: Any, kernel: Kernel, given: Any = None) -> NDArray[np.float64]:
    """Return k(x, x) of every row of X; of a precomputed kernel they are ``given``.

    Raises
    ------
    ValueError
        They are not given where they must be, or given where they need not be.
    """
    if (given is None) == kernel.is_precomputed:
        raise ValueError(
            "kernel='precomputed' needs diagonal=, the values k(x, x) of the samples"
            if kernel.is_precomputed
            else "diagonal= is for kernel='precomputed'; other kernels know k(x, x)"
        )
    if given is None:
        return kernel.of_self(store(X, kernel, budget=0))
    diagonal, n = np.asarray(given, dtype=np.float64), X.shape[0]
    if diagonal.shape != (n,) or not (diagonal >= 0).all():
        raise ValueError(f"diagonal must have a value that is not negative for each of the {n} samples")
    return diagonal


@dataclass(frozen=True, eq=False)
class Model:
    """One or several machines that share their support vectors: f(x) = Σ coefficient · k(s, x) + intercept.

    A sphere's decisions also depend on the length of x: they have own · k(x, x) added.

    Parameters
    ----------
    kernel : Kernel
        The kernel, with its parameters resolved to numbers.
    support_vectors : array or CSR matrix of shape (n_support, n_features)
        The support vectors; empty rows for a precomputed kernel, a `Collection` for a kernel function.
    support : int64 array of shape (n_support,)
        Their places among the training samples. A precomputed kernel finds its columns by them.
    coefficients : array or CSR matrix of shape (n_machines, n_support)
        Signed dual coefficients.
    intercepts : array of shape (n_machines,)
        One intercept a machine.
    own : float
        −1 for a sphere, else 0.

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
    coefficients: Any
    intercepts: NDArray[np.float64]
    own: float = 0.0

    def decide(
        self, X: Any, threads: int | None = None, signs: bool = False, diagonal: Any = None
    ) -> NDArray[np.float64]:
        """Return the decision value of every machine for every row of X, one column per machine.

        Parameters
        ----------
        X : array or CSR matrix
            Samples; for a precomputed kernel, their kernel values with all training samples, for a kernel function
            whatever it takes. float32 data is evaluated in single precision where that saves time, its error stays
            below a ten-thousandth of the decisions and cannot change a sign; all other data in double.
        threads : int, optional
            Number of threads; by default every core that this process may use.
        signs : bool
            Whether only the signs of the decisions are wanted: then all data is evaluated in single precision
            where that saves time and cannot change a sign.
        diagonal : array, optional
            k(x, x) of every row, which a sphere needs for a precomputed kernel.

        Returns
        -------
        array of shape (n_rows, n_machines)
            Decision values.

        Raises
        ------
        ValueError
            X is not finite, or so large that kernel values or decisions overflow.
        """
        if callable(self.kernel.name):
            X = Collection.of(X)
        if len(self.support) == 0 or X.shape[0] == 0:
            return np.tile(self.intercepts, (X.shape[0], 1))
        X = canonical(X) if is_sparse(X) else X
        with np.errstate(over="ignore", invalid="ignore"):
            sums = self._sums(X, threads, signs)
        if not np.isfinite(sums).all():
            row = int(np.argmin(np.isfinite(sums).all(axis=1)))
            raise ValueError(
                f"the decision values overflow, for row {row} of X for one: its values are far outside of what "
                "the machine was trained on"
            )
        decisions = sums + self.intercepts
        if self.own == 0:
            return decisions
        return decisions + self.own * self_values(X, self.kernel, diagonal)[:, None]

    def _sums(self, X: Any, threads: int | None, signs: bool) -> NDArray[np.float64]:
        """Σ coefficient · k(s, x) for every row of X and machine."""
        if self.kernel.is_precomputed:
            sums = np.zeros((X.shape[0], self.coefficients.shape[0]))
            self._combination.add(np.asarray(X, dtype=np.float64)[:, self.support], 0, sums)
            return sums
        if callable(self.kernel.name):
            return self._sums_of_called(RowKernel.of(self.kernel.name), X)
        if self.kernel.is_linear:
            return self._sums_by_weights(X)
        block = max(_MOST_DENSE // X.shape[1], 1) if is_sparse(X) and X.shape[1] else X.shape[0]
        if X.shape[0] > block and X.nnz > DENSE_SHARE_OF_FEW * X.shape[0] * X.shape[1]:
            parts = range(0, X.shape[0], block)
            return np.concatenate([self._sums(X[start : start + block], threads, signs) for start in parts])
        vectors, queries = self._reference.beside(X)
        may_be_single = X.dtype == np.float32 or (signs and vectors.storage not in self._doubted)
        is_plain = not is_sparse(self.coefficients) and self.own == 0
        if may_be_single and is_plain and self._is_worth_single(vectors, queries):
            in_single = self._sums_in_single(vectors, queries, threads, signs)
            if in_single is not None:
                return in_single
        return self._visit(vectors, queries, np.dtype(np.float64), threads)

    def _is_worth_single(self, vectors: Samples, queries: Samples) -> bool:
        tiles = self._tiles(vectors, np.dtype(np.float64))
        return not tiles.looks_up and tiles.seconds(vectors.n * queries.n) > _WORTH_SINGLE

    def _sums_of_called(self, function: RowKernel, X: Collection) -> NDArray[np.float64]:
        vectors = Collection.of(self.support_vectors)
        sums = np.zeros((X.shape[0], self.coefficients.shape[0]))
        for piece, values in function.blocks(X, vectors, default_cache_bytes()):
            self._combination.add(values.astype(np.float64, copy=False), 0, sums[piece])
        return sums

    def _sums_in_single(
        self, vectors: Samples, queries: Samples, threads: int | None, signs: bool
    ) -> NDArray[np.float64] | None:
        """As `_sums`, where single precision is good enough; None elsewhere."""
        error = self._errors(vectors).beside(queries)
        if not np.isfinite(error).all():
            return None
        sums = self._visit(vectors, queries, np.dtype(np.float32), threads)
        decisions = sums + self.intercepts
        # Neither the sums nor what the intercepts leave of them may be of the size of the error.
        largest = np.minimum(np.abs(sums).max(axis=0), np.abs(decisions).max(axis=0))
        if not (np.isfinite(sums).all() and (signs or (error <= _ERROR_IN_SINGLE * largest).all())):
            return None
        near = np.flatnonzero((np.abs(decisions) <= _DOUBT * error).any(axis=1))
        if len(near) > _MOST_DOUBTFUL * queries.n:
            self._doubted.add(vectors.storage)
        if len(near):  # the sign of a decision is not left to rounding
            sums[near] = self._visit(vectors, queries.take(near, np.float64), np.dtype(np.float64), threads)
        return sums

    def _visit(
        self, vectors: Samples, queries: Samples, dtype: np.dtype[Any], threads: int | None
    ) -> NDArray[np.float64]:
        """As `_sums`, with kernel values in ``dtype``: panels of queries against ranges of support vectors.

        Threads share the queries, or the support vectors where queries are no more than a panel.
        """
        tiles, combination, team = self._tiles(vectors, dtype), self._combination, Team(threads)
        n_machines = self.coefficients.shape[0]

        def add(panel: Panel, start: int, stop: int, sums: NDArray[np.float64]) -> None:
            width = max(tiles.width, tiles.height * tiles.width // len(sums))
            for first in range(start, stop, width):
                team.check()
                tile = tiles.values(panel, first, min(first + width, stop))
                with np.errstate(over="ignore", invalid="ignore"):  # `decide` of all looks at the sums
                    combination.add(tile, first, sums)

        seconds = tiles.seconds(vectors.n * queries.n) + combination.seconds(queries.n)
        with catching(), blas_on_one_thread():
            if queries.n <= tiles.height:
                panel = tiles.panel(np.arange(queries.n), queries)
                parts: dict[int, NDArray[np.float64]] = {}

                def add_part(start: int, stop: int) -> None:
                    parts[start] = np.zeros((queries.n, n_machines))
                    add(panel, start, stop, parts[start])

                team.share(vectors.n, team.block(vectors.n, seconds), add_part, seconds)
                return np.add.reduce([parts[start] for start in sorted(parts)])
            sums = np.zeros((queries.n, n_machines))
            tiles.panel(np.arange(1), queries)  # what is made of all queries is made once, not by every thread

            def decide(start: int, stop: int) -> None:
                add(tiles.panel(np.arange(start, stop), queries), 0, vectors.n, sums[start:stop])

            team.share(queries.n, tiles.height, decide, seconds)
        return sums

    def _tiles(self, vectors: Samples, dtype: np.dtype[Any]) -> Tiles:
        tiles = self._kept_tiles.get(dtype)
        if tiles is None or tiles.samples is not vectors:
            tiles = Tiles(vectors, self.kernel, dtype, comparison_of(vectors, self.kernel))
            self._kept_tiles[dtype] = tiles
        return tiles

    def _errors(self, vectors: Samples) -> ErrorInSingle:
        errors = self._kept_errors.get(vectors.storage)
        if errors is None or errors.vectors is not vectors:
            errors = ErrorInSingle(vectors, self.kernel, self.coefficients)
            self._kept_errors[vectors.storage] = errors
        return errors

    # What depends on the model alone is made at its first use and kept; copies and files are without it.

    @lazy
    def _reference(self) -> Reference:
        return Reference(self.support_vectors, self.kernel)

    @lazy
    def _combination(self) -> Combination:
        return Combination(self.coefficients)

    @lazy
    def _doubted(self) -> set[str]:
        """Storages of the support vectors in which single precision leaves too many signs open."""
        return set()

    @lazy
    def _kept_errors(self) -> dict[str, ErrorInSingle]:
        return {}

    @lazy
    def _kept_tiles(self) -> dict[np.dtype[Any], Tiles]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def weights(self) -> Any:
        """Return the weight vectors of linear machines, one row per machine: CSR where the support vectors are."""
        if not self.kernel.is_linear:
            raise ValueError(f"only a linear machine has a weight vector; this kernel is {self.kernel.label}")
        return self._weights

    @lazy
    def _weights(self) -> Any:
        vectors = self._vectors
        if not is_sparse(vectors):
            weights = self._combined(vectors, np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
            weights.flags.writeable = False
            return weights
        columns, (narrow,) = compact(vectors)
        weights = self._combined(narrow, np.asarray(narrow.astype(np.float64).power(2).sum(axis=1)).ravel())
        weights.sort_indices()
        if columns is not None:
            shape = self.coefficients.shape[0], vectors.shape[1]
            weights = type(vectors)((weights.data, columns[weights.indices], weights.indptr), shape=shape)
        weights.data.flags.writeable = False
        return weights

    def _combined(self, vectors: Any, squared_norms: NDArray[np.float64]) -> Any:
        """Σ coefficient · x for every machine, in the container of ``vectors``."""
        container = type(vectors) if is_sparse(vectors) else np.asarray
        coefficients = self.coefficients
        if not are_rounded_too_often(coefficients, squared_norms):
            return (coefficients if container is np.asarray else container(coefficients)) @ vectors
        samples = DenseSamples(vectors) if container is np.asarray else SparseSamples.of(vectors)
        rows = coefficients.toarray() if is_sparse(coefficients) else coefficients
        return container(np.array([Weights(samples, Team(1)).sharp(row).sum(axis=0) for row in rows]))

    @lazy
    def _vectors(self) -> Any:
        vectors = self.support_vectors
        return canonical(vectors) if is_sparse(vectors) else vectors

    def _sums_by_weights(self, X: Any) -> NDArray[np.float64]:
        weights = self._weights
        if is_sparse(weights):
            columns, (narrow, X) = compact(sparse().csr_array(weights), sparse().csr_array(X))
            weights = self._weights_in_full if columns is None else narrow.toarray()
        return np.asarray(X @ weights.T, dtype=np.float64)

    @lazy
    def _weights_in_full(self) -> NDArray[np.float64]:
        return np.asarray(self._weights.toarray())
