"""`RankSVM`: ranking."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from hinge.arrays import Vector
from hinge.certificates import Certificate, Certificates
from hinge.dual.ranking import PairPoint
from hinge.estimators.base import KernelMachine
from hinge.estimators.documentation import documented
from hinge.estimators.inputs import cache_bytes, thread_count
from hinge.estimators.parameters import parametrised
from hinge.estimators.ranking_scores import ordered_pairs, query_numbers, query_weights_of
from hinge.kernel.gram import Gram
from hinge.settings import Settings
from hinge.training.course import Course, Fit
from hinge.training.data import TrainingData
from hinge.training.ranking import Judgements, Ranking, ranking_fit
from hinge.training.trainer import Trainer


def _has_no_interval(machine: Any) -> bool:
    raise AttributeError("a ranking has no decision_interval: scores mean nothing but by their differences")


@documented
@parametrised
class RankSVM(KernelMachine):
    """Ranking: scores that put samples of the same query in the order of their grades.

    Finds the function f(x) = Σ coefficient · k(support vector, x) of small norm that lets every sample score at
    least 1 above each sample of the same query with a lower grade, at a price C for every unit by which a pair
    falls short of it: the optimum over all pairs, of which only those that matter are ever listed.

    Parameters
    ----------
    C : float, default=1.0
        Price of a pair that falls short of its margin by 1. There may be very many pairs: a good value is often
        far below 1.
    %(kernel)s
    tol : float, default=1e-3
        Largest violation of the optimality conditions at which the solver stops: by how much the scores of any
        pair may be on the wrong side of its margin. Computed in double precision for all pairs.
    cache_size : "auto" or float, default="auto"
        Megabytes for kernel values; ``"auto"`` takes up to a quarter of the free memory. Where half of it holds
        the whole kernel matrix, that is computed once.
    query_weight : dict, "balanced" or None, default=None
        Factor of C for the pairs of each query; ``"balanced"`` gives all queries the same total, however many
        pairs they have.
    verbose : bool or int, default=False
        Show a progress bar on a terminal, and lines elsewhere.
    max_iter : int, default=-1
        Most products with the kernel matrix and steps of pairs; -1 for no limit.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take every core that this process may use.
    time_limit : float or None, default=None
        Most seconds for the fit, without what is compiled at a first use. What is reached by then is kept, with a
        ConvergenceWarning.
    warm_start : bool, default=False
        Start from the scores of the last fit, if it had as many samples.
    callback : callable or None, default=None
        Called with a `hinge.training.progress.FitProgress` after each step; a true answer stops the fit.
    gap_tol : float or None, default=None
        Also stop once the duality gap is at most this share of the objective's size (or of 1, if that is less).

    Attributes
    ----------
    %(support)s
    n_support_ : int32 array of shape (1,)
        Number of support vectors.
    dual_coef_ : array or sparse matrix of shape (1, n_SV)
        Coefficients of the support vectors: of all pairs of which a sample is the higher one, less those of which
        it is the lower one.
    intercept_ : array of shape (1,)
        0: it would cancel in differences of scores.
    coef_ : array or sparse matrix of shape (1, n_features)
        Weights of the features; only for the linear kernel.
    n_iter_ : int
        Products with the kernel matrix, and steps of pairs.
    %(outcome)s

    See Also
    --------
    SVR : Regression, where the values themselves matter and not their order.

    Notes
    -----
    A pass over all pairs takes O(n log n) operations for n samples, and no memory that grows with the pairs. The
    kernel must be positive semi-definite.

    References
    ----------
    T. Joachims, "Optimizing search engines using clickthrough data" (2002), and "Training linear SVMs in linear
    time" (2006); T.-M. Kuo, C.-P. Lee and C.-J. Lin, "Large-scale kernel rankSVM" (2014).

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import RankSVM
    >>> X = np.array([[0.0], [1.0], [2.0], [0.5], [0.1]])
    >>> grades, queries = [0, 1, 2, 1, 0], [7, 7, 7, 8, 8]
    >>> machine = RankSVM(kernel="linear", C=10.0).fit(X, grades, queries)
    >>> machine.predict(X).round(3)
    array([0.  , 2.5 , 5.  , 1.25, 0.25])
    >>> machine.score(X, grades, queries)
    1.0
    """

    C: float = 1.0
    query_weight: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "query_weight": [StrOptions({"balanced"}), dict, None],
    }

    # What other kernel machines have as parameters.
    probability = trace = False
    shrinking, solver, precision, rule = True, "auto", "auto", "second_order"

    _calibration: ClassVar[str] = "_nothing"

    @property
    def _calibrates(self) -> bool:
        return False

    def fit(  # type: ignore[override]
        self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None
    ) -> Self:
        """Train on the samples X, graded by y within each query.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features) or (n_samples, n_samples)
            The samples; for ``kernel="precomputed"`` their kernel matrix.
        y : array-like of shape (n_samples,)
            Grades: the higher, the further up. Only their order within a query matters.
        qid : array-like of shape (n_samples,), optional
            Query of each sample, in any order; samples of different queries are not compared. By default all are
            of one query.
        sample_weight : array-like of shape (n_samples,), optional
            How often each sample counts: weight k is the same as k repetitions, so that a pair counts by the
            product of its two weights; weight 0 is the same as leaving the sample out.

        Returns
        -------
        self
            The fitted estimator. Ctrl-C raises KeyboardInterrupt and leaves the best machine so far in place.
        """
        return self._fit(X, (y, qid), sample_weight)

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        y, qid = y
        data = super()._training_data(X, y, sample_weight)
        queries = query_numbers(qid, data.shape[0])[data.places]
        grades = np.asarray(data.y, np.float64)
        names = None if qid is None else np.asarray(qid)[data.places]
        queries = np.unique(queries, return_inverse=True)[1].astype(np.int64)
        self._query_weights = query_weights_of(self.query_weight, names, grades, queries, data.weights)
        return replace(data, y=Judgements(grades, queries))

    def _formulation(self, data: TrainingData) -> Ranking:
        return Ranking(data, float(self.C), self._query_weights)

    def _settings(self) -> Settings:
        max_iter = None if self.max_iter in (-1, None) else int(self.max_iter)
        gap_tol = None if self.gap_tol is None else float(self.gap_tol)
        return Settings(tol=float(self.tol), gap_tol=gap_tol, max_iter=max_iter)

    def _gram(self, course: Course) -> Gram:
        return Gram(
            course.formulation.data.X, course.kernel, cache_bytes=cache_bytes(self.cache_size),
            precision="double", threads=thread_count(self.n_jobs),
        )  # fmt: skip

    def _run(self, course: Course, trainer: Trainer) -> Fit:
        assert isinstance(course.formulation, Ranking)
        fit, point = ranking_fit(course, course.formulation, trainer)
        self._pairs: PairPoint = point
        return fit

    def _publish(self, fit: Fit) -> None:
        super()._publish(fit)
        self._publish_single(fit)

    # ------------------------------------------------------------------ predicting

    def decision_function(self, X: Any) -> Vector:
        """Return the score of each sample: the higher, the further up.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; for ``kernel="precomputed"`` their kernel values with all training samples.

        Returns
        -------
        array of shape (n_samples,)
            Scores, to be compared with others of the same query.
        """
        return self._answers(self._decide(X))

    def predict(self, X: Any) -> Vector:
        """Return the score of each sample: the higher, the further up; the same as `decision_function`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; for ``kernel="precomputed"`` their kernel values with all training samples.

        Returns
        -------
        array of shape (n_samples,)
            Scores, to be compared with others of the same query.
        """
        return self.decision_function(X)

    def _answers(self, decisions: Vector) -> Vector:
        return np.asarray(decisions[:, 0])

    def score(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> float:
        """Return the share of pairs that are in the right order; pairs of equal scores count half.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their grades.
        qid : array-like of shape (n_samples,), optional
            Query of each sample. By default all are of one.
        sample_weight : array-like of shape (n_samples,), optional
            A pair counts by the product of the weights of its samples.

        Returns
        -------
        float
            Between 0 and 1; 0.5 by chance. `hinge.estimators.ordered_pairs` is the same of given scores, and
            `hinge.estimators.mean_ndcg` looks at the top of each query.
        """
        return ordered_pairs(y, self.predict(X), qid, sample_weight)

    @available_if(_has_no_interval)  # type: ignore[untyped-decorator]
    def decision_interval(self, X: Any, diagonal: Any = None) -> tuple[Vector, Vector]:  # pragma: no cover
        """Not there: scores mean nothing but by their differences."""
        raise NotImplementedError

    # ------------------------------------------------------------------ proving

    def certificate(  # type: ignore[override]
        self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None
    ) -> Certificates:
        """Prove the fit again, for all pairs.

        Parameters
        ----------
        X, y, qid, sample_weight : array-like
            What the estimator was fitted to.

        Returns
        -------
        Certificates
            Violation and duality gap over all pairs, recomputed in double precision from the dual variables that
            the fit has left; ``sum_error`` is by how much the coefficients differ from what these add up to,
            relative to the largest.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from hinge import RankSVM
        >>> X, y = load_diabetes(return_X_y=True)
        >>> RankSVM(C=0.01).fit(X, y).certificate(X, y).proves(1e-3)
        True
        """
        if "_pairs" not in vars(self) and "_model" in vars(self):
            raise NotFittedError("a ranking from a file is without the dual variables of its pairs: fit it again")
        if "_pairs" not in vars(self):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; there is nothing to prove")
        twin = type(self)(**self.get_params(deep=False))
        if self._gamma:
            twin.gamma = self._gamma
        data = twin._training_data(X, (y, qid), sample_weight)
        problem, point = twin._formulation(data).problem, self._pairs
        if len(point.reference) != problem.n_samples:
            raise ValueError(f"the machine was fitted to {len(point.reference)} samples, got {problem.n_samples}")
        alpha, total = problem.coefficients(point)
        own = np.zeros(data.shape[0])
        own[self._model.support] = np.asarray(self._model.coefficients).ravel()
        difference = float(np.abs(own[data.places] - alpha).max())
        gram = Gram(data.X, twin._kernel_of(data), precision="double", threads=thread_count(self.n_jobs))
        score = gram.product(alpha)
        found = problem.evidence(point, alpha, total, score)
        one = Certificate(
            box_error=found.box_error,
            sum_error=difference / max(float(np.abs(alpha).max()), 1.0),
            violation=found.violation,
            rounding=2 * float(gram.rounding(alpha).max()),
            objective=found.objective,
            dual=-found.objective,
            primal=found.gap - found.objective,
            gap=found.gap,
            multipliers=np.empty(0),
        )
        return Certificates([one], [""], {"C": float(self.C)})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
