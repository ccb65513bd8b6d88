"""Check answers in plain double-precision NumPy: no code of any contender takes part.

A machine minimises ½ βᵀKβ − vᵀβ over a box with a fixed sum (+ ε Σ|β| in a regression). With the residual
r = v − Kβ its violation is  max r over variables that may grow − min r over variables that may fall: m(α) − M(α)
of LIBSVM's stopping rule. β is the dual coefficient with its sign.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

Vector = NDArray[np.float64]

# A tile of double-precision kernel values takes two megabytes.
_TILE_ROWS = 256
_TILE_SUPPORT = 1024

# Sparse data becomes dense for the sake of fast products, unless it is large or almost empty.
_LARGEST_DENSE = 2**30
_SPARSEST_DENSE = 0.03

# Single precision stores C with this relative error: such a coefficient counts as being at its bound.
_ROUNDING = 1e-7


@dataclass(frozen=True)
class Answer:
    """What a contender returned, in one layout for all of them.

    Attributes
    ----------
    support : array of int
        Rows of the training data.
    dual : array of shape (n_classes - 1, n_support) or (1, n_support)
        Dual coefficients; for many classes by opponent, as LIBSVM and scikit-learn lay them out.
    intercepts : array
        One a machine; pairs in the order 01, 02, …, 12, ….
    labels : array
        Classes, in the order that pairs refer to; empty for a regression.
    positive_first : bool
        Whether a machine of two classes is positive for the first of them.
    weights : array, optional
        Weight vectors with the bias last, where a library returns no dual coefficients.
    """

    support: NDArray[np.int64]
    dual: Vector
    intercepts: Vector
    labels: Vector = field(default_factory=lambda: np.empty(0))
    positive_first: bool = False
    weights: Vector | None = None

    def save(self, path: Any) -> None:
        """Write to an ``.npz`` file."""
        parts = {name: value for name, value in vars(self).items() if value is not None}
        np.savez(path, **parts)

    @staticmethod
    def read(path: Any) -> Answer:
        """Read what `save` wrote."""
        with np.load(path) as file:
            parts = {name: file[name] for name in file.files}
        return Answer(**{**parts, "positive_first": bool(parts["positive_first"])})


@dataclass(frozen=True)
class Check:
    """What an answer is worth; many machines: the largest error, the sum of all else.

    Attributes
    ----------
    violation, objective : float
        As above; the violation is None where a library returns no dual coefficients.
    box_error, sum_error : float
        Infeasibility of β.
    intercept_error : float
        How far the intercept lies outside the interval that the residuals allow.
    n_support, n_bounded : int
        Coefficients that are not zero, and those of them at the bound, summed over machines.
    necessary : int
        Kernel values between samples and support vectors: what even a perfect solver evaluates.
    """

    violation: float | None
    objective: float
    box_error: float = 0.0
    sum_error: float = 0.0
    intercept_error: float = 0.0
    n_support: int = 0
    n_bounded: int = 0
    necessary: int = 0


def kernel_product(X: Any, coefficients: Vector, kernel: str, gamma: float) -> Vector:
    """Return K @ coefficients, tile by tile."""
    support = np.flatnonzero(coefficients)
    factors = coefficients[support]
    if kernel == "linear":
        return np.asarray(X @ (X[support].T @ factors), dtype=np.float64).ravel()
    size = X.shape[0] * X.shape[1]
    if sp.issparse(X) and 8 * size <= _LARGEST_DENSE and X.nnz >= _SPARSEST_DENSE * size:
        X = X.toarray()
    if not sp.issparse(X) and kernel == "rbf":
        X = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    X = X.astype(np.float64, copy=False)
    norms = (
        None
        if kernel == "poly"
        else (
            gamma
            * np.asarray(X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)).ravel()
        )
    )
    result = np.zeros(X.shape[0])
    for first in range(0, len(support), _TILE_SUPPORT):
        piece = support[first : first + _TILE_SUPPORT]
        panel = X[piece]
        panel = np.ascontiguousarray((panel.toarray() if sp.issparse(panel) else panel).T)
        panel_norms = None if norms is None else norms[piece]
        _add_panel(result, X, norms, panel, panel_norms, factors[first : first + _TILE_SUPPORT], gamma)
    return result


def _add_panel(
    result: Vector, X: Any, norms: Vector | None, panel: Vector, panel_norms: Vector | None, factors: Vector,
    gamma: float,
) -> None:  # fmt: skip
    """Add the values of a panel: of an RBF kernel, or without norms of a polynomial of degree 3."""

    def work(start: int) -> None:
        stop = start + _TILE_ROWS
        exponent = X[start:stop] @ panel
        if norms is None:
            result[start:stop] += (gamma * exponent) ** 3 @ factors
            return
        exponent *= 2 * gamma
        exponent -= norms[start:stop, None]
        exponent -= panel_norms
        np.minimum(exponent, 0.0, out=exponent)
        np.exp(exponent, out=exponent)
        result[start:stop] += exponent @ factors

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(work, range(0, len(result), _TILE_ROWS)))


def check_classifier(X: Any, y: Vector, beta: Vector, intercept: float, case: dict[str, Any]) -> Check:
    """Check one machine of two classes; y is -1 or 1, and β has the sign of y."""
    product = kernel_product(X, beta, case["kernel"], case["gamma"])
    alpha, C = y * beta, case["C"]
    at_upper = alpha >= C * (1 - _ROUNDING)
    grows = np.where(y > 0, ~at_upper, alpha > 0)
    falls = np.where(y > 0, alpha > 0, ~at_upper)
    residual = y - product
    outside = max(float((alpha - C).max()), float(-alpha.min()), 0.0)
    objective = float(0.5 * beta @ product - y @ beta)
    return _checked(residual[grows], residual[falls], objective, beta, outside, at_upper, intercept)


def check_regressor(X: Any, y: Vector, beta: Vector, intercept: float, case: dict[str, Any]) -> Check:
    """Check one ε-regression; β = α − α*, of which at most one is not zero."""
    product = kernel_product(X, beta, case["kernel"], case["gamma"])
    C, epsilon = case["C"], case["epsilon"]
    at_upper, at_lower = beta >= C * (1 - _ROUNDING), beta <= -C * (1 - _ROUNDING)
    over, under = y - product - epsilon, y - product + epsilon
    grows = np.concatenate([over[~at_upper & (beta >= 0)], under[beta < 0], over[beta < 0]])
    falls = np.concatenate([over[beta > 0], under[~at_lower & (beta <= 0)], under[beta > 0]])
    objective = float(0.5 * beta @ product - y @ beta + epsilon * np.abs(beta).sum())
    outside = max(float(np.abs(beta).max()) - C, 0.0)
    return _checked(grows, falls, objective, beta, outside, at_upper | at_lower, intercept)


def _checked(
    grows: Vector, falls: Vector, objective: float, beta: Vector, outside: float, bounded: Any, intercept: float
) -> Check:
    top, bottom = float(grows.max(initial=-np.inf)), float(falls.min(initial=np.inf))
    low, high = min(top, bottom), max(top, bottom)
    n_support = int(np.count_nonzero(beta))
    return Check(
        violation=max(top - bottom, 0.0),
        objective=objective,
        box_error=outside,
        sum_error=abs(float(beta.sum())),
        intercept_error=max(low - intercept, intercept - high, 0.0),
        n_support=n_support,
        n_bounded=int(np.count_nonzero(bounded)),
        necessary=n_support * len(beta),
    )


def machines(y: Vector, answer: Answer) -> Iterator[tuple[Any, Vector, Vector, float]]:
    """Take an answer apart: members, their y of -1 and 1, their β and the intercept of every machine."""
    labels = answer.labels
    k = len(labels)
    row_of = np.full(len(y), -1)
    row_of[answer.support] = np.arange(len(answer.support))
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    for (i, j), intercept in zip(pairs, answer.intercepts, strict=True):
        members = np.flatnonzero((y == labels[i]) | (y == labels[j]))
        first = y[members] == labels[i]
        signs = np.where(first == (answer.positive_first or k > 2), 1.0, -1.0)
        column = row_of[members]
        rows = np.where(first, j - 1, i) if k > 2 else np.zeros(len(members), dtype=int)
        beta = np.where(column >= 0, answer.dual[rows, column], 0.0)
        yield members, signs, beta, float(intercept)


def check_answer(X: Any, y: Vector, answer: Answer, case: dict[str, Any]) -> Check:
    """Check an answer: ``case`` has task, kernel, C, gamma and epsilon."""
    if answer.weights is not None:
        return _check_weights(X, y, answer.weights, answer.labels, case["C"])
    if case["task"] == "regression":
        beta = np.zeros(len(y))
        beta[answer.support] = answer.dual[0]
        return check_regressor(X, y, beta, float(answer.intercepts[0]), case)
    checks = []
    for members, signs, beta, intercept in machines(y, answer):
        rows = X if len(members) == X.shape[0] else X[members]
        checks.append(check_classifier(rows, signs, beta, intercept, case))
    return _combined(checks)


def _combined(checks: list[Check]) -> Check:
    def most(name: str) -> Any:
        return max(getattr(check, name) for check in checks)

    def total(name: str) -> Any:
        return sum(getattr(check, name) for check in checks)

    worst = {name: most(name) for name in ("violation", "box_error", "sum_error", "intercept_error")}
    sums = {name: total(name) for name in ("objective", "n_support", "n_bounded", "necessary")}
    return Check(**worst, **sums)


def _check_weights(X: Any, y: Vector, weights: Vector, labels: Vector, C: float) -> Check:
    """Return the negative primal objective of machines known by their weights alone, one against the rest."""
    objective = 0.0
    for row, label in zip(weights, labels, strict=False):
        signs = np.where(y == label, 1.0, -1.0)
        decisions = np.asarray(X @ row[:-1]).ravel() + row[-1]
        objective -= float(0.5 * row @ row + C * np.maximum(0.0, 1.0 - signs * decisions).sum())
    return Check(violation=None, objective=objective)
