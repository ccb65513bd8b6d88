"""Probabilities from decision values.

Two classes: Platt's sigmoid 1 / (1 + exp(A f + B)), fitted by Newton's method to decisions that no sample had a
part in (five folds). More classes: pairwise coupling, the second method of Wu, Lin & Weng (2004). One class:
density marks. Regression: the scale of Laplace-distributed noise. All of them count a sample by its weight, and
folds are drawn by the values of a sample, so that weights and repetitions give the same answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Vector
from hinge.data.contents import fingerprints, gram_fingerprints

#: Folds whose held-out decisions calibrate a machine (LIBSVM).
N_FOLDS = 5

#: LIBSVM's constant for the sigmoid: no probability of a pair is nearer to 0 or 1 than this.
NEAREST_TO_CERTAIN = 1e-7

# Newton's method for a sigmoid, as in Lin, Lin & Weng (2007): its most steps, its shortest one, the share of what
# the slope promises that a step must gain, what is added to the diagonal of the Hessian, and the gradient for each
# unit of weight at which it ends.
_MOST_NEWTON_STEPS = 100
_SMALLEST_STEP = 1e-10
_LEAST_GAIN = 1e-4
_HESSIAN_RIDGE = 1e-12
_GRADIENT_TOL = 1e-9

#: Marks between which densities of decisions are told apart, half of them on each side of zero (LIBSVM).
N_MARKS = 10

# Decisions of margin vectors are zero up to rounding; this share of the largest decision counts as rounding.
_ROUNDING = 1e-8

#: P(normal) below the lowest mark, and P(outlier) above the highest (LIBSVM).
LEAST_NORMAL = 0.001

# Residuals beyond this many standard deviations do not count as noise (LIBSVM).
_OUTLIER = 5.0


# ---------------------------------------------------------------------- folds


def folds_by_content(
    X: Any, strata: NDArray[np.intp], weights: Vector, seed: int, is_gram: bool = False
) -> NDArray[np.intp]:
    """Deal the samples out to `N_FOLDS` folds of about equal weight, stratum by stratum.

    Equal samples come into the same fold, whatever their number, their order and the form of X: a sample's place
    is drawn from its values. A held-out sample thus has no copy among those trained on, and k copies are treated
    as one sample of weight k.

    Parameters
    ----------
    X : array or CSR matrix or None
        The samples, or their kernel matrix. None: samples are dealt out by their places.
    strata : array of int
        Class of each sample.
    weights : array
        Weight of each sample.
    seed : int
        Another seed, another deal.
    is_gram : bool
        Whether X is a kernel matrix.

    Returns
    -------
    array of int
        The fold of every sample.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [1.0], [3.0]])
    >>> fold = folds_by_content(X, np.zeros(4, np.intp), np.ones(4), seed=0)
    >>> bool(fold[0] == fold[2])
    True
    """
    ranks = _ranks(X, strata, weights, seed, is_gram)
    folds = np.zeros(len(ranks), dtype=np.intp)
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        _, group = np.unique(ranks[members], return_inverse=True)
        mass = np.bincount(group, weights[members])
        middle = np.cumsum(mass) - mass / 2
        folds[members] = np.minimum(N_FOLDS * middle / mass.sum(), N_FOLDS - 1).astype(np.intp)[group]
    return folds


def _ranks(X: Any, strata: NDArray[np.intp], weights: Vector, seed: int, is_gram: bool) -> NDArray[Any]:
    """Return numbers by which samples are dealt out, equal for equal samples."""
    if X is None:
        return fingerprints(np.arange(1.0, len(strata) + 1)[:, None], seed)
    if not is_gram:
        return fingerprints(X, seed)
    drawn, second, own = gram_fingerprints(X, strata, weights, seed)
    # Samples that play the same part in the matrix without being copies: any order of them is as good.
    _, first, group = np.unique(own, return_index=True, return_inverse=True)
    order = np.lexsort([first, second[first], drawn[first]])
    ranks = np.empty(len(order), np.intp)
    ranks[order] = np.arange(len(order))
    return ranks[group]


# ---------------------------------------------------------------------- two classes


def fit_sigmoid(decisions: Vector, is_positive: NDArray[np.bool_], weights: Vector) -> tuple[float, float]:
    """Fit P(positive | f) = 1 / (1 + exp(A f + B)) by maximum likelihood with Platt's targets.

    Newton's method with backtracking, in the form that cannot overflow (Lin, Lin & Weng 2007).

    Parameters
    ----------
    decisions : array
        Decision values of samples that the machine was not trained on.
    is_positive : array of bool
        Their side.
    weights : array
        Their weights.

    Returns
    -------
    A, B : float
        The sigmoid's parameters.

    Examples
    --------
    >>> f = np.array([-2.0, -1.0, 0.5, 1.0, 2.0, -0.5])
    >>> A, B = fit_sigmoid(f, f > -0.7, np.ones(6))
    >>> sigmoid(f, A, B).round(2)
    array([0.27, 0.47, 0.76, 0.83, 0.92, 0.58])
    """
    n_positive, n_negative = weights[is_positive].sum(), weights[~is_positive].sum()
    target = np.where(is_positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    A, B = 0.0, float(np.log((n_negative + 1) / (n_positive + 1)))
    loss = _likelihood_loss(decisions, target, weights, A, B)
    for _ in range(_MOST_NEWTON_STEPS):
        p = _logistic(-(A * decisions + B))
        d1, d2 = weights * (target - p), weights * p * (1 - p)
        gradient = np.array([d1 @ decisions, d1.sum()])
        if np.abs(gradient).max() < _GRADIENT_TOL * (1 + weights.sum()):
            break
        mixed = d2 @ decisions
        hessian = np.array([[d2 @ decisions**2, mixed], [mixed, d2.sum()]]) + _HESSIAN_RIDGE * np.eye(2)
        direction = -np.linalg.solve(hessian, gradient)
        slope, length = float(gradient @ direction), 1.0
        while length >= _SMALLEST_STEP:
            new = _likelihood_loss(
                decisions, target, weights, A + length * direction[0], B + length * direction[1]
            )
            if new < loss + _LEAST_GAIN * length * slope:
                A, B, loss = A + length * direction[0], B + length * direction[1], new
                break
            length /= 2
        else:
            break
    return float(A), float(B)


def sigmoid(decisions: Vector, A: Any, B: Any) -> Vector:
    """Return P(positive) for decision values, never quite 0 or 1."""
    return np.clip(_logistic(-(A * decisions + B)), NEAREST_TO_CERTAIN, 1 - NEAREST_TO_CERTAIN)


def _logistic(z: Vector) -> Vector:
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1 / (1 + e), e / (1 + e))


def _likelihood_loss(f: Vector, target: Vector, weights: Vector, A: float, B: float) -> float:
    z = A * f + B
    return float(weights @ (np.where(z >= 0, target * z, (target - 1) * z) + np.log1p(np.exp(-np.abs(z)))))


# ---------------------------------------------------------------------- many classes


def coupling_matrix(pairwise: Vector, n_classes: int) -> Vector:
    """Return the matrices Q of pᵀQp = ½ Σ_i Σ_{j≠i} (r_ji p_i − r_ij p_j)² (Wu, Lin & Weng 2004, section 4.2).

    Parameters
    ----------
    pairwise : array of shape (n_samples, n_pairs)
        The r_ij: P(first of the pair), for the pairs 01, 02, …, 12, ….
    n_classes : int
        Number of classes.

    Returns
    -------
    array of shape (n_samples, n_classes, n_classes)
    """
    r = np.zeros((len(pairwise), n_classes, n_classes))
    rows, columns = np.triu_indices(n_classes, 1)
    r[:, rows, columns] = pairwise
    r[:, columns, rows] = 1 - pairwise
    Q = -r * r.transpose(0, 2, 1)
    diagonal = np.arange(n_classes)
    Q[:, diagonal, diagonal] = (r**2).sum(axis=1)
    return Q


def couple(pairwise: Vector, n_classes: int) -> Vector:
    """Combine the probabilities of all pairs into one distribution over the classes.

    Minimises Σ_i Σ_{j≠i} (r_ji p_i − r_ij p_j)² over distributions p (Wu, Lin & Weng 2004, section 4.2), by
    solving its linear optimality conditions directly.

    Parameters
    ----------
    pairwise : array of shape (n_samples, n_pairs)
        P(first of the pair), for the pairs 01, 02, …, 12, ….
    n_classes : int
        Number of classes.

    Returns
    -------
    array of shape (n_samples, n_classes)
        Probabilities; each row sums to one.

    Examples
    --------
    >>> couple(np.array([[0.75, 0.9, 0.75]]), 3).round(3)
    array([[0.692, 0.231, 0.077]])
    """
    n = len(pairwise)
    system = np.zeros((n, n_classes + 1, n_classes + 1))
    system[:, :n_classes, :n_classes] = coupling_matrix(pairwise, n_classes)
    system[:, :n_classes, n_classes] = system[:, n_classes, :n_classes] = 1.0
    right = np.zeros((n, n_classes + 1, 1))
    right[:, n_classes] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :n_classes, 0], 0.0)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


# ---------------------------------------------------------------------- one class


def density_marks(decisions: Vector, weights: Vector | None = None) -> Vector:
    """Return decision values that cut each side of the boundary into five parts of equal weight.

    With unit weights and at least five samples on each side these are LIBSVM's; with fewer samples some marks
    coincide, and an empty side is given the width of the other.

    Parameters
    ----------
    decisions : array
        Decision values of the training samples.
    weights : array, optional
        Their weights.

    Returns
    -------
    array of shape (11,)
        Marks 0 to 10 in ascending order; mark 5 is zero.

    Examples
    --------
    >>> density_marks(np.array([-3.0, -2.0, -1.0, 0.5, 1.0, 1.5, 2.0, 2.5]))
    array([-3. , -3. , -2. , -2. , -1. ,  0. ,  0.5,  1. ,  1.5,  2. ,  2.5])
    """
    weights = np.ones(len(decisions)) if weights is None else weights
    largest = float(np.abs(decisions).max(initial=0.0))
    settled = np.where(np.abs(decisions) <= _ROUNDING * largest, 0.0, decisions)
    order = np.argsort(settled, kind="stable")
    values, mass = settled[order], weights[order]
    is_low = values < 0
    steps, half = np.arange(N_MARKS // 2), N_MARKS // 2
    below, above = largest * (steps - half) / half, largest * (steps + 1) / half
    if is_low.any():
        passed = np.cumsum(mass[is_low])
        below = values[is_low][_place(passed, steps * passed[-1] / half)]
    if not is_low.all():
        passed = np.cumsum(mass[~is_low])
        above = values[~is_low][_place(passed, np.floor((steps + 1) * passed[-1] / half) - 1)]
    return np.concatenate([below, [0.0], above])


def _place(passed: Vector, position: Vector) -> NDArray[np.intp]:
    """Return which sample holds each position, counted in weight."""
    return np.clip(np.searchsorted(passed, position, side="right"), 0, len(passed) - 1)


def normality(decisions: Vector, marks: Vector) -> Vector:
    """Return P(normal): 0.5 on the boundary, rising with the share of training samples that are passed.

    Linear between marks, so that it is above one half exactly where the decision is positive.
    """
    levels = np.arange(N_MARKS + 1) / N_MARKS
    # Where marks coincide the levels jump: a decision on such a mark, up to rounding, takes the middle.
    near = _ROUNDING * float(np.abs(marks).max())
    p = (np.interp(decisions - near, marks, levels) + np.interp(decisions + near, marks, levels)) / 2
    p = np.where(decisions < 0, np.minimum(p, np.nextafter(0.5, 0)), np.maximum(p, 0.5))
    return np.clip(p, LEAST_NORMAL, 1 - LEAST_NORMAL)


# ---------------------------------------------------------------------- regression


def laplace_scale(residuals: Vector, weights: Vector) -> float:
    """Return the scale of Laplace-distributed noise: the mean absolute residual without gross outliers.

    Examples
    --------
    >>> laplace_scale(np.array([1.0, -1.0, 2.0, -2.0]), np.ones(4))
    1.5
    """
    sizes = np.abs(residuals)
    spread = np.sqrt(2.0) * np.average(sizes, weights=weights)
    inside = sizes <= _OUTLIER * spread
    return float(np.average(sizes[inside], weights=weights[inside]))
