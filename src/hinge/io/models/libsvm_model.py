"""A model as LIBSVM's model file holds it, in LIBSVM's signs and order.

Classes come in the order of `labels`; the machines are the pairs 01, 02, …, 12, …, each positive for its first
class; a decision is Σ coefficient · kernel − rho. Nothing outside the model files and the commands uses these
conventions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Vector, sparse
from hinge.kernel.kernels import Kernel
from hinge.model import Model

#: LIBSVM's types, and SVDD, which its own programs refuse (its authors have it beside LIBSVM, as type 5).
SvmType = Literal["c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr", "svdd", "ranking"]

SVM_TYPES: tuple[SvmType, ...] = (
    "c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr", "svdd", "ranking",
)  # fmt: skip
CLASSIFIERS: tuple[SvmType, ...] = ("c_svc", "nu_svc")
REGRESSIONS: tuple[SvmType, ...] = ("epsilon_svr", "nu_svr", "ranking")
NOVELTIES: tuple[SvmType, ...] = ("one_class", "svdd")


class ModelFileError(ValueError):
    """A model file cannot be read, or a model cannot be written as one.

    Attributes
    ----------
    path : str
        The file.
    line : int
        The line to blame, counted from 1; 0 for the file as a whole.

    Examples
    --------
    >>> print(ModelFileError("expected a number, found 'x'", "m.model", 3))
    m.model: line 3: expected a number, found 'x'
    """

    def __init__(self, message: str, path: str = "", line: int = 0) -> None:
        super().__init__(message, path, line)
        self.message, self.path, self.line = message, path, line

    def __str__(self) -> str:
        where = [self.path] if self.path else []
        if self.line:
            where.append(f"line {self.line}")
        return ": ".join([*where, self.message])


class _Typed(Protocol):
    @property
    def svm_type(self) -> SvmType: ...


class OfType:
    """What a type of machine is for, asked of whatever has a ``svm_type``."""

    @property
    def is_classifier(self: _Typed) -> bool:
        """Whether classes are told apart."""
        return self.svm_type in CLASSIFIERS

    @property
    def is_regression(self: _Typed) -> bool:
        """Whether numbers are predicted."""
        return self.svm_type in REGRESSIONS

    @property
    def is_novelty(self: _Typed) -> bool:
        """Whether inliers are told from outliers."""
        return self.svm_type in NOVELTIES


#: LIBSVM's names of the kernels, in the order of its ``-t``, and ours.
KERNEL_TYPES = {
    "linear": "linear", "polynomial": "poly", "rbf": "rbf", "sigmoid": "sigmoid", "precomputed": "precomputed",
}  # fmt: skip

#: Powers are computed by repeated multiplication; a larger degree would only ever overflow.
MOST_DEGREE = 1000

#: Decision values held at one time while many samples are decided.
_MOST_DECISIONS = 2**22


@dataclass(frozen=True, eq=False)
class LibsvmModel(OfType):
    """What a LIBSVM model file says.

    Attributes
    ----------
    svm_type : str
        One of `SVM_TYPES`.
    kernel : Kernel
        The kernel with its parameters.
    rho : array of shape (n_pairs,)
        Decisions are sums minus rho; those of ``svdd`` also minus k(x, x).
    coefficients : array of shape (n_classes - 1, n_support)
        Column s holds what support vector s adds to its machines against the other classes, in their order.
    vectors : CSR matrix of shape (n_support, n_columns)
        The support vectors; column i is the feature of index i. For a precomputed kernel column 0 holds the
        serial number of the sample.
    labels : int64 array of shape (n_classes,) or None
        The classes; None for regression and one class.
    n_support : int64 array of shape (n_classes,) or None
        Support vectors of each class; they are grouped by class.
    prob_a, prob_b : arrays or None
        Sigmoids of the pairs; of a regression ``prob_a`` alone, the scale of the noise.
    density_marks : array of shape (10,) or None
        Density marks of one class.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import make_moons
    >>> from hinge import SVC
    >>> from hinge.estimators import save_model
    >>> from hinge.io import read_libsvm_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(SVC().fit(*make_moons(50)), Path(folder) / "moons.model")
    ...     model = read_libsvm_model(Path(folder) / "moons.model")
    >>> model.svm_type, model.kernel.name, sorted(model.labels.tolist())
    ('c_svc', 'rbf', [0, 1])
    """

    svm_type: SvmType
    kernel: Kernel
    rho: Vector
    coefficients: Vector
    vectors: Any
    labels: NDArray[np.int64] | None = None
    n_support: NDArray[np.int64] | None = None
    prob_a: Vector | None = None
    prob_b: Vector | None = None
    density_marks: Vector | None = None

    @property
    def n_classes(self) -> int:
        """LIBSVM's ``nr_class``: 2 for regression and one class."""
        return 2 if self.labels is None else len(self.labels)

    @property
    def has_probabilities(self) -> bool:
        """Whether ``-b 1`` is possible (LIBSVM's ``svm_check_probability_model``)."""
        if self.is_novelty:
            return self.density_marks is not None
        return self.prob_a is not None and (self.is_regression or self.prob_b is not None)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of class numbers in LIBSVM's order."""
        return pairs_of(self.n_classes)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the support vectors of each class begin, and where the last ones end."""
        counts = [self.coefficients.shape[1]] if self.n_support is None else self.n_support
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def decide(self, X: Any, threads: int | None = None) -> Iterator[tuple[int, Vector]]:
        """Yield decision values of the rows of X in blocks: the first row, and one column per pair.

        Parameters
        ----------
        X : CSR matrix
            Samples; column i is the feature of index i. For a precomputed kernel column i holds the kernel value
            with training sample i.
        threads : int, optional
            Number of threads; by default every core that this process may use.
        """
        n_pairs = max(len(self.rho), 1)
        parts = list(self._models(X))
        X = parts.pop() if parts else X
        block = max(_MOST_DECISIONS // n_pairs, 1)
        for start in range(0, X.shape[0], block):
            sums = [part.decide(X[start : start + block], threads) for part in parts]
            yield start, self._by_pairs(sums, min(block, X.shape[0] - start))

    def _models(self, X: Any) -> Iterator[Any]:
        """Yield a model for each class with one machine an opponent, and then X with the columns they use."""
        starts, intercepts = self.starts, np.zeros(len(self.coefficients))
        own = -1.0 if self.svm_type == "svdd" else 0.0
        if self.kernel.is_precomputed:
            serials = self.serials()
            top = int(serials.max(initial=0))
            if top >= X.shape[1]:
                raise ValueError(f"the model needs kernel values with training sample {top}; rows end before it")
            columns = dense_columns(X, serials)
            everyone = np.arange(len(serials))
            for a, b in pairwise(starts):
                empty = np.empty((b - a, 0))
                yield Model(self.kernel, empty, everyone[a:b], self.coefficients[:, a:b], intercepts)
            yield columns
            return
        vectors, queries = with_common_columns(self.vectors, X)
        for a, b in pairwise(starts):
            support = np.arange(b - a)
            yield Model(self.kernel, vectors[a:b], support, self.coefficients[:, a:b], intercepts, own)
        yield queries

    def _by_pairs(self, sums: list[Vector], n: int) -> Vector:
        if not self.is_classifier:
            return sums[0] - self.rho
        decisions = np.empty((n, len(self.rho)))
        for column, (i, j) in enumerate(self.pairs):
            decisions[:, column] = sums[i][:, j - 1] + sums[j][:, i] - self.rho[column]
        return decisions

    def serials(self) -> NDArray[np.int64]:
        """Serial numbers of the support vectors of a precomputed kernel, counted from 1."""
        return dense_columns(self.vectors, np.array([0]))[:, 0].astype(np.int64)


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """Return the pairs of class numbers in LIBSVM's order: 01, 02, …, 12, ….

    Examples
    --------
    >>> pairs_of(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]


def with_common_columns(first: Any, second: Any) -> tuple[Any, Any]:
    """Return two CSR matrices without the columns that neither uses, dense where most values are there.

    What a column costs is thus bounded by what the files hold, whatever indices they use.

    Examples
    --------
    >>> a, b = with_common_columns(sparse().csr_array([[0, 1.0]]), sparse().csr_array([[2.0, 0, 0], [3.0, 0, 0]]))
    >>> a, b
    (array([[0., 1.]]), array([[2., 0.],
           [3., 0.]]))
    """
    used = np.union1d(first.indices, second.indices)
    parts = [_only(used, first), _only(used, second)]
    n_places = sum(part.shape[0] for part in parts) * len(used)
    if 4 * (parts[0].nnz + parts[1].nnz) >= n_places:
        return parts[0].toarray(), parts[1].toarray()
    return parts[0], parts[1]


def dense_columns(rows: Any, wanted: NDArray[Any]) -> Vector:
    """Return some columns of a CSR matrix as a dense array, at a cost bounded by what the matrix holds.

    Examples
    --------
    >>> dense_columns(sparse().csr_matrix([[0, 5.0, 0, 7.0]]), np.array([3, 0, 3]))
    array([[7., 0., 7.]])
    """
    if rows.shape[1] > rows.nnz + len(wanted):  # SciPy takes memory for every column there could be
        used = np.union1d(rows.indices, wanted)
        rows, wanted = _only(used, rows), np.searchsorted(used, wanted)
    return np.ascontiguousarray(rows[:, wanted].toarray(), np.float64)


def _only(columns: NDArray[Any], rows: Any) -> Any:
    """Return a CSR matrix with some of its columns, in rising order; the others must be empty."""
    places = np.searchsorted(columns, rows.indices)
    return sparse().csr_array((rows.data, places, rows.indptr), shape=(rows.shape[0], len(columns)))
