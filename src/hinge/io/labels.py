"""Which column of a table holds the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hinge.io.svmlight.errors import DataFileError
from hinge.io.svmlight.read import Data

LABEL_NAMES = ("label", "target", "y")


class LabelColumn(NamedTuple):
    """The label column, and how it was found.

    Attributes
    ----------
    at : int
        Its position.
    guess : str
        What was taken, where neither the caller nor a name told which column it is; else nothing.
    """

    at: int
    guess: str = ""


class Columns(NamedTuple):
    """A table in memory.

    Attributes
    ----------
    table : array
        All columns.
    label : LabelColumn
        The one with the labels.
    words : list of str or None
        Its content, where it holds words; the table has nothing of it then.
    """

    table: NDArray[Any]
    label: LabelColumn
    words: list[str] | None = None

    def data(self) -> Data:
        """Part the labels from the features."""
        y = self.table[:, self.label.at] if self.words is None else np.array(self.words, dtype=str)
        return Data(np.delete(self.table, self.label.at, axis=1), y, label_guess=self.label.guess)


def label_column(
    names: Sequence[str] | None, n_columns: int, label: str | int | None, path: str, words: Sequence[int] = ()
) -> LabelColumn:
    """Find the label column.

    Parameters
    ----------
    names : sequence of str or None
        Names of the columns, where they have any.
    n_columns : int
        How many there are.
    label : str, int or None
        What the caller says.
    path : str
        The file, for errors.
    words : sequence of int
        Positions of columns that do not hold numbers.
    """
    if n_columns == 0:
        raise DataFileError("expected a label column, found no columns", path)
    if isinstance(label, str):
        if names is None or label not in names:
            known = "no names" if names is None else ", ".join(map(repr, names[:20]))
            raise DataFileError(f"expected a column called {label!r}, found {known}", path)
        return LabelColumn(names.index(label))
    if label is not None:
        if not -n_columns <= label < n_columns:
            raise DataFileError(f"expected a label column {label}, found {n_columns} columns", path)
        return LabelColumn(label % n_columns)
    lower = [name.strip().lower() for name in names or ()]
    named = next((lower.index(name) for name in LABEL_NAMES if name in lower), None)
    if named is not None:
        return LabelColumn(named)
    at = int(words[0]) if len(words) == 1 else 0
    name = "" if names is None else f" ({names[at]!r})"
    why = ", the only one of words" if len(words) == 1 else ""
    return LabelColumn(at, f"column {at + 1}{name}{why}")
