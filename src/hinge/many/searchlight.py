"""An estimator for nilearn's `SearchLight` that cross-validates itself."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from hinge.estimators.documentation import Linked
from hinge.many.evaluation import cross_validate_many


class CrossValidated(Linked, BaseEstimator):  # type: ignore[misc]
    """Cross-validates a machine where it is fitted; its score is the mean of all folds.

    For nilearn's ``SearchLight(estimator=CrossValidated(SVC(kernel="linear"), cv=5))``, which asks an estimator
    marked like this one to fit and score every sphere by itself, and passes ``groups`` on. Its own ``cv`` and
    ``scoring`` have no effect then; those given here have.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR, NuSVR, OneClassSVM or SVDD
        What to cross-validate.
    cv : int, splitter, iterable or None
        As in `cross_validate_many`.
    scoring : str, callable or None
        As in `cross_validate_many`.
    n_jobs : int, default=1
        Threads. nilearn has processes of its own.

    Attributes
    ----------
    scores_ : float64 array of shape (n_folds,)
        The score of every fold.
    statuses_ : array of str, of the same shape
        How each fit ended.
    violations_ : float64 array of the same shape
        What violation it ended with.
    score_ : float
        The mean of the scores.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hinge import SVC
    >>> from hinge.many import CrossValidated
    >>> X, y = load_iris(return_X_y=True)
    >>> round(CrossValidated(SVC(kernel="linear"), cv=3).fit(X, y).score(X, y), 3)
    0.993
    """

    #: nilearn's mark for estimators that are not to be cross-validated from outside.
    nilearn_searchlight_uses_cv: ClassVar[bool] = False

    def __init__(self, estimator: Any, cv: Any = None, scoring: Any = None, n_jobs: int | None = 1) -> None:
        self.estimator = estimator
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Cross-validate on the samples X with the targets y.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            The targets.
        groups : array-like of shape (n_samples,), optional
            Passed to the splitter.

        Returns
        -------
        self
            With the scores of all folds.

        Raises
        ------
        ValueError
            A fit failed.
        """
        found = cross_validate_many(
            clone(self.estimator), np.asarray(X)[None], y, cv=self.cv, groups=groups, scoring=self.scoring,
            error_score="raise", n_jobs=self.n_jobs,
        )  # fmt: skip
        self.scores_, self.statuses_, self.violations_ = found.scores[0], found.statuses[0], found.violations[0]
        self.score_ = float(self.scores_.mean())
        return self

    def score(self, X: Any = None, y: Any = None, groups: Any = None) -> float:
        """Return the mean score of the folds of `fit`; the arguments have no effect."""
        return self.score_
