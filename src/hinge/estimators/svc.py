"""`SVC`: C-support vector classification."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from hinge.dual.formulations import c_svc
from hinge.estimators.classification import KernelClassifier
from hinge.estimators.compressing import Compressible
from hinge.estimators.documentation import documented
from hinge.estimators.parameters import parametrised
from hinge.estimators.updates import UpdatableClassifier
from hinge.training.data import TrainingData
from hinge.training.formulation import Classification


@documented
@parametrised
class SVC(KernelClassifier, UpdatableClassifier, Compressible):
    """C-support vector classification, for two classes or many.

    Finds the function f(x) = Σ coefficient · k(support vector, x) + intercept that separates two classes by a
    wide margin, at a price C for every unit by which a sample falls short of it. Many classes are told apart by
    one such machine for each pair.

    Parameters
    ----------
    C : float, default=1.0
        Price of a violated margin: the larger, the closer the fit. ``inf`` allows no violation at all.
    %(kernel)s
    %(shrinking)s
    probability : bool, default=False
        Calibrate probabilities by five-fold cross-validation: adds `predict_proba`, and lets `predict` answer
        the most probable class, so that the two always agree.
    %(tol)s
    class_weight : dict, "balanced" or None, default=None
        Factor of C for each class; ``"balanced"`` gives all classes the same total.
    %(verbose)s
    %(votes)s
    %(random_state)s
    multi_class : {"ovo", "ovr"}, default="ovo"
        Train a machine for each pair of classes, or one for each class against all others.
    fit_intercept : bool, default=True
        False for a machine without intercept.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        What a violated margin costs: the unit by which a sample falls short of it, or its square. The squared loss
        has more support vectors, a solution that is always unique, and no upper bound on coefficients; it needs
        a finite C, and ``solver`` ``"block"`` or ``"auto"``.
    %(ours)s
    %(stop)s

    Attributes
    ----------
    %(class_support)s
    dual_coef_ : array or sparse matrix of shape (n_classes - 1, n_SV)
        Coefficients of the support vectors: row r of a support vector of class i belongs to its machine against
        class r, or r + 1 where r ≥ i. One row a machine for two classes and for ``multi_class="ovr"``.
    intercept_ : array of shape (n_machines,)
        Intercept of each machine.
    coef_ : array or sparse matrix of shape (n_machines, n_features)
        Weights of the features; only for the linear kernel.
    class_weight_ : array of shape (n_classes,)
        Factor of C for each class.
    n_iter_ : int32 array of shape (n_machines,)
        Steps that each machine took.
    probA_, probB_ : arrays of shape (n_machines,)
        Parameters of the sigmoids; empty without ``probability=True``.
    %(outcome)s

    See Also
    --------
    NuSVC : The same with a bound on the share of support vectors instead of a price.
    SVR : Regression.

    Notes
    -----
    A fit that does not converge says so by a ConvergenceWarning, ``fit_status_`` and ``report_``; it never runs
    without limit. Probabilities are those of the weighted data: a class that counts double is twice as probable,
    in `predict_proba` as in `predict`.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import SVC
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> y = np.array(["left", "left", "right", "right"])
    >>> machine = SVC(kernel="linear", C=10.0).fit(X, y)
    >>> machine.predict([[-0.8, -1.0], [3.0, 0.5]])
    array(['left', 'right'], dtype='<U5')
    >>> machine.coef_.round(6), machine.intercept_.round(6), machine.support_
    (array([[0.5, 0.5]]), array([0.]), array([0, 2], dtype=int32))
    >>> str(machine.report_.status), machine.report_.violation < 1e-3
    ('converged', True)
    """

    C: float = 1.0
    fit_intercept: bool = True
    loss: str = "hinge"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelClassifier._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "fit_intercept": ["boolean"],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
    }

    def _formulation(self, data: TrainingData) -> Classification:
        weights, C, has_intercept = self._class_weights_of(data), float(self.C), bool(self.fit_intercept)
        is_squared = self.loss == "squared_hinge"
        return Classification(
            data, self.multi_class, weights, lambda y, costs: c_svc(y, C, costs, has_intercept, is_squared)
        )
