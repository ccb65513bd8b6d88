"""`GridSearch`: scikit-learn's grid search with everything shared that fits of one kernel have in common."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import indexable
from sklearn.utils._param_validation import StrOptions

from hinge.estimators.base import KernelMachine
from hinge.estimators.documentation import Linked
from hinge.estimators.inputs import thread_count
from hinge.runtime import clock
from hinge.selection.engines.choose import run_units
from hinge.selection.job import Cell, Job, plan
from hinge.selection.strategies import STRATEGIES, n_samples

logger = logging.getLogger("hinge")


class Checkpoint(Protocol):
    """Somewhere to keep the cells of a search, so that a search that was broken off goes on where it was.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from hinge import SVC
    >>> class Notebook:
    ...     def __init__(self):
    ...         self.cells = {}
    ...     def known(self, params):
    ...         return self.cells.get(tuple(params.items()))
    ...     def store(self, cell):
    ...         self.cells[tuple(cell.params.items())] = cell
    >>> notebook = Notebook()
    >>> search = GridSearch(SVC(), {"C": [1.0, 10.0]}, checkpoint=notebook).fit(*make_moons(60))
    >>> len(notebook.cells)
    2
    """

    def known(self, params: Mapping[str, Any]) -> Cell | None:
        """Return the cell of these parameters, if it was kept."""

    def store(self, cell: Cell) -> None:
        """Keep a cell. Several threads may call this at once."""


class _Round(NamedTuple):
    """What one round of a search evaluates: the cells so far, its samples, its candidates."""

    cells: dict[int, Cell]
    n_samples: int
    n_candidates: int


class GridSearch(Linked, BaseSearchCV):  # type: ignore[misc]
    """Search for the best parameters of a support vector machine by cross-validation.

    A drop-in for scikit-learn's ``GridSearchCV`` with the same results, for the five estimators of this package.
    Samples are compared once for the whole search, kernel values computed once for each kernel, and every fit
    starts from that of its neighbour in C. Each fold is still solved to the estimator's tolerance, and its
    certificate kept.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR, NuSVR, OneClassSVM or SVDD
        The machine whose parameters are searched.
    param_grid : dict or list of dict
        Lists of values by the name of the parameter; the grid is all their combinations.
    scoring : str, callable, list, tuple, dict or None
        As in ``GridSearchCV``.
    cv : int, splitter, iterable or None
        As in ``GridSearchCV``.
    refit : bool, str or callable
        As in ``GridSearchCV``: fit the best candidate to all data in the end.
    n_jobs : int, optional
        Threads, or workers of an engine; by default every core that this process may use.
    strategy : {"exhaustive", "halving", "refine"}
        ``"exhaustive"`` evaluates every candidate on all samples. ``"halving"`` evaluates all on few samples and
        the best third on three times as many, until all samples are in use. ``"refine"`` begins with a coarse
        grid and evaluates more candidates around the best only.
    engine : optional
        Where the work is done: None in this process; the name of a joblib backend; a Dask client. See
        `hinge.selection.run_units`.
    checkpoint : Checkpoint, optional
        Where cells are kept as they come, and found again by a search that was broken off.
    verbose : int
        Above 0, every cell is logged.
    error_score : "raise" or float
        Score of a fold whose fit fails.
    return_train_score : bool
        Whether to score training folds too.

    Attributes
    ----------
    cv_results_ : dict of arrays
        As in ``GridSearchCV``, with two more columns per fold: ``split0_violation`` and ``split0_converged``. The
        strategies ``"halving"`` and ``"refine"`` add ``iter`` and ``n_resources``.
    best_params_, best_score_, best_index_, best_estimator_, refit_time_, scorer_, n_splits_, multimetric_
        As in ``GridSearchCV``.
    certificates_ : list of lists of Report
        For every candidate how each fold's fit ended: status, violation, duality gap and so on; None for one that
        failed.
    shares_kernel_ : bool
        Whether every kernel value was computed once. False where the matrix of all samples does not fit into the
        estimator's ``cache_size``: then folds share a cache of rows.

    Notes
    -----
    Not shared, but fitted fold by fold: machines with ``probability=True``. A kernel that is not positive
    semi-definite (``"sigmoid"``) has no unique solution; its fits start afresh. ``callback`` and ``verbose`` of
    the estimator are for its own ``fit``: a search does not call them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hinge import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearch(SVC(), {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}, cv=5).fit(X, y)
    >>> search.best_params_, round(float(search.best_score_), 4)
    ({'C': 1.0, 'gamma': 0.1}, 0.98)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: rule for name, rule in BaseSearchCV._parameter_constraints.items() if name != "pre_dispatch"},
        "param_grid": [dict, list],
        "strategy": [StrOptions(set(STRATEGIES))],
        "engine": "no_validation",
        "checkpoint": "no_validation",
    }

    def __init__(
        self,
        estimator: KernelMachine,
        param_grid: Any,
        *,
        scoring: Any = None,
        cv: Any = None,
        refit: Any = True,
        n_jobs: int | None = None,
        strategy: str = "exhaustive",
        engine: Any = None,
        checkpoint: Checkpoint | None = None,
        verbose: int = 0,
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.scoring = scoring
        self.cv = cv
        self.refit = refit
        self.n_jobs = n_jobs
        self.strategy = strategy
        self.engine = engine
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.error_score = error_score
        self.return_train_score = return_train_score

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None) -> Self:
        """Evaluate the candidates and fit the best one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features) or (n_samples, n_samples)
            The samples; for ``kernel="precomputed"`` their kernel matrix.
        y : array-like of shape (n_samples,), optional
            Class labels, or the numbers to predict.
        groups : array-like of shape (n_samples,), optional
            Passed to the splitter.
        sample_weight : array-like of shape (n_samples,), optional
            Weights for the fits and, as in ``GridSearchCV``, for scorers that take them.

        Returns
        -------
        self
            The fitted search. Ctrl-C raises KeyboardInterrupt within about a second and leaves the candidates that
            are done in ``cv_results_``, with ``best_params_`` of these and no ``best_estimator_``.
        """
        if not isinstance(self.estimator, KernelMachine):
            raise TypeError(
                f"GridSearch searches parameters of Hinge's own estimators, got {type(self.estimator).__name__}; "
                "use scikit-learn's GridSearchCV for a pipeline or another estimator"
            )
        scorer, metric = self._get_scorers()
        X, y, sample_weight, groups = indexable(X, y, sample_weight, groups)
        splitter = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        splits = list(splitter.split(X, y, groups))
        self.n_splits_ = len(splits)
        job = Job(
            clone(self.estimator), X, y, splits, None if self.scoring is None else scorer, sample_weight,
            self.return_train_score, self.error_score,
        )  # fmt: skip
        rounds: list[_Round] = []

        def evaluate(job: Job, candidates: Sequence[dict[str, Any]]) -> list[Cell]:
            rounds.append(_Round({}, n_samples(job), len(candidates)))
            self._evaluate(job, candidates, rounds[-1].cells)
            return [rounds[-1].cells[index] for index in range(len(candidates))]

        try:
            cells, columns = STRATEGIES[self.strategy](evaluate, job, self.param_grid, metric)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._keep(rounds, metric, scorer)) from None
        self._warn_of_failures(cells)
        self._publish_cells(cells, columns, metric, scorer)
        if self.refit:
            self._fit_best(X, y, sample_weight)
        return self

    def _keep(self, rounds: Sequence[_Round], metric: Any, scorer: Any) -> str:
        """Publish what an interrupted search has found; return how much that is."""
        for name in (
            "best_estimator_",
            "refit_time_",
            "cv_results_",
            "best_index_",
            "best_params_",
            "best_score_",
        ):
            self.__dict__.pop(name, None)
        done = [(number, part.cells[index]) for number, part in enumerate(rounds) for index in sorted(part.cells)]
        if not done:
            return "no candidate is done"
        columns: dict[str, Any] = {}
        if self.strategy != "exhaustive":
            columns["iter"] = [number for number, _ in done]
            columns["n_resources"] = [rounds[number].n_samples for number, _ in done]
        self._publish_cells([cell for _, cell in done], columns, metric, scorer)
        missing = sum(part.n_candidates - len(part.cells) for part in rounds)
        return f"{len(done)} candidates are done and in cv_results_; {missing} that were begun or waiting are not"

    def _evaluate(self, job: Job, candidates: Sequence[dict[str, Any]], cells: dict[int, Cell]) -> None:
        """Fill ``cells`` with those of the candidates, by their places."""
        checkpoint = self.checkpoint
        lock = threading.Lock()

        def on_cell(cell: Cell) -> None:
            with lock:
                cells[wanted[cell.index]] = cell
                if checkpoint is not None:
                    checkpoint.store(cell)
                if self.verbose:
                    means = ", ".join(f"{name} {np.mean(s):.6g}" for name, s in cell.test_scores.items())
                    logger.info("%s: %s (%.2f s)", cell.params, means, sum(cell.fit_seconds))

        wanted = []
        for index, params in enumerate(candidates):
            past = checkpoint.known(params) if checkpoint is not None else None
            if past is not None:
                cells[index] = past
            else:
                wanted.append(index)
        units = plan(job.estimator, [candidates[index] for index in wanted])
        for _ in run_units(job, units, self.engine, thread_count(self.n_jobs), on_cell):
            pass  # on_cell has seen it

    def _publish_cells(self, cells: list[Cell], columns: dict[str, Any], metric: Any, scorer: Any) -> None:
        """Set cv_results_ and what follows from it."""
        self.multimetric_ = list(cells[0].test_scores) != ["score"]
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(cells[0].test_scores)
            metric = self.refit
        outcomes = []
        for cell in cells:
            for k in range(self.n_splits_):
                outcome: dict[str, Any] = {"fit_time": cell.fit_seconds[k], "score_time": cell.score_seconds[k]}
                outcome["test_scores"] = _of_fold(cell.test_scores, k, self.multimetric_)
                if self.return_train_score:
                    outcome["train_scores"] = _of_fold(cell.train_scores, k, self.multimetric_)
                outcomes.append(outcome)
        results = self._format_results([cell.params for cell in cells], self.n_splits_, outcomes, columns)
        for k in range(self.n_splits_):
            reports = [cell.reports[k] for cell in cells]
            results[f"split{k}_violation"] = np.array([np.nan if r is None else r.violation for r in reports])
            results[f"split{k}_converged"] = np.array([r is not None and r.converged for r in reports])
        self.cv_results_ = results
        self.certificates_ = [cell.reports for cell in cells]
        self.shares_kernel_ = all(cell.is_shared for cell in cells)
        self.scorer_ = getattr(scorer, "_scorers", scorer)
        if self.refit or not self.multimetric_:
            self._choose_best(metric)

    def _choose_best(self, metric: Any) -> None:
        results = self.cv_results_
        if "iter" in results and self.strategy == "halving" and not callable(self.refit):
            last = np.flatnonzero(results["iter"] == results["iter"].max())
            self.best_index_ = int(last[np.argmin(results[f"rank_test_{metric}"][last])])
        else:
            self.best_index_ = int(self._select_best_index(self.refit, metric, results))
        if not callable(self.refit):
            self.best_score_ = results[f"mean_test_{metric}"][self.best_index_]
        self.best_params_ = results["params"][self.best_index_]

    def _fit_best(self, X: Any, y: Any, sample_weight: Any) -> None:
        started = clock.now()
        self.best_estimator_ = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        self.best_estimator_.fit(X, y, sample_weight=sample_weight)
        self.refit_time_ = clock.now() - started
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    def _warn_of_failures(self, cells: Sequence[Cell]) -> None:
        failures = [text for cell in cells for text in cell.failures if text is not None]
        n_fits = len(cells) * self.n_splits_
        if failures and len(failures) == n_fits:
            raise ValueError(f"All the {n_fits} fits failed. The first of them said: {failures[0]}")
        if failures:
            warnings.warn(
                f"{len(failures)} fits failed out of a total of {n_fits}. The score of these folds is set to "
                f"{self.error_score}; use error_score='raise' to see why. The first of them said: {failures[0]}",
                FitFailedWarning,
                stacklevel=3,
            )
        late = [report for cell in cells for report in cell.reports if report is not None and not report.converged]
        if late:
            warnings.warn(
                f"{len(late)} of {n_fits} fits did not converge ({late[0].status}: {late[0].message}); their "
                "scores are those of the best points so far. See certificates_",
                ConvergenceWarning,
                stacklevel=3,
            )


def _of_fold(scores: Mapping[str, list[float]], fold: int, by_name: bool) -> Any:
    return {name: values[fold] for name, values in scores.items()} if by_name else scores["score"][fold]
