"""`TransductiveSVC`: classification with unlabelled samples."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from hinge.arrays import Index, Vector
from hinge.certificates import Certificates, certificate
from hinge.dual.formulations import c_svc
from hinge.estimators.classification import KernelClassifier
from hinge.estimators.documentation import documented
from hinge.estimators.inputs import cache_bytes, thread_count
from hinge.estimators.parameters import parametrised
from hinge.estimators.proofs import coefficients_of
from hinge.kernel.gram import Gram
from hinge.report import machine_names
from hinge.settings import Settings
from hinge.training.course import Course, Fit
from hinge.training.data import TrainingData
from hinge.training.transduction import UNLABELLED, Step, Transduction


@documented
@parametrised
class TransductiveSVC(KernelClassifier):
    """Classification with few labels and many samples without: Joachims' transductive machine.

    Besides the labelled samples it is given samples of which only the features are known, and finds labels for
    them such that a wide margin separates all: a boundary through a region without samples. That helps where
    classes are clusters, as texts often are, and hurts where they are not. What it comes to is a *local* optimum:
    for its labels the machine is optimal and certified, and exchanging any two of them does not lower the
    objective at that machine; other labels might be better still.

    Parameters
    ----------
    C : float, default=1.0
        Price of a violated margin of labelled samples.
    C_unlabeled : float or None, default=None
        Price of those of unlabelled samples at the end; None for ``C``. It begins at a hundred-thousandth of this
        and doubles.
    share : float, dict or None, default=None
        Which share of the unlabelled samples belongs to ``classes_[1]``, or to each class by its label; it is kept
        exactly. None for the shares among the labelled samples, by their weights: with few labels it pays to know
        better.
    %(kernel)s
    tol : float, default=1e-3
        Largest violation of the optimality conditions at which the solver stops, for each machine on the way.
    cache_size : "auto" or float, default="auto"
        Megabytes for kernel values; ``"auto"`` takes up to a quarter of the free memory.
    verbose : bool or int, default=False
        Show a progress bar on a terminal, and lines elsewhere.
    max_iter : int, default=-1
        Most steps of each machine on the way; -1 for the larger of ten million and a hundred per variable.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take every core that this process may use.
    time_limit : float or None, default=None
        Most seconds for the fit, without what is compiled at a first use. What is reached by then is kept, with a
        ConvergenceWarning.
    callback : callable or None, default=None
        Called with a `hinge.training.progress.FitProgress` after each outer step; a true answer stops the fit.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, without -1.
    transduction_ : array of shape (n_samples,)
        The label of every training sample, given or found.
    steps_ : list of Step
        What was done: exchanges of labels and growing prices, each with the objective before and after. No
        exchange raises it.
    %(support)s
    n_support_ : int32 array of shape (n_classes,)
        Number of support vectors of each class, found labels counted like given ones.
    dual_coef_ : array or sparse matrix of shape (n_machines, n_SV)
        Coefficients of the support vectors; one machine for two classes, else one for each class.
    intercept_ : array of shape (n_machines,)
        Intercept of each machine.
    coef_ : array or sparse matrix of shape (n_machines, n_features)
        Weights of the features; only for the linear kernel.
    n_iter_ : int32 array of shape (n_machines,)
        Steps that each machine took, of all its problems.
    %(outcome)s

    See Also
    --------
    SVC : The same without unlabelled samples.
    sklearn.semi_supervised.SelfTrainingClassifier : Labels what a classifier is sure of, again and again.

    Notes
    -----
    Many classes are told apart by a machine for each class against the rest, which finds labels of its own;
    `transduction_` then is the class of the highest decision, which need not keep the shares.

    References
    ----------
    T. Joachims, "Transductive inference for text classification using support vector machines" (1999).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from hinge import TransductiveSVC
    >>> X, y = make_moons(200, noise=0.05, random_state=0)
    >>> few = np.full(200, -1)
    >>> few[:10] = y[:10]
    >>> machine = TransductiveSVC(gamma=2.0, share=0.5).fit(X, few)
    >>> bool(np.mean(machine.transduction_ == y) > 0.98)
    True
    """

    C: float = 1.0
    C_unlabeled: float | None = None
    share: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelClassifier._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "C_unlabeled": [Interval(Real, 0.0, None, closed="neither"), None],
        "share": [Interval(Real, 0.0, 1.0, closed="both"), dict, None],
    }

    # What other classifiers have as parameters.
    multi_class = decision_function_shape = "ovr"
    break_ties = probability = warm_start = trace = False
    shrinking, solver, precision, rule = True, "auto", "auto", "second_order"
    stop, gap_tol, class_weight, random_state = "tolerance", None, None, None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on the samples X, of which those with the label -1 have none.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features) or (n_samples, n_samples)
            The samples; for ``kernel="precomputed"`` their kernel matrix.
        y : array-like of shape (n_samples,)
            Class labels of any kind; -1 for unlabelled samples, as in `sklearn.semi_supervised`. Words and -1 go
            together in an array of objects.
        sample_weight : array-like of shape (n_samples,), optional
            How often each sample counts.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight)

    # ------------------------------------------------------------------ what a fit is about

    def _is_plain_target(self, y: Any) -> bool:
        return False

    def _check_targets(self, y: Any) -> Index:
        """Return the number of each label among those there are, and remember these."""
        y = column_or_1d(y, warn=True)
        is_open = np.array([_is_minus_one(label) for label in y]) if y.dtype == object else np.zeros(len(y), bool)
        if y.dtype.kind in "biuf":
            is_open = y == UNLABELLED
        known = y[~is_open]
        if not len(known):
            raise ValueError("no sample is labelled: -1 means unlabelled, and classes need samples to begin with")
        if known.dtype == object and all(isinstance(label, str) for label in known):
            known = known.astype(str)
        elif known.dtype == object and not any(isinstance(label, str) for label in known):
            known = np.array(known.tolist())
        check_classification_targets(known)
        self._labels, numbers = np.unique(known, return_inverse=True)
        codes = np.full(len(y), UNLABELLED, np.int64)
        codes[~is_open] = numbers
        return codes

    def _formulation(self, data: TrainingData) -> Transduction:
        present = np.unique(data.y[data.y >= 0])
        if len(present) < 2:
            raise ValueError(
                "The number of classes has to be greater than one; got "
                f"{len(present)} class: {self._labels[present].tolist()}, where -1 means unlabelled. If -1 is a "
                "class of yours, name the classes otherwise, for instance 0 and 1"
            )
        numbers = np.where(data.y >= 0, np.searchsorted(present, data.y), UNLABELLED)
        labels, data = self._labels[present], replace(data, y=numbers)
        last = float(self.C if self.C_unlabeled is None else self.C_unlabeled)
        return Transduction(data, labels, float(self.C), last, self._shares(labels, data))

    def _shares(self, labels: NDArray[Any], data: TrainingData) -> Vector:
        """Return the share of each class among the unlabelled samples."""
        if self.share is None:
            known = data.y >= 0
            totals = np.bincount(data.y[known], weights=data.weights[known], minlength=len(labels))
            return np.asarray(totals / totals.sum())
        if not isinstance(self.share, dict):
            if len(labels) != 2:
                raise ValueError(f"share must name the share of each of {len(labels)} classes: a dict by label")
            return np.array([1.0 - float(self.share), float(self.share)])
        if set(self.share) != set(labels.tolist()):
            raise ValueError(f"share must name each class once: {labels.tolist()}, got {list(self.share)}")
        shares = np.array([float(self.share[label]) for label in labels.tolist()])
        if (shares < 0).any() or not np.isclose(shares.sum(), 1.0):
            raise ValueError(f"share must be shares that add up to 1, got {self.share}")
        return shares

    def _settings(self) -> Settings:
        return Settings(tol=float(self.tol), max_iter=None if self.max_iter in (-1, None) else int(self.max_iter))

    def _gram(self, course: Course) -> Gram:
        return Gram(
            course.formulation.data.X, course.kernel, cache_bytes=cache_bytes(self.cache_size),
            threads=thread_count(self.n_jobs),
        )  # fmt: skip

    def _publish(self, fit: Fit) -> None:
        super()._publish(fit)
        formulation = fit.formulation
        assert isinstance(formulation, Transduction)
        del self.class_weight_, self._labels
        self.steps_: list[Step] = formulation.steps
        codes = formulation.strata.copy()
        if len(self.classes_) > 2:
            is_open = formulation.data.y == UNLABELLED
            decisions = np.column_stack([machine.decisions for machine in fit.machines])
            codes[is_open] = np.argmax(decisions, axis=1)[is_open]
        found = np.zeros(formulation.data.shape[0], np.intp)
        places = formulation.data.places
        found[places] = codes
        self.transduction_ = self.classes_[found]
        costs_and_signs = [formulation.costs_and_signs(k) for k in range(len(fit.machines))]
        self._problems = [(costs, signs, places) for costs, signs in costs_and_signs]

    # ------------------------------------------------------------------ proving

    def certificate(self, X: Any, y: Any = None, sample_weight: Any = None) -> Certificates:
        """Prove that the machine is optimal for the labels and prices that it ended with.

        Parameters
        ----------
        X : array-like
            The samples that the estimator was fitted to.
        y, sample_weight : ignored
            The fit remembers labels and prices.

        Returns
        -------
        Certificates
            Feasibility, violation and duality gap of every machine, recomputed from its coefficients. That other
            labels would not be better nobody proves.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from hinge import TransductiveSVC
        >>> X, y = make_moons(60, random_state=0)
        >>> y[20:] = -1
        >>> TransductiveSVC().fit(X, y).certificate(X).proves(1e-3)
        True
        """
        self._check_fitted()
        twin = type(self)(**self.get_params(deep=False))
        if self._gamma:
            twin.gamma = self._gamma
        given = np.zeros(self.shape_fit_[0]) if y is None else y
        places = self._problems[0][2]
        weights = np.isin(np.arange(len(given)), places).astype(np.float64)
        data = twin._training_data(X, np.where(weights > 0, 1, 0), weights)
        gram = Gram(data.X, twin._kernel_of(data), precision="double", threads=thread_count(self.n_jobs))
        rows = np.zeros((len(self._problems), self.shape_fit_[0]))
        rows[:, self.support_] = coefficients_of(self)
        found = [
            certificate(c_svc(signs, 1.0, costs), gram, row[places])
            for (costs, signs, _), row in zip(self._problems, rows, strict=True)
        ]
        return Certificates(found, machine_names(self.classes_, "ovr"), {"C": float(self.C)})


def _is_minus_one(label: Any) -> bool:
    return isinstance(label, Real) and not isinstance(label, bool) and bool(label == UNLABELLED)
