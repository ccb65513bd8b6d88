"""Certified compression of fitted machines: fewer support vectors, with a bound on what that changes."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from hinge.arrays import Index, Vector
from hinge.data.collection import Collection
from hinge.data.storage import store
from hinge.estimators.inputs import thread_count
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import Kernel
from hinge.kernel.rounding import UNIT
from hinge.model import Model
from hinge.runtime.interrupt import catching
from hinge.runtime.threads import blas_on_one_thread
from hinge.training.compression import Compression, compress
from hinge.training.multiclass import by_opponent, duels


class Compressible:
    """What kernel machines do to predict faster."""

    def compressed(
        self, *, n_support: int | None = None, error: float | None = None, radius: float | None = None
    ) -> Self:
        """Return a machine of fewer support vectors whose decisions are proved to be near those of this one.

        Parameters
        ----------
        n_support : int, optional
            Most support vectors that it may have.
        error : float, optional
            Instead: most by which any decision value of any of its machines may differ, for every sample (of
            kernels whose values grow with the samples: for every one within ``radius``).
        radius : float, optional
            Largest length of a sample that the bound is to hold for; by default that of the longest training
            sample. Kernels with k(x, x) = 1 need none. For kernel functions and ``kernel="precomputed"`` it is the
            length in the kernel's space, √k(x, x).

        Returns
        -------
        estimator
            A fitted machine of the same type, which predicts, pickles and is saved like any other;
            ``compression_`` says what is proved of it and what was measured. It is no optimum: it has no
            certificate, and cannot be updated. Probabilities are those of this machine's calibration.

        Raises
        ------
        ValueError
            The kernel is not positive semi-definite: there is no such bound.

        Notes
        -----
        A linear machine of two classes, or of numbers, is compressed exactly: its weight vector is its one
        support vector.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from hinge import SVC
        >>> X, y = make_moons(500, noise=0.2, random_state=0)
        >>> machine = SVC(gamma=1.0).fit(X, y)
        >>> small = machine.compressed(error=0.05)
        >>> bool(small.compression_.bound <= 0.05), len(small.support_) < len(machine.support_) / 2
        (True, True)
        """
        _check_wish(n_support, error, radius)
        return _compressed(self, n_support, error, radius)


def _compressed(machine: Any, n_support: int | None, error: float | None, radius: float | None) -> Any:
    """Return a compressed copy of a machine."""
    machine._check_fitted()
    model = machine._model
    _check_kernel(model.kernel)
    with catching(), blas_on_one_thread():
        reach, length = _reach(machine, model, radius)
        if model.kernel.is_linear and _is_shared(machine):
            found, codes, norm = _by_weights(model)
            if error is not None and norm * reach > error:  # rounding alone: only the same machine is as near
                found, codes, norm = model, _codes_of(machine), 0.0
            norms = np.full(len(found.coefficients), norm)
        else:
            wanted = 0.0 if error is None else error / reach * (1 - 8 * UNIT)
            codes, gram = _codes_of(machine), _gram_of(machine, model)
            used, coefficients, norms = compress(model, gram, _members(machine, codes), n_support, wanted)
            found = replace(
                model, support_vectors=model.support_vectors[used], support=model.support[used],
                coefficients=coefficients,
            )  # fmt: skip
            codes = codes[used]
        result = _with_model(machine, found, codes)
        result.compression_ = Compression(
            len(model.support), len(found.support), tuple(norms.tolist()), float(norms.max()) * reach, reach,
            length, _measured(machine, model, found),
        )  # fmt: skip
    return result


def _with_model(machine: Any, model: Model, codes: Index) -> Any:
    """Return a copy that has another model, and neither training samples nor anything that rests on them."""
    twin: Any = object.__new__(type(machine))
    twin.__dict__.update(vars(machine), _fitted=None, _past=None)
    twin.__dict__.pop("_proofs", None)
    twin._model = model
    twin.support_ = model.support.astype(np.int32)
    vectors = model.support_vectors
    twin.support_vectors_ = vectors.selected() if isinstance(vectors, Collection) else vectors
    coefficients, n_classes = model.coefficients, len(getattr(machine, "classes_", ()))
    twin.n_support_ = np.bincount(codes, minlength=max(n_classes, 1)).astype(np.int32)
    if not _is_shared(machine):
        coefficients = by_opponent(coefficients, codes, n_classes)
    twin.dual_coef_ = twin._as_input(coefficients)
    return twin


def _check_wish(n_support: int | None, error: float | None, radius: float | None) -> None:
    if (n_support is None) == (error is None):
        raise ValueError(
            "say how far to go: n_support= for the number of support vectors, or error= for what may change"
        )
    if n_support is not None and not (isinstance(n_support, Integral) and n_support >= 1):
        raise ValueError(f"n_support must be a whole number above 0, got {n_support!r}")
    for name, value in (("error", error), ("radius", radius)):
        if value is not None and not (isinstance(value, Real) and 0 < value < np.inf):
            raise ValueError(f"{name} must be a finite number above 0, got {value!r}")


def _check_kernel(kernel: Kernel) -> None:
    if kernel.has_features and not kernel.is_positive:
        raise ValueError(
            f"the {kernel.label} kernel with these parameters is not positive semi-definite: nothing bounds what "
            "fewer support vectors change"
        )


def _is_shared(machine: Any) -> bool:
    """Whether every machine may have every support vector; those of a pair of classes have those of the two."""
    return len(getattr(machine, "classes_", ())) <= 2 or machine.multi_class == "ovr"


def _codes_of(machine: Any) -> Index:
    """Return the class of every support vector; they are listed class by class."""
    return np.repeat(np.arange(len(machine.n_support_)), machine.n_support_)


def _members(machine: Any, codes: Index) -> list[Index]:
    """Return the support vectors that each machine may have; one array where all may have all."""
    if _is_shared(machine):
        return [np.arange(len(codes))]
    pairs = duels(len(machine.classes_))
    return [np.flatnonzero((codes == duel.positive) | (codes == duel.negative)) for duel in pairs]


def _samples(machine: Any, model: Model) -> Any:
    """Return the training samples, or where they are not there any more the support vectors."""
    return model.support_vectors if machine._fitted is None else machine._fitted.formulation.data.X


def _gram_of(machine: Any, model: Model) -> Gram:
    """Return the kernel values of the support vectors."""
    vectors = model.support_vectors
    if model.kernel.is_precomputed:
        columns = _columns(machine, model)
        vectors = _samples(machine, model)[np.ix_(columns, columns)]
    return Gram(vectors, model.kernel, precision="double", threads=thread_count(machine.n_jobs))


def _columns(machine: Any, model: Model) -> Index:
    """Return where support vectors are in the kernel matrix of the training samples."""
    if machine._fitted is None:
        raise ValueError(
            "kernel='precomputed': the kernel values between support vectors are not here any more, because "
            "this machine comes from a file or is a copy; compress it before it is saved"
        )
    return np.asarray(np.searchsorted(machine._fitted.formulation.data.places, model.support))


def _reach(machine: Any, model: Model, radius: float | None) -> tuple[float, float]:
    """Return the largest √k(x, x) that the bound is about, and the length of samples that it is about."""
    kernel = model.kernel
    if kernel.decays or kernel.is_ratio:
        return 1.0, np.inf
    if kernel.has_features:
        length = _longest(_samples(machine, model)) if radius is None else float(radius)
        at_rim = store(np.array([[length]]), kernel)
        return float(np.sqrt(kernel.of_self(at_rim)[0])) * (1 + 8 * UNIT), length
    if radius is None:
        X = _samples(machine, model)
        is_matrix = kernel.is_precomputed
        if is_matrix:
            _columns(machine, model)  # which says that the matrix is not here
        diagonal = np.diag(X) if is_matrix else kernel.of_self(store(Collection.of(X), kernel, budget=0))
        radius = float(np.sqrt(np.max(diagonal, initial=0.0)))
    return radius, radius


def _longest(X: Any) -> float:
    return float(np.sqrt(np.max(_squares(X), initial=0.0))) * (1 + 8 * UNIT * X.shape[1])


def _squares(X: Any) -> Vector:
    """Return the squared length of every row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def _by_weights(model: Model) -> tuple[Model, Index, float]:
    """Return a linear model of weight vectors for support vectors, their classes, and what rounding changes."""
    weights, n = model.weights(), len(model.support)
    vectors = weights.copy()
    rows = model.coefficients.toarray() if sp.issparse(model.coefficients) else model.coefficients
    norm = 2 * (n + 4) * UNIT * float((np.abs(rows) @ np.sqrt(_squares(model.support_vectors))).max(initial=0.0))
    n_machines = len(rows)
    codes = np.arange(n_machines) if n_machines > 1 else np.zeros(1, np.intp)
    nobody = np.full(n_machines, -1, dtype=np.int64)
    found = replace(model, support_vectors=vectors, support=nobody, coefficients=np.eye(n_machines))
    return found, codes, norm


def _measured(machine: Any, before: Model, after: Model) -> float:
    """Return the largest change of a decision value on the training samples."""
    X = _samples(machine, before)
    if before.kernel.is_precomputed:
        sums = [X[:, _columns(machine, model)] @ model.coefficients.T for model in (before, after)]
    else:
        sums = [model.decide(X, threads=thread_count(machine.n_jobs)) for model in (before, after)]
    return float(np.abs(sums[0] - sums[1]).max(initial=0.0))
