"""Estimators to scikit-learn's own and back: the same machine, nothing trained again."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from inspect import Parameter, signature
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hinge.arrays import Vector
from hinge.estimators.libsvm_names import LibsvmNames
from hinge.estimators.stand_in import originals
from hinge.kernel.kernels import Kernel
from hinge.model import Model
from hinge.training.linear import weight_model
from hinge.training.multiclass import by_pair

_COMMON_KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")

# Attributes that mean the same in both, where an estimator has them.
_SHARED = ("classes_", "class_weight_", "n_features_in_", "feature_names_in_", "n_iter_")


class Exchange:
    """Adds the ways to scikit-learn's estimators and back.

    What makes a machine differs for kernel machines and linear ones.
    """

    # An attribute that scikit-learn's estimator has if and only if it is fitted.
    _mark_of_fit: ClassVar[str]

    def _their_parameters(self, known: Mapping[str, Parameter]) -> dict[str, Any]:
        """Return the parameters that scikit-learn's estimator has too, with its words for them."""
        own: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        return {name: value for name, value in own.items() if name in known}

    def _give_machine(self, theirs: Any) -> None:
        """Set the attributes of a fitted estimator of scikit-learn's."""
        raise NotImplementedError

    def _take_machine(self, theirs: Any) -> None:
        """Set the attributes of this estimator by a fitted one of scikit-learn's."""
        raise NotImplementedError

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
        original = _original_of(type(self))
        theirs: Any = original(**self._their_parameters(signature(original).parameters))
        if hasattr(self, "_model"):
            _copy_shared(self, theirs)
            self._give_machine(theirs)
        return theirs

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
        if hasattr(machine, cls._mark_of_fit):
            ours._take_machine(machine)
            _copy_shared(machine, ours)
        return ours


class LinearExchange(Exchange):
    """The exchange of linear machines: their weights and intercepts as they are."""

    _mark_of_fit = "coef_"

    def _give_machine(self, theirs: Any) -> None:
        theirs.coef_, theirs.intercept_ = copy(self.coef_), copy(self.intercept_)

    def _take_machine(self, theirs: Any) -> None:
        self.coef_, self.intercept_ = copy(theirs.coef_), copy(theirs.intercept_)
        weights = self.coef_.toarray() if sp.issparse(self.coef_) else np.atleast_2d(self.coef_)
        self._model = weight_model(weights, np.broadcast_to(self.intercept_, len(weights)))


class KernelExchange(LibsvmNames, Exchange):
    """The exchange of kernel machines: support vectors, coefficients and sigmoids, under LIBSVM's names."""

    kernel: Any
    multi_class: str

    _mark_of_fit = "support_"

    @property
    def _calibrates(self) -> bool:
        """Whether a fit finds probabilities, too."""
        raise NotImplementedError

    def _their_parameters(self, known: Mapping[str, Parameter]) -> dict[str, Any]:
        _check_kernel(self.kernel, "scikit-learn's estimators have")
        parameters = super()._their_parameters(known)
        if parameters["cache_size"] == "auto":
            parameters["cache_size"] = known["cache_size"].default
        if parameters["max_iter"] is None:
            parameters["max_iter"] = -1
        if not self._calibrates:
            parameters.pop("probability", None)  # their default, whatever it is called
        return parameters

    def _give_machine(self, theirs: Any) -> None:
        if hasattr(self, "classes_") and len(self.classes_) > 2 and self.multi_class != "ovo":
            raise ValueError(
                f"scikit-learn's {type(theirs).__name__} has one machine per pair of classes, this estimator one "
                "per class (multi_class='ovr'); fit sklearn.multiclass.OneVsRestClassifier instead"
            )
        if not hasattr(self, "classes_") and len(self.intercept_) > 1:
            raise ValueError(
                f"scikit-learn's {type(theirs).__name__} has one target, this estimator {len(self.intercept_)}; "
                "fit sklearn.multioutput.MultiOutputRegressor instead"
            )
        theirs.shape_fit_, theirs.fit_status_ = self.shape_fit_, self.fit_status_
        theirs.support_ = self.support_.astype(np.int32)
        theirs.intercept_, theirs._intercept_ = self.intercept_.copy(), self._intercept_.copy()
        theirs._gamma, theirs._n_support = float(self._gamma), self._n_support
        theirs._num_iter = np.atleast_1d(np.asarray(getattr(self, "n_iter_", 0), dtype=np.int32))
        theirs._sparse = self._sparse
        theirs.support_vectors_ = _their_vectors(self._model)
        theirs.dual_coef_ = _their_coefficients(self.dual_coef_, theirs.support_vectors_)
        theirs._dual_coef_ = _their_coefficients(self._dual_coef_, theirs.support_vectors_)
        theirs._probA, theirs._probB = np.ascontiguousarray(self._probA), np.ascontiguousarray(self._probB)
        theirs._effective_probability = len(theirs._probA) > 0
        if hasattr(self, "offset_"):
            theirs.offset_ = self.offset_.copy()

    def _take_machine(self, theirs: Any) -> None:
        _check_kernel(theirs.kernel, "hinge has")
        model = self._model = _model_of(theirs)
        self._gamma, self.shape_fit_, self.fit_status_ = model.kernel.gamma, theirs.shape_fit_, theirs.fit_status_
        self.support_, self.support_vectors_ = model.support.astype(np.int32), model.support_vectors
        self.intercept_ = model.intercepts
        self.n_support_ = np.asarray(theirs.n_support_, dtype=np.int32)
        self.dual_coef_ = theirs.dual_coef_
        if hasattr(theirs, "offset_"):
            self.offset_ = np.array(theirs.offset_, dtype=np.float64)
        if len(theirs._probA):
            # LIBSVM's two-class machine is positive for the first class: there the offset changes its sign.
            sign = -1.0 if len(theirs.classes_) == 2 else 1.0
            self._sigmoids = np.column_stack([theirs._probA, sign * theirs._probB])


# ---------------------------------------------------------------------- what both have


def _copy_shared(source: Any, target: Any) -> None:
    for name in _SHARED:
        if hasattr(source, name):
            setattr(target, name, getattr(source, name))


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


# ---------------------------------------------------------------------- ours to scikit-learn's


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


def _model_of(theirs: Any) -> Model:
    support = np.asarray(theirs.support_, dtype=np.int64)
    is_given = theirs.kernel == "precomputed"
    vectors = np.empty((len(support), 0)) if is_given else theirs.support_vectors_
    kernel = Kernel(
        theirs.kernel, gamma=float(theirs._gamma), coef0=float(theirs.coef0), degree=int(theirs.degree)
    )
    return Model(kernel, vectors, support, _machine_rows(theirs), np.array(theirs.intercept_, dtype=np.float64))


def _machine_rows(theirs: Any) -> Vector:
    """Return one row of coefficients per machine."""
    layout = theirs.dual_coef_
    dense: NDArray[np.float64] = layout.toarray() if sp.issparse(layout) else np.array(layout)
    n_classes = len(getattr(theirs, "classes_", ()))
    if n_classes <= 2:
        return dense
    codes = np.repeat(np.arange(n_classes), theirs.n_support_)
    return by_pair(dense, codes, n_classes)
