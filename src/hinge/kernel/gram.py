"""The Gram matrix: kernel values on demand, in tiles, behind a row cache.

Solvers ask three questions: the `diagonal`; `block`, the square matrix of a working set; and `update`, which
subtracts ``K[:, W] δ`` from the residual. Kernel values are computed in tiles that stay in the processor's
cache: the comparison of samples, the kernel function and the use of the values follow each other at once, and
nothing is stored that the row cache does not want. Threads share the columns.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Literal

import numpy as np

from hinge.arrays import Floats, Index, Vector
from hinge.data.dense import DenseSamples
from hinge.data.given import GivenGram
from hinge.data.storage import store
from hinge.kernel.cache import RowCache
from hinge.kernel.factor import features_of
from hinge.kernel.kernels import Kernel
from hinge.kernel.precision import choose_precision
from hinge.kernel.rows import Counts, Rows
from hinge.kernel.sharp import Pairs
from hinge.kernel.source import Source
from hinge.kernel.square import BlockSizes, Workspace, block_bytes, fill_from_rows, fill_square
from hinge.kernel.tiles import Tiles
from hinge.kernel.weights import Weights
from hinge.runtime.memory import default_cache_bytes
from hinge.runtime.prices import MULTIPLY_ADDS_PER_KEPT_VALUE
from hinge.runtime.threads import Team, blas_on_one_thread, lazy

Precision = Literal["auto", "single", "double"]

# Of values that are there.
_GIVEN = Kernel("precomputed")


class Gram:
    """Kernel values between the samples of one data set.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        The data; for a precomputed kernel the kernel matrix itself, for a kernel function whatever it takes.
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
        ``√|k(x, x)|``: by how much a step of a sample's coefficient moves the weight vector.
    magnitude : float
        The largest ``|k(x, x)|``.
    storage : str
        What a report calls the storage of the samples.
    cost : float
        Rough cost of one kernel value, in multiply-adds of dense samples.
    is_positive : bool
        Whether the kernel is known to be positive semi-definite.
    through_weights : bool
        Whether the kernel is linear in features that are there, so that there is a weight vector.
    is_cheap : bool
        Whether values are computed again sooner than stored.
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

    block_sizes = BlockSizes()

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
        self.cache_bytes = default_cache_bytes() if cache_bytes is None else int(cache_bytes)
        samples = store(X, kernel, self.cache_bytes)
        if samples.n == 0:
            raise ValueError("X has no rows: at least one sample is needed")
        self.is_single_by_wish = precision == "single"
        diagonal = kernel.of_self(samples)
        if not isfinite(4.0 * float(np.abs(diagonal).max())):  # k(x, x) + k(y, y) − 2k(x, y)
            raise ValueError("kernel values overflow; scale the features, or lower degree, gamma or coef0")
        choice = choose_precision(samples, kernel, diagonal, precision)
        self._work_with(Team(1 if samples.runs_on_one_thread else threads))
        self._set(Source(samples, kernel, choice.statistic, diagonal), choice.dtype)
        self.cache_bytes = max(self.cache_bytes - samples.reserved_bytes, 1)
        if samples.n_computed and samples.matrix is not None:
            self.counts.add(evaluations=samples.n_computed)
            self.cache_bytes = max(self.cache_bytes - samples.matrix.nbytes, 1)

    def _work_with(self, team: Team) -> None:
        self.team, self.counts, self._workspace = team, Counts(), Workspace()

    def _set(self, source: Source, dtype: Any, origin: tuple[Gram, Index] | None = None) -> None:
        self.source = source
        self.n = source.samples.n
        self.dtype = np.dtype(dtype)
        self.diagonal = source.diagonal
        self.storage, self.cost = source.samples.storage, source.samples.cost
        self.is_positive = source.kernel.is_positive
        self.through_weights = source.features is not None
        # Double precision is for problems of many steps: there values that all fit are worth keeping sooner.
        fits = self.n**2 * self.dtype.itemsize <= self.cache_bytes
        in_single = self.dtype.itemsize / np.dtype(np.float32).itemsize if fits else 1.0
        self.is_cheap = source.samples.is_apart or self.cost * in_single <= MULTIPLY_ADDS_PER_KEPT_VALUE
        self._origin = origin
        self.__dict__.pop("_tiles", None)  # of the Gram matrix that this one is a copy of
        self._rows: Rows | None = None
        self._whole: Floats | None = None

    def _derive(
        self,
        source: Source,
        dtype: Any,
        *,
        origin: tuple[Gram, Index] | None = None,
        team: Team | None = None,
        cache_bytes: int | None = None,
    ) -> Gram:
        """Return a Gram matrix of other values, the only way in which one comes from another.

        It shares threads, counts and the memory of blocks with this one, unless it has a ``team`` of its own.
        ``origin``: a Gram matrix whose values are sharper, and the places of these samples there.
        """
        derived: Gram = object.__new__(type(self))
        derived.__dict__.update(vars(self))
        if team is not None:
            derived._work_with(team)
        if cache_bytes is not None:
            derived.cache_bytes = cache_bytes
        derived._set(source, dtype, origin)
        return derived

    @lazy
    def _tiles(self) -> Tiles:
        return self.source.tiles(self.dtype)

    @property
    def lengths(self) -> Vector:
        """√|k(x, x)| of every sample."""
        return self.source.lengths

    @property
    def magnitude(self) -> float:
        """The largest ``|k(x, x)|``."""
        return self.source.magnitude

    @property
    def precision(self) -> str:
        """Type of the kernel values: "single" or "double"."""
        return "single" if self.dtype == np.float32 else "double"

    @property
    def weights(self) -> Weights:
        """The weight vector of a linear kernel, where `through_weights` says that there is one."""
        if self.source.features is None:
            raise ValueError("only a linear kernel of stored features has a weight vector")
        return Weights(self.source.features, self.team)

    @property
    def cache(self) -> RowCache:
        """The row cache; created when the first row is kept. All rows of a matrix in memory are there at once."""
        return self._kept_rows.cache

    @property
    def _kept_rows(self) -> Rows:
        if self._rows is None:
            matrix = self.matrix
            room = self.cache_bytes - self._workspace.size * block_bytes(1, self.dtype)
            cache = RowCache(self.n, self.n, self.dtype, room) if matrix is None else RowCache.of(matrix)
            self._rows = Rows(
                cache,
                self._tiles,
                self.team,
                self.counts,
                keeps=not self.is_cheap,
                is_whole=self._whole is not None,
            )
        return self._rows

    @property
    def largest_block(self) -> int:
        """Most samples that a working set should have, for its matrix to fit the budget."""
        return self.block_sizes.most(self.cache_bytes, self.dtype)

    def has_room_for(self, n_variables: int) -> bool:
        """Whether the budget holds the matrix of this many variables, and the two that a free set may need.

        Where variables are more than samples, the matrix of the samples counts too.
        """
        wanted = block_bytes(n_variables)
        if self.matrix is None:
            wanted += 8 * self.n**2 if n_variables > self.n else 0
        elif n_variables == self.n:
            wanted -= 8 * self.n**2  # it is there already
        return wanted <= self.cache_bytes

    @property
    def matrix(self) -> Floats | None:
        """The whole matrix, where it is in memory in the type of this Gram matrix."""
        given = self.given_matrix
        return given if given is not None and given.dtype == self.dtype else self._whole

    @property
    def given_matrix(self) -> Floats | None:
        """The matrix that the values were given as, in whatever type."""
        return self.source.samples.matrix

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
        slots = self._kept_rows.find(index)
        fresh = np.flatnonzero(slots < 0)
        fill_from_rows(self.cache.rows, slots, index, fresh, self.team, values)
        if len(fresh):
            between = np.empty((len(fresh), len(fresh)), self.dtype)
            self._fill_square(index[fresh], between)
            values[np.ix_(fresh, fresh)] = between
        return values

    def update(self, residual: Vector, index: Index, step: Vector) -> None:
        """Subtract ``K[:, index] @ step`` from ``residual``, all of it or (when cancelled) nothing."""
        index = np.asarray(index, dtype=np.int64)
        with blas_on_one_thread():
            residual -= self._image(index, step)

    def rows(self, index: Index) -> Index:
        """Make sure that the cache holds the rows ``index``; return their slots in ``cache.rows``.

        At most ``cache.capacity`` rows can be asked for at once.
        """
        return self._kept_rows.fetch(index)

    def product(self, coefficients: Vector, rows: Index | None = None, dtype: Any = np.float64) -> Vector:
        """Return ``K[rows] @ coefficients`` with kernel values computed in ``dtype``; nothing is cached."""
        dtype = np.dtype(dtype)
        if self._origin is not None and dtype != self.dtype:
            origin, index = self._origin
            everywhere = np.zeros(origin.n)
            everywhere[index] = coefficients
            return origin.product(everywhere, index if rows is None else index[rows], dtype)
        if self.through_weights or (self.matrix is not None and dtype == self.dtype):
            support = np.flatnonzero(coefficients)
            everywhere = self._image(support, coefficients[support])
            return everywhere if rows is None else everywhere[rows]
        values, n_computed = self.source.image(coefficients, rows, dtype, self.team)
        self.counts.add(evaluations=n_computed)
        return values

    def rounding(self, coefficients: Vector, sharp: bool = False, index: Index | None = None) -> Vector:
        """Bound the rounding error of every value of ``product(coefficients)``, or of `sharp_product`.

        With ``index`` these are coefficients and values of those samples alone.
        """
        source, places = self._sharpest
        if index is not None:
            places = index if places is None else places[index]
        return source.rounding(coefficients, sharp, places)

    def error_terms(self) -> tuple[Vector, float, bool]:
        """Return what `rounding` follows from, for compiled code: `Source.error_terms`."""
        source, places = self._sharpest
        return source.error_terms(places)

    def closer_rounding(self, coefficients: Vector, rows: Index) -> Vector:
        """As `rounding`, of the samples ``rows``, from kernel values themselves where that says more."""
        source, places = self._sharpest
        return source.closer_rounding(coefficients, places, rows, self.product)

    def sharp_seconds(self, n_values: int) -> float:
        """Guess how long `sharp_product` takes for this many kernel values."""
        return self._sharpest[0].sharp_seconds(n_values) / self.team.size

    def sharp_product(self, coefficients: Vector, rows: Index) -> Pairs:
        """Return ``K[rows] @ coefficients`` to twice the digits of a double: the sum of two lines."""
        source, places = self._sharpest
        support = np.flatnonzero(coefficients)
        factors = coefficients[support]
        if source.features is None:
            self.counts.add(evaluations=len(support) * len(rows))
        if places is not None:
            support, rows = places[support], places[rows]
        return source.sharp_product(support, factors, rows, self.team)

    def alike(self) -> Index:
        """Return, for each sample, the first that is the same."""
        source, places = self._sharpest
        return source.samples.alike(np.arange(self.n) if places is None else places)

    @property
    def _sharpest(self) -> tuple[Source, Index | None]:
        """Where kernel values can be computed most sharply, and the places of these samples there."""
        return (self.source, None) if self._origin is None else (self._origin[0].source, self._origin[1])

    # ------------------------------------------------------------------ other Gram matrices

    def restrict(self, index: Index) -> Gram:
        """Return the Gram matrix of the samples ``index`` alone: shorter rows, the same counts.

        Rows that the cache holds are carried over; this Gram's own cache is then dropped, so that the byte
        budget serves both.
        """
        child = self._derive(self.source.take(index, self.dtype), self.dtype)
        if self._rows is not None:
            self._rows.hand_down(index, child.cache)
            self._rows = None
        return child

    def part(self, index: Index, *, threads: int, cache_bytes: int) -> Gram:
        """Return an independent Gram matrix of the samples ``index``, with its own threads, cache and counts.

        Unlike those of a restriction its answers can be checked in double precision. A part that is all samples
        shares them with the whole.
        """
        team = Team(1 if self.source.samples.runs_on_one_thread else threads)
        is_whole = self._origin is None and len(index) == self.n and np.array_equal(index, np.arange(self.n))
        source = self.source if is_whole else self.source.take(index, np.float64)
        return self._derive(source, self.dtype, team=team, cache_bytes=cache_bytes)

    def in_double(self) -> Gram:
        """Return this Gram matrix with kernel values in double precision."""
        return self._derive(self.source, np.float64, origin=self._origin)

    def alone(self) -> Gram:
        """Return the same kernel values with one thread, and with counts and memory for blocks of its own."""
        return self._derive(self.source, self.dtype, origin=self._origin, team=Team(1))

    def stored(self) -> Gram:
        """Return this Gram matrix with all its values computed once and kept in memory.

        In double precision, unless the caller wished otherwise: then nothing needs to be checked again. They count
        into the budget.
        """
        if self.given_matrix is not None and self.matrix is not None:
            return self
        is_as_wished = self.is_single_by_wish or self.dtype == np.float64
        tiles = self._tiles if is_as_wished else self.source.tiles(np.float64)
        values = np.empty((self.n, self.n), tiles.dtype)
        self._fill_with(tiles, values)
        twin = self._with_values(values, np.arange(self.n))
        twin.cache_bytes = max(self.cache_bytes - values.nbytes, 1)
        return twin

    def given(self, matrix: Floats, index: Index) -> Gram:
        """Return an independent Gram matrix of the samples ``index`` whose values are those of ``matrix``.

        It remembers where they came from: rounded as they are, a claim of convergence may have to go back there.
        """
        part = self._with_values(matrix, index, Team(1))
        part.counts.evaluations = matrix.size
        return part

    def _with_values(self, matrix: Floats, index: Index, team: Team | None = None) -> Gram:
        samples = GivenGram(matrix, storage=self.storage)
        source = Source(samples, _GIVEN, "value", self.diagonal[index])
        return self._derive(source, matrix.dtype, origin=self._origin_of(index), team=team)

    def _origin_of(self, index: Index) -> tuple[Gram, Index] | None:
        """Where values of the samples ``index`` can be computed more sharply than they are kept."""
        if self._origin is not None:
            return self._origin[0], self._origin[1][index]
        return None if self.source.samples.is_given else (self, index)

    @property
    def has_features(self) -> bool:
        """Whether a weight vector can be had from the data itself, of no more features than samples."""
        features = self._sharpest[0].features
        return features is not None and features.is_dense and features.n_features <= self.n

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
        if self.has_features:
            source, places = self._sharpest
            everyone = np.arange(self.n) if places is None else places
            features: Floats | None = source.samples.panel(everyone, np.float64)
        else:
            matrix = self.matrix
            features = features_of(matrix) if matrix is not None and matrix.dtype == np.float64 else None
        if features is None:
            return None
        linear = Kernel("linear")
        rows = DenseSamples(features - np.median(features, axis=0) if centered else features)
        return self._derive(Source(rows, linear, linear.statistic, linear.of_self(rows)), np.float64)

    def between(self, rows: Index, columns: Index) -> Floats:
        """Return ``K[rows, columns]``, computed on this thread in the precision of `stored`."""
        dtype = self.dtype if self.is_single_by_wish else np.dtype(np.float64)
        return self.source.between(rows, columns, dtype)

    # ------------------------------------------------------------------ tiles

    def _image(self, index: Index, step: Vector) -> Vector:
        """K[:, index] @ step, by the weight vector, by whoever holds the samples, or by rows."""
        if self.source.samples.is_apart:
            everywhere = np.zeros(self.n)
            everywhere[index] = step
            values, n_computed = self.source.image(everywhere, None, self.dtype, self.team)
            self.counts.add(evaluations=n_computed)
            return values
        return self.weights.image(index, step) if self.through_weights else self._kept_rows.image(index, step)

    def _fill_square(self, index: Index, values: Floats) -> None:
        self._fill_with(self.source.tiles(self.dtype, index), values)

    def _fill_with(self, tiles: Tiles, values: Floats) -> None:
        samples = self.source.samples
        was_symmetric = not samples.takes_symmetric_part
        self.counts.add(evaluations=fill_square(tiles, self.team, values))
        if was_symmetric and samples.takes_symmetric_part:  # found out on the way: what came before is to change
            self.counts.add(evaluations=fill_square(tiles, self.team, values))

    def _compute_whole(self) -> Floats:
        values = np.empty((self.n, self.n), self.dtype)
        self._fill_with(self._tiles, values)
        self._whole, self._rows = values, None
        return values
