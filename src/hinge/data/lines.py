"""Sparse rows as a file lists them, which commands pass on: importing SciPy takes longer than a small fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Index, sparse


@dataclass(frozen=True, eq=False)
class Lines:
    """The arrays of a CSR matrix whose indices ascend along every row.

    Attributes
    ----------
    data, indices, indptr : arrays
        As SciPy has them.
    shape : tuple of int
        Rows and columns.

    Examples
    --------
    >>> lines = Lines(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 1]), np.array([0, 2, 2, 3]), (3, 3))
    >>> lines[np.array([2, 0])].matrix().toarray()
    array([[0., 3., 0.],
           [1., 0., 2.]])
    """

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]
    shape: tuple[int, int]

    def __getitem__(self, rows: slice | Index) -> Lines:
        """Return some of the rows, in their order."""
        numbers = np.arange(self.shape[0])[rows]
        lengths = np.diff(self.indptr)[numbers]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(self.indptr.dtype)
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[numbers] - indptr[:-1], lengths)
        return Lines(self.data[places], self.indices[places], indptr, (len(numbers), self.shape[1]))

    def matrix(self) -> Any:
        """Return them as SciPy's matrix, on the same arrays."""
        X = sparse().csr_matrix((self.data, self.indices, self.indptr), shape=self.shape, copy=False)
        X.has_canonical_format = True
        return X

    def toarray(self) -> NDArray[Any]:
        """Return them with their zeros."""
        X = np.zeros(self.shape, self.data.dtype)
        X[np.repeat(np.arange(self.shape[0]), np.diff(self.indptr)), self.indices] = self.data
        return X
