"""What a user passes to a fit on a cluster: Dask collections, or data of this process, which is dealt out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from hinge.arrays import Index, Vector
from hinge.dask.adapter import Cluster
from hinge.dask.shards import DaskShards, Source
from hinge.runtime.interrupt import requested

# Blocks of local data for each worker: workers that join find some to take over.
_BLOCKS = 4


def is_collection(X: Any) -> bool:
    """Whether X is a collection of Dask: an Array or a DataFrame."""
    return hasattr(X, "__dask_graph__") and (is_array(X) or is_frame(X))


def is_array(X: Any) -> bool:
    """Whether a collection is an Array."""
    return hasattr(X, "chunks") and hasattr(X, "rechunk")


def is_frame(X: Any) -> bool:
    """Whether a collection is a DataFrame or a Series."""
    return hasattr(X, "map_partitions") and hasattr(X, "divisions")


def names_of(X: Any) -> Any:
    """Return an empty data frame with the columns of X, where it has names."""
    return X._meta if is_frame(X) else None


def check_layout(X: Any) -> None:
    """Refuse samples that are divided by columns."""
    if is_array(X):
        if X.ndim != 2:
            raise ValueError(f"X must be a matrix with one row per sample, got {X.ndim} dimension(s)")
        if X.numblocks[1] != 1:
            raise ValueError(
                f"X is divided into {X.numblocks[1]} blocks of columns; every block must have all features: "
                "pass X.rechunk({1: -1})"
            )


def parts_of(collection: Any) -> list[Any]:
    """Return the parts of a collection, row by row, each to be computed."""
    return list(np.asarray(collection.to_delayed(), dtype=object).ravel())


def shards_of_collection(cluster: Cluster, X: Any, *beside: Any) -> tuple[DaskShards, list[Any]]:
    """Make shards of a collection's partitions; return them, and what goes with them, in one piece each.

    Parameters
    ----------
    cluster : Cluster
        Where to.
    X : Dask Array or DataFrame
        The samples.
    *beside
        Targets and weights: collections divided like X, other data, or None.
    """
    check_layout(X)
    parts = parts_of(X)
    collections = [one for one in beside if is_collection(one)]
    for one, name in zip(beside, ("y", "sample_weight"), strict=False):
        if is_collection(one) and (found := len(parts_of(one))) != len(parts):
            raise ValueError(
                f"X has {len(parts)} partitions and {name} has {found}: divide them alike, for instance by "
                f"{name}.rechunk or repartition"
            )
    futures = cluster.compute([*parts, *(part for one in collections for part in parts_of(one))])
    shards = DaskShards(cluster, [Source(future) for future in futures[: len(parts)]])
    pieces = iter(range(len(parts), len(futures), max(len(parts), 1)))
    aside: list[Any] = []
    for one, name in zip(beside, ("y", "sample_weight"), strict=False):
        if not is_collection(one):
            aside.append(one)
            continue
        start = next(pieces)
        aside.append(_gathered(cluster, futures[start : start + len(parts)], shards, name))
    return shards, aside


def _gathered(cluster: Cluster, futures: Sequence[Any], shards: DaskShards, name: str) -> Any:
    """Bring the parts of targets or weights here, having made sure that they fit those of X."""
    outcomes = cluster.wait_for(futures, requested)
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, BaseException):
            raise RuntimeError(f"partition {number} of {name} cannot be computed: {outcome}") from outcome
    pieces = [piece.squeeze(axis=1) if getattr(piece, "ndim", 1) == 2 else piece for piece in outcomes]
    for number, (piece, size) in enumerate(zip(pieces, shards.sizes, strict=True)):
        if len(piece) != size:
            raise ValueError(f"partition {number} has {size} samples in X, but {len(piece)} in {name}")
    full = [piece for piece in pieces if len(piece)] or pieces[:1]
    if all(isinstance(piece, pd.Series) for piece in full):
        return pd.concat(full).to_numpy()
    return np.concatenate([np.asarray(piece) for piece in full])


def shards_of_rows(cluster: Cluster, X: Any) -> DaskShards:
    """Deal rows of this process out in blocks; the client keeps its own."""
    n_blocks = min(_BLOCKS * max(len(cluster.workers()), 1), max(X.shape[0] // 2, 1))
    cuts = np.linspace(0, X.shape[0], n_blocks + 1).astype(np.int64)
    sources = [Source(rows=partial(_block, X, int(start), int(stop))) for start, stop in pairwise(cuts)]
    take: Callable[[Index], Any] = lambda index: X[index]  # noqa: E731
    return DaskShards(cluster, sources, take)


def _block(X: Any, start: int, stop: int) -> Any:
    return X[start:stop]


def check_finite(shards: DaskShards, names: Any) -> None:
    """Refuse data with an entry that is not finite; say where it is."""
    starts = np.cumsum(shards.sizes) - shards.sizes
    for number, facts in enumerate(shards.facts):
        if facts.n and facts.n_features != shards.n_features:
            raise ValueError(
                f"partition {number} of X has {facts.n_features} features, others {shards.n_features}"
            )
        if facts.fault is not None:
            row, column = facts.fault
            feature = f"feature {column}" + ("" if names is None else f" ({names[column]!r})")
            raise ValueError(
                f"Input X contains NaN or infinity: in partition {number}, row {row} of it (row "
                f"{starts[number] + row} of all), {feature}; remove or impute such values first"
            )
    if not shards.sizes.sum():
        raise ValueError("X has no rows: at least one sample is needed")


def weights_like(sample_weight: Any, n: int) -> Vector | None:
    """Return weights as numbers, one for each of n samples."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    return np.full(n, float(weights)) if weights.ndim == 0 else weights
