"""The laboratory: the algorithms of the papers, on the same three types as the production solvers.

>>> from hinge import lab
>>> lab.get("smo-hmg").reference
'Glasmachers & Igel, section 2.4'
"""

from __future__ import annotations

from hinge.lab.algorithms import (
    admm,
    chunking,
    coordinate_ascent,
    cutting_planes,
    decomposition,
    dual_ascent,
    gain_rows,
    gradient_projection,
    interior_point,
    lasvm,
    mixed_rules,
    platt,
    projected_gradient,
    simple_svm,
    single_pairs,
)
from hinge.lab.registry import PRODUCTION, Algorithm

__all__ = ["ALGORITHMS", "Algorithm", "get"]

_FAMILIES = (
    PRODUCTION,
    platt.ALGORITHMS,
    gain_rows.ALGORITHMS,
    mixed_rules.ALGORITHMS,
    chunking.ALGORITHMS,
    gradient_projection.ALGORITHMS,
    decomposition.ALGORITHMS,
    coordinate_ascent.ALGORITHMS,
    projected_gradient.ALGORITHMS,
    dual_ascent.ALGORITHMS,
    admm.ALGORITHMS,
    cutting_planes.ALGORITHMS,
    single_pairs.ALGORITHMS,
    lasvm.ALGORITHMS,
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
        A key of `ALGORITHMS`, or ``svm-light:`` and the size of its working sets.

    Raises
    ------
    ValueError
        There is none of this name.

    Examples
    --------
    >>> get("platt").title
    "Platt's SMO"
    >>> get("svm-light:40").title
    "SVM-light's decomposition, q = 40"
    """
    family, _, size = name.partition(":")
    if family == "svm-light" and size.isdecimal() and int(size) >= 2:
        return decomposition.svm_light(int(size))
    try:
        return ALGORITHMS[name]
    except KeyError:
        known = ", ".join(ALGORITHMS)
        raise ValueError(f"no algorithm is called {name!r}; known are {known}") from None
