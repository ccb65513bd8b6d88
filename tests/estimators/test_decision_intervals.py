"""The exact decision is inside every interval, whatever ended the fit; labels called certain do not change."""

from __future__ import annotations

import os
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import NotFittedError

from hinge import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from hinge.dual.enclosure import enclose
from hinge.dual.formulations import InfeasibleNuError, c_svc, epsilon_svr
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import Kernel
from hinge.settings import Settings
from hinge.solvers import solve
from hinge.solvers.active_set.polish import polish

# How many random fits are stopped; the first of them.
_FITS, _FIRST = int(os.environ.get("HINGE_INTERVAL_FITS", "240")), int(os.environ.get("HINGE_INTERVAL_FIRST", "0"))

_KINDS: tuple[tuple[type[Any], dict[str, Any]], ...] = (
    (SVC, {}), (SVC, {"fit_intercept": False}), (SVC, {"multi_class": "ovr"}), (NuSVC, {"nu": 0.15}),
    (SVR, {}), (NuSVR, {}), (OneClassSVM, {"nu": 0.3}), (SVC, {"break_ties": True}),
)  # fmt: skip


def _draw(seed: int) -> tuple[Any, Any, Any, Any, Any]:
    """An estimator to be stopped, its data and weights, and new samples."""
    rng = np.random.default_rng(seed)
    kind, options = _KINDS[seed % len(_KINDS)]
    n, n_classes = int(rng.integers(8, 60)), int(rng.integers(2, 5))
    X, new = rng.normal(size=(n, 3)), 2 * rng.normal(size=(12, 3))
    y = np.argmax(X @ rng.normal(size=(3, n_classes)) + rng.normal(size=(n, n_classes)), axis=1)
    y[:n_classes], y[n_classes : 2 * n_classes] = np.arange(n_classes), np.arange(n_classes)
    target = X[:, 0] ** 2 + 0.3 * rng.normal(size=n) if kind in (SVR, NuSVR) else y
    kernel = {"kernel": str(rng.choice(["rbf", "linear", "poly", "laplacian"])), "degree": 2, "coef0": 1.0}
    price = {} if kind in (NuSVC, OneClassSVM) else {"C": float(10 ** rng.uniform(-2, 2))}
    machine = kind(**options, **price, **kernel, gamma=float(10 ** rng.uniform(-1.5, 0.5)))
    if rng.random() < 0.3:
        X, new = sp.csr_array(X), sp.csr_array(new)
    return machine, X, target, rng.uniform(0.2, 2.0, n) if rng.random() < 0.5 else None, new


def _decided(machine: Any, X: Any) -> Any:
    return machine.predict(X) if isinstance(machine, SVR | NuSVR) else machine.decision_function(X)


@pytest.mark.parametrize("first", range(_FIRST, _FIRST + _FITS, 40))
def test_the_exact_decision_is_inside_every_interval(first: int) -> None:
    for seed in range(first, first + 40):
        machine, X, y, weights, new = _draw(seed)
        rng = np.random.default_rng(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exact = type(machine)(**{**machine.get_params(), "tol": 1e-10}).fit(X, y, weights)
            except InfeasibleNuError:
                continue
            machine.set_params(max_iter=int(rng.integers(1, 80)), tol=float(10 ** rng.uniform(-4, -0.5))).fit(
                X, y, weights
            )
        lower, upper = machine.decision_interval(new)
        # What the reference itself leaves open, by its own certificate.
        low, high = exact.decision_interval(new)
        values, slack = _decided(exact, new), np.maximum(high - low, 1e-9)
        assert (lower <= values + slack).all(), seed
        assert (values - slack <= upper).all(), seed
        if not isinstance(machine, SVR | NuSVR):
            labels, is_certain = machine.predict_certain(new)
            np.testing.assert_array_equal(labels, machine.predict(new))
            sure = is_certain & exact.predict_certain(new)[1]
            np.testing.assert_array_equal(labels[sure], exact.predict(new)[sure], err_msg=str(seed))


def _weight_distance(problem: Any, gram: Gram, beta: Any, other: Any) -> float:
    change = problem.coefficients(other - beta)
    return float(np.sqrt(max(change @ gram.product(change), 0.0)))


@pytest.mark.parametrize("seed", range(40))
def test_the_optimum_of_squared_losses_is_in_its_ball(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, C, weights = 25, float(10 ** rng.uniform(-2, 2)), rng.uniform(0.1, 3.0, 25)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    problem = (
        c_svc(y, C, weights, squared=True) if seed % 2 else epsilon_svr(X[:, 0], C, 0.1, weights, squared=True)
    )
    gram = Gram(X, Kernel("rbf", gamma=0.5), precision="double")
    best = polish(problem, gram, solve(problem, gram, Settings(tol=1e-10)), 1e-10, 1e9)
    start = problem.near(rng.uniform(0, 1, problem.n_variables) * best.beta)
    found = enclose(problem, gram, start)
    assert _weight_distance(problem, gram, start, best.beta) <= found.radius
    assert (found.lower <= best.multipliers).all()
    assert (best.multipliers <= found.upper).all()


def test_a_ball_by_hand() -> None:
    """One sample of each class, at β = 0: the gap is 2C, the optimum is β* = (C, −C) with w* = 2C."""
    problem, gram = c_svc([1.0, -1.0], C=0.01), Gram(np.array([[1.0], [-1.0]]), Kernel("linear"))
    found = enclose(problem, gram, np.zeros(2))
    np.testing.assert_allclose(found.radius, np.sqrt(0.02))
    np.testing.assert_allclose([found.lower, found.upper], [[-1 - np.sqrt(0.02)], [1 + np.sqrt(0.02)]])


def test_beta_outside_of_its_box_is_refused() -> None:
    gram = Gram(np.array([[1.0], [-1.0]]), Kernel("linear"))
    with pytest.raises(ValueError, match="outside of its box"):
        enclose(c_svc([1.0, -1.0], C=1.0), gram, np.array([2.0, -2.0]))


def test_precomputed_and_called_kernels_have_the_same_intervals() -> None:
    X, y = make_classification(80, random_state=0)
    named = SVC(kernel="linear", max_iter=30, solver="smo")
    given, called = (
        SVC(kernel="precomputed", max_iter=30, solver="smo"),
        SVC(kernel=lambda a, b: a @ b.T, max_iter=30, solver="smo"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        named.fit(X, y), given.fit(X @ X.T, y), called.fit(X, y)
    expected = named.decision_interval(X)
    for found in (given.decision_interval(X @ X.T, np.sum(X**2, axis=1)), called.decision_interval(X)):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    with pytest.raises(ValueError, match="needs diagonal="):
        given.decision_interval(X @ X.T)
    with pytest.raises(ValueError, match="is for kernel='precomputed'"):
        named.decision_interval(X, np.ones(80))
    with pytest.raises(ValueError, match="for each of the 80 samples"):
        given.decision_interval(X @ X.T, np.ones(3))


def test_votes_that_cannot_change() -> None:
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rough = SVC(max_iter=12).fit(X, y)
    labels, is_certain = rough.predict_certain(X)
    assert 0 < is_certain.sum() < len(y)
    exact = SVC(tol=1e-10).fit(X, y)
    np.testing.assert_array_equal(labels[is_certain], exact.predict(X)[is_certain])
    lower, upper = rough.decision_interval(X)
    assert lower.shape == exact.decision_function(X).shape
    assert (lower <= exact.decision_function(X)).all()
    assert (exact.decision_function(X) <= upper).all()


@pytest.mark.parametrize("kind", [SVC, NuSVC, OneClassSVM])
@pytest.mark.parametrize("where", ["labels", "samples"])
def test_a_fit_stopped_by_labels_has_the_labels_of_the_exact_one(kind: type[Any], where: str) -> None:
    X, y = load_iris(return_X_y=True)
    options = {"nu": 0.2} if kind is not SVC else {}
    queries = X if where == "labels" else X[::7] + 0.03
    stopped = kind(**options, tol=1e-9, stop="labels" if where == "labels" else queries).fit(X, y)
    exact = kind(**options, tol=1e-9).fit(X, y)
    assert stopped.fit_status_ == 0
    has_label = np.ones(len(queries), dtype=bool)
    if kind is OneClassSVM:  # whose free support vectors are on the boundary: they never settle
        has_label = np.abs(exact.decision_function(queries)) > 1e-9
        assert has_label.mean() > 0.8
    else:
        assert stopped.predict_certain(queries)[1].all()
        assert stopped.report_.iterations < exact.report_.iterations
    np.testing.assert_array_equal(stopped.predict(queries)[has_label], exact.predict(queries)[has_label])


def test_what_cannot_be_certain_is_refused() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        SVC(kernel="sigmoid", gamma=0.01).fit(X, y).decision_interval(X)
    with pytest.raises(ValueError, match="nothing is certain"):
        SVC(probability=True).fit(X, y).predict_certain(X)
    with pytest.raises(ValueError, match="exclude each other"):
        SVC(probability=True, stop="labels").fit(X, y)
    with pytest.raises(ValueError, match="needs features"):
        SVC(kernel="precomputed", stop=X[:3]).fit(X @ X.T, y)
    with pytest.raises(ValueError, match="stop"):
        SVC(stop="whenever").fit(X, y)
    with pytest.raises(NotFittedError):
        SVC().decision_interval(X)


def test_copies_are_without_the_samples_and_say_so() -> None:
    X, y = load_iris(return_X_y=True)
    machine = SVC().fit(X, y)
    copy = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(copy.predict(X), machine.predict(X))
    with pytest.raises(NotFittedError, match="without its training samples"):
        copy.decision_interval(X)
    expected = machine.decision_interval(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(machine)).decision_interval(X), expected)
