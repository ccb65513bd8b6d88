"""Why a fit did not converge, in words that help."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge.arrays import Vector
from hinge.data.pages import is_mapped, reduced
from hinge.data.sharded import ShardedRows
from hinge.data.structure import compact
from hinge.report import Report, Status

# A feature is suspicious when its spread is this many times that of the typical feature.
_SUSPICIOUS = 30.0

# Data is unscaled as a whole when its typical spread is this large.
_LARGE_SPREAD = 100.0

_REMEDIES = {
    Status.ITERATION_LIMIT: "raise max_iter, or continue with warm_start=True",
    Status.TIME_LIMIT: "raise time_limit, or continue with warm_start=True",
    Status.INTERRUPTED: "continue with warm_start=True",
    Status.STALLED: "loosen tol",
    Status.UNCERTAIN: "loosen tol, or scale the features",
    Status.INFEASIBLE: "no hyperplane separates the classes: choose a finite C",
}


def convergence_message(report: Report, tol: float, X: Any, names: Any, is_gram: bool) -> str:
    """Tell how far the solver came, the likely cause and what to do."""
    reached = "unknown" if np.isnan(report.violation) else f"{report.violation:.3g}"
    if report.status is Status.UNCERTAIN:
        reached = f"between {reached} and {report.violation + report.rounding:.3g}, depending on rounding errors"
    text = (
        f"Solver terminated early ({report.status} after {report.iterations} steps and {report.seconds:.3g} s): "
        f"the violation reached is {reached}, the tolerance is {tol:g}. To go on, {_REMEDIES[report.status]}."
    )
    is_known = not (is_gram or isinstance(X, ShardedRows) or report.status is Status.INFEASIBLE)
    cause = _cause(X, names) if is_known else ""
    return f"{text} {cause}".rstrip()


def _cause(X: Any, names: Any) -> str:
    if getattr(X, "dtype", np.dtype(object)).kind != "f" or X.shape[1] == 0:
        return ""
    columns = None
    if sp.issparse(X):
        columns, (X,) = compact(X)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = _spreads(X)
    varying = spread[spread > 0]
    if not len(varying):
        return ""
    typical, widest = float(np.median(varying)), int(np.argmax(spread))
    number = widest if columns is None else int(columns[widest])
    name = f"feature {number}" + (f" ({names[number]!r})" if names is not None else "")
    if spread[widest] > _SUSPICIOUS * typical:
        ratio = spread[widest] / typical
        return (
            f"A likely cause: the features are not scaled; {name} varies {ratio:.3g} times as much as the median "
            "feature. Consider StandardScaler or MinMaxScaler."
        )
    if typical > _LARGE_SPREAD:
        return (
            f"A likely cause: the features are not scaled; their typical standard deviation is {typical:.3g} "
            f"({name}: {spread[widest]:.3g}). Consider StandardScaler or MinMaxScaler."
        )
    return ""


def _spreads(X: Any) -> Vector:
    if not sp.issparse(X):
        if not is_mapped(X):
            return np.asarray(X.std(axis=0, dtype=np.float64))
        mean = reduced(X, lambda part: part.sum(axis=0, dtype=np.float64), np.add) / len(X)
        return np.sqrt(reduced(X, lambda part: ((part - mean) ** 2).sum(axis=0), np.add) / len(X))
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    square = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
    return np.sqrt(np.maximum(square - mean**2, 0.0))
