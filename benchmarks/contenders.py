"""Who competes, and on which kind of input."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.cases import DENSE_SHARE

# A dense copy beyond this, or a sparse copy of data that is mostly non-zero, is not worth a run.
LARGEST_DENSE = 2**30


@dataclass(frozen=True)
class Contender:
    """A library, and the input it gets.

    Attributes
    ----------
    name : str
        Name in the tables.
    library : str
        ``"hinge"``, ``"sklearnex"``, ``"libsvm"``, ``"sklearn"`` or ``"liblinear"``.
    dtype : str or None
        Type of the values; None leaves them as the data set has them.
    storage : str or None
        ``"dense"`` or ``"csr"``; None leaves the data as it is.
    by_weights : bool
        Whether it is the library's machine that is nothing but weights: LIBLINEAR's problem, not LIBSVM's.
    """

    name: str
    library: str
    dtype: str | None = None
    storage: str | None = None
    by_weights: bool = False

    @property
    def is_reference(self) -> bool:
        """Whether this is Hinge as a user would call it."""
        return self.name == "hinge"

    @property
    def is_installed(self) -> bool:
        """Whether the library can be imported."""
        return find_spec(self.library) is not None

    def why_not(self, X: Any, kernel: str, task: str) -> str | None:
        """Return why this contender does not take part in a case, or None if it does."""
        if not self.is_installed:
            return f"{self.library} is not installed"
        if self.by_weights and (kernel != "linear" or task == "regression"):
            return f"{self.name} solves linear classification"
        n, d = X.shape
        non_zero = X.nnz if sp.issparse(X) else np.count_nonzero(X)
        if self.storage == "csr" and non_zero > DENSE_SHARE * n * d:
            return "the data is dense"
        if self.storage == "dense" and n * d * np.dtype(self.dtype or "float64").itemsize > LARGEST_DENSE:
            return "a dense copy would be too large"
        return None


def _inputs(library: str) -> list[Contender]:
    return [
        Contender(f"{library}-f{bits}-{storage}", library, f"float{bits}", storage)
        for storage in ("dense", "csr")
        for bits in (32, 64)
    ]


HINGE = Contender("hinge", "hinge")
HINGE_INPUTS = _inputs("hinge")
SKLEARNEX = _inputs("sklearnex")
LIBSVM = Contender("libsvm", "libsvm", "float64")
SKLEARN = Contender("sklearn", "sklearn", "float64")
LIBLINEAR = Contender("liblinear", "liblinear", "float64", by_weights=True)
HINGE_LINEAR = Contender("hinge-linear", "hinge", by_weights=True)

CONTENDERS = {c.name: c for c in (HINGE, *HINGE_INPUTS, *SKLEARNEX, LIBSVM, SKLEARN, LIBLINEAR, HINGE_LINEAR)}

PEERS = [HINGE, *SKLEARNEX, LIBSVM, SKLEARN]
LINEAR_PEERS = [*PEERS, LIBLINEAR, HINGE_LINEAR]


def chosen(names: list[str] | None, default: list[Contender]) -> list[Contender]:
    """Return the contenders by name; a library's name alone stands for all its inputs."""
    if not names:
        return default
    found = []
    for name in names:
        matches = [c for c in CONTENDERS.values() if c.name == name] or [
            c for c in CONTENDERS.values() if c.name.startswith(f"{name}-")
        ]
        if not matches:
            raise ValueError(f"unknown contender {name!r}; known are {', '.join(CONTENDERS)}")
        found += matches
    return found
