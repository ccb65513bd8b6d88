"""Samples whose features are all 0 or 1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Floats, Index, is_sparse
from hinge.data import products
from hinge.data.layout import LAYOUT
from hinge.data.pages import windows
from hinge.data.samples import Samples, Statistic
from hinge.runtime.prices import MULTIPLY_ADDS_PER_WORD

# 0/1 features are packed up to this many words of 64 features; beyond, where a row has fewer words than non-zeros:
# comparing a word takes about as long as walking one non-zero.
_ALWAYS_PACK_WORDS = 8


class BitSamples(Samples):
    """Samples whose features are all 0 or 1: 64 features a word, compared by counting common bits."""

    storage = "bits"
    counts_differences = True

    def __init__(self, words: NDArray[np.uint64], n_features: int) -> None:
        super().__init__()
        self.words = words  # (n_words, n): word-major, so that loops run along the samples
        self.n = words.shape[1]
        self.n_features = n_features
        self.cost = MULTIPLY_ADDS_PER_WORD * words.shape[0]

    def _compute_norms(self, dtype: Any) -> NDArray[np.float64]:
        return np.bitwise_count(self.words).sum(axis=0, dtype=np.float64)

    def absolute_sums(self) -> NDArray[np.float64]:
        return self._compute_norms(np.float64)

    def panel(self, index: Index, dtype: Any) -> NDArray[np.uint64]:
        return np.ascontiguousarray(self.words[:, index].T)

    def compare(self, statistic: Statistic, panel: Any, start: int, stop: int, out: Floats) -> None:
        columns = np.ascontiguousarray(self.words[:, start:stop])
        products.bit_dots(panel, columns, out)
        if statistic != "dot":  # for bits |x - y| and (x - y)^2 / (x + y) are both x + y - 2xy
            own = np.bitwise_count(panel).sum(axis=1, dtype=out.dtype)
            others = np.bitwise_count(columns).sum(axis=0, dtype=out.dtype)
            np.multiply(out, -2, out=out)
            np.add(out, own[:, None] + others[None, :], out=out)

    def _contents(self, index: Index) -> Iterable[bytes]:
        return (words.tobytes() for words in self.words[:, index].T)

    def look_up(self, panel: Any, start: int, stop: int, table: Floats, out: Floats) -> None:
        products.bit_look_up(panel, np.ascontiguousarray(self.words[:, start:stop]), table, out)

    def take(self, index: Index, dtype: Any) -> BitSamples:
        return BitSamples(np.take(self.words, index, axis=1), self.n_features)

    def joined(self, others: Sequence[BitSamples]) -> BitSamples:
        words = [self.words, *(other.words for other in others)]
        return BitSamples(np.concatenate(words, axis=1), self.n_features)


def packed(rows: Any, always: bool = False) -> BitSamples | None:
    """Return the rows of an array or a CSR matrix in packed bits, if all values are 0 or 1 and it is worth it.

    ``always``: whether it is, is known.
    """
    return _packed_sparse(rows, always) if is_sparse(rows) else _packed_dense(rows, always)


def worth_packing(n_features: int, nonzeros_per_row: float) -> bool:
    """Whether rows of 0 and 1 with this share of ones are compared faster when they are packed."""
    words = -(-n_features // 64)
    return words <= max(_ALWAYS_PACK_WORDS, nonzeros_per_row)


def _packed_dense(rows: Floats, always: bool) -> BitSamples | None:
    n, n_features = rows.shape
    if n_features == 0 or n == 0:
        return None
    if rows[0, 0] not in (0, 1) or not np.array_equal(rows[0] == 1, rows[0] != 0):
        return None  # the first row of most other data tells, often its first value
    n_words = -(-n_features // 64)
    padded = np.zeros((n, n_words * 8), np.uint8)
    n_ones = 0
    for window in windows(rows):
        for start in range(window.start, window.stop, LAYOUT.read_rows):
            stop = min(start + LAYOUT.read_rows, window.stop)
            part = rows[start:stop]
            ones = part == 1
            if not np.array_equal(ones, part != 0):
                return None
            n_ones += int(np.count_nonzero(ones))
            words = np.packbits(ones, axis=1, bitorder="little")
            padded[start:stop, : words.shape[1]] = words
    if not (always or worth_packing(n_features, n_ones / n)):
        return None
    return BitSamples(np.ascontiguousarray(padded.view("<u8").T.astype(np.uint64, copy=False)), n_features)


def _packed_sparse(matrix: Any, always: bool) -> BitSamples | None:
    n, n_features = matrix.shape
    if n_features == 0 or n == 0 or not (always or worth_packing(n_features, matrix.nnz / n)):
        return None
    if not all(np.isin(matrix.data[part], (0, 1)).all() for part in windows(matrix.data)):
        return None
    words = np.zeros((-(-n_features // 64), n), np.uint64)
    indptr, indices = matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False)
    products.pack_rows(indptr, indices, matrix.data, words)
    return BitSamples(words, n_features)
