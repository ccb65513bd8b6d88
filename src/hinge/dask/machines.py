"""What the five machines that are trained on a cluster share: the same course, on shards."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_feature_names, check_consistent_length

from hinge.dask.adapter import Cluster, client_for
from hinge.dask.checkpoints import Checkpoint
from hinge.dask.inputs import (
    check_finite,
    is_collection,
    names_of,
    shards_of_collection,
    shards_of_rows,
    weights_like,
)
from hinge.dask.predictions import lazily
from hinge.dask.progress import EventListener, TableListener
from hinge.dask.shards import DaskShards
from hinge.data.sharded import ShardedRows
from hinge.estimators.base import KernelMachine
from hinge.estimators.inputs import checked_weights
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import KERNELS
from hinge.training.course import Course, Fit
from hinge.training.data import TrainingData
from hinge.training.progress import Listener
from hinge.training.trainer import Trainer

T = TypeVar("T", bound=type)

# Samples up to which one computer is faster than any cluster: its rounds take less time than questions.
_FEW = 20_000

# Machines that are trained side by side, so that workers compute for one while another is thought about.
_SIDE_BY_SIDE = 4


# What follows the first line of a machine's page; that of `DaskSVC` says all that holds for every one.
_PAGE = """

    Parameters
    ----------
    client, checkpoint
        As in `DaskSVC`.
    **parameters
        Those of `hinge.{name}`, with the same exceptions.

    See Also
    --------
    DaskSVC : What is said there holds here.

    Examples
    --------
    >>> from hinge.dask import Dask{name}
    >>> Dask{name}(tol=0.01).to_local()
    {name}(tol=0.01)
    """


class OnCluster(KernelMachine):
    """Adds training on a cluster, and answers about Dask collections, to a kernel machine."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({name for name in KERNELS if name != "precomputed"})],
        "solver": [StrOptions({"auto", "block"})],
        "stop": [StrOptions({"tolerance"})],
        "client": "no_validation",  # type: ignore[dict-item]
        "checkpoint": [str, os.PathLike, None],
    }

    _local: ClassVar[type[Any]]

    # ------------------------------------------------------------------ fitting

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        with client_for(self.client) as client:
            cluster = Cluster(client)
            _under_way.cluster = cluster
            try:
                return super()._fit(X, y, sample_weight)
            finally:
                shards, _under_way.shards = getattr(_under_way, "shards", None), None
                (shards or cluster).close()

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        cluster = _under_way.cluster
        if not is_collection(X):
            y, sample_weight = (_computed(cluster.client, one) for one in (y, sample_weight))
            data = super()._training_data(X, y, sample_weight)
            shards = _under_way.shards = shards_of_rows(cluster, data.X)
            return replace(data, X=ShardedRows(shards))
        return self._data_of_collection(cluster, X, y, sample_weight)

    def _data_of_collection(self, cluster: Cluster, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        is_supervised = self.__sklearn_tags__().target_tags.required
        if is_supervised and y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but y is None.")
        meta = names_of(X)
        _check_feature_names(self, meta if meta is not None else np.empty((0, X.shape[1])), reset=True)
        shards, (y, sample_weight) = shards_of_collection(cluster, X, y if is_supervised else None, sample_weight)
        _under_way.shards = shards
        check_finite(shards, None if meta is None else list(meta.columns))
        rows = ShardedRows(shards)
        self.n_features_in_ = rows.shape[1]
        if is_supervised:
            y = np.asarray(y)
            check_consistent_length(_Sized(rows.shape[0]), y)
            if y.dtype.kind == "f" and not np.isfinite(y).all():
                raise ValueError(f"Input y contains NaN or infinity, at position {int(np.argmin(np.isfinite(y)))}")
            y = self._check_targets(y)
        n, everyone = rows.shape[0], np.arange(rows.shape[0], dtype=np.int64)
        weights = weights_like(sample_weight, n)
        if weights is None:
            return TrainingData(rows, y, np.ones(n), everyone, rows.shape)
        checked = checked_weights(weights, np.empty((n, 0)))
        places = np.flatnonzero(checked > 0).astype(np.int64)
        return TrainingData(
            rows.select(places), None if y is None else y[places], checked[places], places, rows.shape
        )

    def _gram(self, course: Course) -> Gram:
        return ready(super()._gram(course))

    def _listeners(self) -> list[Listener]:
        shards: DaskShards = _under_way.shards
        events = EventListener(shards.tell, lambda: shards.work, int(shards.sizes.sum()))
        return [*super()._listeners(), events]

    def _on_terminal(self) -> Listener:
        shards: DaskShards = _under_way.shards
        return TableListener(lambda: shards.work, int(shards.sizes.sum()))

    def _run(self, course: Course, trainer: Trainer) -> Fit:
        shards: DaskShards = _under_way.shards
        if self.checkpoint is not None:
            checkpoint = Checkpoint(self.checkpoint, course)
            if self.warm_start and course.past is None:
                course = replace(course, past=checkpoint.past())
            trainer = checkpoint.watching(trainer)
        fit = super()._run(course, trainer)
        reason = fit.report.reason
        if course.formulation.data.shape[0] <= _FEW:
            reason += f"; one computer would be faster for {course.formulation.data.shape[0]} samples"
        report = replace(fit.report, cluster=shards.work, reason=reason)
        return replace(fit, report=report)

    def _publish(self, fit: Fit) -> None:
        super()._publish(fit)
        # What a fit leaves refers to rows on the cluster, which does not keep them.
        self.__dict__.pop("_fitted", None)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self) -> Self:
        without_client = copy(self)  # as pickled; scikit-learn would copy a client, which is not possible
        twin: Self = super(OnCluster, without_client).__sklearn_clone__()
        twin.client = self.client
        return twin

    # ------------------------------------------------------------------ a machine of this process

    def to_local(self) -> Any:
        """Return the same machine as an estimator that knows nothing of clusters.

        Returns
        -------
        estimator
            Of the class in `hinge` with the same parameters: fitted if this one is. It is pickled, exported and
            saved like any other.
        """
        own = {name: value for name, value in self.get_params(deep=False).items() if name not in _OURS}
        local = self._local(**own)
        fitted = {name: value for name, value in vars(self).items() if name not in (*own, *_OURS)}
        local.__dict__.update(fitted)
        return local

    # ------------------------------------------------------------------ predicting

    def _lazily(self, method: str, X: Any) -> Any:
        self._check_fitted()
        meta = names_of(X)
        if meta is not None:
            _check_feature_names(self, meta, reset=False)
        width = len(meta.columns) if meta is not None else X.shape[1]
        if width != self.n_features_in_:
            raise ValueError(
                f"X has {width} features, but {type(self).__name__} is expecting {self.n_features_in_} features"
            )
        local = self.to_local()
        return lazily(local, method, X, _shared(local))

    def _score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of the answers about a collection, or their R²."""
        with client_for(self.client) as client:
            found = (_computed(client, one) for one in (self.predict(X), y, sample_weight))
            predicted, y, sample_weight = (None if one is None else np.asarray(one) for one in found)
        measure = accuracy_score if hasattr(self, "classes_") else r2_score
        return float(measure(y, predicted, sample_weight=sample_weight))


_OURS = ("client", "checkpoint")


def ready(gram: Gram) -> Gram:
    """Return a Gram matrix of shards, ready to train with."""
    gram.team.size = max(gram.team.size, _SIDE_BY_SIDE)
    first = np.zeros(gram.n)
    first[0] = 1.0
    for dtype in {gram.dtype, np.dtype(np.float64)}:
        gram.product(first, dtype=dtype)  # workers compile, all of them at once
    return gram


class _UnderWay(threading.local):
    """The fit of this thread: what `_fit` begins and ends, and the steps between need."""

    cluster: Any = None
    shards: Any = None


_under_way = _UnderWay()


class _Sized:
    """Something with a number of samples, for scikit-learn's check."""

    def __init__(self, n: int) -> None:
        self.shape = (n,)

    def __len__(self) -> int:
        return self.shape[0]


def _computed(client: Any, collection: Any) -> Any:
    return client.compute(collection, sync=True) if is_collection(collection) else collection


def _shared(machine: Any) -> Any:
    """Return a machine as graphs of predictions take it: once for all partitions, and made again if it is lost."""
    from dask.delayed import delayed

    return delayed(machine, pure=False)


def on_cluster(local: type[Any]) -> Callable[[T], T]:
    """Give a class the parameters of a local machine, ``client`` and ``checkpoint``, lazy answers and a page."""

    def adapt(cls: T) -> T:
        known = inspect.signature(local.__init__).parameters
        ours = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in _OURS]

        def __init__(self: Any, **parameters: Any) -> None:  # noqa: N807
            own = {name: parameters.pop(name, None) for name in _OURS}
            local.__init__(self, **parameters)
            self.__dict__.update(own)

        __init__.__signature__ = inspect.Signature([*known.values(), *ours])  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[misc]
        cls._local = local  # type: ignore[attr-defined]
        if cls.__doc__ and "\n" not in cls.__doc__:
            cls.__doc__ += _PAGE.format(name=local.__name__)
        constraints = {**local._parameter_constraints, **OnCluster._parameter_constraints}
        names = {*known, *_OURS}
        cls._parameter_constraints = {name: rule for name, rule in constraints.items() if name in names}  # type: ignore[attr-defined]
        for method in (
            "predict",
            "decision_function",
            "predict_proba",
            "predict_log_proba",
            "score_samples",
            "score",
        ):
            if method in dir(local):
                setattr(cls, method, _Answering(local, method))
        return cls

    return adapt


class _Answering:
    """A method that answers about Dask collections lazily, and about all else as the local machine does.

    Parameters
    ----------
    local : type
        The class of the local machine.
    method : str
        The method; where the machine does not have it, by its parameters, neither has this one.
    """

    def __init__(self, local: type[Any], method: str) -> None:
        self._original, self._method = inspect.getattr_static(local, method), method
        self.__name__, self.__doc__ = method, getattr(local, method).__doc__

    def __get__(self, machine: Any, owner: Any) -> Any:
        if machine is None:
            return getattr(owner._local, self._method)
        known = self._original.__get__(machine, owner)

        @wraps(known)
        def answer(X: Any, *details: Any, **named: Any) -> Any:
            if not is_collection(X):
                return known(X, *details, **named)
            return (
                machine._score(X, *details, **named)
                if self._method == "score"
                else machine._lazily(self._method, X)
            )

        return answer
