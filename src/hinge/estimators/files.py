"""Estimators to LIBSVM model files and back.

LIBSVM's two-class machine is positive for the first label of the file, an estimator's for ``classes_[1]``; the
file's classes come in any order, an estimator's sorted. This module is where the two meet.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hinge.arrays import Vector
from hinge.estimators.nu_svc import NuSVC
from hinge.estimators.one_class import OneClassSVM
from hinge.estimators.ranking import RankSVM
from hinge.estimators.regression import SVR, NuSVR
from hinge.estimators.stand_in import originals
from hinge.estimators.svc import SVC
from hinge.estimators.svdd import SVDD
from hinge.io.budget import Budget
from hinge.io.models.libsvm_model import CLASSIFIERS, LibsvmModel, ModelFileError, SvmType
from hinge.io.models.read import read_libsvm_model
from hinge.io.models.write import kernel_type_of, write_libsvm_model
from hinge.model import Model
from hinge.training.multiclass import by_opponent, duels

_TYPE_OF: dict[type[Any], SvmType] = {
    SVC: "c_svc", NuSVC: "nu_svc", OneClassSVM: "one_class", SVR: "epsilon_svr", NuSVR: "nu_svr",
    SVDD: "svdd", RankSVM: "ranking",
}  # fmt: skip
_CLASS_OF = {svm_type: kind for kind, svm_type in _TYPE_OF.items()}

# An estimator keeps a coefficient for each pair of classes and each support vector, and sorts them once.
_BYTES_A_COEFFICIENT = 16


def save_model(estimator: Any, path: str | os.PathLike[str], *, digits: int = 8) -> None:
    """Write a fitted estimator as a LIBSVM model file, which svm-predict and others can use.

    A file that is there already is replaced only when the new one is complete.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR, NuSVR, OneClassSVM, SVDD or RankSVM
        A fitted estimator, of Hinge or of scikit-learn, with one of LIBSVM's kernels, one machine per pair and
        whole-numbered classes. LIBSVM's own programs do not know the types ``svdd`` and ``ranking``.
    path : path
        Where to write.
    digits : int
        Significant digits of the support vectors' values: 8 as LIBSVM writes them, 17 for all there are.
        Everything else is always written in full.

    Raises
    ------
    ModelFileError
        LIBSVM's format has no room for this estimator; the message says why.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hinge import SVC
    >>> machine = SVC(kernel="linear", C=10.0).fit([[-1.0], [1.0], [2.0]], [3, 7, 7])
    >>> path = Path(tempfile.mkdtemp()) / "model"
    >>> save_model(machine, path)
    >>> print(path.read_text())
    svm_type c_svc
    kernel_type linear
    nr_class 2
    total_sv 2
    rho 0
    label 7 3
    nr_sv 1 1
    SV
    0.5 1:1
    -0.5 1:-1
    """
    try:
        write_libsvm_model(_to_libsvm(estimator), path, digits=digits)
    except ModelFileError as error:
        raise ModelFileError(error.message, os.fspath(path)) from None


def load_model(path: str | os.PathLike[str] | BinaryIO, *, n_features: int | None = None) -> Any:
    """Read a LIBSVM model file as a fitted estimator.

    Parameters
    ----------
    path : path or binary file
        What to read.
    n_features : int, optional
        How many features samples will have; for a precomputed kernel, how many training samples there were. A
        model file does not say, so by default it is the largest index that occurs.

    Returns
    -------
    SVC, NuSVC, SVR, NuSVR, OneClassSVM, SVDD or RankSVM
        A fitted estimator: `predict`, `decision_function` and, where the file has what it takes,
        `predict_proba`. Parameters that the file does not hold, such as C, have their defaults.

    Raises
    ------
    ModelFileError
        The file is malformed; the message names the line. Or the estimator would take more than half of the free
        memory; ``HINGE_FILE_MEMORY`` in the environment sets another limit, in megabytes.

    Notes
    -----
    Classes are sorted, so a tie of votes between three or more classes goes to the smallest label, and not to
    the first of the file; with probabilities `predict` answers the most probable class, as ``svm-predict -b 1``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import make_moons
    >>> from hinge import SVC
    >>> from hinge.estimators import load_model, save_model
    >>> X, y = make_moons(50)
    >>> machine = SVC().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(machine, Path(folder) / "moons.model", digits=17)
    ...     same = load_model(Path(folder) / "moons.model")
    >>> bool((same.predict(X) == machine.predict(X)).all())
    True
    """
    model = read_libsvm_model(path)
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
    try:
        return _to_estimator(model, n_features)
    except ModelFileError as error:
        raise ModelFileError(error.message, name) from None


# ---------------------------------------------------------------------- estimator to file


def _to_libsvm(estimator: Any) -> LibsvmModel:
    estimator = _as_ours(estimator)
    svm_type = _TYPE_OF.get(type(estimator))
    if svm_type is None:
        held = ", ".join(kind.__name__ for kind in _TYPE_OF)
        raise ModelFileError(f"LIBSVM's format holds {held}, not {type(estimator).__name__}")
    model: Model | None = getattr(estimator, "_model", None)
    if model is None:
        raise ModelFileError(f"this {type(estimator).__name__} is not fitted yet; call fit first")
    kernel_type_of(model.kernel)  # or there is nothing to write
    if svm_type == "svdd" and model.kernel.is_precomputed:
        raise ModelFileError("rows of a precomputed kernel do not hold k(x, x), which SVDD needs")
    vectors = _indexed(model)
    if svm_type in CLASSIFIERS:
        return _classifier_to_libsvm(estimator, svm_type, model, vectors)
    if len(model.intercepts) > 1:
        raise ModelFileError(
            f"LIBSVM's format holds one target, not the {len(model.intercepts)} of this estimator"
        )
    scale = getattr(estimator, "noise_scale_", None)
    marks = getattr(estimator, "density_marks_", None)
    return LibsvmModel(
        svm_type, model.kernel, 0.0 - model.intercepts, model.coefficients, vectors,
        prob_a=None if scale is None else np.ravel(scale),
        density_marks=None if marks is None else (marks[:-1] + marks[1:]) / 2,
    )  # fmt: skip


def _as_ours(estimator: Any) -> Any:
    """Return an estimator of ours for one of scikit-learn's."""
    if type(estimator) in _TYPE_OF:
        return estimator
    for kind in _TYPE_OF:
        if kind.__name__ in originals() and isinstance(estimator, originals()[kind.__name__]):
            return kind.from_sklearn(estimator)  # type: ignore[attr-defined]
    return estimator


def _indexed(model: Model) -> Any:
    """Return the support vectors with LIBSVM's indices: from 1, or the serial number under index 0."""
    if model.kernel.is_precomputed:
        return sp.csr_matrix((model.support + 1.0)[:, None])
    rows = sp.csr_matrix(model.support_vectors)
    return sp.csr_matrix((rows.data, rows.indices + 1, rows.indptr), shape=(rows.shape[0], rows.shape[1] + 1))


def _classifier_to_libsvm(estimator: Any, svm_type: SvmType, model: Model, vectors: Any) -> LibsvmModel:
    labels, counts = _whole_labels(estimator.classes_), estimator.n_support_.astype(np.int64)
    n_classes = len(labels)
    sigmoids = getattr(estimator, "_sigmoids", None)
    prob_a, prob_b = (None, None) if sigmoids is None else sigmoids.T
    if n_classes > 2:
        if estimator.multi_class != "ovo":
            raise ModelFileError(
                "LIBSVM's format holds one machine per pair of classes, not one per class (multi_class='ovr')"
            )
        codes = np.repeat(np.arange(n_classes), counts)
        coefficients = by_opponent(model.coefficients, codes, n_classes)
        return LibsvmModel(
            svm_type, model.kernel, 0.0 - model.intercepts, coefficients, vectors, labels, counts, prob_a, prob_b
        )
    # The machine is positive for classes_[1], so that class comes first and all signs stay.
    order = np.concatenate([np.arange(counts[0], counts.sum()), np.arange(counts[0])])
    return LibsvmModel(
        svm_type, model.kernel, 0.0 - model.intercepts, model.coefficients[:, order], vectors[order], labels[::-1],
        counts[::-1], prob_a, prob_b,
    )  # fmt: skip


def _whole_labels(classes: NDArray[Any]) -> NDArray[np.int64]:
    if classes.dtype.kind in "biuf":
        labels = classes.astype(np.int64)
        if (labels == classes).all() and (np.abs(labels) < 2**31).all():
            return labels
    raise ModelFileError("LIBSVM's labels are whole numbers of 32 bits; encode the classes first")


# ---------------------------------------------------------------------- file to estimator


def _to_estimator(model: LibsvmModel, n_features: int | None) -> Any:
    kernel, kind = model.kernel, _CLASS_OF[model.svm_type]
    estimator: Any = kind(
        kernel=kernel.label, gamma=float(kernel.gamma), coef0=float(kernel.coef0), degree=int(kernel.degree)
    )
    if kind is not RankSVM:
        estimator.probability = model.has_probabilities
    rows, support, width = _columns_of(model, n_features)
    if model.is_classifier:
        trained = _publish_classifier(estimator, model, rows, support)
    else:
        own = -1.0 if model.svm_type == "svdd" else 0.0
        trained = Model(kernel, rows, support, model.coefficients, -model.rho, own)
        _publish_single(estimator, model, trained)
    estimator._model = trained
    estimator._gamma = float(kernel.gamma)
    estimator.support_ = trained.support.astype(np.int32)
    estimator.support_vectors_ = trained.support_vectors
    estimator.n_features_in_ = width
    estimator.shape_fit_ = (width if kernel.is_precomputed else len(support), width)
    estimator.fit_status_ = 0
    return estimator


def _columns_of(model: LibsvmModel, n_features: int | None) -> tuple[Any, NDArray[np.int64], int]:
    """Return support vectors, their places and the number of columns of X, as estimators count them."""
    n = model.coefficients.shape[1]
    if model.kernel.is_precomputed:
        support = model.serials() - 1
        least = int(support.max(initial=-1)) + 1
        rows: Any = np.empty((n, 0))
    else:
        matrix = sp.csr_matrix(model.vectors)
        if (matrix.indices == 0).any():
            raise ModelFileError("index 0 occurs; estimators count features from 1 as LIBSVM's guide does")
        support, least = np.arange(n), int(matrix.indices.max(initial=0))
        rows = matrix
    width = least if n_features is None else n_features
    if width < least:
        raise ModelFileError(f"n_features is {n_features}, but index {least} occurs")
    if not model.kernel.is_precomputed:
        shape = (n, width)
        rows = sp.csr_matrix((matrix.data, matrix.indices - 1, matrix.indptr), shape=shape)
        if 4 * rows.nnz >= n * width:
            rows = rows.toarray()
    return rows, support.astype(np.int64), width


def _publish_single(estimator: Any, model: LibsvmModel, trained: Model) -> None:
    estimator.n_support_ = np.array([len(trained.support)], dtype=np.int32)
    estimator.dual_coef_ = trained.coefficients
    estimator.intercept_ = trained.intercepts
    if isinstance(estimator, SVDD):
        estimator._publish_sphere(trained)
    if model.is_novelty:
        estimator.offset_ = getattr(estimator, "offset_", 0.0 - trained.intercepts)
        if model.density_marks is not None:
            estimator.density_marks_ = _marks_between(model.density_marks)
    elif model.prob_a is not None:
        estimator.noise_scale_ = float(model.prob_a[0])


def _marks_between(middles: Vector) -> Vector:
    """Return the eleven marks whose middles the file holds; mark 5 is zero."""
    half = len(middles) // 2
    marks = np.zeros(len(middles) + 1)
    for i in range(half):
        marks[half + i + 1] = 2 * middles[half + i] - marks[half + i]
        marks[half - i - 1] = 2 * middles[half - i - 1] - marks[half - i]
    marks[half:] = np.maximum.accumulate(marks[half:])
    marks[: half + 1] = np.minimum.accumulate(marks[half::-1])[::-1]
    return marks


def _publish_classifier(estimator: Any, model: LibsvmModel, rows: Any, support: NDArray[np.int64]) -> Model:
    assert model.labels is not None
    assert model.n_support is not None
    n_classes, n = model.n_classes, len(support)
    if n_classes < 2:
        raise ModelFileError("the model knows only one class; there is nothing to decide")
    Budget("", ModelFileError).lend(_BYTES_A_COEFFICIENT * n * n_classes * (n_classes - 1) // 2)
    order_of_classes = np.argsort(model.labels)
    rank = np.argsort(order_of_classes)  # of each class of the file among the sorted ones
    codes = np.repeat(rank, model.n_support)
    order = np.argsort(codes, kind="stable")
    coefficients, intercepts, sigmoids = _sorted_machines(model, rank)
    estimator.classes_ = model.labels[order_of_classes]
    estimator.n_support_ = model.n_support[order_of_classes].astype(np.int32)
    estimator.class_weight_ = np.ones(n_classes)
    trained = Model(model.kernel, rows[order], support[order], coefficients[:, order], intercepts)
    by_pairs = n_classes > 2
    estimator.dual_coef_ = (
        by_opponent(trained.coefficients, codes[order], n_classes) if by_pairs else trained.coefficients
    )
    estimator.intercept_ = intercepts
    if sigmoids is not None:
        estimator._sigmoids = sigmoids
    return trained


def _sorted_machines(model: LibsvmModel, rank: NDArray[np.intp]) -> tuple[Vector, Vector, Vector | None]:
    """Return one row of coefficients, the intercept and the sigmoid of each duel between sorted classes."""
    starts, n = model.starts, model.coefficients.shape[1]
    place = {tuple(duel): row for row, duel in enumerate(duels(len(rank)))}
    coefficients, intercepts = np.zeros((len(place), n)), np.empty(len(place))
    sigmoids = np.empty((len(place), 2)) if model.has_probabilities else None
    for pair, (i, j) in enumerate(model.pairs):
        duel = int(rank[i]), int(rank[j])
        sign = 1.0 if duel in place else -1.0
        row = place[duel if sign > 0 else duel[::-1]]
        first, second = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        coefficients[row, first] = sign * model.coefficients[j - 1, first]
        coefficients[row, second] = sign * model.coefficients[i, second]
        intercepts[row] = -sign * model.rho[pair]
        if sigmoids is not None and model.prob_a is not None and model.prob_b is not None:
            sigmoids[row] = model.prob_a[pair], sign * model.prob_b[pair]
    return coefficients, intercepts, sigmoids
