"""What a user calls problems: pairs (X, y), columns of one X, or an array of many X with one y."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge.arrays import Index, Vector

# Values beyond this have squares whose sums may overflow; nor is NaN below it.
_LARGEST = 1e100


@dataclass(frozen=True, eq=False)
class Problems:
    """Problems, whatever form they came in.

    Parameters
    ----------
    count : int
        How many there are.
    samples : callable
        Returns the samples of the problem of a number.
    targets : list
        The targets of each problem, or those of all.
    """

    count: int
    samples: Callable[[int], Any]
    targets: list[Any]

    @classmethod
    def of(cls, problems: Any, y: Any, columns: Any) -> Problems:
        """Understand the arguments of a user.

        Raises
        ------
        ValueError, TypeError
            They are none of the three forms.
        """
        if columns is not None:
            return cls._of_columns(problems, y, columns)
        if y is not None:
            array = np.asarray(problems)
            if array.ndim != 3:
                raise ValueError(
                    "problems with one y must be an array (n_problems, n_samples, n_features), or one X with "
                    f"columns=[...]; got an array of shape {array.shape}"
                )
            if array.shape[1] != len(y):
                raise ValueError(f"problems have {array.shape[1]} samples each, but y has {len(y)}")
            return cls(len(array), lambda number: array[number], [np.asarray(y)])
        pairs = list(problems)
        for number, pair in enumerate(pairs):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(f"problem {number} is not a pair (X, y); for one y of all problems pass y=...")
        return cls(len(pairs), lambda number: pairs[number][0], [pair[1] for pair in pairs])

    @classmethod
    def _of_columns(cls, X: Any, y: Any, columns: Any) -> Problems:
        if y is None:
            raise ValueError("columns of one X need one y")
        X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        if X.ndim != 2 or X.shape[0] != len(y):
            raise ValueError(f"X must have a row for each of the {len(y)} values of y, got shape {X.shape}")
        chosen = [_numbers(group, X.shape[1], number) for number, group in enumerate(_groups(columns))]
        return cls(len(chosen), lambda number: X[:, chosen[number]], [np.asarray(y)])

    def target(self, number: int) -> Any:
        """Return the targets of a problem."""
        return self.targets[0 if len(self.targets) == 1 else number]

    def runs(self) -> Iterator[range]:
        """Yield ranges of problems that share their targets."""
        first = 0
        for number in range(1, self.count + 1):
            if number == self.count or not _are_same(self.target(first), self.target(number)):
                yield range(first, number)
                first = number


def _groups(columns: Any) -> Sequence[Any]:
    """Return the columns of each problem; rows of a sparse matrix name theirs by what is not zero."""
    if not sp.issparse(columns):
        return list(columns)
    rows = sp.csr_array(columns)
    return np.split(rows.indices, rows.indptr[1:-1])


def _numbers(group: Any, n_features: int, number: int) -> Index:
    chosen = np.asarray(group)
    if chosen.dtype == bool and chosen.shape == (n_features,):
        chosen = np.flatnonzero(chosen)
    if chosen.ndim != 1 or not len(chosen) or chosen.dtype.kind not in "iu":
        raise ValueError(f"columns of problem {number} must be a list of column numbers, at least one")
    if chosen.min() < -n_features or chosen.max() >= n_features:
        raise ValueError(f"columns of problem {number} are not all among the {n_features} of X")
    return chosen.astype(np.int64)


def _are_same(first: Any, second: Any) -> bool:
    if first is second:
        return True
    first, second = np.asarray(first), np.asarray(second)
    return first.dtype == second.dtype and np.array_equal(first, second)


@dataclass(frozen=True, eq=False)
class Stack:
    """Samples of several problems in one array.

    Attributes
    ----------
    X : float64 array of shape (n_problems, n_samples, n_features)
        The samples; problems of fewer features have columns of zeros at the end.
    widths : int64 array of shape (n_problems,)
        How many features each problem has.
    is_usable : bool array of shape (n_problems,)
        False for problems whose values are missing or huge; they are zeros here.
    """

    X: Vector
    widths: Index
    is_usable: Any

    @classmethod
    def of(cls, problems: Problems, numbers: range) -> Stack | None:
        """Stack some problems; None where they are no plain arrays of as many samples each."""
        parts = [problems.samples(number) for number in numbers]
        n = len(problems.target(numbers[0]))
        for part in parts:
            is_plain = isinstance(part, np.ndarray) and part.ndim == 2 and part.dtype.kind in "fiu"
            if not is_plain or part.shape[0] != n or not part.size:
                return None
        widths = np.array([part.shape[1] for part in parts], np.int64)
        X = np.zeros((len(parts), n, int(widths.max())))
        for number, part in enumerate(parts):
            X[number, :, : part.shape[1]] = part
        is_usable = np.maximum(X.max(axis=(1, 2)), -X.min(axis=(1, 2))) < _LARGEST
        X[~is_usable] = 0.0
        return cls(X, widths, is_usable)

    @property
    def is_feature(self) -> Any:
        """Which columns of each problem are its own."""
        return np.arange(self.X.shape[2]) < self.widths[:, None]
