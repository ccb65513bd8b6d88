"""`NuSVC`: ν-support vector classification."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from hinge.estimators.classification import KernelClassifier
from hinge.estimators.compressing import Compressible
from hinge.estimators.documentation import documented
from hinge.estimators.parameters import parametrised
from hinge.estimators.updates import UpdatableClassifier
from hinge.training.data import TrainingData
from hinge.training.formulation import NuClassification


@documented
@parametrised
class NuSVC(KernelClassifier, UpdatableClassifier, Compressible):
    """ν-support vector classification, for two classes or many.

    Instead of a price for violated margins it takes a bound: at most a share ν of the samples may violate their
    margin, and at least a share ν are support vectors.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]. Classes of different size limit it: a pair with weights P and N allows at most
        2 min(P, N) / (P + N). A larger ν is an error that states this limit; if only some pairs of many classes
        are concerned, these take their limit, with a warning.
    %(kernel)s
    %(shrinking)s
    probability : bool, default=False
        Calibrate probabilities by five-fold cross-validation: adds `predict_proba`, and lets `predict` answer
        the most probable class, so that the two always agree.
    %(tol)s
    class_weight : dict, "balanced" or None, default=None
        Factor of each sample's weight, by class; ``"balanced"`` gives all classes the same total. Where such
        factors alone make ν infeasible for a pair, ν sets the price of a violated margin without them, and they
        scale that price as in `SVC`.
    %(verbose)s
    %(votes)s
    %(random_state)s
    multi_class : {"ovo", "ovr"}, default="ovo"
        Train a machine for each pair of classes, or one for each class against all others.
    %(ours)s
    %(stop)s

    Attributes
    ----------
    %(class_support)s
    dual_coef_ : array or sparse matrix of shape (n_classes - 1, n_SV)
        Coefficients of the support vectors, laid out as in `SVC`.
    intercept_ : array of shape (n_machines,)
        Intercept of each machine.
    coef_ : array or sparse matrix of shape (n_machines, n_features)
        Weights of the features; only for the linear kernel.
    class_weight_ : array of shape (n_classes,)
        Factor of the weights of each class.
    n_iter_ : int32 array of shape (n_machines,)
        Steps that each machine took.
    probA_, probB_ : arrays of shape (n_machines,)
        Parameters of the sigmoids; empty without ``probability=True``.
    %(outcome)s

    See Also
    --------
    SVC : The same with a price for violated margins.

    Notes
    -----
    ``tol`` bounds the violation before decision values are divided by half the width of the margin, as in LIBSVM.
    Where the margin is narrow, decision values are that much less exact; a smaller ``tol`` helps.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import NuSVC
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> y = np.array([1, 1, 2, 2])
    >>> NuSVC().fit(X, y).predict([[-0.8, -1.0]])
    array([1])
    """

    nu: float = 0.5

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelClassifier._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def _formulation(self, data: TrainingData) -> NuClassification:
        return NuClassification(data, self.multi_class, self._class_weights_of(data), float(self.nu))
