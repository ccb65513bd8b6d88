"""Newton's equations in the weights, solved as exactly as the scales of samples and features allow.

The matrix is BᵀRB + D: rows of B are samples, with a column of ones for each group, R is positive and D is one for
every weight. Where samples are huge, D is nothing beside BᵀRB in double precision; but where they are fewer than
features as well, D alone decides in the directions that they do not span. The factor is then computed from the
rows √R B and √D themselves, sorted by size, with column pivoting: the error of each row is small beside that row
(Cox & Higham 1998, section 2), and conditions are not squared.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.linalg import LinAlgError

from hinge.arrays import Floats, Vector

# Squared pivots of a matrix with a diagonal of ones below which half of the digits of a solution are gone.
_HALF_OF_THE_DIGITS = 1e-8


def solve_scaled(matrix: Floats, right: Vector) -> Vector:
    """Return ``matrix⁻¹ right`` of a positive matrix whose lower half is given; it is overwritten.

    Raises
    ------
    LinAlgError
        In double precision it is singular, or so nearly that half of the digits would be lost.

    Examples
    --------
    >>> solve_scaled(np.array([[4.0, 0.0], [2.0, 1e16]]), np.array([4.0, 1e8])).round(12)
    array([9.99999995e-01, 1.00000000e-08])
    """
    from scipy.linalg import cho_factor, cho_solve  # takes long, and a fit may end without it

    # A diagonal of ones: features differ by many decades, and a factor is as exact as their scales agree.
    scale = 1 / np.sqrt(matrix.diagonal())
    matrix *= scale
    matrix *= scale[:, None]
    factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    if not float(np.min(factor[0].diagonal())) ** 2 > _HALF_OF_THE_DIGITS:
        raise LinAlgError("half of the digits would be lost")
    solved: Vector = scale * cho_solve(factor, scale * right, check_finite=False)
    if not np.isfinite(solved).all():
        raise LinAlgError("the direct solve overflowed")
    return solved


def solve_by_rows(rows: Iterable[Floats], last: Vector, right: Vector) -> Vector:
    """Return ``(Σ rowsᵀ rows + diag(last)²)⁻¹ right``, from the rows themselves.

    Parameters
    ----------
    rows : iterable of arrays of shape (n_rows, n_columns)
        The rows, some at a time.
    last : array of shape (n_columns,)
        Roots of what is added to the diagonal; positive.
    right : array of shape (n_columns,)
        The right side.

    Examples
    --------
    >>> rows = [np.array([[1e9, 1e9]])]
    >>> solve_by_rows(rows, np.ones(2), np.array([1.0, -1.0])).round(9)
    array([ 1., -1.])
    """
    from scipy.linalg import qr, solve_triangular

    factor: Floats = np.diag(last)
    for part in rows:
        stack = np.vstack([part, factor])
        order = np.argsort(-np.abs(stack).max(axis=1), kind="stable")
        factor, places = qr(stack[order], mode="r", pivoting=True, overwrite_a=True, check_finite=False)
        factor = np.ascontiguousarray(factor[: len(last), np.argsort(places)])
    upper, places = qr(factor, mode="r", pivoting=True, check_finite=False)
    half = solve_triangular(upper, right[places], trans="T", check_finite=False)
    solved = np.empty_like(right)
    solved[places] = solve_triangular(upper, half, check_finite=False)
    if not np.isfinite(solved).all():
        raise LinAlgError("the direct solve overflowed")
    return solved
