"""The Gram matrix: kernel values on demand, in tiles, behind a row cache.

Solvers ask three questions: the `diagonal`; `block`, the square matrix of a working set; and `update`, which
subtracts ``K[:, W] δ`` from the residual. Kernel values are computed in tiles that stay in the processor's
cache: the comparison of samples, the kernel function and the use of the values follow each other at once, and
nothing is stored that the row cache does not want. Threads share the columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hinge import accumulate
from hinge.cache import RowCache
from hinge.kernels import Kernel
from hinge.memory import default_cache_bytes
from hinge.precision import choose_precision
from hinge.samples import BitSamples, CalledKernel, DenseSamples, Floats, Index, Samples, SparseSamples
from hinge.threads import Team, blas_on_one_thread

Precision = Literal["auto", "single", "double"]

# A tile of 128 x 1024 float32 values takes half a megabyte: it stays in the second-level cache of any current
# processor while the kernel function runs over it, and the matrix product is large enough to be efficient.
TILE_ROWS = 128
TILE_COLUMNS = 1024

# Up to this many multiply-adds a value, computing again beats storing: a first touch of memory costs as much as
# computing the row a dozen times. A row is then kept only after this many uses.
CHEAP_COST = 64.0
USES_BEFORE_KEPT = 6


@dataclass
class Counts:
    """What the Gram matrix did: the papers measure solvers by it.

    Attributes
    ----------
    evaluations : int
        Kernel values computed.
    hits, misses : int
        Rows that the cache had, and had not, when they were needed.
    bytes : int
        Most bytes of rows held at one time.
    """

    evaluations: int = 0
    hits: int = 0
    misses: int = 0
    bytes: int = 0


class Gram:
    """Kernel values between the samples of one data set.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        The data; for a precomputed kernel the kernel matrix itself.
    kernel : Kernel
        The kernel function.
    cache_bytes : int, optional
        Budget of the row cache. By default a quarter of the free memory; it is touched only as it is used.
    precision : {"auto", "single", "double"}
        Type of the kernel values that steps are computed from. Residuals are always double.
    threads : int, optional
        Number of threads; by default every core that this process may use.

    Attributes
    ----------
    n : int
        Number of samples.
    diagonal : array of float64
        k(x, x) of every sample.
    counts : Counts
        Evaluations, hits, misses, bytes.

    Examples
    --------
    >>> gram = Gram(np.array([[0.0], [0.5], [3.0]]), Kernel("linear"))
    >>> gram.block(np.array([1, 2]))
    array([[0.25, 1.5 ],
           [1.5 , 9.  ]], dtype=float32)
    >>> residual = np.ones(3)
    >>> gram.update(residual, np.array([2]), np.array([0.5]))
    >>> residual
    array([ 1.  ,  0.25, -3.5 ])
    """

    def __init__(
        self,
        X: Any,
        kernel: Kernel,
        *,
        cache_bytes: int | None = None,
        precision: Precision = "auto",
        threads: int | None = None,
    ) -> None:
        if cache_bytes is not None and cache_bytes <= 0:
            raise ValueError(f"cache_bytes must be positive, got {cache_bytes}")
        samples = kernel.store(X)
        if samples.n == 0:
            raise ValueError("X has no rows: at least one sample is needed")
        if kernel.label == "rbf" and isinstance(samples, DenseSamples):
            samples = samples.centered()
        self.cache_bytes = default_cache_bytes() if cache_bytes is None else int(cache_bytes)
        self.team = Team(1 if isinstance(samples, CalledKernel) else threads)
        self.counts = Counts()
        self.is_single_by_wish = precision == "single"
        self._workspace: Floats = np.empty(0, np.float32)
        self.diagonal = kernel.of_self(samples)
        if not np.isfinite(self.diagonal).all():
            raise ValueError("kernel values overflow; scale the features, or lower degree, gamma or coef0")
        choice = choose_precision(samples, kernel, self.diagonal, precision)
        if choice.statistic == "l2":
            samples = kernel.store(X)  # differences need no centre, and moving to it would round
        self._set(samples, kernel, choice.dtype, choice.statistic)

    def _set(self, samples: Samples, kernel: Kernel, dtype: Any, statistic: Any) -> None:
        self.samples = samples
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.n = samples.n
        self.statistic = statistic
        self.through_weights = kernel.label == "linear" and isinstance(samples, DenseSamples | SparseSamples)
        self.is_cheap = samples.cost <= CHEAP_COST
        self.magnitude = float(np.abs(self.diagonal).max())
        self._norms = {np.dtype(np.float64): samples.squared_norms(np.float64)}
        if self.dtype == np.float32:
            self._norms[self.dtype] = samples.squared_norms(np.float32).astype(np.float32)
        self._table: Floats | None = None  # in double precision the exponential costs more than a look-up
        if kernel.label == "rbf" and isinstance(samples, BitSamples):
            self._table = np.exp(-kernel.gamma * np.arange(samples.n_features + 1.0))
        self._cache: RowCache | None = None
        self._uses = np.zeros(self.n, dtype=np.int32)

    def _share_with(self, other: Gram) -> None:
        self.cache_bytes, self.team, self.counts = other.cache_bytes, other.team, other.counts
        self.is_single_by_wish = other.is_single_by_wish
        self._workspace = other._workspace

    @property
    def precision(self) -> str:
        """Type of the kernel values: "single" or "double"."""
        return "single" if self.dtype == np.float32 else "double"

    @property
    def cache(self) -> RowCache:
        """The row cache; created when the first row is kept."""
        if self._cache is None:
            self._cache = RowCache(self.n, self.n, self.dtype, self.cache_bytes)
        return self._cache

    # ------------------------------------------------------------------ what solvers ask

    def block(self, index: Index) -> Floats:
        """Return the kernel matrix of the samples ``index``; the next call overwrites it."""
        index = np.asarray(index, dtype=np.int64)
        if not self.is_cheap and 2 * len(index) <= self.cache.capacity:
            slots = self.rows(index)
            values = self._scratch(len(index))
            self.team.share(
                len(index),
                TILE_ROWS,
                lambda start, stop: accumulate.gather(
                    self.cache.rows, slots[start:stop], index, values[start:stop]
                ),
            )
            return values
        return self._computed_block(index)

    def update(self, residual: NDArray[np.float64], index: Index, step: NDArray[np.float64]) -> None:
        """Subtract ``K[:, index] @ step`` from ``residual``, all of it or (when cancelled) nothing."""
        index = np.asarray(index, dtype=np.int64)
        with blas_on_one_thread():
            if self.through_weights:
                residual -= self._through_weights(index, step)
            else:
                residual -= self._through_rows(index, step)

    def rows(self, index: Index) -> Index:
        """Make sure that the cache holds the rows ``index``; return their slots in ``cache.rows``.

        At most ``cache.capacity`` rows can be asked for at once.
        """
        cache = self.cache
        slots = cache.find(index)
        absent = slots < 0
        self._count(hits=len(index) - int(absent.sum()), misses=int(absent.sum()))
        if absent.any():
            wanted = index[absent]
            given = cache.admit(wanted)
            with blas_on_one_thread():
                self._fill_or_discard(wanted, given)
            slots[absent] = given
        return slots

    def product(
        self, coefficients: NDArray[np.float64], rows: Index | None = None, dtype: Any = np.float64
    ) -> NDArray[np.float64]:
        """Return ``K[rows] @ coefficients`` with kernel values computed in ``dtype``; nothing is cached."""
        dtype = np.dtype(dtype)
        support = np.flatnonzero(coefficients)
        targets = self.samples if rows is None else self.samples.take(rows, dtype)
        norms = self._norms[dtype]
        target_norms = norms if rows is None else norms[rows]
        result = np.zeros(targets.n)
        factors = coefficients[support].astype(dtype)
        chunks = self._chunks(support, dtype)

        def work(start: int, stop: int) -> None:
            for chunk, panel, piece in chunks:
                tile = np.empty((len(chunk), stop - start), dtype)
                targets.compare(self.statistic, panel, start, stop, tile)
                self._apply(tile, norms[chunk], target_norms[start:stop])
                result[start:stop] += factors[piece] @ tile

        with blas_on_one_thread():
            self.team.share(targets.n, TILE_COLUMNS, work)
        self._count(evaluations=len(support) * targets.n)
        return result

    def restrict(self, index: Index) -> Gram:
        """Return the Gram matrix of the samples ``index`` alone: shorter rows, the same counts.

        Rows that the cache holds are carried over; this Gram's own cache is then dropped, so that the byte
        budget serves both.
        """
        child = object.__new__(Gram)
        child._share_with(self)
        child.diagonal = self.diagonal[index]
        child._set(self.samples.take(index, self.dtype), self.kernel, self.dtype, self.statistic)
        child._uses = self._uses[index]
        if self._cache is not None:
            self._carry_rows(self._cache, child, index)
            self._cache = None
        return child

    def part(self, index: Index, *, threads: int, cache_bytes: int) -> Gram:
        """Return an independent Gram matrix of the samples ``index``, with its own threads, cache and counts.

        Unlike those of a restriction its answers can be checked in double precision.
        """
        part = object.__new__(Gram)
        part._share_with(self)
        part.team = Team(1 if isinstance(self.samples, CalledKernel) else threads)
        part.counts, part.cache_bytes = Counts(), cache_bytes
        part._workspace = np.empty(0, self.dtype)
        part.diagonal = self.diagonal[index]
        part._set(self.samples.take(index, np.float64), self.kernel, self.dtype, self.statistic)
        return part

    def in_double(self) -> Gram:
        """Return this Gram matrix with kernel values in double precision."""
        twin = object.__new__(Gram)
        twin._share_with(self)
        twin.diagonal = self.diagonal
        twin._set(self.samples, self.kernel, np.float64, self.statistic)
        return twin

    # ------------------------------------------------------------------ tiles

    def _apply(self, tile: Floats, row_norms: Floats, column_norms: Floats) -> None:
        if self._table is not None and tile.dtype == np.float64:
            return self.kernel.apply_to_bits(tile, row_norms, column_norms, self._table)
        self.kernel.apply(tile, row_norms, column_norms, from_distance=self.statistic == "l2")

    def _tile(self, panel: Any, chunk: Index, start: int, stop: int) -> Floats:
        """Kernel values of the samples ``chunk`` (laid out in ``panel``) with ``start`` to ``stop``."""
        tile = np.empty((len(chunk), stop - start), self.dtype)
        self.samples.compare(self.statistic, panel, start, stop, tile)
        norms = self._norms[self.dtype]
        self._apply(tile, norms[chunk], norms[start:stop])
        return tile

    def _chunks(self, index: Index, dtype: Any = None) -> list[tuple[Index, Any, slice]]:
        dtype = self.dtype if dtype is None else dtype
        pieces = [slice(k, min(k + TILE_ROWS, len(index))) for k in range(0, len(index), TILE_ROWS)]
        return [(index[piece], self.samples.panel(index[piece], dtype), piece) for piece in pieces]

    def _through_rows(self, index: Index, step: NDArray[np.float64]) -> NDArray[np.float64]:
        slots = self.cache.find(index)
        known = slots >= 0
        fresh, fresh_step = index[~known], step[~known].astype(self.dtype)
        kept = self._slots_for(fresh)
        known_slots, known_step = slots[known], step[known].astype(self.dtype)
        change = np.zeros(self.n)
        chunks = self._chunks(fresh)

        def work(start: int, stop: int) -> None:
            part = change[start:stop]
            accumulate.add_rows(self.cache.rows[:, start:stop], known_slots, known_step, part)
            for chunk, panel, piece in chunks:
                tile = self._tile(panel, chunk, start, stop)
                part += fresh_step[piece] @ tile
                accumulate.keep_rows(tile, kept[piece], self.cache.rows[:, start:stop])

        try:
            self.team.share(self.n, TILE_COLUMNS, work)
        except BaseException:
            self.cache.discard(fresh)
            raise
        self._count(hits=len(known_slots), misses=len(fresh), evaluations=len(fresh) * self.n)
        return change

    def _slots_for(self, fresh: Index) -> Index:
        """Cache slots for rows about to be computed, -1 for those not worth keeping yet."""
        self._uses[fresh] += 1
        worth = self._uses[fresh] > (USES_BEFORE_KEPT if self.is_cheap else 0)
        slots = np.full(len(fresh), -1, dtype=np.int64)
        slots[worth] = self.cache.admit(fresh[worth])
        return slots

    def _fill_or_discard(self, index: Index, slots: Index) -> None:
        chunks = self._chunks(index)

        def work(start: int, stop: int) -> None:
            for chunk, panel, piece in chunks:
                tile = self._tile(panel, chunk, start, stop)
                accumulate.keep_rows(tile, slots[piece], self.cache.rows[:, start:stop])

        try:
            self.team.share(self.n, TILE_COLUMNS, work)
        except BaseException:
            self.cache.discard(index)
            raise
        self._count(evaluations=len(index) * self.n)

    def _computed_block(self, index: Index) -> Floats:
        q = len(index)
        values = self._scratch(q)
        members = self.samples.take(index, self.dtype)
        norms = self._norms[self.dtype][index]

        def work(start: int, stop: int) -> None:
            panel = members.panel(np.arange(start, stop), self.dtype)
            for left in range(0, q, TILE_COLUMNS):
                right = min(left + TILE_COLUMNS, q)
                tile = np.empty((stop - start, right - left), self.dtype)
                members.compare(self.statistic, panel, left, right, tile)
                self._apply(tile, norms[start:stop], norms[left:right])
                values[start:stop, left:right] = tile

        with blas_on_one_thread():
            self.team.share(q, TILE_ROWS, work)
        self._count(evaluations=q * q)
        return values

    def _scratch(self, q: int) -> Floats:
        """Memory for a block; the same each time, because the first touch of memory costs more than its use."""
        if self._workspace.size < q * q or self._workspace.dtype != self.dtype:
            self._workspace = np.empty(q * q, self.dtype)
        return self._workspace[: q * q].reshape(q, q)

    def _through_weights(self, index: Index, step: NDArray[np.float64]) -> NDArray[np.float64]:
        """K[:, index] @ step for the linear kernel: X (X[index]ᵀ step), Platt section 2.4."""
        weights = self.samples.combine(index, step)  # type: ignore[attr-defined]
        change = np.empty(self.n)

        def work(start: int, stop: int) -> None:
            change[start:stop] = self.samples.project(weights, start, stop)  # type: ignore[attr-defined]

        self.team.share(self.n, 8 * TILE_COLUMNS, work)
        return change

    def _carry_rows(self, old: RowCache, child: Gram, index: Index) -> None:
        position = np.full(self.n, -1, dtype=np.int64)
        position[index] = np.arange(len(index))
        keys = old.keys()
        keys = keys[position[keys] >= 0][-child.cache.capacity :]
        if len(keys):
            slots = child.cache.admit(position[keys])
            accumulate.gather(
                old.rows, old.slot_of[keys], index, child.cache.rows[slots[0] : slots[0] + len(keys)]
            )

    def _count(self, evaluations: int = 0, hits: int = 0, misses: int = 0) -> None:
        self.counts.evaluations += evaluations
        self.counts.hits += hits
        self.counts.misses += misses
        if self._cache is not None:
            self.counts.bytes = max(self.counts.bytes, self._cache.bytes_used)
