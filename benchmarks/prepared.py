"""A case's data on disk, in the type and storage that each contender gets: workers only map it in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.contenders import Contender


class Prepared:
    """Loaded data that is written once in each form that is asked for.

    Parameters
    ----------
    X, y : arrays
        Samples, dense or CSR, and targets.
    folder : path
        Where to write; the caller removes it.
    """

    def __init__(self, X: Any, y: NDArray[Any], folder: Path) -> None:
        self.X, self.y = X, y
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, contender: Contender) -> Path:
        """Return the file with the data as this contender gets it."""
        storage = contender.storage or ("csr" if sp.issparse(self.X) else "dense")
        dtype = np.dtype(contender.dtype or self.X.dtype)
        if contender.library in ("libsvm", "liblinear"):
            storage = "csr"  # their own format is sparse, whatever the data
        path = self.folder / f"{storage}-{dtype.name}.npz"
        if not path.exists():
            _save(path, self.X, self.y, storage, dtype)
        return path


def _save(path: Path, X: Any, y: NDArray[Any], storage: str, dtype: np.dtype[Any]) -> None:
    if storage == "dense":
        X = X.toarray() if sp.issparse(X) else X
        np.savez(path, y=y, X=np.ascontiguousarray(X, dtype=dtype))
        return
    X = sp.csr_matrix(X).astype(dtype)
    X.sort_indices()
    np.savez(path, y=y, data=X.data, indices=X.indices, indptr=X.indptr, shape=np.array(X.shape))


def read(path: Path | str) -> tuple[Any, NDArray[Any]]:
    """Read what `Prepared` wrote."""
    with np.load(path) as file:
        if "X" in file:
            return file["X"], file["y"]
        parts = (file["data"], file["indices"], file["indptr"])
        return sp.csr_matrix(parts, shape=tuple(file["shape"])), file["y"]
