"""What many fits came to, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Vector
from hinge.report import Status


@dataclass(frozen=True, eq=False)
class ManyScores:
    """Scores of many problems.

    Attributes
    ----------
    scores : float64 array of shape (n_problems, n_folds) or (n_problems, n_C, n_folds)
        The score of every fold; `error_score` where its fit failed, NaN where a problem has fewer folds.
    statuses : array of str, of the same shape
        How each fit ended, as `Status` has it; ``"failed"`` for an error, empty where there is no fit.
    violations : float64 array of the same shape
        The violation that each fit ended with; NaN where there is none.
    errors : dict of int to str
        Why problems failed, by their number: the first error of each.
    predictions : array of shape (n_problems, [n_C,] n_samples), optional
        What each sample was predicted as while it was held out. Samples never held out, and those of failed folds,
        are NaN (None where labels are no numbers). Problems of several sizes make an array of arrays.
    decisions : float64 array of shape (n_problems, [n_C,] n_samples) or (..., n_samples, n_columns), optional
        What ``decision_function`` answers for the same samples.
    n_left : int
        How many fits were left to the estimator itself, because the compiled loop did not settle them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hinge import SVC
    >>> from hinge.many import cross_validate_many
    >>> X, y = load_iris(return_X_y=True)
    >>> found = cross_validate_many(SVC(), X, y, columns=[[0, 1], [2, 3]], cv=3, return_predictions=True)
    >>> found.scores.round(2)
    array([[0.78, 0.84, 0.78],
           [0.98, 0.94, 0.94]])
    >>> found.predictions.shape, bool(found.converged.all()), found.errors
    ((2, 150), True, {})
    """

    scores: Vector
    statuses: NDArray[Any]
    violations: Vector
    errors: dict[int, str]
    predictions: Any = None
    decisions: Any = None
    n_left: int = 0

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Which fits are certified to their tolerance."""
        return np.asarray(self.statuses == Status.CONVERGED)


@dataclass(frozen=True, eq=False)
class ManyFits:
    """Machines of many problems.

    Attributes
    ----------
    coefficients : float64 array of shape (n_problems, [n_C,] n_machines, n_samples)
        Coefficients of all samples, zero for those that are no support vectors: machine k of problem i decides
        ``coefficients[i, k] @ K + intercepts[i, k]``. Zero, too, for machines of problems with fewer classes.
    intercepts : float64 array of shape (n_problems, [n_C,] n_machines)
        Intercepts.
    weights : float64 array of shape (n_problems, [n_C,] n_machines, n_features), optional
        Weights of the features, for linear kernels; zero beyond the features of a problem that has fewer.
    gammas : float64 array of shape (n_problems, [n_C,])
        γ of each machine's kernel; NaN for kernels without.
    statuses, violations, errors, n_left
        As in `ManyScores`. Coefficients and intercepts of problems that failed are NaN.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hinge import SVC
    >>> from hinge.many import fit_many
    >>> X, y = load_iris(return_X_y=True)
    >>> fits = fit_many(SVC(kernel="linear"), X[:100], y[:100], columns=[[0, 1], [2, 3]])
    >>> fits.weights.shape, fits.intercepts.shape, bool(fits.converged.all())
    ((2, 1, 2), (2, 1), True)
    """

    coefficients: Vector
    intercepts: Vector
    weights: Vector | None
    gammas: Vector
    statuses: NDArray[Any]
    violations: Vector
    errors: dict[int, str]
    n_left: int = 0

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Which fits are certified to their tolerance."""
        return np.asarray(self.statuses == Status.CONVERGED)


def stacked(cells: NDArray[Any], fill: float = 0.0) -> Vector:
    """Put arrays of several shapes into one; what is None becomes NaN, what is beyond an array's end ``fill``.

    Examples
    --------
    >>> cells = np.empty(3, dtype=object)
    >>> cells[0], cells[1] = np.array([1.0, 2.0]), np.array([3.0])
    >>> stacked(cells)
    array([[ 1.,  2.],
           [ 3.,  0.],
           [nan, nan]])
    """
    shapes = [cell.shape for cell in cells.ravel() if cell is not None]
    shape = tuple(int(length) for length in np.max(shapes, axis=0)) if shapes else (0,)
    whole = np.full((*cells.shape, *shape), fill)
    for place, cell in np.ndenumerate(cells):
        if cell is None:
            whole[place] = np.nan
        else:
            whole[(*place, *(slice(0, length) for length in cell.shape))] = cell
    return whole
