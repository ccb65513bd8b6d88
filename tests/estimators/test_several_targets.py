"""Regression of several targets: a machine for each column of y, on shared kernel values."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from hinge import SVR, NuSVR
from hinge.estimators import save_model
from hinge.io import ModelFileError
from hinge.selection import GridSearch, cross_validate, leave_one_out

KINDS = [
    SVR(C=3.0),
    SVR(C=3.0, kernel="linear"),
    SVR(loss="squared_epsilon_insensitive"),
    SVR(fit_intercept=False),
    NuSVR(C=3.0, nu=0.3),
]


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = np.column_stack([np.sin(X[:, 0]), 10 * X[:, 1] ** 2, X[:, 2] + 0.1 * rng.normal(size=n)])
    return X, Y, rng.integers(0, 3, n).astype(float)


def alone(machine, X, y, weights=None):
    return type(machine)(**machine.get_params()).fit(X, y, weights)


@pytest.mark.parametrize("machine", KINDS, ids=str)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_each_target_has_the_machine_of_a_fit_of_its_own(machine, storage, is_weighted):
    X, Y, weights = data()
    X, weights = storage(X), weights if is_weighted else None
    machine.set_params(gamma=0.4, tol=1e-6).fit(X, Y, weights)
    assert machine.predict(X).shape == Y.shape
    for k, name in enumerate(machine.reports_.names):
        single = alone(machine, X, Y[:, k], weights)
        np.testing.assert_allclose(machine.predict(X)[:, k], single.predict(X), atol=1e-6)
        np.testing.assert_allclose(machine.intercept_[k], single.intercept_[0], atol=1e-6)
        assert machine.reports_[k].objective == pytest.approx(single.report_.objective, rel=1e-9)
        assert name == f"target {k}"
        if isinstance(machine, NuSVR):
            assert machine.epsilon_[k] == pytest.approx(single.epsilon_, abs=1e-6)
    assert machine.n_iter_.shape == (3,)
    assert machine.dual_coef_.shape == (3, len(machine.support_))
    proof = machine.certificate(X, Y, weights)
    assert len(proof) == 3
    assert proof.proves(1e-5)


def test_kernel_values_are_computed_once():
    X, Y, _ = data()
    calls = []

    def kernel(A, B):
        calls.append(A.shape[0] * B.shape[0])
        return A @ B.T

    SVR(kernel=kernel).fit(X, Y)
    once = sum(calls)
    calls.clear()
    SVR(kernel=kernel).fit(X, Y[:, 0])
    assert once == sum(calls)


def test_a_column_stays_a_column():
    X, Y, _ = data()
    assert SVR().fit(X, Y[:, :1]).predict(X).shape == (len(X), 1)
    assert SVR().fit(X, Y[:, 0]).predict(X).shape == (len(X),)


def test_what_follows_from_a_fit():
    X, Y, _ = data()
    machine = SVR(gamma=0.4, tol=1e-6, probability=True, warm_start=True).fit(X, Y)
    single = SVR(gamma=0.4, tol=1e-6, probability=True).fit(X, Y[:, 1])
    assert machine.noise_scale_[1] == pytest.approx(single.noise_scale_, rel=1e-4)
    np.testing.assert_array_equal(machine.fit(X, Y).n_iter_, 0)
    lower, upper = machine.decision_interval(X)
    assert ((lower <= machine.predict(X)) & (machine.predict(X) <= upper)).all()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(machine)).predict(X), machine.predict(X))
    expected = np.mean([machine.fit(X, Y[:, k]).score(X, Y[:, k]) for k in range(3)])
    assert machine.fit(X, Y).score(X, Y) == pytest.approx(expected, abs=1e-6)


def test_searches_and_leave_one_out():
    X, Y, _ = data(60)
    machine = SVR(gamma=0.4, tol=1e-7)
    folds = [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    found = cross_validate(machine, X, Y, cv=folds)["test_score"]
    expected = [alone(machine, X[train], Y[train]).score(X[test], Y[test]) for train, test in folds]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    search = GridSearch(machine, {"C": [0.1, 10.0]}, cv=folds).fit(X, Y)
    assert search.predict(X).shape == Y.shape
    left = leave_one_out(machine, X, Y)
    for k in range(3):
        np.testing.assert_allclose(
            left.predictions[:, k], leave_one_out(machine, X, Y[:, k]).predictions, atol=1e-5
        )


def test_what_others_cannot_hold_is_refused(tmp_path):
    X, Y, _ = data()
    machine = SVR().fit(X, Y)
    with pytest.raises(ModelFileError, match="format holds one target, not the 3"):
        save_model(machine, tmp_path / "model")
    with pytest.raises(ValueError, match="has one target, this estimator 3"):
        machine.as_sklearn()
    with pytest.raises(ValueError, match="updates are for one target"):
        machine.forget([0])
    with pytest.raises(ValueError, match="updates are for one target"):
        machine.change(C=2.0)


def test_onnx():
    pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    import warnings

    X, Y, _ = data()
    machine = SVR().fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from skl2onnx import to_onnx

        import hinge.estimators.onnx  # noqa: F401

        graph = to_onnx(machine, X[:1]).SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    (values,) = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(values, machine.predict(X), atol=1e-9)
