"""What the units of a job share within one process: checked data, folds, comparisons and kernel values."""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.metaestimators import _safe_split

from hinge.arrays import Floats, Index, Vector
from hinge.data.layout import LAYOUT
from hinge.estimators.base import KernelMachine
from hinge.estimators.inputs import cache_bytes, checked_weights
from hinge.kernel.accumulate import gather
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import Kernel
from hinge.runtime.interrupt import check
from hinge.runtime.memory import default_cache_bytes
from hinge.runtime.threads import blas_on_one_thread
from hinge.selection.job import Job

logger = logging.getLogger("hinge")

# Matrices alive at once for one unit, in units of n² doubles: the kernel values and a solver's copy in single
# precision.
_MATRICES_PER_UNIT = 1.5


@dataclass(frozen=True, eq=False)
class Fold:
    """One split of the data.

    Attributes
    ----------
    number : int
        Which of the job's splits.
    train : int64 array
        Training samples that count, in the order of the split.
    places : int64 array
        Their places among all training samples, those of weight zero included.
    all_train : int64 array
        All training samples, those of weight zero included.
    test : int64 array
        Held-out samples.
    test_part, train_part : tuple (X, y)
        What scorers are given.
    """

    number: int
    train: Index
    places: Index
    all_train: Index
    test: Index
    test_part: tuple[Any, Any]
    train_part: tuple[Any, Any]


class Workshop:
    """What units of one job share in one process.

    Attributes
    ----------
    X, y : arrays
        The checked data.
    codes : array of int
        Class number of every sample; all 0 where there are no classes.
    weights : array
        Weight of every sample.
    folds : list of Fold
        The splits.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        checked: KernelMachine = copy.copy(job.estimator)
        data = checked._training_data(job.X, job.y, None)
        self.X, self.y = data.X, data.y
        self.n = len(data.places)
        self.learnt = {name: value for name, value in vars(checked).items() if name.endswith("_in_")}
        self.codes = np.zeros(self.n, np.intp)
        if is_classifier(job.estimator):
            self.codes = np.unique(self.y, return_inverse=True)[1]
        self.weights = np.ones(self.n)
        if job.sample_weight is not None:
            self.weights = checked_weights(job.sample_weight, self.X)
        self.folds = [self.fold(*split, number) for number, split in enumerate(job.splits)]
        self.budget = cache_bytes(job.estimator.cache_size) or default_cache_bytes()
        self._lock = threading.Lock()
        self._comparisons: tuple[Any, Floats] | None = None
        self._spare: dict[int, list[Floats]] = {}

    def square(self, n: int) -> Floats:
        """Return memory for a matrix; used before if possible, since the first touch of memory is expensive."""
        with self._lock:
            spare = self._spare.get(n)
            if spare:
                return spare.pop()
        return np.empty((n, n))

    def take_back(self, matrices: Iterable[Floats]) -> None:
        """Keep the memory of matrices that nobody reads any more."""
        with self._lock:
            for matrix in matrices:
                self._spare.setdefault(len(matrix), []).append(matrix)

    def fold(self, train: Any, test: Any, number: int = 0) -> Fold:
        """Return the fold with these training and test samples."""
        job = self.job
        train, test = np.asarray(train), np.asarray(test)
        train, test = (np.flatnonzero(index) if index.dtype == bool else index for index in (train, test))
        places = np.flatnonzero(self.weights[train] > 0)
        return Fold(
            number, train[places].astype(np.int64), places, train.astype(np.int64), test.astype(np.int64),
            _safe_split(job.estimator, job.X, job.y, test, train),
            _safe_split(job.estimator, job.X, job.y, train) if job.return_train_score else (None, None),
        )  # fmt: skip

    def _has_room(self, is_alone: bool) -> bool:
        """Whether a unit's matrices fit: beside comparisons and as many for a second unit, unless it is alone."""
        n_matrices, square = _MATRICES_PER_UNIT, 8 * self.n**2
        if not is_alone or self.codes.max(initial=0) > 1:
            n_matrices += 2  # values of pairs of classes: fewer than two copies of every value
        if not is_alone:
            n_matrices += 1
        return n_matrices * square <= self.budget

    def values(self, kernel: Kernel, threads: int) -> KernelValues:
        """Return the kernel values of all samples: as a matrix where it fits, on demand elsewhere.

        A unit with several ``threads`` is the only one: nobody else needs its comparisons or memory.
        """
        gram = Gram(
            self.X, kernel, cache_bytes=self.budget, precision=self.job.estimator.precision, threads=threads
        )
        keeps = self._has_room(is_alone=False)
        if not keeps and not (threads > 1 and self._has_room(is_alone=True)):
            logger.info(
                "the kernel matrix of %d samples does not fit %d MiB: folds share a cache of rows instead",
                self.n, self.budget >> 20,
            )  # fmt: skip
            return KernelValues(self, gram, None)
        return KernelValues(self, gram, self._matrix(gram, keeps))

    def _matrix(self, gram: Gram, keeps: bool) -> Floats:
        """Kernel values of all samples in double precision, from comparisons that are kept for other kernels."""
        kernel = gram.source.kernel
        if gram.given_matrix is not None:
            return np.ascontiguousarray(gram.given_matrix, dtype=np.float64)
        matrix = self.square(self.n)
        comparisons = self._compare(gram) if keeps else _comparisons_of(gram, matrix)
        statistic = kernel.by_differences or kernel.statistic
        norms = gram.source.samples.norms(statistic, np.float64)

        def work(start: int, stop: int) -> None:
            tile = matrix[start:stop]
            if keeps:
                tile[...] = comparisons[start:stop]
            kernel.apply(tile, norms[start:stop], norms, statistic)

        gram.team.share(self.n, LAYOUT.flat_tile[0], work)
        return matrix

    def _compare(self, gram: Gram) -> Floats:
        """Return what kernels of one family are functions of: distances, or products. The last are kept."""
        key = (gram.source.kernel.by_differences, gram.source.kernel.statistic, gram.source.statistic)
        with self._lock:
            if self._comparisons is None or self._comparisons[0] != key:
                self._comparisons = None  # only one family is kept
                self._comparisons = key, _comparisons_of(gram, np.empty((self.n, self.n)))
            return self._comparisons[1]


class KernelValues:
    """Kernel values of one kernel, for all folds and pairs of classes.

    Parameters
    ----------
    workshop : Workshop
        Whose samples.
    gram : Gram
        Their values on demand.
    matrix : array of shape (n, n), optional
        The values, where they fit.
    """

    def __init__(self, workshop: Workshop, gram: Gram, matrix: Floats | None) -> None:
        self._workshop = workshop
        self._codes = workshop.codes
        self._on_demand = gram
        self._matrix = matrix
        self._borrowed = [] if matrix is None or gram.given_matrix is not None else [matrix]
        self._grams: dict[tuple[int, ...], tuple[Index, Gram]] = {}
        self._lock = threading.Lock()

    @property
    def whole(self) -> Gram:
        """The Gram matrix of all samples."""
        return self._on_demand

    @property
    def is_convex(self) -> bool:
        """Whether the solution does not depend on the start. A kernel matrix from elsewhere is taken to be so."""
        kernel = self._on_demand.source.kernel
        return kernel.is_positive or not kernel.has_features

    @property
    def is_shared(self) -> bool:
        """Whether every value is computed once."""
        return self._matrix is not None

    def part(self, classes: tuple[int, ...]) -> tuple[Index, Gram]:
        """Return the samples of some classes and a Gram matrix of them that nobody else uses."""
        with self._lock:
            if classes not in self._grams:
                self._grams[classes] = self._new_part(classes)
            members, gram = self._grams[classes]
        return members, gram if self._matrix is None else gram.alone()

    def _new_part(self, classes: tuple[int, ...]) -> tuple[Index, Gram]:
        members = np.flatnonzero(np.isin(self._codes, classes)).astype(np.int64)
        whole = self._on_demand
        everyone = len(members) == whole.n
        if self._matrix is None:
            gram = (
                whole if everyone else whole.part(members, threads=whole.team.size, cache_bytes=whole.cache_bytes)
            )
            return members, gram
        values = self._matrix
        if not everyone:
            values = self._workshop.square(len(members))
            self._borrowed.append(values)
            gather(self._matrix, members, members, values)
        return members, whole.given(values, members)

    def release(self) -> None:
        """Give the memory of the values back; from now on they are computed on demand."""
        with self._lock:
            self._matrix = None
            self._grams.clear()
            self._workshop.take_back(self._borrowed)
            self._borrowed = []

    def image(self, rows: Index, support: Index, coefficients: Vector) -> Vector:
        """Return Σ coefficient · k(support, row) in double precision: a line per row, a column per machine."""
        matrix = self._matrix
        if matrix is not None:
            decisions = np.empty((len(rows), len(coefficients)))
            block = np.empty((LAYOUT.whole_rows, len(support)))
            with blas_on_one_thread():
                for start in range(0, len(rows), LAYOUT.whole_rows):
                    check()
                    part = rows[start : start + LAYOUT.whole_rows]
                    gather(matrix, part, support, block)
                    decisions[start : start + len(part)] = block[: len(part)] @ coefficients.T
            return decisions
        whole = np.zeros((len(coefficients), self._on_demand.n))
        whole[:, support] = coefficients
        return np.column_stack([self._on_demand.product(row, rows) for row in whole])


def _comparisons_of(gram: Gram, values: Floats) -> Floats:
    """Compare all samples with each other in double precision: by differences, if the kernel can take them."""
    samples, n = gram.source.samples, gram.n
    norms = samples.squared_norms(np.float64)
    is_distance = gram.source.kernel.by_differences is not None and gram.source.statistic == "dot"

    def work(start: int, stop: int) -> None:
        tile = values[start:stop]
        samples.compare(gram.source.statistic, samples.panel(np.arange(start, stop), np.float64), 0, n, tile)
        if is_distance:
            tile *= -2.0
            tile += norms[start:stop, None] + norms
            np.maximum(tile, 0.0, out=tile)

    with blas_on_one_thread():
        gram.team.share(n, LAYOUT.flat_tile[0], work)
    if is_distance:
        np.fill_diagonal(values, 0.0)
    for start in range(0, n, LAYOUT.flat_tile[0]):  # rounding must not make it asymmetric
        check()
        stop = start + LAYOUT.flat_tile[0]
        values[start:, start:stop] = values[start:stop, start:].T
    return values
