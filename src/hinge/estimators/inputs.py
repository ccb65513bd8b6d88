"""What a user passes in, turned into what training needs: rows, γ, class weights, thread and byte counts."""

from __future__ import annotations

import warnings
from math import isfinite
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from hinge.arrays import Vector
from hinge.data.collection import Collection
from hinge.data.contents import extremes, moments
from hinge.data.pages import is_mapped, reduced
from hinge.data.structure import check_structure
from hinge.runtime.threads import available_threads
from hinge.training.data import TrainingData

# Squares of values between this and its inverse are floats, and so are sums of many of them.
_SMALLEST_TO_SQUARE = 1e-100

# γ beyond this and its inverse has lost digits, or would take them from its products.
_SMALLEST_GAMMA = 1e-305

_MEGABYTE = 1024**2

# Types of samples that are taken as they are, in the byte order of this computer.
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


# Labels beyond this are not surely whole numbers in every type that they might be compared in.
_LARGEST_LABEL = 2**31


def is_plain(X: Any) -> bool:
    """Whether X is a matrix that scikit-learn's checks would return as it is, without a word.

    Anything unusual is left to them: lists, data frames, other types, subclasses, what is empty or not finite. The
    structure of CSR matrices is looked at elsewhere (`hinge.data.structure`).
    """
    if type(X) in (sp.csr_array, sp.csr_matrix):
        return X.ndim == 2 and min(X.shape) > 0 and X.dtype in _FLOATS and _is_finite(X.data)
    if type(X) is not np.ndarray and not (type(X) is np.memmap and is_mapped(X)):
        return False
    if X.ndim != 2 or not X.size or not X.flags.c_contiguous:
        return False
    return X.dtype in _FLOATS and _is_finite(X)


def is_plain_numbers(y: Any) -> bool:
    """Whether y are targets of regression that need neither a check nor a conversion."""
    return type(y) is np.ndarray and y.ndim == 1 and y.dtype == np.float64 and y.size > 0 and _is_finite(y)


def is_plain_labels(y: Any) -> bool:
    """Whether y are whole numbers that are labels beyond doubt: scikit-learn's checks would return them as such.

    They warn where classes are more than half as many as samples; their range shows that they are not.
    """
    if type(y) is not np.ndarray or y.ndim != 1 or not y.size or not y.dtype.isnative:
        return False
    if y.dtype.kind not in "iu" and y.dtype not in _FLOATS:
        return False
    least, most = y.min(), y.max()
    if not (-_LARGEST_LABEL < least <= most < _LARGEST_LABEL):  # nor is NaN
        return False
    if int(most) - int(least) + 1 > max(len(y) // 2, 2):
        return False
    return y.dtype.kind in "iu" or bool((y == np.floor(y)).all())


def _is_finite(values: Any) -> bool:
    """Whether the sum of all values is finite: then all of them are, and if not, somebody has to look closer."""
    with np.errstate(over="ignore", invalid="ignore"):
        if type(values) is np.memmap:  # in pieces, whose pages are let go
            return bool(np.isfinite(reduced(values, np.sum, np.add)))
        return isfinite(values.sum())


def checked_weights(weights: Any, X: Any) -> Vector:
    """Return a weight for every sample of X; negative ones are 0, with a warning, and all must not be.

    scikit-learn leaves samples of negative weight out without a word.
    """
    values = np.asarray(weights)
    if values.ndim == 1 and values.size and values.dtype.kind in "biuf" and (values <= 0).all():
        raise ValueError("Invalid input - all samples have zero or negative weights. At least one must count.")
    checked = _check_sample_weight(weights, X, dtype=np.float64)
    if (checked < 0).any():
        where = int(np.argmax(checked < 0))
        warnings.warn(
            f"Negative values in data passed to `sample_weight`: {checked[where]:g} at position {where}, for one. "
            "A weight is a number of repetitions; samples of negative weight are left out, as if it were 0",
            stacklevel=6,
        )
        checked = np.maximum(checked, 0.0)
    return np.asarray(checked)


def resolve_gamma(gamma: str | float, X: Any, weights: Vector) -> float:
    """Return γ as a number: ``"scale"`` is 1 / (n_features · variance), ``"auto"`` 1 / n_features.

    The variance is that of all entries of X, each row counted by its weight, so that weights and repetitions
    give the same γ.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    least, most, n_stored = extremes(X)
    scale = _comfortable_scale(max(abs(least), abs(most)))
    # Of equal values it is zero exactly, whatever rounding makes of their mean.
    is_constant = least == most and n_stored == X.shape[0] * X.shape[1]
    variance = 0.0 if is_constant else _variance(X, weights, scale)
    if variance == 0:
        return 1.0
    found = float(scale / (int(X.shape[1]) * variance)) * scale
    if not _SMALLEST_GAMMA <= found <= 1 / _SMALLEST_GAMMA:
        raise ValueError(
            f"gamma='scale' is {found:g}, beyond what floating-point numbers hold: X has values around "
            f"{1 / scale:g}. Scale the features, for instance with StandardScaler, or pass a number"
        )
    return found


def _comfortable_scale(largest: float) -> float:
    """A power of two that brings the largest value to about 1 where squares might not be floats, else 1."""
    if largest == 0 or _SMALLEST_TO_SQUARE <= largest <= 1 / _SMALLEST_TO_SQUARE:
        return 1.0
    return 2.0 ** -float(np.clip(np.frexp(largest)[1], -1000, 1000))


def _variance(X: Any, weights: Vector, scale: float) -> float:
    """Variance of all entries of X times ``scale``, each row counted by its weight.

    Entries are added in the order of the features, zeros by their number: the form of X makes no difference.
    """
    total = float(weights.sum()) * int(X.shape[1])
    sums, _ = moments(X, scale, 0.0, 1)
    mean = float(weights @ sums) / total
    sums, stored = moments(X, scale, mean, 2)
    zeros = float(weights @ (X.shape[1] - stored))
    return (float(weights @ sums) + zeros * mean**2) / total


def collected(X: Any) -> Collection:
    """Return samples as a kernel function gets them: as they are, unless their indices would end the process."""
    if sp.issparse(X):
        check_structure(X)
    return Collection(X)


def cache_bytes(cache_size: str | float) -> int | None:
    """Return the budget in bytes of a ``cache_size`` in megabytes; None for ``"auto"``."""
    return None if isinstance(cache_size, str) else max(int(cache_size * _MEGABYTE), 1)


def thread_limit(n_jobs: int | None) -> int | None:
    """Return the number of threads that ``n_jobs`` means; None for every core, which nobody has counted yet."""
    if n_jobs is None or n_jobs == -1:
        return None
    if n_jobs == 0:
        raise ValueError("n_jobs = 0 has no meaning; use 1 for one thread, None or -1 for all")
    return int(n_jobs) if n_jobs > 0 else max(available_threads() + 1 + int(n_jobs), 1)


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` means; None and -1 take every core this process may use."""
    limit = thread_limit(n_jobs)
    return available_threads() if limit is None else limit


def class_weights_of(class_weight: Any, data: TrainingData) -> Vector:
    """Return the weight of every class, having checked that there are classes to tell apart."""
    classes, codes = data.classes
    if len(classes) < 2:
        if len(data.places) < data.shape[0]:
            raise ValueError(
                "Invalid input - all samples with positive weights belong to the same class, "
                f"{classes.tolist()[0]!r}: there is nothing to tell apart"
            )
        raise ValueError(f"The number of classes has to be greater than one; got {len(classes)} class")
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):  # "balanced", by total weight instead of by count
        totals = np.bincount(codes, data.weights)
        return np.asarray(totals.sum() / (len(totals) * totals))
    weights = compute_class_weight(class_weight, classes=classes, y=data.y)
    if (weights < 0).any():
        raise ValueError(f"class_weight must not be negative, got {class_weight}")
    return np.asarray(weights, dtype=np.float64)
