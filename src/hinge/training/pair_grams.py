"""Kernel matrices for pairs of classes: what several pairs need is computed once.

With k classes each class takes part in k − 1 pairs. The matrix of a pair has four blocks, of which the two on the
diagonal belong to one class alone: they are kept. Only the block between the classes is new, and it is its
mirror image's transpose.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from hinge.arrays import Floats, Index
from hinge.kernel.gram import Gram
from hinge.kernel.square import block_bytes


class PairGrams:
    """Stored Gram matrices of pairs of classes that fit one working set.

    Parameters
    ----------
    gram : Gram
        Kernel values of all samples.
    most : int
        Pairs of more samples than this are not stored.
    n_workers : int
        Threads that ask at the same time.

    Notes
    -----
    Each thread's matrix, with what its free set may need, and the blocks of classes that are kept share the budget
    of the Gram matrix. Where the matrices alone exceed it, no pair is stored; blocks beyond it are computed again.

    Examples
    --------
    >>> from hinge import Kernel
    >>> pairs = PairGrams(Gram(np.array([[0.0], [1.0], [3.0]]), Kernel("linear")), most=2000)
    >>> pairs.gram_of(np.array([1, 0, 2]), 1).block(np.arange(3))
    array([[1., 0., 3.],
           [0., 0., 0.],
           [3., 0., 9.]])
    """

    def __init__(self, gram: Gram, most: int, n_workers: int = 1) -> None:
        self.gram = gram
        self.most = most
        self._room = gram.cache_bytes - n_workers * block_bytes(most)
        self._has_room = self._room >= 0
        self._own: dict[int, Floats] = {}
        self._lock = threading.Lock()
        self._memory = threading.local()

    def gram_of(self, samples: Index, split: int) -> Gram | None:
        """Return the Gram matrix of ``samples``, the first ``split`` of which are one class, the others another.

        None where there is no pair, or the pair is too large to be stored. The next call from the same thread
        overwrites the matrix: the first touch of fresh memory costs more than its use.
        """
        matrix = self.matrix_of(samples, split)
        return None if matrix is None else self.gram.given(matrix, samples)

    def matrix_of(self, samples: Index, split: int) -> Floats | None:
        """Return the values of `gram_of` alone."""
        if not (self._has_room and 0 < split < len(samples) <= self.most):
            return None
        if (whole := self.gram.matrix) is not None:
            return np.ascontiguousarray(whole[np.ix_(samples, samples)])
        first, second = samples[:split], samples[split:]
        between = self.gram.between(first, second)
        matrix = self._workspace(len(samples), between.dtype)
        matrix[:split, :split] = self._block_of(first)
        matrix[split:, split:] = self._block_of(second)
        matrix[:split, split:] = between
        matrix[split:, :split] = between.T
        return matrix

    def _workspace(self, n: int, dtype: Any) -> Floats:
        memory: Floats | None = getattr(self._memory, "values", None)
        if memory is None or memory.size < n * n:
            memory = self._memory.values = np.empty(n * n, dtype)
        return memory[: n * n].reshape(n, n)

    def _block_of(self, members: Index) -> Floats:
        name = int(members[0])  # classes do not overlap
        with self._lock:
            known = self._own.get(name)
        if known is None:
            known = self.gram.between(members, members)
            with self._lock:
                if known.nbytes <= self._room and name not in self._own:
                    self._room -= known.nbytes
                    self._own[name] = known
        return known
