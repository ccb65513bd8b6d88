"""Probabilities: seeded, honest about weights, and in agreement with `predict`."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.calibration import _sigmoid_calibration
from sklearn.metrics import log_loss

from hinge import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from hinge.training.probability import (
    couple,
    density_marks,
    fit_sigmoid,
    folds_by_content,
    laplace_scale,
    normality,
    sigmoid,
)


@pytest.mark.parametrize("estimator", [SVC(), NuSVC(nu=0.3), SVC(multi_class="ovr")], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_predict_is_the_most_probable_class(estimator, n_classes, blobs):
    X, y = blobs
    y = np.minimum(y, n_classes - 1)
    machine = estimator.set_params(probability=True, random_state=0).fit(X, y)
    p = machine.predict_proba(X)
    assert p.shape == (len(y), n_classes)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(machine.classes_[np.argmax(p, axis=1)], machine.predict(X))
    np.testing.assert_allclose(np.exp(machine.predict_log_proba(X)), p)
    estimator.set_params(probability=False)


def test_probabilities_tell_something(blobs):
    X, y = blobs
    machine = SVC(probability=True, random_state=0).fit(X[::2], y[::2])
    assert log_loss(y[1::2], machine.predict_proba(X[1::2])) < 0.95 < np.log(3)


def test_same_seed_same_probabilities(blobs):
    X, y = blobs
    first = SVC(probability=True, random_state=1).fit(X, y).predict_proba(X)
    again = SVC(probability=True, random_state=1, n_jobs=1).fit(X, y).predict_proba(X)
    other = SVC(probability=True, random_state=2).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(first, again, atol=1e-9)
    assert np.abs(first - other).max() > 1e-4


def test_order_of_samples_does_not_matter(blobs):
    X, y = blobs
    order = np.random.default_rng(0).permutation(len(y))
    first = SVC(probability=True, random_state=1).fit(X, y).predict_proba(X)
    shuffled = SVC(probability=True, random_state=1).fit(X[order], y[order]).predict_proba(X)
    np.testing.assert_allclose(first, shuffled, atol=1e-7)


def test_probabilities_without_being_asked(blobs):
    machine = SVC().fit(*blobs)
    assert not hasattr(machine, "predict_proba")
    machine.set_params(probability=True)
    with pytest.raises(ValueError, match="predict_proba is not available"):
        machine.predict_proba(blobs[0])
    np.testing.assert_array_equal(machine.predict(blobs[0]), SVC().fit(*blobs).predict(blobs[0]))


def test_precomputed_and_tiny_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(23, 2))
    y = np.r_[np.zeros(11), np.ones(11), 2]  # one sample of the last class: its folds are one-sided
    p = SVC(kernel="precomputed", probability=True, random_state=0).fit(X @ X.T, y).predict_proba(X @ X.T)
    assert np.isfinite(p).all()


def test_sigmoid_agrees_with_sklearn():
    rng = np.random.default_rng(0)
    f = rng.normal(size=400)
    is_positive = rng.random(400) < 1 / (1 + np.exp(-2 * f + 0.5))
    weight = rng.uniform(0.5, 2.0, 400)
    ours = fit_sigmoid(f, is_positive, weight)
    theirs = _sigmoid_calibration(f, np.where(is_positive, 1, -1), sample_weight=weight)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    assert sigmoid(np.array([1e9]), *ours)[0] < 1


def test_published_sigmoid_has_libsvm_signs(blobs):
    X, y = blobs
    machine = SVC(probability=True, random_state=0).fit(X, y > 0)
    p = 1 / (1 + np.exp(machine.probA_ * -machine.decision_function(X) + machine.probB_))
    np.testing.assert_allclose(p, machine.predict_proba(X)[:, 0], atol=1e-6)
    assert len(SVC().fit(X, y).probA_) == 0
    assert not hasattr(SVC(), "probA_")


def test_coupling_minimises_its_objective():
    rng = np.random.default_rng(0)
    pairwise = rng.uniform(0.02, 0.98, size=(5, 6))
    for r, p in zip(pairwise, couple(pairwise, 4), strict=True):
        R = np.zeros((4, 4))
        R[np.triu_indices(4, 1)] = r
        R = R + np.tril(1 - R.T, -1)

        def objective(q, R=R):
            q = np.abs(q) / np.abs(q).sum()
            return ((R.T * q[:, None] - R * q[None, :]) ** 2).sum() / 2

        best = minimize(objective, p, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-15})
        assert objective(p) <= best.fun + 1e-10


def test_folds_keep_copies_together():
    X = np.repeat(np.arange(40.0), 3)[:, None]
    folds = folds_by_content(X, np.zeros(120, np.intp), np.ones(120), seed=0)
    assert (folds.reshape(-1, 3) == folds[::3, None]).all()
    assert np.bincount(folds).min() >= 18


def test_density_marks_are_libsvms():
    values = np.sort(np.random.default_rng(0).normal(0.5, 1.0, 83))
    n_low = int((values < 0).sum())
    n_high = len(values) - n_low
    expected = [values[i * n_low // 5] for i in range(5)]
    expected += [0.0] + [values[n_low - 1 + i * n_high // 5] for i in range(1, 6)]
    np.testing.assert_allclose(density_marks(values), expected)


def test_one_class_probability_agrees_with_predict(blobs):
    X, _ = blobs
    machine = OneClassSVM(nu=0.2, probability=True).fit(X)
    fresh = np.r_[X, 2 * X]
    p, values = machine.predict_proba(fresh), machine.decision_function(fresh)
    np.testing.assert_array_equal(p[:, 1] >= 0.5, machine.predict(fresh) == 1)
    assert (np.diff(p[np.argsort(values), 1]) >= -1e-12).all()
    assert not hasattr(OneClassSVM(), "predict_proba")
    assert 0 < normality(np.array([-1e9]), machine.density_marks_)[0] < 0.5


@pytest.mark.parametrize("estimator", [SVR, NuSVR])
def test_noise_scale(estimator):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 1))
    y = np.sin(3 * X[:, 0]) + rng.laplace(scale=0.2, size=400)
    machine = estimator(C=1.0, probability=True).fit(X, y)
    assert 0.15 < machine.noise_scale_ < 0.27
    assert not hasattr(estimator().fit(X, y), "noise_scale_")


def test_noise_scale_leaves_outliers_out():
    residuals = np.r_[np.ones(99), 1e4]
    assert laplace_scale(residuals, np.ones(100)) == 1.0


def gram_of(blobs):
    X, y = blobs
    X = X[:90]
    return np.exp(-0.2 * ((X[:, None] - X[None]) ** 2).sum(axis=2)), y[:90]


MACHINES_ON_GRAMS = [
    SVC(kernel="precomputed", probability=True, random_state=0),
    NuSVC(kernel="precomputed", nu=0.3, probability=True, random_state=0),
    SVR(kernel="precomputed", probability=True),
]


def probabilities(machine, K):
    return machine.predict_proba(K) if hasattr(machine, "predict_proba") else np.r_[machine.noise_scale_]


@pytest.mark.parametrize("machine", MACHINES_ON_GRAMS, ids=str)
def test_order_of_a_kernel_matrix_does_not_matter(machine, blobs):
    K, y = gram_of(blobs)
    first = probabilities(machine.fit(K, y), K)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = machine.fit(K[np.ix_(order, order)], y[order])
    np.testing.assert_allclose(probabilities(shuffled, K[:, order]), first, atol=1e-7)
    single = K.astype(np.float32)
    first, again = (probabilities(machine.fit(form, y), form) for form in (single, single.astype(float)))
    np.testing.assert_allclose(again, first, atol=1e-4)


@pytest.mark.parametrize("machine", MACHINES_ON_GRAMS, ids=str)
def test_copies_in_a_kernel_matrix_are_weights(machine, blobs):
    K, y = gram_of(blobs)
    times = np.random.default_rng(0).integers(1, 4, size=len(y))
    weighted = probabilities(machine.fit(K, y, sample_weight=times), K)
    copied = np.repeat(np.arange(len(y)), times)
    copied = copied[np.random.default_rng(1).permutation(len(copied))]
    again = machine.fit(K[np.ix_(copied, copied)], y[copied])
    np.testing.assert_allclose(probabilities(again, K[:, copied]), weighted, atol=1e-6)


def test_a_kernel_matrix_computed_in_another_order(blobs):
    """Sums in another order differ in their last digits; folds do not."""
    X, y = blobs
    order = np.random.default_rng(0).permutation(len(y))
    machine = SVC(kernel="precomputed", probability=True, random_state=0)
    first = machine.fit(X @ X.T, y).predict_proba(X @ X.T)
    Z = X[order][:, ::-1].copy()
    K = np.einsum("if,jf->ij", Z, Z)
    np.testing.assert_allclose(machine.fit(K, y[order]).predict_proba(X[:, ::-1] @ Z.T), first, atol=1e-6)


def test_samples_that_all_play_the_same_part():
    """Rows of the identity hold the same values: they must not all come into one fold."""
    strata = np.arange(40) % 2
    folds = folds_by_content(np.eye(40), strata, np.ones(40), seed=0, is_gram=True)
    np.testing.assert_array_equal(np.bincount(folds[strata == 0]), [4, 4, 4, 4, 4])


def test_words_are_told_apart_by_their_kernel_values():
    """A kernel of objects: copies and weights, and the order of the samples, make no difference."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abc"), size=6)) for _ in range(60)]
    y = np.array([word.count("a") > word.count("b") for word in words])

    def common_letters(first, second):
        return np.array([[sum(min(s.count(c), t.count(c)) for c in "abc") for t in second] for s in first]) / 6.0

    machine = SVC(kernel=common_letters, probability=True, random_state=0)
    first = machine.fit(words, y).predict_proba(words)
    order = rng.permutation(len(words))
    shuffled = machine.fit([words[k] for k in order], y[order]).predict_proba(words)
    np.testing.assert_allclose(shuffled, first, atol=1e-6)
