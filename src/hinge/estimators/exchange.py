"""Estimators to scikit-learn's own and back: the same machine, nothing trained again."""

from __future__ import annotations

from inspect import signature
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hinge.arrays import Vector
from hinge.estimators.stand_in import originals
from hinge.kernel.kernels import Kernel
from hinge.model import Model
from hinge.training.multiclass import by_pair

_COMMON_KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")

# Attributes that mean the same in both, where an estimator has them.
_SHARED = ("classes_", "class_weight_", "n_features_in_", "feature_names_in_", "n_iter_")


class Exchange:
    """Adds the ways to scikit-learn's estimators and back."""

    def as_sklearn(self) -> Any:
        """Return scikit-learn's estimator of the same name with the same machine, for tools that know only that.

        Returns
        -------
        estimator of `sklearn.svm`
            With all parameters that scikit-learn has; fitted if this one is. Decision values are equal to
            rounding. scikit-learn's `predict` follows the decisions even where there are probabilities, and it
            couples those of many classes to fewer digits.

        Raises
        ------
        ValueError
            scikit-learn has no such machine: its kernel, or one machine for each of many classes. Kernel
            functions of your own are refused too.

        Examples
        --------
        >>> from hinge import SVC
        >>> machine = SVC(kernel="linear", C=10.0).fit([[-1.0], [1.0], [2.0]], [3, 7, 7])
        >>> machine.as_sklearn().decision_function([[0.5]])
        array([0.5])
        """
        return _to_sklearn(self)

    @classmethod
    def from_sklearn(cls, machine: Any) -> Self:
        """Return an estimator with the parameters and the machine of scikit-learn's.

        Parameters
        ----------
        machine : estimator of `sklearn.svm`
            Of the same name as this class; fitted or not.

        Returns
        -------
        estimator
            With equal decision values, nothing trained again. There is no `report_`: how the fit went is not
            known.

        Raises
        ------
        TypeError
            The machine is none of scikit-learn's class of this name.
        ValueError
            It has a kernel function.

        Examples
        --------
        >>> import sklearn.svm
        >>> from hinge import SVR
        >>> theirs = sklearn.svm.SVR(kernel="linear", C=100.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
        >>> SVR.from_sklearn(theirs).predict([[1.0]]).round(6)
        array([1.])
        """
        original = _original_of(cls)
        if not isinstance(machine, original):
            got = type(machine).__name__
            raise TypeError(f"{cls.__name__}.from_sklearn takes scikit-learn's {original.__name__}, got a {got}")
        known = cls._get_param_names()  # type: ignore[attr-defined]
        theirs: dict[str, Any] = machine.get_params(deep=False)  # type: ignore[attr-defined]
        ours = cls(**{name: value for name, value in theirs.items() if name in known})
        _take_machine(ours, machine)
        return ours


# ---------------------------------------------------------------------- ours to scikit-learn's


def _to_sklearn(estimator: Any) -> Any:
    original = _original_of(type(estimator))
    _check_kernel(estimator.kernel, "scikit-learn's estimators have")
    theirs = original(**_their_parameters(estimator, original))
    model: Model | None = getattr(estimator, "_model", None)
    if model is None:
        return theirs
    if hasattr(estimator, "classes_") and len(estimator.classes_) > 2 and estimator.multi_class != "ovo":
        raise ValueError(
            f"scikit-learn's {original.__name__} has one machine a pair of classes, this estimator one a class "
            "(multi_class='ovr'); fit sklearn.multiclass.OneVsRestClassifier instead"
        )
    for name in _SHARED:
        if hasattr(estimator, name):
            setattr(theirs, name, getattr(estimator, name))
    theirs.shape_fit_, theirs.fit_status_ = estimator.shape_fit_, estimator.fit_status_
    theirs.support_ = estimator.support_.astype(np.int32)
    theirs.intercept_, theirs._intercept_ = estimator.intercept_.copy(), estimator._intercept_.copy()
    theirs._gamma, theirs._n_support = float(estimator._gamma), estimator._n_support
    theirs._num_iter = np.atleast_1d(np.asarray(getattr(estimator, "n_iter_", 0), dtype=np.int32))
    theirs._sparse = estimator._sparse
    theirs.support_vectors_ = _their_vectors(model)
    theirs.dual_coef_ = _their_coefficients(estimator.dual_coef_, theirs.support_vectors_)
    theirs._dual_coef_ = _their_coefficients(estimator._dual_coef_, theirs.support_vectors_)
    theirs._probA, theirs._probB = np.ascontiguousarray(estimator._probA), np.ascontiguousarray(estimator._probB)
    theirs._effective_probability = len(theirs._probA) > 0
    if hasattr(estimator, "offset_"):
        theirs.offset_ = estimator.offset_.copy()
    return theirs


def _original_of(kind: type) -> type:
    for ancestor in kind.__mro__:
        if ancestor.__module__.startswith("hinge.") and ancestor.__name__ in originals():
            return originals()[ancestor.__name__]
    raise TypeError(f"scikit-learn has no counterpart of {kind.__name__}")


def _check_kernel(kernel: Any, who: str) -> None:
    if callable(kernel):
        raise ValueError(
            "A machine with a kernel function of your own needs the samples that it was trained on, which the two "
            "libraries keep in different ways: fit the other estimator on them."
        )
    if kernel not in _COMMON_KERNELS:
        raise ValueError(f"{who} no kernel {kernel!r}, only {', '.join(_COMMON_KERNELS)} and functions")


def _their_parameters(estimator: Any, original: type) -> dict[str, Any]:
    known = signature(original).parameters
    parameters = {name: value for name, value in estimator.get_params(deep=False).items() if name in known}
    if parameters["cache_size"] == "auto":
        parameters["cache_size"] = known["cache_size"].default
    if parameters["max_iter"] is None:
        parameters["max_iter"] = -1
    if not estimator._calibrates:
        parameters.pop("probability", None)  # their default, whatever it is called
    return parameters


def _their_vectors(model: Model) -> Any:
    vectors = model.support_vectors
    if model.kernel.is_precomputed:
        return np.empty((0, 0))
    if not sp.issparse(vectors):
        return np.ascontiguousarray(vectors, dtype=np.float64)
    rows = vectors.astype(np.float64)
    rows.sort_indices()
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows


def _their_coefficients(coefficients: Any, vectors: Any) -> Any:
    """Return coefficients in the container of the vectors; sparse ones hold zeros too, as LIBSVM's code needs."""
    dense = np.ascontiguousarray(coefficients.toarray() if sp.issparse(coefficients) else coefficients)
    if not sp.issparse(vectors):
        return dense
    n_rows, n = dense.shape
    columns, starts = np.tile(np.arange(n, dtype=np.int32), n_rows), n * np.arange(n_rows + 1, dtype=np.int32)
    return type(vectors)((dense.ravel(), columns, starts), shape=dense.shape)


# ---------------------------------------------------------------------- scikit-learn's to ours


def _take_machine(ours: Any, theirs: Any) -> None:
    """Give a new estimator the machine of scikit-learn's, if that is fitted."""
    if not hasattr(theirs, "support_"):
        return
    _check_kernel(theirs.kernel, "hinge has")
    model = ours._model = _model_of(theirs)
    for name in _SHARED:
        if hasattr(theirs, name):
            setattr(ours, name, getattr(theirs, name))
    ours._gamma, ours.shape_fit_, ours.fit_status_ = model.kernel.gamma, theirs.shape_fit_, theirs.fit_status_
    ours.support_, ours.support_vectors_ = model.support.astype(np.int32), model.support_vectors
    ours.intercept_ = model.intercepts
    ours.n_support_ = np.asarray(theirs.n_support_, dtype=np.int32)
    ours.dual_coef_ = theirs.dual_coef_
    if hasattr(theirs, "offset_"):
        ours.offset_ = np.array(theirs.offset_, dtype=np.float64)
    if len(theirs._probA):
        # LIBSVM's two-class machine is positive for the first class: there the offset changes its sign.
        sign = -1.0 if len(theirs.classes_) == 2 else 1.0
        ours._sigmoids = np.column_stack([theirs._probA, sign * theirs._probB])


def _model_of(theirs: Any) -> Model:
    support = np.asarray(theirs.support_, dtype=np.int64)
    is_given = theirs.kernel == "precomputed"
    vectors = np.empty((len(support), 0)) if is_given else theirs.support_vectors_
    kernel = Kernel(
        theirs.kernel, gamma=float(theirs._gamma), coef0=float(theirs.coef0), degree=int(theirs.degree)
    )
    return Model(kernel, vectors, support, _machine_rows(theirs), np.array(theirs.intercept_, dtype=np.float64))


def _machine_rows(theirs: Any) -> Vector:
    """Return one row of coefficients a machine."""
    layout = theirs.dual_coef_
    dense: NDArray[np.float64] = layout.toarray() if sp.issparse(layout) else np.array(layout)
    n_classes = len(getattr(theirs, "classes_", ()))
    if n_classes <= 2:
        return dense
    codes = np.repeat(np.arange(n_classes), theirs.n_support_)
    return by_pair(dense, codes, n_classes)
