"""What `SVC` and `NuSVC` share: classes, pairs, votes, probabilities."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from hinge.arrays import Vector
from hinge.estimators.base import KernelMachine, has_probability
from hinge.estimators.inputs import class_weights_of, is_plain_labels
from hinge.estimators.intervals import CertifiedLabels, surely_largest
from hinge.estimators.parameters import parametrised
from hinge.training.course import Fit
from hinge.training.data import TrainingData
from hinge.training.formulation import Classification
from hinge.training.multiclass import by_opponent, count_votes, votes_between, votes_with_confidence
from hinge.training.probability import couple, sigmoid


@parametrised
class KernelClassifier(ClassifierMixin, CertifiedLabels, KernelMachine):  # type: ignore[misc]
    """Base of the classifiers."""

    class_weight: Any = None
    decision_function_shape: str = "ovr"
    break_ties: bool = False
    random_state: Any = None
    multi_class: str = "ovo"
    stop: Any = "tolerance"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "random_state": ["random_state"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "multi_class": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "stop": [StrOptions({"tolerance", "labels"}), "array-like", "sparse matrix"],
    }

    _calibration: ClassVar[str] = "_sigmoids"

    # ------------------------------------------------------------------ fitting

    def _check_targets(self, y: Any) -> Any:
        check_classification_targets(y)
        return column_or_1d(y, warn=True)

    def _is_plain_target(self, y: Any) -> bool:
        return is_plain_labels(y)

    def _class_weights_of(self, data: TrainingData) -> Vector:
        """Return the weight of every class, having checked that there are classes to tell apart."""
        if self.multi_class == "ovr" and self.decision_function_shape == "ovo":
            raise ValueError("decision_function_shape='ovo' needs multi_class='ovo': there are no pairs")
        return class_weights_of(self.class_weight, data)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _publish(self, fit: Fit) -> None:
        super()._publish(fit)
        formulation, model = fit.formulation, fit.model
        assert isinstance(formulation, Classification)
        self.classes_ = formulation.labels
        self.class_weight_ = formulation.class_weights
        n_classes = len(self.classes_)
        # Rows of the Gram matrix are the samples that count; `places` are ascending.
        codes = formulation.strata[np.searchsorted(formulation.data.places, model.support)]
        self.n_support_ = np.bincount(codes, minlength=n_classes).astype(np.int32)
        by_pairs = n_classes > 2 and self.multi_class == "ovo"
        coefficients = by_opponent(model.coefficients, codes, n_classes) if by_pairs else model.coefficients
        self.dual_coef_ = self._as_input(coefficients)
        self.n_iter_ = self._ledger.column("iterations").astype(np.int32)

    # ------------------------------------------------------------------ predicting

    def decision_function(self, X: Any) -> Vector:
        """Return how clearly each sample belongs to each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; for ``kernel="precomputed"`` their kernel values with all training samples.

        Returns
        -------
        array of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            Two classes: one value, positive for ``classes_[1]``. More: with ``decision_function_shape="ovr"``
            the votes for each class plus a confidence below one half; with ``"ovo"`` the values of all pairs
            01, 02, …, 12, …, positive for the first class. For ``multi_class="ovr"`` the value of each class's
            own machine.
        """
        decisions = self._decide(X)
        if len(self.classes_) == 2:
            return np.asarray(decisions[:, 0])
        if self.multi_class == "ovr" or self.decision_function_shape == "ovo":
            return decisions
        return votes_with_confidence(decisions, len(self.classes_))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; for ``kernel="precomputed"`` their kernel values with all training samples.

        Returns
        -------
        array of shape (n_samples,)
            Labels. Pairs vote, and the first of several classes with most votes wins, or with ``break_ties`` the
            most confident of them. A machine with ``probability=True`` answers the most probable class.
        """
        self._check_fitted()
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        pairs_vote = len(self.classes_) == 2 or not (self.multi_class == "ovr" or self.break_ties)
        return self._answers(self._decide(X, signs=pairs_vote and not self._calibrates))

    def _answers(self, decisions: Vector) -> NDArray[Any]:
        n_classes = len(self.classes_)
        if self._calibrates and hasattr(self, "_sigmoids"):
            codes = np.argmax(self._probabilities(decisions), axis=1)
        elif n_classes == 2:
            codes = (decisions[:, 0] > 0).astype(np.intp)
        elif self.multi_class == "ovr":
            codes = np.argmax(decisions, axis=1)
        elif self.break_ties:
            codes = np.argmax(votes_with_confidence(decisions, n_classes), axis=1)
        else:
            codes = np.argmax(count_votes(decisions, n_classes), axis=1)
        return np.asarray(self.classes_[codes])

    def _shown_interval(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        if len(self.classes_) == 2:
            return lower[:, 0], upper[:, 0]
        if self.multi_class == "ovr" or self.decision_function_shape == "ovo":
            return lower, upper
        return votes_between(lower, upper, len(self.classes_), with_confidence=True)

    def _is_certain(self, decisions: Vector, lower: Vector, upper: Vector) -> NDArray[np.bool_]:
        n_classes = len(self.classes_)
        if n_classes == 2:
            return np.where(decisions[:, 0] > 0, lower[:, 0] > 0, upper[:, 0] <= 0)
        if self.multi_class == "ovo":
            lower, upper = votes_between(lower, upper, n_classes, self.break_ties)
        return surely_largest(np.searchsorted(self.classes_, self._answers(decisions)), lower, upper)

    @available_if(has_probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Vector:
        """Return the probability of each class; only with ``probability=True``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; for ``kernel="precomputed"`` their kernel values with all training samples.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``. `predict` answers the largest of them.
        """
        self._check_fitted()
        self._check_calibrated()
        return self._probabilities(self._decide(X))

    @available_if(has_probability)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Vector:
        """Return the logarithm of the probability of each class; only with ``probability=True``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; for ``kernel="precomputed"`` their kernel values with all training samples.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Log-probabilities in the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def _probabilities(self, decisions: Vector) -> Vector:
        of_machines = sigmoid(decisions, *self._sigmoids.T)
        if len(self.classes_) == 2:
            return np.column_stack([1 - of_machines[:, 0], of_machines[:, 0]])
        if self.multi_class == "ovr":
            return np.asarray(of_machines / of_machines.sum(axis=1, keepdims=True))
        return couple(of_machines, len(self.classes_))

    @property
    def probA_(self) -> Vector:  # noqa: N802
        """Slopes of the sigmoids, one a machine: ``P = 1 / (1 + exp(probA_ f + probB_))`` (LIBSVM's signs)."""
        return self._published_sigmoids()[0]

    @property
    def probB_(self) -> Vector:  # noqa: N802
        """Offsets of the sigmoids, one a machine, with LIBSVM's signs."""
        return self._published_sigmoids()[1]

    def _published_sigmoids(self) -> tuple[Vector, Vector]:
        if not hasattr(self, "_model"):
            raise AttributeError("probA_ and probB_ exist after fit")
        slopes, offsets = getattr(self, "_sigmoids", np.empty((0, 2))).T
        # LIBSVM's two-class machine is positive for classes_[0]: there A stays and B changes its sign.
        return slopes, -offsets if len(self.classes_) == 2 else offsets

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags
