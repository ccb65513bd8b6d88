"""What becomes of a training set: samples come, samples go, weights change."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import _check_y, _num_samples, check_consistent_length

from hinge.arrays import Index, Vector
from hinge.data.collection import Collection
from hinge.data.structure import canonical
from hinge.estimators.inputs import checked_weights, collected
from hinge.training.data import TrainingData


class Planned:
    """A training set after an update, and the union of it with the one before.

    Parameters
    ----------
    union, after : TrainingData
        Both; samples of the union that are gone have weight 0.
    kept : int64 array
        Which samples of the union are in the new training set.
    """

    def __init__(self, union: TrainingData, after: TrainingData, kept: Index) -> None:
        self.union, self.after, self.kept = union, after, kept

    @classmethod
    def same(cls, data: TrainingData) -> Planned:
        """Return the training set as it is."""
        return cls(data, data, np.arange(len(data.places)))


def added(machine: Any, old: TrainingData, X: Any, y: Any, sample_weight: Any) -> Planned:
    """Return the training set with new samples at its end."""
    n_old, is_gram = old.shape[0], machine.kernel == "precomputed"
    if old.y is not None and y is None:
        raise ValueError(f"This {type(machine).__name__} estimator requires y to be passed, but y is None.")
    rows = _checked_rows(machine, X, n_old)
    n_new = _num_samples(rows)
    weights = np.ones(n_new) if sample_weight is None else checked_weights(sample_weight, rows)
    if old.y is None:
        targets = None
    else:
        check_consistent_length(rows, y)
        is_plain = machine._is_plain_target(y)
        checked = y if is_plain else _check_y(y, y_numeric=old.y.dtype.kind == "f", estimator=machine)
        targets = checked if is_plain else machine._check_targets(checked)
        if (targets.dtype.kind in "biuf") != (old.y.dtype.kind in "biuf"):
            raise ValueError(
                f"y has labels like {targets[0]!r}, the machine was trained with some like {old.y[0]!r}"
            )
        targets = np.concatenate([old.y, targets[weights > 0]])
    counted = np.flatnonzero(weights > 0)
    if is_gram:
        values = _with_border(old.X, np.asarray(rows), old.places, counted, n_old)
    else:
        values = _stacked(old.X, rows[counted] if len(counted) < n_new else rows)
    shape = (n_old + n_new, n_old + n_new) if is_gram else (n_old + n_new, *old.shape[1:])
    data = TrainingData(
        values, targets, np.concatenate([old.weights, weights[counted]]),
        np.concatenate([old.places, n_old + counted]), shape,
    )  # fmt: skip
    return Planned.same(data)


def _checked_rows(machine: Any, X: Any, n_old: int) -> Any:
    """Check and convert new samples."""
    if callable(machine.kernel):
        return collected(X)
    if machine.kernel != "precomputed":
        return machine._check_rows(canonical(X) if sp.issparse(X) else X, reset=False)
    if sp.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported: pass K.toarray().")
    values = np.asarray(X, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != n_old + len(values) or not np.isfinite(values).all():
        raise ValueError(
            f"X must hold finite kernel values of the new samples with the {n_old} samples of the training set "
            f"and then with each other, {n_old} columns and one for each row; its shape is {values.shape}"
        )
    return values


def _with_border(K: Any, rows: Any, places: Index, counted: Index, n_old: int) -> Any:
    """Return a kernel matrix with new rows and columns."""
    rows = rows[counted]
    beside, between = rows[:, places], rows[:, n_old + counted]
    return np.block([[K, beside.T], [beside, between]])


def _stacked(old: Any, new: Any) -> Any:
    """Return old and new samples, in the form of the old."""
    if isinstance(old, Collection):
        return Collection(_joined(old.selected(), new.selected()))
    if sp.issparse(old):
        new = canonical(type(old)(new))
        pairs = (old.data, new.data), (old.indices, new.indices), (old.indptr, new.indptr[1:] + old.indptr[-1])
        return type(old)(
            tuple(np.concatenate(pair) for pair in pairs), shape=(old.shape[0] + new.shape[0], old.shape[1])
        )
    return np.vstack([old, new.toarray() if sp.issparse(new) else new])


def _joined(old: Any, new: Any) -> Any:
    """Return a container of the samples of two."""
    if hasattr(old, "iloc"):
        import pandas as pd

        return pd.concat([old, new], ignore_index=True)
    if sp.issparse(old):
        return sp.vstack([old, new], format="csr")
    if hasattr(old, "shape"):
        return np.concatenate([old, new])
    return [*old, *new]


def _numbers(indices: Any, n: int) -> Index:
    """Return the numbers of samples that a user means."""
    found = np.atleast_1d(np.asarray(indices))
    if found.dtype == bool:
        if found.shape != (n,):
            raise ValueError(f"a mask of samples must have a value for each of the {n}, got shape {found.shape}")
        return np.flatnonzero(found)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise ValueError(f"samples are named by their numbers, got {indices!r}")
    found = found.astype(np.int64)
    wrong = found[(found < 0) | (found >= n)]
    if len(wrong):
        raise IndexError(
            f"there is no sample {wrong[0]}: the training set has {n} now, numbered from 0; the numbers of those "
            "behind a forgotten one have changed"
        )
    return found


def without(machine: Any, old: TrainingData, indices: Any) -> Planned:
    """Return the training set without some samples, whose numbers the next ones take."""
    gone = np.unique(_numbers(indices, old.shape[0]))
    n_left = old.shape[0] - len(gone)
    shape = (n_left, n_left) if machine.kernel == "precomputed" else (n_left, *old.shape[1:])
    return _left(machine, old, np.where(np.isin(old.places, gone), 0.0, old.weights), gone, shape)


def reweighted(machine: Any, old: TrainingData, indices: Any, weights: Any, sample_weight: Any) -> Planned:
    """Return the training set with other weights."""
    n = old.shape[0]
    if sample_weight is not None:
        if indices is not None or weights is not None:
            raise ValueError("pass indices and weights, or sample_weight for all samples")
        indices, weights = np.arange(n), sample_weight
    if indices is None or weights is None:
        raise ValueError("pass the numbers of samples and their weights, or sample_weight for all samples")
    numbers, values = _numbers(indices, n), np.asarray(weights, dtype=np.float64)
    if values.shape not in ((), numbers.shape):
        raise ValueError(
            f"weights must be one number or one for each of {len(numbers)} samples, got {values.shape}"
        )
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError("weights must be finite and not negative; weight 0 leaves a sample out")
    whole = np.zeros(n)
    whole[old.places] = old.weights
    whole[numbers] = values
    missing = np.flatnonzero(whole > 0)
    missing = missing[~np.isin(missing, old.places)]
    if len(missing):
        raise ValueError(
            f"sample {missing[0]} had the weight 0, and such samples are not kept: add it, instead of giving it a "
            "weight again"
        )
    return _left(machine, old, whole[old.places], np.empty(0, np.int64), old.shape)


def _left(machine: Any, old: TrainingData, weights: Vector, gone: Index, shape: tuple[int, ...]) -> Planned:
    """Return what is left of a training set where some weights have become 0."""
    is_left = weights > 0
    kept = np.flatnonzero(is_left)
    if not len(kept):
        raise ValueError("no sample would be left: at least one must count")
    if len(kept) == len(weights) and not len(gone):
        return Planned.same(TrainingData(old.X, old.y, weights, old.places, shape))
    targets = old.y
    if hasattr(machine, "classes_"):
        targets = _with_classes_left(old, is_left)
    union = TrainingData(old.X, targets, weights, old.places, old.shape)
    rows = (
        old.X
        if len(kept) == len(weights)
        else old.X[np.ix_(kept, kept) if machine.kernel == "precomputed" else kept]
    )
    places = old.places[kept]
    places = places - np.searchsorted(gone, places)
    after = TrainingData(rows, None if old.y is None else old.y[kept], weights[kept], places, shape)
    return Planned(union, after, kept)


def _with_classes_left(old: TrainingData, is_left: NDArray[np.bool_]) -> Any:
    """Return labels of which none is of a class that is gone: its samples, which do not count, get another."""
    labels, codes = old.classes
    counts = np.bincount(codes[is_left], minlength=len(labels))
    if np.count_nonzero(counts) < 2:
        lost = labels[counts == 0][:1]
        last = old.places[~is_left & (old.y == lost)]
        raise ValueError(
            f"sample {last[-1]} is the last one of class {lost.tolist()[0]!r}, and one class alone leaves nothing "
            "to tell apart: keep it, or add samples of another class first"
        )
    if (counts > 0).all():
        return old.y
    return np.where(counts[codes] == 0, labels[np.argmax(counts > 0)], old.y)
