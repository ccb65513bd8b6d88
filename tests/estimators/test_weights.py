"""Weight k is k repetitions, weight 0 is absence: in every estimator, in every derived quantity."""

import numpy as np
import pytest
import scipy.sparse as sp

from hinge import SVC, SVR, NuSVC, NuSVR, OneClassSVM

MACHINES = [
    SVC(C=2.0),
    SVC(C=2.0, kernel="linear"),
    SVC(multi_class="ovr"),
    SVC(class_weight="balanced"),
    SVC(fit_intercept=False),
    SVC(probability=True, random_state=0),
    NuSVC(nu=0.2),
    NuSVC(nu=0.2, probability=True, random_state=0),
    SVR(),
    SVR(probability=True),
    NuSVR(),
    OneClassSVM(nu=0.3),
    OneClassSVM(nu=0.3, probability=True),
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int) + (X[:, 1] > 0.6)
    return X, y, rng.integers(0, 4, size=60)


def answers(machine, X):
    names = [name for name in ("decision_function", "predict", "predict_proba") if hasattr(machine, name)]
    found = [np.asarray(getattr(machine, name)(X), dtype=float).ravel() for name in names]
    found.append(np.atleast_1d(getattr(machine, "noise_scale_", 0.0)))
    return np.concatenate(found)


@pytest.mark.parametrize("machine", MACHINES, ids=str)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_weights_are_repetitions(machine, container, data):
    X, y, weight = data
    order = np.random.default_rng(0).permutation(len(y))
    weighted = machine.fit(container(X[order]), y[order], sample_weight=weight[order])
    first = answers(weighted, container(X))
    repeated = machine.fit(container(X.repeat(weight, axis=0)), y.repeat(weight))
    np.testing.assert_allclose(first, answers(repeated, container(X)), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_zero_weight_is_absence(machine, data):
    X, y, weight = data
    weight = (weight > 0).astype(float)
    kept = weight > 0
    first = answers(machine.fit(X, y, sample_weight=weight), X)
    assert set(machine.support_) <= set(np.flatnonzero(kept))
    assert machine.shape_fit_ == X.shape
    np.testing.assert_allclose(first, answers(machine.fit(X[kept], y[kept]), X), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("estimator", [SVC, SVR, OneClassSVM])
def test_zero_weight_with_a_precomputed_kernel(estimator, data):
    X, y, weight = data
    K, kept = X @ X.T + 1, np.flatnonzero(weight)
    machine = estimator(kernel="precomputed").fit(K, y, sample_weight=weight > 0)
    alone = estimator(kernel="precomputed").fit(K[np.ix_(kept, kept)], y[kept])
    np.testing.assert_allclose(machine.predict(K), alone.predict(K[:, kept]), atol=1e-8)


def test_scale_of_weights_is_the_scale_of_the_price(data):
    X, y, _ = data
    doubled = SVC(C=1.0).fit(X, y, sample_weight=np.full(len(y), 2.0))
    np.testing.assert_allclose(doubled.decision_function(X), SVC(C=2.0).fit(X, y).decision_function(X), rtol=1e-7)


@pytest.mark.parametrize("estimator", [SVC, NuSVC])
def test_class_weight_is_sample_weight(estimator, data):
    X, y, _ = data
    factors = {0: 1.5, 1: 1.0, 2: 2.0}
    parameters = {"nu": 0.2} if estimator is NuSVC else {}
    by_class = estimator(gamma=0.4, class_weight=factors, **parameters).fit(X, y)
    by_sample = estimator(gamma=0.4, **parameters).fit(X, y, sample_weight=[factors[c] for c in y])
    np.testing.assert_allclose(by_class.decision_function(X), by_sample.decision_function(X), rtol=1e-6)
    assert not np.allclose(
        by_class.decision_function(X), estimator(gamma=0.4, **parameters).fit(X, y).decision_function(X)
    )


def test_class_weights_beyond_nu_scale_the_price(data):
    X, y, _ = data
    y = y > 0
    alone = NuSVC(nu=0.6).fit(X, y)
    heavy = NuSVC(nu=0.6, class_weight={False: 100.0}).fit(X, y)
    price = 1 / alone.dual_coef_[0].max()  # the box of the dual is 1 / half the margin's width
    as_svc = SVC(C=1 / price, class_weight={False: 100.0}).fit(X, y)
    np.testing.assert_allclose(heavy.decision_function(X), as_svc.decision_function(X), atol=1e-6)
    assert heavy.predict(X).sum() < alone.predict(X).sum()


def test_balanced_counts_weight(data):
    X, y, weight = data
    machine = SVC(class_weight="balanced").fit(X, y, sample_weight=weight)
    totals = np.bincount(y, weight)
    np.testing.assert_allclose(machine.class_weight_, totals.sum() / (3 * totals))


def test_a_class_without_weight_is_absent(data):
    X, y, _ = data
    machine = SVC().fit(X, y, sample_weight=y != 2)
    np.testing.assert_array_equal(machine.classes_, [0, 1])
    with pytest.raises(ValueError, match="belong to the same class"):
        SVC().fit(X, y, sample_weight=y == 2)
