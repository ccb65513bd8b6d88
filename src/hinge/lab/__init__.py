"""The laboratory: the algorithms of the papers, on the same three types as the production solvers.

>>> from hinge import lab
>>> lab.get("smo-hmg").reference
'Glasmachers & Igel, section 2.4'
"""

from __future__ import annotations

from hinge.lab.algorithms import (
    chunking,
    coordinate_ascent,
    decomposition,
    gain_rows,
    gradient_projection,
    interior_point,
    platt,
    projected_gradient,
    simple_svm,
)
from hinge.lab.registry import PRODUCTION, Algorithm
from hinge.lab.trace import Trace, Traced

__all__ = ["ALGORITHMS", "Algorithm", "Trace", "Traced", "get"]

_FAMILIES = (
    PRODUCTION,
    platt.ALGORITHMS,
    gain_rows.ALGORITHMS,
    chunking.ALGORITHMS,
    gradient_projection.ALGORITHMS,
    decomposition.ALGORITHMS,
    coordinate_ascent.ALGORITHMS,
    projected_gradient.ALGORITHMS,
    simple_svm.ALGORITHMS,
    interior_point.ALGORITHMS,
)

#: Every algorithm by its name.
ALGORITHMS: dict[str, Algorithm] = {algorithm.name: algorithm for family in _FAMILIES for algorithm in family}


def get(name: str) -> Algorithm:
    """Return the algorithm of this name.

    Parameters
    ----------
    name : str
        A key of `ALGORITHMS`.

    Raises
    ------
    ValueError
        There is none of this name.

    Examples
    --------
    >>> get("platt").title
    "Platt's SMO"
    """
    try:
        return ALGORITHMS[name]
    except KeyError:
        known = ", ".join(ALGORITHMS)
        raise ValueError(f"no algorithm is called {name!r}; known are {known}") from None
