"""`cross_validate`: scikit-learn's function of this name, with shared kernel values and certificates."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import indexable

from hinge.estimators.base import KernelMachine
from hinge.estimators.inputs import thread_count
from hinge.selection.engines.choose import run_units
from hinge.selection.job import Job, plan


def cross_validate(
    estimator: KernelMachine,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    engine: Any = None,
    return_train_score: bool = False,
    error_score: Any = np.nan,
) -> dict[str, Any]:
    """Fit and score an estimator on every fold; kernel values are computed once for all of them.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR, NuSVR, OneClassSVM or SVDD
        What to fit.
    X : array-like or sparse matrix of shape (n_samples, n_features) or (n_samples, n_samples)
        The samples; for ``kernel="precomputed"`` their kernel matrix.
    y : array-like of shape (n_samples,), optional
        Class labels, or the numbers to predict.
    groups : array-like of shape (n_samples,), optional
        Passed to the splitter.
    scoring : str, callable, list, tuple, dict or None
        As in scikit-learn.
    cv : int, splitter, iterable or None
        As in scikit-learn.
    sample_weight : array-like of shape (n_samples,), optional
        Weights for the fits, and for scorers that take them.
    n_jobs : int, optional
        Threads; by default every core that this process may use.
    engine : optional
        Where the work is done; see `hinge.selection.run_units`.
    return_train_score : bool
        Whether to score training folds too.
    error_score : "raise" or float
        Score of a fold whose fit fails.

    Returns
    -------
    dict of arrays
        As scikit-learn's: ``fit_time``, ``score_time``, ``test_score`` (or ``test_<name>`` for several metrics),
        and ``train_score`` if asked for. Besides ``violation``, ``converged`` and ``report``, the certificate of
        each fold.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C was pressed; within about a second.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hinge import SVC
    >>> results = cross_validate(SVC(), *load_iris(return_X_y=True), cv=3)
    >>> results["test_score"].round(3), results["converged"]
    (array([0.96, 0.98, 0.94]), array([ True,  True,  True]))
    """
    scorer = check_scoring(estimator, scoring, raise_exc=error_score == "raise")
    X, y, sample_weight, groups = indexable(X, y, sample_weight, groups)
    splits = list(check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y, groups))
    scorer = None if scoring is None else scorer
    job = Job(clone(estimator), X, y, splits, scorer, sample_weight, return_train_score, error_score)
    (cell,) = run_units(job, plan(job.estimator, [{}]), engine, thread_count(n_jobs))
    results: dict[str, Any] = {
        "fit_time": np.array(cell.fit_seconds),
        "score_time": np.array(cell.score_seconds),
    }
    for kind, scores in (("test", cell.test_scores), ("train", cell.train_scores)):
        results |= {f"{kind}_{name}": np.array(values) for name, values in scores.items()}
    results["violation"] = np.array([np.nan if r is None else r.violation for r in cell.reports])
    results["converged"] = np.array([r is not None and r.converged for r in cell.reports])
    results["report"] = np.array(cell.reports, dtype=object)
    return results
