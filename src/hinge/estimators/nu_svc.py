"""`NuSVC`: ν-support vector classification."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from hinge.arrays import Index, Vector
from hinge.dual.formulations import InfeasibleNuError, c_svc, nu_svc
from hinge.estimators.classification import KernelClassifier
from hinge.estimators.documentation import documented
from hinge.estimators.inputs import TrainingData
from hinge.model import Model
from hinge.training.course import Machine, Task, Tasks, half_margin, is_flat


@documented
class NuSVC(KernelClassifier):
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
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        What `decision_function` returns for many classes: a score for each class, or the value of each pair.
    break_ties : bool, default=False
        Whether `predict` settles equal votes by the summed decision values instead of by the order of classes.
    %(random_state)s
    multi_class : {"ovo", "ovr"}, default="ovo"
        Train a machine for each pair of classes, or one for each class against all others.
    %(ours)s

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    %(support)s
    n_support_ : int32 array of shape (n_classes,)
        Number of support vectors of each class; `support_` lists them class by class.
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
        Parameters of the sigmoids; only with ``probability=True``.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelClassifier._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: str | float = "auto",
        class_weight: Any = None,
        verbose: bool | int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        multi_class: str = "ovo",
        solver: str = "auto",
        precision: str = "auto",
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        callback: Any = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.multi_class = multi_class
        self.solver = solver
        self.precision = precision
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callback = callback

    def _tasks(self, data: TrainingData) -> Tasks:
        self._prices: dict[int, float] = {}
        self._unpriced: list[int] = []
        self._limits: dict[int, float] = {}
        tasks = super()._tasks(data)
        tasks.prepare()  # which finds out what ν the pairs allow
        self._tell_lowered(len(tasks))
        return tasks

    def _two_class_task(self, k: int, members: Index, y: Vector, weights: Vector, class_weights: Vector) -> Task:
        if k in self._prices:
            return Task(members, c_svc(y, self._prices[k], weights * class_weights))
        nu, limit = float(self.nu), _largest_nu(y, weights)
        if nu > limit:  # of two classes, or of all pairs, this is an error; of some pairs, they take what they can
            self._limits.setdefault(k, limit)
            nu = limit
        if nu > _largest_nu(y, weights * class_weights):
            self._unpriced.append(k)
            class_weights = np.ones(len(y))
        return Task(members, nu_svc(y, nu, weights * class_weights), divide=True)

    def _tell_lowered(self, n_pairs: int) -> None:
        """Raise if ν is infeasible for every pair, warn if it is for some."""
        if not self._limits:
            return
        largest, smallest = max(self._limits.values()), min(self._limits.values())
        if len(self._limits) == n_pairs:
            raise InfeasibleNuError(
                f"nu = {self.nu:g} is infeasible: with these classes and weights the largest feasible nu is "
                f"{largest:.6g}"
            )
        warnings.warn(
            f"nu = {self.nu:g} is infeasible for {len(self._limits)} of {n_pairs} pairs of classes, whose sizes "
            f"differ too much; each of them takes its largest feasible nu, {smallest:.6g} at the least",
            stacklevel=7,
        )

    def _second_thoughts(self, data: TrainingData, machines: Sequence[Machine]) -> dict[int, Task]:
        """Where class weights made ν infeasible: let ν set the price without them, then scale it by class."""
        revised = {}
        for k in self._unpriced:
            half_width = half_margin(machines[k].solution)
            if half_width > 0:
                self._prices[k] = 1 / half_width
                start = machines[k].solution.beta / half_width
                revised[k] = replace(self._task(k, data), start=start)
        return revised

    def _publish(self, model: Model, data: TrainingData, machines: Sequence[Machine]) -> None:
        super()._publish(model, data, machines)
        if any(is_flat(machine.solution) for k, machine in enumerate(machines) if k not in self._prices):
            warnings.warn(
                f"nu = {self.nu:g} is smaller than these data allow: the margin has no width, and decisions mean "
                "nothing. Choose a larger nu, or a kernel that separates better",
                stacklevel=6,
            )

    def _forget_scratch(self) -> None:
        super()._forget_scratch()
        for name in ("_prices", "_unpriced", "_limits"):
            self.__dict__.pop(name, None)


def _largest_nu(y: Vector, weights: Vector) -> float:
    """Return the largest feasible ν of two classes."""
    positive, negative = float(weights[y > 0].sum()), float(weights[y < 0].sum())
    return 2 * min(positive, negative) / (positive + negative)
