"""Samples that stay in their file: rows are read when they are compared, and let go.

Every question about such samples is one about some of them: these are read into a storage in memory, which knows
the answer. What a fit keeps is what it keeps of all samples anyway, a few numbers for each.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import FeatureRows, Floats, Index, is_sparse
from hinge.data.dense import DenseSamples
from hinge.data.layout import LAYOUT
from hinge.data.pages import Pages, arrays_of, bytes_per_row, gather, is_mapped, reduced
from hinge.data.samples import FeatureSamples, Statistic
from hinge.data.sparse import SparseSamples
from hinge.runtime.memory import CACHE_LINE
from hinge.runtime.prices import MULTIPLY_ADDS_PER_SPARSE_ONE

Form = Literal["dense", "sparse"]


@dataclass(frozen=True)
class Shares:
    """What the memory of a fit to a mapped file is for.

    Attributes
    ----------
    in_memory : float
        Share of a budget up to which data is not left in its file.
    copies : float
        Bytes that it then takes for each of the file: its pages, and a copy in single precision.
    of_sample : int
        Bytes that a fit keeps of every sample, measured: variables, bounds, residuals, copies of them.
    least : float
        Share of a budget that is left for values and rows however much memory all samples take.
    values : float
        Share of that for kernel values.
    copy : float
        Share for a copy of samples that are worked on alone; of these a smaller one may be made.
    panels : float
        Share for panels, which wait for all threads.
    window : float
        Share for the rows that a thread reads at once.
    visit : int
        Bytes that visits of single rows take, each: pages around its features and around their numbers.
    """

    in_memory: float = 0.5
    copies: float = 1.5
    of_sample: int = 320
    least: float = 0.25
    values: float = 0.5
    copy: float = 0.125
    panels: float = 0.0625
    window: float = 0.015625
    visit: int = 1 << 18


SHARES = Shares()


def stays_in_file(rows: Any, budget: int | None) -> bool:
    """Whether an array or CSR matrix is mapped, and so large beside a budget in bytes that it should stay there.

    With few features it would make no difference: what a fit keeps of each sample is more than those.
    """
    if budget is None or rows.shape[1] <= LAYOUT.few_features or not is_mapped(rows):
        return False
    return sum(array.nbytes for array in arrays_of(rows)) > SHARES.in_memory * budget


class MappedSamples(FeatureSamples):
    """Rows of a mapped array or CSR matrix, or some of them, compared as dense or as sparse samples.

    Parameters
    ----------
    rows : array or CSR matrix
        All rows of the file.
    form : {"dense", "sparse"}
        How they are stored once they are in memory.
    budget : int
        Bytes for all that a fit keeps, kernel values included.
    center : array, optional
        What dense rows are seen from.
    index : int64 array, optional
        The rows that these samples are, in order; all by default.
    """

    def __init__(
        self,
        rows: Any,
        form: Form,
        budget: int,
        center: NDArray[np.float64] | None = None,
        index: Index | None = None,
    ) -> None:
        super().__init__()
        self.rows, self.form, self.center = rows, form, center
        self.is_dense, self.is_far_from_zero = form == "dense", False
        self.n_features = rows.shape[1]
        self.n = rows.shape[0] if index is None else len(index)
        self.storage = f"{form}, read from a file"
        room = max(budget - SHARES.of_sample * rows.shape[0], int(SHARES.least * budget))
        self.reserved_bytes = budget - int(SHARES.values * room)
        self.panel_bytes = int(SHARES.panels * room)
        self._budget, self._room, self._index = budget, room, index
        self._pages = Pages(rows)
        self._last = threading.local()
        self._measure()
        is_as_stored = self.is_dense != is_sparse(rows) and (center is None and rows.dtype == np.float64)
        self.most_visited = room // SHARES.visit if is_as_stored and index is None else 0

    def _measure(self) -> None:
        """Find out how long rows are: what comparisons cost depends on it."""
        if self.is_dense:
            self.cost, self.terms = float(self.n_features), self.n_features
            self._row_bytes = 20.0 * self.n_features  # pages, rows as they are, and in single precision
            return
        n_ones, longest = 0, 0
        if is_sparse(self.rows):
            n_ones, longest = self.rows.nnz, int(np.diff(self.rows.indptr).max(initial=0))
        else:
            n_ones, longest = reduced(self.rows, _count_ones, _sum_and_max)
        per_row = n_ones / max(self.rows.shape[0], 1)
        self.cost, self.terms = max(MULTIPLY_ADDS_PER_SPARSE_ONE * per_row, 1.0), 2 * longest
        self._row_bytes = 28.0 * per_row + 16.0

    # ------------------------------------------------------------------ rows in memory

    def _load(self, part: slice | Index) -> DenseSamples | SparseSamples:
        """Read some of the samples into memory."""
        places = part if self._index is None else self._index[part]
        if isinstance(places, slice):
            rows = self.rows[places]
            rows = np.array(rows) if isinstance(rows, np.ndarray) else rows
            self._pages.touch(bytes_per_row(self.rows) * rows.shape[0])
        else:
            rows = gather(self.rows, places, self._pages)
        if self.is_dense:
            return DenseSamples(rows.toarray() if is_sparse(rows) else rows, self.center)
        loaded = SparseSamples.of(rows)
        loaded.is_far_from_zero = self.is_far_from_zero
        return loaded

    def _window(self, start: int, stop: int) -> DenseSamples | SparseSamples:
        """As `_load`, of a range; a thread that asks for the same one again has it still."""
        if getattr(self._last, "range", None) != (start, stop):
            self._last.samples = None  # two need not be in memory at once
            self._last.samples, self._last.range = self._load(slice(start, stop)), (start, stop)
        samples: DenseSamples | SparseSamples = self._last.samples
        return samples

    @property
    def _window_rows(self) -> int:
        """How many samples a thread reads at once."""
        return max(int(SHARES.window * self._room / self._row_bytes), 1)

    def _ranges(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Cut a range into those that are read at once."""
        for first in range(start, stop, self._window_rows):
            yield first, min(first + self._window_rows, stop)

    def _pieces(self, index: Index) -> Iterator[tuple[slice, DenseSamples | SparseSamples]]:
        """Read the samples ``index`` piece by piece."""
        for first, last in self._ranges(0, len(index)):
            yield slice(first, last), self._load(index[first:last])

    def _of_all(self, ask: Any) -> NDArray[np.float64]:
        """Return what ``ask`` says of every sample, one number each."""
        found = np.empty(self.n)
        for start, stop in self._ranges(0, self.n):
            found[start:stop] = ask(self._load(slice(start, stop)))
        self._pages.let_go()
        return found

    # ------------------------------------------------------------------ what is asked of samples

    def tile_shape(self, statistic: Statistic) -> tuple[int, int]:
        is_tall = statistic == "dot" and self.n_features >= LAYOUT.many_features
        height, width = LAYOUT.tall_tile if is_tall else LAYOUT.flat_tile
        # Columns that are read once for all panels that wait.
        return height, min(width, max(self._window_rows // CACHE_LINE, 1) * CACHE_LINE)

    def _compute_norms(self, dtype: Any) -> NDArray[np.float64]:
        return self._of_all(lambda part: part._compute_norms(dtype))

    def absolute_sums(self) -> NDArray[np.float64]:
        return self._of_all(lambda part: part.absolute_sums())

    def rounded_sums(self) -> NDArray[np.float64]:
        return self._of_all(lambda part: part.rounded_sums())

    def subtracted_sums(self, statistic: Statistic) -> NDArray[np.float64]:
        return self._of_all(lambda part: part.subtracted_sums(statistic))

    def has_negatives(self) -> bool:
        return any(self._load(slice(*part)).has_negatives() for part in self._ranges(0, self.n))

    def centered(self) -> MappedSamples:
        total = reduced(self.rows, lambda part: np.asarray(part.sum(axis=0, dtype=np.float64)).ravel(), np.add)
        with np.errstate(over="ignore", invalid="ignore"):  # norms from there are not finite either
            return MappedSamples(self.rows, self.form, self._budget, total / max(self.n, 1), self._index)

    def panel(self, index: Index, dtype: Any) -> Any:
        return self._load(index).panel(np.arange(len(index)), dtype)

    def compare(self, statistic: Statistic, panel: Any, start: int, stop: int, out: Floats) -> None:
        for first, last in self._ranges(start, stop):
            columns = self._window(first, last)
            columns.compare(statistic, panel, 0, last - first, out[:, first - start : last - start])

    def take(self, index: Index, dtype: Any) -> FeatureSamples:  # type: ignore[override]
        if len(index) * self._row_bytes <= SHARES.copy * self._room:
            parts = [samples.take(np.arange(samples.n), dtype) for _, samples in self._pieces(index)]
            first, *others = parts or [self._load(index)]
            return first.joined(others)  # type: ignore[arg-type]
        places = index if self._index is None else self._index[index]
        taken = MappedSamples(self.rows, self.form, self._budget, self.center, places)
        taken.is_far_from_zero = self.is_far_from_zero
        taken._norms = {key: norms[index] for key, norms in self._norms.items()}
        taken._sums = {key: sums[index] for key, sums in self._sums.items()}
        return taken

    def exact_rows(self) -> FeatureRows:
        return self._load(slice(0, self.n)).exact_rows()

    def exact_rows_of(self, index: Index) -> tuple[FeatureRows, Index]:
        different, places = np.unique(index, return_inverse=True)
        return self._load(different).exact_rows(), places.astype(np.int64, copy=False)

    def feature_rows(self) -> FeatureRows:
        if not self.most_visited:
            return self._load(slice(0, self.n)).feature_rows()
        if self.is_dense:
            return FeatureRows(np.empty(0, np.int64), np.empty(0, np.int32), np.asarray(self.rows))
        return SparseSamples.of(self.rows).feature_rows()

    def let_go(self) -> None:
        self._pages.let_go()

    def combine(self, index: Index, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = np.zeros(self.n_features)
        for part, samples in self._pieces(index):
            weights += samples.combine(np.arange(samples.n), coefficients[part])
        return weights

    def project(self, weights: NDArray[np.float64], start: int, stop: int) -> NDArray[np.float64]:
        image = np.empty(stop - start)
        for first, last in self._ranges(start, stop):
            image[first - start : last - start] = self._load(slice(first, last)).project(weights, 0, last - first)
        return image

    def moments(self, index: Index, factors: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.zeros((self.n_features, self.n_features))
        for part, samples in self._pieces(index):
            total += samples.moments(np.arange(samples.n), factors[part])
        return total


def _count_ones(rows: Floats) -> list[int]:
    counts = np.count_nonzero(rows, axis=1)
    return [int(counts.sum()), int(counts.max(initial=0))]


def _sum_and_max(one: list[int], other: list[int]) -> list[int]:
    return [one[0] + other[0], max(one[1], other[1])]
