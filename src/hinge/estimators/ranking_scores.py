"""How good a ranking is: the share of pairs in the right order, and NDCG, query by query."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, column_or_1d

from hinge.arrays import Index, Vector
from hinge.dual.ranking import RankingProblem, order_of_pairs


def ordered_pairs(y_true: Any, y_score: Any, qid: Any = None, sample_weight: Any = None) -> float:
    """Return the share of pairs that scores put in the right order; pairs of equal scores count half.

    Of two grades and one query this is the area under the ROC curve; less it, the share of swapped pairs.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Grades: the higher, the further up.
    y_score : array-like of shape (n_samples,)
        Scores.
    qid : array-like of shape (n_samples,), optional
        Query of each sample; samples of different queries make no pair. By default all are of one.
    sample_weight : array-like of shape (n_samples,), optional
        A pair counts by the product of the weights of its samples.

    Returns
    -------
    float
        Between 0 and 1. It takes O(n log n).

    Raises
    ------
    ValueError
        No query has two samples of different grades.

    Examples
    --------
    >>> ordered_pairs([2, 1, 0, 1, 0], [3.0, 1.0, 2.0, 0.0, 0.0], qid=[7, 7, 7, 8, 8])
    0.625
    """
    y_true, y_score = (column_or_1d(values).astype(np.float64) for values in (y_true, y_score))
    queries = query_numbers(qid, len(y_true))
    check_consistent_length(y_true, y_score, queries)
    weights = _check_sample_weight(sample_weight, y_true[:, None], dtype=np.float64)
    problem = RankingProblem(y_true, queries, 1.0, weights)
    ordered, equal, swapped = order_of_pairs(problem, y_score)
    if not ordered + equal + swapped > 0:
        raise ValueError("no query has two samples of different grades: there are no pairs")
    return (ordered + 0.5 * equal) / (ordered + equal + swapped)


def mean_ndcg(y_true: Any, y_score: Any, qid: Any = None, k: int | None = None) -> float:
    """Return the normalised discounted cumulative gain, averaged over queries.

    Queries whose samples all have the same grade are left out: every order of them is right.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Grades, not negative: the gain of each sample.
    y_score : array-like of shape (n_samples,)
        Scores. Equal ones share their ranks' discounts.
    qid : array-like of shape (n_samples,), optional
        Query of each sample. By default all are of one.
    k : int, optional
        Count only the first k ranks.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    sklearn.metrics.ndcg_score : The same of one query, or of several with as many samples each.

    Examples
    --------
    >>> round(mean_ndcg([2, 1, 0, 1], [0.1, 0.5, 0.3, 0.2], qid=[7, 7, 7, 8]), 4)
    0.7602
    """
    from sklearn.metrics import ndcg_score  # not above: whoever only fits does without the time that it takes

    y_true, y_score = (column_or_1d(values).astype(np.float64) for values in (y_true, y_score))
    queries = query_numbers(qid, len(y_true))
    check_consistent_length(y_true, y_score, queries)
    if (y_true < 0).any():
        raise ValueError(f"NDCG needs grades that are not negative, got {y_true.min():g}: they are gains")
    order = np.argsort(queries, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(queries[order])) + 1)
    values = [ndcg_score([y_true[mine]], [y_score[mine]], k=k) for mine in members if np.ptp(y_true[mine]) > 0]
    if not values:
        raise ValueError("no query has two samples of different grades: there is nothing to rank")
    return float(np.mean(values))


def query_numbers(qid: Any, n_samples: int) -> Index:
    """Return the number of each sample's query: names of any kind are sorted; None is one query of all."""
    if qid is None:
        return np.zeros(n_samples, np.int64)
    names = column_or_1d(qid)
    if len(names) != n_samples:
        raise ValueError(f"qid must have one value per sample: expected {n_samples}, got {len(names)}")
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise ValueError("qid contains NaN or infinity: every sample needs a query")
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def query_weights_of(query_weight: Any, qid: Any, grades: Vector, queries: Index, weights: Vector) -> Vector:
    """Return the weight of every query: given by name, or such that all queries with pairs count the same."""
    n_queries = int(queries.max(initial=-1)) + 1
    result = np.ones(n_queries)
    if query_weight is None:
        return result
    if isinstance(query_weight, str):  # "balanced"
        totals = pair_weights(grades, queries, weights)
        has_pairs = totals > 0
        result[has_pairs] = totals[has_pairs].mean() / totals[has_pairs]
        return result
    names = np.unique(column_or_1d(qid)).tolist() if qid is not None else [0]
    for name, weight in query_weight.items():
        if name not in names:
            raise ValueError(f"query_weight names {name!r}, which is no query of qid")
        if not (np.isfinite(weight) and weight > 0):
            raise ValueError(f"query_weight must be positive, got {weight} for query {name!r}")
        result[names.index(name)] = weight
    return result


def pair_weights(grades: Vector, queries: Index, weights: Vector) -> Vector:
    """Return the weights of all pairs of each query, added up."""
    n_queries = int(queries.max(initial=-1)) + 1
    cells, which = np.unique(np.column_stack([queries, grades]), axis=0, return_inverse=True)
    of_grade = np.bincount(which.ravel(), weights=weights, minlength=len(cells))
    of_query = np.bincount(queries, weights=weights, minlength=n_queries)
    squares = np.bincount(cells[:, 0].astype(np.int64), weights=of_grade**2, minlength=n_queries)
    single = np.bincount(cells[:, 0].astype(np.int64), minlength=n_queries) == 1
    return np.where(single, 0.0, 0.5 * (of_query**2 - squares))
