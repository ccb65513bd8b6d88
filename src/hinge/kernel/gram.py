"""The Gram matrix: kernel values on demand, in tiles, behind a row cache.

Solvers ask three questions: the `diagonal`; `block`, the square matrix of a working set; and `update`, which
subtracts ``K[:, W] δ`` from the residual. Kernel values are computed in tiles that stay in the processor's
cache: the comparison of samples, the kernel function and the use of the values follow each other at once, and
nothing is stored that the row cache does not want. Threads share the columns.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import FeatureRows, Floats, Index
from hinge.data.dense import DenseSamples
from hinge.data.given import CalledKernel, GivenGram
from hinge.data.samples import Samples, Statistic
from hinge.data.sparse import SparseSamples
from hinge.kernel import accumulate
from hinge.kernel.cache import RowCache
from hinge.kernel.factor import features_of
from hinge.kernel.image import image, image_of_first
from hinge.kernel.kernels import Kernel
from hinge.kernel.precision import choose_precision, store
from hinge.kernel.rounding import UNIT, operations_of, rounding_of_decaying_image, rounding_of_image, sizes_of
from hinge.kernel.sharp import Pairs, seconds_of, sharp_image, sharp_projection, sharp_weights
from hinge.kernel.square import Workspace, fill_from_rows, fill_square
from hinge.kernel.tiles import Tiles
from hinge.runtime.memory import default_cache_bytes
from hinge.runtime.threads import Team, blas_on_one_thread

Precision = Literal["auto", "single", "double"]

# Up to this many multiply-adds a value, computing again beats storing: a first touch of memory costs as much as
# computing the row a dozen times, and reading it again not much less than once.
CHEAP_COST = 64.0

# Samples that a thread compares with a weight vector before it looks for other work.
_PROJECTED_AT_ONCE = 8192

# Where support vectors are so large a share of the samples whose image is wanted, comparing two of them only once
# spares more than putting them first takes.
_SYMMETRIC_SHARE = 0.3

# The matrix of a working set has at most so many rows, and at most this share of the budget, together with two
# of the same size in double precision that its free variables may need.
_LARGEST_BLOCK = 4096
_SHARE_FOR_BLOCK = 0.5

# Largest error of an exponent at which kernel values still tell how large they are.
_SMALL_IN_EXPONENT = 0.01

# Smaller working sets make little headway; these take 25 kB.
_SMALLEST_BLOCK = 32


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
    lengths : array of float64
        √|k(x, x)|: by how much a step of a sample's coefficient moves the weight vector.
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
        samples = store(X, kernel)
        if samples.n == 0:
            raise ValueError("X has no rows: at least one sample is needed")
        self.cache_bytes = default_cache_bytes() if cache_bytes is None else int(cache_bytes)
        self.team = Team(1 if isinstance(samples, CalledKernel) else threads)
        self.counts = Counts()
        self.is_single_by_wish = precision == "single"
        self._workspace = Workspace()
        self.diagonal = kernel.of_self(samples)
        if not np.isfinite(self.diagonal).all():
            raise ValueError("kernel values overflow; scale the features, or lower degree, gamma or coef0")
        choice = choose_precision(samples, kernel, self.diagonal, precision)
        if choice.statistic == "l2":
            samples = kernel.store(X, skip_zeros=False)  # differences need no centre; moving to it would round
        self._set(samples, kernel, choice.dtype, choice.statistic)

    def _set(self, samples: Samples, kernel: Kernel, dtype: Any, statistic: Any) -> None:
        self.samples = samples
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.n = samples.n
        self.statistic = statistic
        self._tiles = Tiles(samples, kernel, dtype, statistic)
        self.through_weights = kernel.is_linear and isinstance(samples, DenseSamples | SparseSamples)
        self.is_cheap = samples.cost <= CHEAP_COST
        self.magnitude = float(np.abs(self.diagonal).max())
        self.lengths = np.sqrt(np.abs(self.diagonal))
        self._cache: RowCache | None = None
        self._whole: Floats | None = None
        self._sizes: dict[Statistic, NDArray[np.float64]] = {}
        self._origin: tuple[Gram, Index] | None = None

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
        """The row cache; created when the first row is kept. All rows of a matrix in memory are there at once."""
        if self._cache is None:
            matrix = self.matrix
            room = self.cache_bytes - self._workspace.size * self._bytes_a_pair
            self._cache = RowCache(self.n, self.n, self.dtype, room) if matrix is None else RowCache.of(matrix)
        return self._cache

    @property
    def largest_block(self) -> int:
        """Most samples that a working set should have, for its matrix to fit the budget."""
        fitting = (_SHARE_FOR_BLOCK * self.cache_bytes / self._bytes_a_pair) ** 0.5
        return min(max(int(fitting), _SMALLEST_BLOCK), _LARGEST_BLOCK)

    def has_room_for(self, n_variables: int) -> bool:
        """Whether the budget holds the matrix of so many variables at once, and the two that a free set may need.

        Where variables are more than samples, the matrix of the samples counts too.
        """
        n_values = 3 * n_variables**2
        if self.matrix is None:
            n_values += self.n**2 if n_variables > self.n else 0
        elif n_variables == self.n:
            n_values -= self.n**2  # it is there already
        return 8 * n_values <= self.cache_bytes

    @property
    def _bytes_a_pair(self) -> int:
        """Bytes for two samples of a working set: in its matrix, and in the two of a free set."""
        return self.dtype.itemsize + 16

    @property
    def matrix(self) -> Floats | None:
        """The whole matrix, where it is in memory in the type of this Gram matrix."""
        samples = self.samples
        if isinstance(samples, GivenGram) and samples.index is None and samples.matrix.dtype == self.dtype:
            return samples.matrix
        return self._whole

    # ------------------------------------------------------------------ what solvers ask

    def block(self, index: Index) -> Floats:
        """Return the kernel matrix of the samples ``index``, to be read only; the next call may overwrite it.

        Rows that the cache holds are read. Whole rows of the others are not computed here: many a sample of a
        working set stays where it is, and then nobody wants its row. The matrix of all samples is kept.
        """
        index = np.asarray(index, dtype=np.int64)
        matrix = self.matrix
        if len(index) == self.n and np.array_equal(index, np.arange(self.n)):
            return self._compute_whole() if matrix is None else matrix
        values = self._workspace.square(len(index), self.dtype, min(self.largest_block, self.n))
        if self.is_cheap and matrix is None:
            self._fill_square(index, values)
            return values
        slots = self.cache.find(index)
        fresh = np.flatnonzero(slots < 0)
        self._count(hits=len(index) - len(fresh), misses=len(fresh))
        fill_from_rows(self.cache.rows, slots, index, fresh, self.team, values)
        if len(fresh):
            between = np.empty((len(fresh), len(fresh)), self.dtype)
            self._fill_square(index[fresh], between)
            values[np.ix_(fresh, fresh)] = between
        return values

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
        if self._origin is not None and dtype != self.dtype:
            origin, index = self._origin
            everywhere = np.zeros(origin.n)
            everywhere[index] = coefficients
            return origin.product(everywhere, index if rows is None else index[rows], dtype)
        support = np.flatnonzero(coefficients)
        if self.through_weights or (self.matrix is not None and dtype == self.dtype):
            through = self._through_weights if self.through_weights else self._through_rows
            everywhere = through(support, coefficients[support])
            return everywhere if rows is None else everywhere[rows]
        factors = coefficients[support].astype(dtype)
        if rows is None:
            self._count(evaluations=len(support) * self.n)
            tiles = Tiles(self.samples, self.kernel, dtype, self.statistic)
            return image(tiles, self.samples, support, factors, self.team)
        others = np.setdiff1d(rows, support, assume_unique=True)
        n_inside = len(rows) - len(others)
        if n_inside == len(support) >= _SYMMETRIC_SHARE * len(rows):
            order, everywhere = np.concatenate([support, others]), np.empty(self.n)
            everywhere[order] = image_of_first(self._tiles_of(order, dtype), factors, self.team)
            self._count(evaluations=n_inside * len(rows) - n_inside * (n_inside - 1) // 2)
            return everywhere[rows]
        self._count(evaluations=len(support) * len(rows))
        return image(self._tiles_of(rows, dtype), self.samples, support, factors, self.team)

    def rounding(
        self, coefficients: NDArray[np.float64], sharp: bool = False, index: Index | None = None
    ) -> NDArray[np.float64]:
        """Bound the rounding error of every value of ``product(coefficients)``, or of `sharp_product`.

        With ``index`` these are coefficients and values of those samples alone.
        """
        sizes, operations = self._roundings(coefficients, sharp, index)
        magnitudes = np.abs(coefficients)
        if self._source[0].kernel.decays:
            sums = float(magnitudes.sum()), float(np.dot(magnitudes, sizes - 1.0))
            bound = rounding_of_decaying_image(sizes, operations, *sums)
        else:
            bound = rounding_of_image(sizes, operations, coefficients)
        return 4.0 * sum(operations) * UNIT * bound if sharp else bound

    def closer_rounding(self, coefficients: NDArray[np.float64], rows: Index) -> NDArray[np.float64]:
        """As `rounding`, of the samples ``rows``, from kernel values themselves where that says more."""
        sizes, operations = self._roundings(coefficients, False, None)
        of_exponent = 2.0 * UNIT * operations[0] * float(sizes.max(initial=0.0))
        if not self._source[0].kernel.decays or not of_exponent <= _SMALL_IN_EXPONENT:
            return self.rounding(coefficients)[rows]
        magnitudes = np.abs(coefficients)
        masses = self.product(magnitudes, rows), self.product(magnitudes * (sizes - 1.0), rows)
        return (1.0 + 2.0 * _SMALL_IN_EXPONENT) * rounding_of_decaying_image(sizes[rows], operations, *masses)

    def _roundings(
        self, coefficients: NDArray[np.float64], sharp: bool, index: Index | None
    ) -> tuple[NDArray[np.float64], tuple[float, float]]:
        """Sizes of samples, and counts of operations, as `hinge.kernel.rounding` defines them."""
        source, places = self._source
        if index is None:
            index = places
        elif places is not None:
            index = places[index]
        statistic = (source.kernel.by_differences if sharp else None) or source.statistic
        if statistic not in source._sizes:
            source._sizes[statistic] = sizes_of(source.samples, source.kernel, statistic, source.diagonal)
        sizes = source._sizes[statistic] if index is None else source._sizes[statistic][index]
        return sizes, operations_of(source.samples, source.kernel, int(np.count_nonzero(coefficients)))

    def sharp_seconds(self, n_values: int) -> float:
        """Guess how long `sharp_product` takes for so many kernel values."""
        source, _ = self._source
        return 0.0 if source.through_weights else seconds_of(source.samples, n_values) / self.team.size

    def sharp_product(self, coefficients: NDArray[np.float64], rows: Index) -> Pairs:
        """Return ``K[rows] @ coefficients`` to twice the digits of a double: the sum of two lines."""
        source, index = self._source
        support = np.flatnonzero(coefficients)
        factors = coefficients[support]
        if index is not None:
            support, rows = index[support], index[rows]
        samples = source.samples
        if source.through_weights:
            weights = sharp_weights(samples.exact_rows(), samples.n_features, support, factors)
            return sharp_projection(samples.exact_rows(), weights, rows)
        self._count(evaluations=len(support) * len(rows))
        return sharp_image(samples, source.kernel, support, factors, rows, self.team)

    @property
    def _source(self) -> tuple[Gram, Index | None]:
        """Where kernel values can be computed most sharply, and the places of these samples there."""
        return (self, None) if self._origin is None else self._origin

    def weights(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``Xᵀ coefficients``, where `through_weights` says that a weight vector exists."""
        support = np.flatnonzero(coefficients)
        return self.samples.combine(support, coefficients[support])  # type: ignore[attr-defined, no-any-return]

    def sharp_weights(self, coefficients: NDArray[np.float64]) -> Pairs:
        """As `weights`, to twice the digits of a double: the sum of two lines."""
        support = np.flatnonzero(coefficients)
        samples = self.samples
        return sharp_weights(samples.exact_rows(), samples.n_features, support, coefficients[support])

    def project(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``X weights``, where a weight vector exists."""
        image = np.empty(self.n)

        def work(start: int, stop: int) -> None:
            image[start:stop] = self.samples.project(weights, start, stop)  # type: ignore[attr-defined]

        self.team.share(self.n, _PROJECTED_AT_ONCE, work)
        return image

    def moments(self, index: Index, factors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``Σ factor x xᵀ`` over the samples ``index``, where weights exist; its lower half counts."""
        return self.samples.moments(index, factors)  # type: ignore[attr-defined, no-any-return]

    def feature_rows(self) -> FeatureRows:
        """Return the samples for `hinge.data.products.row_dot`, where a weight vector exists."""
        return self.samples.feature_rows()  # type: ignore[attr-defined, no-any-return]

    def restrict(self, index: Index) -> Gram:
        """Return the Gram matrix of the samples ``index`` alone: shorter rows, the same counts.

        Rows that the cache holds are carried over; this Gram's own cache is then dropped, so that the byte
        budget serves both.
        """
        child = object.__new__(Gram)
        child._share_with(self)
        child.diagonal = self.diagonal[index]
        child._set(self.samples.take(index, self.dtype), self.kernel, self.dtype, self.statistic)
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
        part._workspace = Workspace()
        part.diagonal = self.diagonal[index]
        part._set(self.samples.take(index, np.float64), self.kernel, self.dtype, self.statistic)
        return part

    def in_double(self) -> Gram:
        """Return this Gram matrix with kernel values in double precision."""
        twin = object.__new__(Gram)
        twin._share_with(self)
        twin.diagonal = self.diagonal
        twin._set(self.samples, self.kernel, np.float64, self.statistic)
        twin._origin = self._origin
        return twin

    def stored(self) -> Gram:
        """Return this Gram matrix with all its values computed once and kept in memory.

        In double precision, unless the caller wished otherwise: then nothing needs to be checked again. They count
        into the budget.
        """
        if isinstance(self.samples, GivenGram) and self.matrix is not None:
            return self
        source = self if self.is_single_by_wish else self.in_double()
        values = source._compute_whole()
        twin = self.given(values, np.arange(self.n))
        twin.team, twin.counts = self.team, self.counts
        twin.cache_bytes = max(self.cache_bytes - values.nbytes, 1)
        return twin

    @property
    def has_features(self) -> bool:
        """Whether a weight vector can be had from the data itself, of no more features than samples."""
        source, _ = self._source
        samples = source.samples
        return source.through_weights and isinstance(samples, DenseSamples) and samples.n_features <= self.n

    def with_weights(self, *, centered: bool) -> Gram | None:
        """Return a Gram matrix of the same values that has a weight vector: by its data, or a factor of it.

        Parameters
        ----------
        centered : bool
            Whether samples may be seen from their median, which adds a constant to every row and column of K. That
            changes nothing for coefficients that sum to zero, and spares them what all samples share.

        Returns
        -------
        Gram or None
            None where kernel values are single, or not those of a positive semi-definite kernel.
        """
        source, index = self._source
        if self.has_features:
            everyone = np.arange(self.n) if index is None else index
            features: Floats | None = source.samples.panel(everyone, np.float64)
        else:
            matrix = self.matrix
            features = features_of(matrix) if matrix is not None and matrix.dtype == np.float64 else None
        if features is None:
            return None
        twin, linear = object.__new__(Gram), Kernel("linear")
        twin._share_with(self)
        rows = DenseSamples(features - np.median(features, axis=0) if centered else features)
        twin.diagonal = linear.of_self(rows)
        twin._set(rows, linear, np.float64, linear.statistic)
        return twin

    def between(self, rows: Index, columns: Index) -> Floats:
        """Return ``K[rows, columns]``, computed on this thread in the precision of `stored`."""
        dtype = self.dtype if self.is_single_by_wish else np.dtype(np.float64)
        tiles = self._tiles_of(columns, dtype)
        values = np.empty((len(rows), len(columns)), dtype)
        with blas_on_one_thread():
            for piece in tiles.pieces(len(rows)):
                tiles.fill(tiles.panel(rows[piece], self.samples), 0, len(columns), values[piece])
        return values

    def given(self, matrix: Floats, index: Index) -> Gram:
        """Return an independent Gram matrix of the samples ``index`` whose values are those of ``matrix``.

        It remembers where they came from: rounded as they are, a claim of convergence may have to go back there.
        """
        given = GivenGram(matrix)
        given.storage = self.samples.storage
        part = object.__new__(Gram)
        part._share_with(self)
        part.team, part.counts, part._workspace = Team(1), Counts(evaluations=matrix.size), Workspace()
        part.diagonal = self.diagonal[index]
        part._set(given, Kernel("precomputed"), matrix.dtype, "value")
        part._origin = self._origin_of(index)
        return part

    def _origin_of(self, index: Index) -> tuple[Gram, Index] | None:
        """Where values of the samples ``index`` can be computed more sharply than they are kept."""
        if self._origin is not None:
            return self._origin[0], self._origin[1][index]
        return None if isinstance(self.samples, GivenGram | CalledKernel) else (self, index)

    def alone(self) -> Gram:
        """Return the same kernel values with one thread, and with counts and memory for blocks of its own."""
        twin = copy.copy(self)
        twin.team, twin.counts, twin._workspace = Team(1), Counts(), Workspace()
        return twin

    # ------------------------------------------------------------------ tiles

    def _tiles_of(self, index: Index, dtype: Any) -> Tiles:
        return Tiles(self.samples.take(index, dtype), self.kernel, dtype, self.statistic)

    def _through_rows(self, index: Index, step: NDArray[np.float64]) -> NDArray[np.float64]:
        slots = self.cache.find(index)
        known = slots >= 0
        fresh, fresh_step = index[~known], step[~known].astype(self.dtype)
        kept = np.full(len(fresh), -1) if self.is_cheap else self.cache.admit(fresh)
        known_slots, known_step = slots[known], step[known].astype(self.dtype)
        change = np.zeros(self.n)

        def add_known(start: int, stop: int) -> None:
            rows = self.cache.rows[:, start:stop]
            accumulate.add_rows(rows, known_slots, known_step, change[start:stop])

        def add_fresh(start: int, stop: int, tile: Floats, piece: slice) -> None:
            change[start:stop] += fresh_step[piece] @ tile
            accumulate.keep_rows(tile, kept[piece], self.cache.rows[:, start:stop])

        try:
            if len(known_slots):
                self.team.share(self.n, self._tiles.width, add_known)
            self._tiles.visit(fresh, self.team, add_fresh)
        except BaseException:
            self.cache.discard(fresh)
            raise
        self._count(hits=len(known_slots), misses=len(fresh), evaluations=len(fresh) * self.n)
        return change

    def _fill_or_discard(self, index: Index, slots: Index) -> None:
        def keep(start: int, stop: int, tile: Floats, piece: slice) -> None:
            accumulate.keep_rows(tile, slots[piece], self.cache.rows[:, start:stop])

        try:
            self._tiles.visit(index, self.team, keep)
        except BaseException:
            self.cache.discard(index)
            raise
        self._count(evaluations=len(index) * self.n)

    def _fill_square(self, index: Index, values: Floats) -> None:
        self._fill_with(self._tiles_of(index, self.dtype), values)

    def _fill_with(self, tiles: Tiles, values: Floats) -> None:
        was_symmetric = not self._takes_symmetric_part
        self._count(evaluations=fill_square(tiles, self.team, values))
        if was_symmetric and self._takes_symmetric_part:  # found out on the way: what came before is to change
            self._count(evaluations=fill_square(tiles, self.team, values))

    @property
    def _takes_symmetric_part(self) -> bool:
        return isinstance(self.samples, CalledKernel) and self.samples.takes_symmetric_part

    def _compute_whole(self) -> Floats:
        values = np.empty((self.n, self.n), self.dtype)
        self._fill_with(self._tiles, values)
        self._whole, self._cache = values, RowCache.of(values)
        return values

    def _through_weights(self, index: Index, step: NDArray[np.float64]) -> NDArray[np.float64]:
        """K[:, index] @ step for the linear kernel: X (X[index]ᵀ step), Platt section 2.4."""
        return self.project(self.samples.combine(index, step))  # type: ignore[attr-defined]

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
        if self._cache is not None and self._whole is None:
            self.counts.bytes = max(self.counts.bytes, self._cache.bytes_used)
