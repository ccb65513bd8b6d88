"""Samples whose features are all 0 or 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Floats, Index
from hinge.data import products
from hinge.data.samples import Samples, Statistic


class BitSamples(Samples):
    """Samples whose features are all 0 or 1: 64 features a word, compared by counting common bits."""

    storage = "bits"

    def __init__(self, words: NDArray[np.uint64], n_features: int) -> None:
        super().__init__()
        self.words = words  # (n_words, n): word-major, so that loops run along the samples
        self.n = words.shape[1]
        self.n_features = n_features
        self.cost = 2.0 * words.shape[0]

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

    def take(self, index: Index, dtype: Any) -> BitSamples:
        return BitSamples(np.take(self.words, index, axis=1), self.n_features)
