"""``hinge info``: what a model file or a data file holds, in a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hinge.cli.data import DataFile, read_samples
from hinge.cli.models import read_model
from hinge.cli.options import EXIT_OK
from hinge.cli.tables import INFO
from hinge.plot.page import machine_rows

# A feature whose range is this many times that of the median one stands out; ranges beyond this are not scaled.
_STANDS_OUT = 30.0
_LARGE = 100.0

# Classes, or features that stand out, that are named.
_MOST_NAMED = 8


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    parsed = INFO.parse(arguments)
    (path,) = parsed.files
    if path != "-" and _is_model(path):
        rows = machine_rows(read_model(path))
    else:
        rows = _data_rows(read_samples(path, parsed))
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
    return EXIT_OK


def _is_model(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(9) == b"svm_type "
    except OSError:
        return False  # whoever reads it says why


def _data_rows(samples: DataFile) -> list[tuple[str, str]]:
    X = samples.rows[:, 1:].tocsc() if samples.max_index else samples.rows.tocsc()
    n, d = X.shape
    share = X.nnz / max(n * d, 1)
    rows = [
        ("samples", f"{n:,}"),
        ("features", f"{d:,}; {share:.1%} of the values are given, {X.nnz / max(n, 1):.1f} a sample"),
        ("targets", _targets(samples.y)),
    ]
    if X.nnz == 0:
        return rows
    if not np.isfinite(X.data).all():
        rows.append(("warning", "some values are infinite or not a number"))
        return rows
    low, high = X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
    rows.append(("ranges", f"all values between {low.min():.6g} and {high.max():.6g}"))
    constant = int(np.count_nonzero(low == high))
    if constant:
        rows.append(("constant", f"{constant:,} features have one value everywhere"))
    rows += [("hint", hint) for hint in _hints(high - low)]
    return rows


def _targets(y: Any) -> str:
    values, counts = np.unique(y, return_counts=True)
    whole = (values == np.trunc(values)).all()
    if whole and len(values) <= max(_MOST_NAMED, 0.05 * len(y)):
        named = ", ".join(f"{v:g}: {c:,}" for v, c in zip(values[:_MOST_NAMED], counts, strict=False))
        more = f", and {len(values) - _MOST_NAMED} more" if len(values) > _MOST_NAMED else ""
        return f"{len(values)} classes ({named}{more})"
    return f"numbers between {values[0]:.6g} and {values[-1]:.6g}, mean {np.mean(y):.6g}"


def _hints(ranges: Any) -> list[str]:
    varying = ranges[ranges > 0]
    if not len(varying):
        return ["no feature varies: there is nothing to learn from"]
    typical = float(np.median(varying))
    wide = np.flatnonzero(ranges > _STANDS_OUT * typical)
    if len(wide):
        first = ", ".join(str(k + 1) for k in wide[np.argsort(-ranges[wide])][:_MOST_NAMED])
        ratio = float(ranges.max()) / typical
        return [
            f"features differ in scale: {first} up to {ratio:.3g} times as wide as the median; use hinge scale"
        ]
    if typical > _LARGE:
        return [f"features are not scaled: their typical range is {typical:.3g}: hinge scale"]
    return []
