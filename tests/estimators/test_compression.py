"""Compression: fewer support vectors, and decisions that stay within the bound, wherever they are looked at."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hinge import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from hinge.estimators import load_model, save_model
from reference import kernel_matrix


def _data(seed: int, n: int, n_classes: int, is_positive: bool) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, 3)) + y[:, None]
    return (np.abs(X) if is_positive else X), y


MACHINES = {
    "svc": lambda **k: SVC(C=3.0, decision_function_shape="ovo", **k),
    "rest": lambda **k: SVC(C=3.0, multi_class="ovr", **k),
    "nu_svc": lambda **k: NuSVC(nu=0.8, decision_function_shape="ovo", **k),
    "svr": lambda **k: SVR(C=3.0, **k),
    "nu_svr": lambda **k: NuSVR(C=3.0, **k),
    "one_class": lambda **k: OneClassSVM(nu=0.4, **k),
}


@pytest.mark.hypothesis
@pytest.mark.filterwarnings("ignore:nu =", "ignore:the weight vector")
@settings(deadline=None, max_examples=40)
@given(
    kind=st.sampled_from(sorted(MACHINES)),
    kernel=st.sampled_from(["rbf", "laplacian", "chi2", "poly", "linear", "tanimoto", "minmax"]),
    n_classes=st.integers(2, 4),
    seed=st.integers(0, 1000),
    form=st.sampled_from(["dense", "single", "sparse"]),
    share=st.sampled_from([0.1, 0.4, 0.8]),
    by_error=st.booleans(),
)
@example("one_class", "linear", 2, 396, "dense", 0.1, True)  # nothing but rounding is left of the weights
def test_decisions_stay_within_the_bound(
    kind: str, kernel: str, n_classes: int, seed: int, form: str, share: float, by_error: bool
) -> None:
    X, y = _data(seed, 80, n_classes, is_positive=kernel in ("chi2", "minmax"))
    rng = np.random.default_rng(seed)
    stored = sp.csr_array(X) if form == "sparse" else X.astype(np.float32) if form == "single" else X
    machine = MACHINES[kind](kernel=kernel, gamma=0.3, coef0=1.0, degree=2).fit(stored, y)
    size = float(np.abs(machine._decide(stored)).max())
    n_before = len(machine.support_)
    wish = {"error": share * size} if by_error else {"n_support": max(int(share * n_before), 1)}
    small = machine.compressed(radius=50.0, **wish)
    told = small.compression_
    assert len(small.support_vectors_.toarray() if form == "sparse" else small.support_vectors_) == told.n_support
    if by_error:
        assert told.bound <= wish["error"]
    elif kernel != "linear":
        assert told.n_support <= wish["n_support"]
    queries = rng.normal(size=(2000, 3)) * rng.uniform(0, 20, (2000, 1))
    queries *= np.minimum(1.0, 50.0 / np.linalg.norm(queries, axis=1))[:, None]
    queries = np.abs(queries) if kernel in ("chi2", "minmax") else queries
    change = np.abs(machine._decide(queries) - small._decide(queries))
    assert (change <= told.bound + 1e-9 * size).all()
    assert np.abs(machine._decide(stored) - small._decide(stored)).max() <= told.measured + 1e-3 * size
    assert np.allclose(_norms(machine, small), told.norms, rtol=1e-3, atol=1e-4 * size)


def _norms(machine: Any, small: Any) -> Any:
    """‖f − f'‖ of every machine by the whole kernel matrix of both, in plain NumPy."""
    both = [
        np.asarray(
            m._model.support_vectors.toarray()
            if sp.issparse(m._model.support_vectors)
            else m._model.support_vectors,
            float,
        )
        for m in (machine, small)
    ]
    K = _matrix(np.vstack(both), machine._model.kernel)
    rows = np.hstack([machine._model.coefficients, -small._model.coefficients])
    return np.sqrt(np.maximum(np.einsum("ms,st,mt->m", rows, K, rows), 0.0))


def _matrix(X: Any, kernel: Any) -> Any:
    return kernel_matrix(kernel.name, X, X, gamma=kernel.gamma, coef0=kernel.coef0, degree=kernel.degree)


def test_more_support_vectors_are_nearer() -> None:
    X, y = _data(0, 300, 2, is_positive=False)
    machine = SVC(gamma=0.5, C=10.0).fit(X, y)
    bounds = [machine.compressed(n_support=n).compression_.bound for n in (5, 20, 50, 80)]
    assert bounds == sorted(bounds, reverse=True)
    everything = machine.compressed(n_support=10**6)
    assert everything.compression_.bound == 0
    assert np.array_equal(everything.decision_function(X), machine.decision_function(X))


def test_coefficients_are_the_best_for_the_support_vectors_chosen() -> None:
    X, y = _data(1, 200, 2, is_positive=False)
    machine = SVC(gamma=0.5).fit(X, y)
    small = machine.compressed(n_support=30)
    K = _matrix(X, machine._model.kernel)
    used, all_of_them = small.support_, machine.support_
    best = np.linalg.solve(K[np.ix_(used, used)], K[np.ix_(used, all_of_them)] @ machine.dual_coef_[0])
    assert np.allclose(small.dual_coef_[0], best, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("kind", ["svc", "rest", "svr"])
def test_linear_machines_are_compressed_exactly(kind: str, is_sparse: bool) -> None:
    X, y = _data(2, 100, 2 if kind == "svc" else 3, is_positive=False)
    X = sp.csr_matrix(X) if is_sparse else X
    machine = MACHINES[kind](kernel="linear").fit(X, y)
    small = machine.compressed(n_support=1)
    assert len(small.support_) == {"svc": 1, "rest": 3, "svr": 1}[kind]
    assert small.compression_.bound < 1e-9
    assert np.allclose(small._decide(X), machine._decide(X), atol=1e-12)


@pytest.mark.parametrize("kind", ["svc", "rest", "nu_svc", "svr", "one_class"])
def test_it_travels(kind: str, tmp_path: Any) -> None:
    X, y = _data(3, 90, 3, is_positive=False)
    machine = MACHINES[kind]().fit(X, y).compressed(n_support=20)
    expected = machine._decide(X)
    again = pickle.loads(pickle.dumps(machine))
    assert again.compression_ == machine.compression_
    assert np.array_equal(again._decide(X), expected)
    assert "20 of" in str(machine.compression_)
    if kind == "rest":
        return  # LIBSVM has no file for it
    save_model(machine, tmp_path / "model", digits=17)
    assert np.allclose(load_model(tmp_path / "model", n_features=3)._decide(X), expected, atol=1e-12)


def test_kernels_without_features() -> None:
    X, y = _data(4, 100, 2, is_positive=False)
    K = X @ X.T + 1.0
    given_matrix = SVC(kernel="precomputed").fit(K, y, sample_weight=np.arange(100) % 5 > 0)
    called = SVC(kernel=lambda a, b: a @ b.T + 1.0).fit(X, y, sample_weight=np.arange(100) % 5 > 0)
    for machine, queries in ((given_matrix, K), (called, X)):
        small = machine.compressed(error=0.05)
        assert small.compression_.n_support <= 5
        change = np.abs(machine.decision_function(queries) - small.decision_function(queries))
        assert change[np.arange(100) % 5 > 0].max() <= small.compression_.bound <= 0.05
    with pytest.raises(ValueError, match="not here any more"):
        pickle.loads(pickle.dumps(given_matrix)).compressed(error=0.1)


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({}, "say how far to go"),
        ({"n_support": 3, "error": 0.1}, "say how far to go"),
        ({"n_support": 0}, "n_support must be a whole number"),
        ({"error": -1.0}, "error must be a finite number above 0"),
        ({"error": 0.1, "radius": np.inf}, "radius must be a finite number"),
    ],
)
def test_what_cannot_be_wished_for(wish: dict[str, Any], message: str) -> None:
    X, y = _data(5, 40, 2, is_positive=False)
    with pytest.raises(ValueError, match=message):
        SVC().fit(X, y).compressed(**wish)


def test_what_a_compressed_machine_is_not() -> None:
    X, y = _data(6, 60, 2, is_positive=False)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        SVC(kernel="sigmoid").fit(X, y).compressed(n_support=3)
    small = SVC().fit(X, y).compressed(n_support=10)
    with pytest.raises(ValueError, match="no optimum"):
        small.certificate(X, y)
    with pytest.raises(ValueError, match="without its training samples"):
        small.forget(0)
    assert not hasattr(small.fit(X, y), "compression_")
