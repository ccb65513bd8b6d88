"""Answers for Dask collections: lazy, partition by partition, of the kind and index of what was asked about."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.dask.inputs import check_layout, is_array


def lazily(machine: Any, method: str, X: Any, shared: Any) -> Any:
    """Return what a method of a machine answers about a collection, as a collection.

    Parameters
    ----------
    machine : estimator
        A fitted machine of this process; asked about nothing, it shows the form of its answers.
    method : str
        `predict`, `decision_function`, …
    X : Dask Array or DataFrame
        The samples.
    shared : Future or Delayed
        The machine, once for all partitions.
    """
    check_layout(X)
    if is_array(X):
        shown = _answer(np.zeros((2, X.shape[1]), X.dtype), machine, method)
        wide = {} if shown.ndim == 2 else {"drop_axis": 1}
        chunks = {"chunks": (X.chunks[0], (shown.shape[1],))} if shown.ndim == 2 else {}
        return X.map_blocks(_answer, shared, method, dtype=shown.dtype, meta=shown[:0], **wide, **chunks)
    meta = X._meta_nonempty
    shown = _framed(meta, machine, method)
    return X.map_partitions(_framed, shared, method, meta=shown.iloc[:0], enforce_metadata=False)


def _answer(rows: Any, machine: Any, method: str) -> Any:
    if not rows.shape[0]:
        shown = getattr(machine, method)(np.zeros((1, rows.shape[1])))
        return shown[:0]
    return getattr(machine, method)(rows)


def _framed(frame: Any, machine: Any, method: str) -> Any:
    """Answer about a data frame: a series, or a frame with a column for each class, by the same index."""
    import pandas as pd

    ask = getattr(machine, method)
    answers = ask(frame) if len(frame) else ask(_one_like(frame))[:0]
    if answers.ndim == 1:
        return pd.Series(answers, index=frame.index, name=method)
    names = getattr(machine, "classes_", None)
    if names is None or len(names) != answers.shape[1]:
        names = range(answers.shape[1])
    return pd.DataFrame(answers, index=frame.index, columns=list(names))


def _one_like(frame: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(np.zeros((1, frame.shape[1])), columns=frame.columns)
