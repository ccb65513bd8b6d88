"""``hinge scale``: scale every feature to a range (LIBSVM's ``svm-scale``)."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TextIO

import numpy as np

from hinge.arrays import Index, Vector
from hinge.cli.data import DataFile, leave, read_samples
from hinge.cli.options import EXIT_OK, Parsed
from hinge.cli.outputs import check_output
from hinge.cli.tables import SCALE
from hinge.io import atomic_write
from hinge.io.models.write import number_texts

# Values made dense at one time.
_MOST_VALUES = 2**20

# A range file names its features one a line; no index beyond this, and no longer line, is read.
_MOST_INDEX = 2**31 - 2
_LONGEST_LINE = 1000


@dataclass(frozen=True, eq=False)
class Scaling:
    """A range for features, and one for targets.

    Attributes
    ----------
    lower, upper : float
        The range that features are scaled to.
    index : int64 array
        Indices of the features that have a range of their own, ascending; all others vary not at all.
    least, most : arrays
        Their smallest and largest values.
    target : tuple of float or None
        Lower and upper end of the targets' range, and their smallest and largest values.
    """

    lower: float
    upper: float
    index: Index
    least: Vector
    most: Vector
    target: tuple[float, float, float, float] | None = None

    def __call__(self, values: Vector, least: Vector, most: Vector) -> Vector:
        """Scale values, exactly at both ends."""
        with np.errstate(all="ignore"):
            scaled = self.lower + (self.upper - self.lower) * (values - least) / (most - least)
        return np.where(values == least, self.lower, np.where(values == most, self.upper, scaled))

    def targets(self, y: Vector) -> Vector:
        """Scale targets, if that is wanted."""
        if self.target is None:
            return y
        low, high, least, most = self.target
        scaling = replace(self, lower=low, upper=high)
        return scaling(y, np.full(len(y), least), np.full(len(y), most))


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    parsed = SCALE.parse(arguments)
    target = parsed["target"]
    if not parsed["upper"] > parsed["lower"] or (target is not None and not target[1] > target[0]):
        leave("inconsistent lower/upper specification")
    if parsed["restore"] and parsed["save"]:
        leave("cannot use -r and -s simultaneously")
    path = parsed.files[0]
    check_output(parsed["save"], "can't open file")
    samples = read_samples(path, parsed, "can't open file")
    if samples.names:
        leave(f"the labels of {path} are words, and LIBSVM's text has numbers: scale in Python, or number them")
    has_zero = bool((samples.rows.indices == 0).any())
    if has_zero:
        print("WARNING: minimal feature index is 0, but indices should start from 1", file=sys.stderr)
    index, least, most = _ranges(samples)
    if parsed["restore"]:
        scaling = _restored(parsed, index[least != most])
    else:
        varies = least != most
        ends = (*target, float(samples.y.min()), float(samples.y.max())) if target and samples.n else None
        scaling = Scaling(parsed["lower"], parsed["upper"], index[varies], least[varies], most[varies], ends)
    if parsed["save"]:
        _save(scaling, parsed["save"], has_zero)
    _write(samples, scaling, sys.stdout)
    return EXIT_OK


def _ranges(samples: DataFile) -> tuple[Index, Vector, Vector]:
    """Return the indices that occur, and the smallest and largest value of each; absent values are zeros."""
    rows = samples.rows
    index, place, counts = np.unique(rows.indices, return_inverse=True, return_counts=True)
    least, most = np.full(len(index), np.inf), np.full(len(index), -np.inf)
    np.minimum.at(least, place, rows.data)
    np.maximum.at(most, place, rows.data)
    is_absent = (counts < samples.n) & (index > 0)  # index 0 is no feature: where it is absent there is no zero
    least[is_absent] = np.minimum(least[is_absent], 0.0)
    most[is_absent] = np.maximum(most[is_absent], 0.0)
    return index.astype(np.int64), least, most


def _write(samples: DataFile, scaling: Scaling, file: TextIO) -> None:
    """Write the scaled samples; zeros are left out."""
    labels = number_texts(scaling.targets(samples.y), 17)
    zeros = np.zeros(len(scaling.index))
    at_zero = scaling(zeros, scaling.least, scaling.most)
    is_filled = bool((at_zero != 0).any())
    width = len(scaling.index) if is_filled else 1
    block = max(_MOST_VALUES // max(width, 1), 1)
    n_new = 0
    for start in range(0, samples.n, block):
        rows = samples.rows[start : start + block]
        parts = _scaled_dense(rows, scaling) if is_filled else _scaled_sparse(rows, scaling)
        n_new += len(parts[1])
        file.writelines(_lines(labels[start : start + block], *parts))
    file.flush()
    if n_new > samples.rows.nnz:
        print(
            f"WARNING: original #nonzeros {samples.rows.nnz}\n       > new      #nonzeros {n_new}\n"
            "If feature values are non-negative and sparse, use -l 0 rather than the default -l -1",
            file=sys.stderr,
        )


def _scaled_sparse(rows: Any, scaling: Scaling) -> tuple[Index, Index, Vector]:
    """Scale what is stored: ends of the rows, indices, values."""
    place = np.searchsorted(scaling.index, rows.indices)
    place = np.minimum(place, max(len(scaling.index) - 1, 0))
    known = scaling.index[place] == rows.indices if len(scaling.index) else np.zeros(rows.nnz, bool)
    values = np.zeros(rows.nnz)
    at = place[known]
    values[known] = scaling(rows.data[known], scaling.least[at], scaling.most[at])
    keep = values != 0
    ends = np.concatenate([[0], np.cumsum(keep)])[rows.indptr]
    return ends.astype(np.int64), rows.indices[keep].astype(np.int64), values[keep]


def _scaled_dense(rows: Any, scaling: Scaling) -> tuple[Index, Index, Vector]:
    """The same where zeros do not stay zeros."""
    dense = np.zeros((rows.shape[0], len(scaling.index)))
    place = np.searchsorted(scaling.index, rows.indices)
    known = np.minimum(place, len(scaling.index) - 1)
    known_mask = scaling.index[known] == rows.indices
    which = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    dense[which[known_mask], known[known_mask]] = rows.data[known_mask]
    scaled = scaling(dense, scaling.least, scaling.most)
    if scaling.index[0] == 0:
        has_zero = np.zeros(rows.shape[0], bool)
        has_zero[which[rows.indices == 0]] = True
        scaled[~has_zero, 0] = 0.0
    row, column = np.nonzero(scaled)
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows.shape[0]))])
    return ends.astype(np.int64), scaling.index[column], scaled[row, column]


def _lines(labels: list[str], ends: Index, index: Index, values: Vector) -> Iterator[str]:
    texts = number_texts(values, 6)
    features = [f"{i}:{text} " for i, text in zip(index.tolist(), texts, strict=True)]
    bounds = ends.tolist()
    for label, a, b in zip(labels, bounds, bounds[1:], strict=False):
        yield f"{label} {''.join(features[a:b])}\n"


# ---------------------------------------------------------------------- range files


def _save(scaling: Scaling, path: str, has_zero: bool) -> None:
    lines = []
    if scaling.target is not None:
        low, high, least, most = (f"{value:.17g}" for value in scaling.target)
        lines += ["y", f"{low} {high}", f"{least} {most}"]
    lines += ["x", f"{scaling.lower:.17g} {scaling.upper:.17g}"]
    stored = scaling.index > 0
    ranges = (part[stored].tolist() for part in (scaling.index, scaling.least, scaling.most))
    for i, low_value, high_value in zip(*ranges, strict=True):
        lines.append(f"{i} {low_value:.17g} {high_value:.17g}")
    try:
        with atomic_write(path) as file:
            file.write("\n".join(lines) + "\n")
    except OSError as error:
        print(f"can't open file {path}", file=sys.stderr)
        leave(f"{path}: {error.strerror or error}")
    if has_zero:
        print(
            f"WARNING: scaling factors with indices smaller than 1 are not stored to the file {path}.",
            file=sys.stderr,
        )


def _restored(parsed: Parsed, present: Index) -> Scaling:
    """Read a range file; warn of features that vary here but are not in it."""
    path = parsed["restore"]
    scaling = _read_ranges(path)
    for missing in np.setdiff1d(present[present > 0], scaling.index).tolist():
        print(
            f"WARNING: feature index {missing} appeared in file {parsed.files[0]} was not seen in the scaling "
            f"factor file {path}. The feature is scaled to 0.",
            file=sys.stderr,
        )
    varies = scaling.least != scaling.most
    return replace(scaling, index=scaling.index[varies], least=scaling.least[varies], most=scaling.most[varies])


def _read_ranges(path: str) -> Scaling:
    target, rows = None, []
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            line = _next_line(file)
            if line == "y":
                target = (*_numbers(_next_line(file), 2), *_numbers(_next_line(file), 2))
                line = _next_line(file)
            if line != "x":
                raise ValueError(f"expected the line x, found {line!r}")
            lower, upper = _numbers(_next_line(file), 2)
            while line := _next_line(file):
                rows.append(_numbers(line, 3))
    except OSError:
        leave(f"can't open file {path}")
    except ValueError as error:
        print("ERROR: failed to read scaling parameters", file=sys.stderr)
        leave(f"{path}: {error}")
    table = np.array(rows, np.float64).reshape(len(rows), 3)
    index = table[:, 0]
    ascends = (np.diff(index) > 0).all() and (index >= 0).all() and (index <= _MOST_INDEX).all()
    if not (ascends and (index == np.floor(index)).all()):
        print("ERROR: failed to read scaling parameters", file=sys.stderr)
        leave(f"{path}: indices must be whole numbers up to {_MOST_INDEX} that ascend")
    ends = None if target is None else (target[0], target[1], target[2], target[3])
    return Scaling(lower, upper, index.astype(np.int64), table[:, 1].copy(), table[:, 2].copy(), ends)


def _next_line(file: TextIO) -> str:
    line = file.readline(_LONGEST_LINE)
    while line and not line.strip():
        line = file.readline(_LONGEST_LINE)
    return line.strip()


def _numbers(line: str, n: int) -> tuple[float, ...]:
    words = line.split()
    values = [float(word) for word in words]
    if len(values) != n or not np.isfinite(values).all():
        raise ValueError(f"expected {n} finite numbers, found {line[:40]!r}")
    return tuple(values)
