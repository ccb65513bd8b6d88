"""The data of the papers' experiments, prepared as the papers say.

A set is named by ``name``, ``name:rows`` or ``name:rows:storage``: ``"a9a"``, ``"connect-4:3000"``,
``"separable:2000:dense"``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from hinge.arrays import Vector
from hinge.io import datasets

_SEED = 1998
_BITS = 300  # features of the artificial sets (Platt section 3.3)
_SHARE = 0.1  # of them that are 1

# Platt's exact data has 0/1 features, which Hinge would pack into bits. Doubled, with γ divided by four, the
# kernel values are the same and the storage is what was asked for.
STRETCH = 2.0


class Prepared(NamedTuple):
    """Samples, labels of +1 and -1, and the factor that the features were stretched by."""

    X: Any
    y: Vector
    stretch: float


@lru_cache(maxsize=3)
def prepare(name: str, rest: int = 0) -> Prepared:
    """Load or generate a set.

    Parameters
    ----------
    name : str
        ``name[:rows[:storage]]``, where storage is ``sparse`` or ``dense``.
    rest : int
        Where it is not 0, this many rows of the set that the name does *not* choose.

    Returns
    -------
    Prepared
        The set; fewer rows are a fixed random part of it, in the order of the file.

    Raises
    ------
    DataSetNotFound
        It is neither generated nor found by `hinge.io.datasets.load`.

    Examples
    --------
    >>> X, y, stretch = prepare("noise:50:dense")
    >>> X.shape, sorted(set(y.tolist())), stretch
    ((50, 300), [-1.0, 1.0], 2.0)
    """
    base, _, size = name.partition(":")
    rows, _, storage = size.partition(":")
    if base in _GENERATED:
        X, y = _GENERATED[base](int(rows) + rest)
        X, y = X[int(rows) if rest else 0 :], y[int(rows) if rest else 0 :]
    else:
        X, y = _PREPARED.get(base, _as_it_is)(base)
        if rows:
            order = np.random.default_rng(_SEED).permutation(len(y))
            chosen = np.sort(order[int(rows) : int(rows) + rest] if rest else order[: int(rows)])
            X, y = X[chosen], y[chosen]
    if storage:
        X = X * STRETCH
        return Prepared(X.toarray() if storage == "dense" else X, y, STRETCH)
    return Prepared(X, y, 1.0)


def _as_it_is(name: str) -> tuple[Any, Vector]:
    X, y = datasets.load(name)
    return X, np.where(y > 0, 1.0, -1.0)


def _spambase(name: str) -> tuple[Any, Vector]:
    """Every feature to zero mean and unit variance (Glasmachers & Igel, section 4.1)."""
    X, y = datasets.load(name)
    rows = X.toarray()
    return (rows - rows.mean(axis=0)) / rows.std(axis=0), np.where(y > 0, 1.0, -1.0)


def _connect4(name: str) -> tuple[Any, Vector]:
    """42 fields of 1, 0 or -1, without draws, one half (section 4.1).

    LIBSVM's file has three 0/1 features a field: first player, second player and empty in some order. The one in
    the middle is the empty field.
    """
    X, y = datasets.load(name)
    fields = X.toarray()
    fields = fields[:, 0::3] - fields[:, 2::3]
    decided = np.flatnonzero(y != 0)
    half = np.sort(np.random.default_rng(_SEED).permutation(decided)[:30_555])
    return fields[half], np.where(y[half] > 0, 1.0, -1.0)


def _mnist(name: str) -> tuple[Any, Vector]:
    """The digits 0 to 4 against 5 to 9, pixels as they are (section 4.1)."""
    X, y = datasets.load(name)
    return X, np.where(y < 5, 1.0, -1.0)


def _separable(n: int) -> tuple[Any, Vector]:
    """Random bits, labelled by a random weight vector, none within ±1 of its plane (Platt section 3.3)."""
    random = np.random.default_rng(_SEED)
    weights = random.uniform(-1, 1, _BITS)
    X, y = np.empty((0, _BITS)), np.empty(0)
    while len(y) < n:
        drawn = _random_bits(random, n)
        output = drawn @ weights
        clear = np.abs(output) > 1
        X, y = np.vstack([X, drawn[clear]]), np.concatenate([y, np.sign(output[clear])])
    return sp.csr_array(X[:n]), y[:n]


def _noise(n: int) -> tuple[Any, Vector]:
    """Random bits with random labels (Platt section 3.3)."""
    random = np.random.default_rng(_SEED)
    X = _random_bits(random, n)
    return sp.csr_array(X), np.where(random.random(n) < 0.5, 1.0, -1.0)


def _flipped(percent: int, n: int) -> tuple[Any, Vector]:
    """Points of a square, labelled by three waves across it; a share of the labels is flipped.

    Flipped labels are what no machine can learn: the share is the best error of all.
    """
    random = np.random.default_rng(_SEED)
    drawn = random.random((n, 3))  # a sample's numbers do not depend on how many follow
    X = drawn[:, :2]
    y = np.where(np.sin(6 * np.pi * X[:, 0]) + 2 * X[:, 1] > 1, 1.0, -1.0)
    return X, np.where(drawn[:, 2] < percent / 100, -y, y)


def _random_bits(random: np.random.Generator, n: int) -> Vector:
    return (random.random((n, _BITS)) < _SHARE).astype(np.float64)


_GENERATED: dict[str, Callable[[int], tuple[Any, Vector]]] = {
    "separable": _separable,
    "noise": _noise,
    **{f"flipped-{percent}": partial(_flipped, percent) for percent in (0, 5, 10, 20)},
}
_PREPARED: dict[str, Callable[[str], tuple[Any, Vector]]] = {
    "spambase": _spambase,
    "connect-4": _connect4,
    "mnist": _mnist,
}
