"""What a user passes in, turned into what training needs: rows, γ, class weights, thread and byte counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import compute_class_weight

from hinge.arrays import Vector
from hinge.data.contents import row_moments
from hinge.runtime.threads import available_threads
from hinge.training.data import TrainingData

# Squares of values between this and its inverse are floats, and so are sums of many of them.
_SMALLEST_TO_SQUARE = 1e-100

# γ beyond this and its inverse has lost digits, or would take them from its products.
_SMALLEST_GAMMA = 1e-305

_MEGABYTE = 1024**2


def is_opaque(X: Any) -> bool:
    """Whether X is a collection of objects (strings, graphs, ...) that only a user's own kernel understands."""
    if sp.issparse(X):
        return False
    if hasattr(X, "dtypes") and hasattr(X, "columns"):  # a data frame
        return False
    X = X if hasattr(X, "dtype") else _as_array(X)
    return X.ndim == 1 or X.dtype.kind in "OUS"


def opaque_rows(X: Any) -> Any:
    """Put objects into the only column of an object array."""
    items = list(X)
    rows = np.empty((len(items), 1), dtype=object)
    for row, item in zip(rows, items, strict=True):
        row[0] = item
    return rows


def _as_array(X: Any) -> Any:
    try:
        return np.asarray(X)
    except ValueError:  # ragged
        return np.empty(len(X), dtype=object)


def resolve_gamma(gamma: str | float, X: Any, weights: Vector) -> float:
    """Return γ as a number: ``"scale"`` is 1 / (n_features · variance), ``"auto"`` 1 / n_features.

    The variance is that of all entries of X, each row counted by its weight, so that weights and repetitions
    give the same γ.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    scale = _comfortable_scale(X)
    variance = _variance(X, weights, scale)
    if variance == 0:
        return 1.0
    found = float(scale / (int(X.shape[1]) * variance)) * scale
    if not _SMALLEST_GAMMA <= found <= 1 / _SMALLEST_GAMMA:
        raise ValueError(
            f"gamma='scale' is {found:g}, beyond what floating-point numbers hold: X has values around "
            f"{1 / scale:g}. Scale the features, for instance with StandardScaler, or pass a number"
        )
    return found


def _comfortable_scale(X: Any) -> float:
    """A power of two that brings the largest value of X to about 1 where squares might not be floats, else 1."""
    values = X.data if sp.issparse(X) else X
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest == 0 or _SMALLEST_TO_SQUARE <= largest <= 1 / _SMALLEST_TO_SQUARE:
        return 1.0
    return 2.0 ** -float(np.clip(np.frexp(largest)[1], -1000, 1000))


def _variance(X: Any, weights: Vector, scale: float) -> float:
    """Variance of all entries of X times ``scale``, each row counted by its weight.

    Entries are added in the order of the features, zeros by their number: the form of X makes no difference.
    """
    if not sp.issparse(X) and X.size and X.min() == X.max():
        return 0.0  # exactly, whatever rounding makes of the mean
    sums, stored = np.empty(X.shape[0]), np.empty(X.shape[0])
    values, indptr = X, np.empty(0, np.int64)
    if sp.issparse(X):
        values, indptr = X.data, X.indptr.astype(np.int64, copy=False)
    total = float(weights.sum()) * int(X.shape[1])
    row_moments(values, indptr, scale, 0.0, 1, sums, stored)
    mean = float(weights @ sums) / total
    row_moments(values, indptr, scale, mean, 2, sums, stored)
    zeros = float(weights @ (X.shape[1] - stored))
    return (float(weights @ sums) + zeros * mean**2) / total


def cache_bytes(cache_size: str | float) -> int | None:
    """Return the budget in bytes of a ``cache_size`` in megabytes; None for ``"auto"``."""
    return None if isinstance(cache_size, str) else max(int(cache_size * _MEGABYTE), 1)


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` means; None and -1 take every core this process may use."""
    if n_jobs is None or n_jobs == -1:
        return available_threads()
    if n_jobs == 0:
        raise ValueError("n_jobs = 0 has no meaning; use 1 for one thread, None or -1 for all")
    return int(n_jobs) if n_jobs > 0 else max(available_threads() + 1 + int(n_jobs), 1)


def class_weights_of(class_weight: Any, data: TrainingData) -> Vector:
    """Return the weight of every class, having checked that there are classes to tell apart."""
    classes, codes = data.classes
    if len(classes) < 2:
        raise ValueError(
            "The number of classes has to be greater than one (among samples of non-zero weight); got "
            f"{len(classes)} class"
        )
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):  # "balanced", by total weight instead of by count
        totals = np.bincount(codes, data.weights)
        return np.asarray(totals.sum() / (len(totals) * totals))
    weights = compute_class_weight(class_weight, classes=classes, y=data.y)
    if (weights < 0).any():
        raise ValueError(f"class_weight must not be negative, got {class_weight}")
    return np.asarray(weights, dtype=np.float64)
