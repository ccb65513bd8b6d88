"""`TransductiveSVC`: every step of the schedule, what it ends at, and what it is good for."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import f1_score

from hinge import SVC, NuSVC, TransductiveSVC


def few_labels(y, count, seed=0):
    """y with the labels of ``count`` samples of each class, -1 for all others."""
    rng = np.random.default_rng(seed)
    known = np.concatenate([rng.choice(np.flatnonzero(y == c), count, replace=False) for c in np.unique(y)])
    few = np.full(len(y), -1)
    few[known] = y[known]
    return few


def objective_of(machine, K, few, C, C_unlabeled, weights):
    """Joachims' objective in plain NumPy."""
    coefficients = np.zeros(len(few))
    coefficients[machine.support_] = np.asarray(machine.dual_coef_).ravel()
    z = np.where(machine.transduction_ == machine.classes_[1], 1, -1)
    slack = np.maximum(1 - z * (K @ coefficients + machine.intercept_), 0)
    costs = np.where(few == -1, C_unlabeled, C) * weights
    return 0.5 * coefficients @ K @ coefficients + costs @ slack


@given(st.integers(0, 10_000), st.booleans(), st.floats(0.1, 30), st.sampled_from([None, 0.3, 3.0]))
@settings(max_examples=40)
def test_no_step_raises_the_objective_and_the_end_is_a_local_optimum(seed, weighted, C, C_unlabeled):
    rng = np.random.default_rng(seed)
    X, y = make_moons(int(rng.integers(20, 80)), noise=0.3, random_state=seed)
    few, K = few_labels(y, 3, seed), np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    weights = rng.uniform(0.3, 2, len(y)) if weighted else np.ones(len(y))
    machine = TransductiveSVC(gamma=1.0, C=C, C_unlabeled=C_unlabeled, tol=1e-4).fit(X, few, weights)
    last = C if C_unlabeled is None else C_unlabeled
    assert machine.report_.converged

    prices = np.array([step.prices for step in machine.steps_])
    assert (np.diff(prices, axis=0) >= 0).all()
    assert (prices[-1] == last).all()
    for step in machine.steps_:
        if step.exchanged:
            assert step.exchanged_to < step.before
            assert (step.after < step.before) == step.is_kept

    final = objective_of(machine, K, few, C, last, weights)
    for before, after in zip(machine.steps_, machine.steps_[1:], strict=False):
        if before.exchanged and after.exchanged and before.is_kept:
            assert after.before == pytest.approx(before.after)  # it goes on where it stood
    done = [step for step in machine.steps_ if step.exchanged and step.is_kept and step.prices == (last, last)]
    if done:
        assert final <= done[-1].after * (1 + 1e-4)
    proof = machine.certificate(X)
    assert proof.proves(1e-4 * 1.01)
    assert proof[0].primal == pytest.approx(final, rel=1e-6)

    z = np.where(machine.transduction_ == 1, 1, -1)
    f, costs = machine.decision_function(X), last * weights
    slack, turned = np.maximum(1 - z * f, 0), np.maximum(1 + z * f, 0)
    ups, downs = np.flatnonzero((few == -1) & (z > 0)), np.flatnonzero((few == -1) & (z < 0))
    gains = (costs * (slack - turned))[ups][:, None] + (costs * (slack - turned))[downs]
    assert gains.max(initial=0) <= 1e-2 * max(final, 1)
    rejected = any(not step.is_kept for step in machine.steps_)
    assert rejected or gains.max(initial=0) <= 1e-9 * max(final, 1)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.8])
def test_the_share_is_kept(share):
    X, y = make_moons(200, noise=0.2, random_state=1)
    few = few_labels(y, 5)
    machine = TransductiveSVC(share=share).fit(X, few)
    open_labels = machine.transduction_[few == -1]
    assert np.count_nonzero(open_labels == 1) == round(share * len(open_labels))
    np.testing.assert_array_equal(machine.transduction_[few != -1], few[few != -1])
    assert np.mean(TransductiveSVC().fit(X, few).transduction_[few == -1]) == 0.5  # as among the labelled


def test_unlabelled_moons_show_where_the_boundary_is():
    X, y = make_moons(300, noise=0.08, random_state=3)
    few = few_labels(y, 4)
    inductive = SVC(gamma=2.0, C=10.0).fit(X[few != -1], few[few != -1])
    transductive = TransductiveSVC(gamma=2.0, C=10.0, share=0.5).fit(X, few)
    assert transductive.score(X, y) > 0.98
    assert inductive.score(X, y) < 0.95


@pytest.mark.data
def test_ten_labelled_texts_are_enough_where_others_are_known(load_real):
    """Joachims' experiment: more accurate with ten labels than the machine of these alone, and in F1."""
    X, y = load_real("reuters-money-fx")
    X, y = X[:3000], (y[:3000] > 0).astype(int)
    gains, scores = [], []
    for seed in range(4):
        few = few_labels(y, 5, seed)
        open_ones = few == -1
        machine = TransductiveSVC(kernel="linear", share=y[open_ones].mean()).fit(X, few)
        inductive = SVC(kernel="linear").fit(X[~open_ones], few[~open_ones])
        # The same share for both, or else the inductive machine would lose for its threshold alone.
        decisions = inductive.decision_function(X[open_ones])
        at_share = decisions > np.quantile(decisions, 1 - y[open_ones].mean())
        found, truth = machine.transduction_[open_ones], y[open_ones]
        gains.append(np.mean(found == truth) - np.mean(inductive.predict(X[open_ones]) == truth))
        scores.append((f1_score(truth, found), f1_score(truth, at_share)))
        assert machine.certificate(X).proves(1e-3)
    assert np.mean(gains) > 0.03
    ours, theirs = np.mean(scores, axis=0)
    assert ours > theirs


def test_many_classes_are_told_apart_one_by_one():
    X, y = make_blobs(240, centers=4, random_state=2, cluster_std=1.2)
    names = np.array(["ash", "elm", "fir", "oak"], dtype=object)
    few = names[y]
    few[few_labels(y, 3) == -1] = -1
    machine = TransductiveSVC(C=5.0, share=dict.fromkeys(names, 0.25)).fit(X, few)
    assert machine.classes_.tolist() == names.tolist()
    assert machine.decision_function(X).shape == (240, 4)
    assert np.mean(machine.transduction_ == names[y]) > 0.9
    assert {step.machine for step in machine.steps_} == {0, 1, 2, 3}
    assert machine.certificate(X).proves(1e-3)
    assert len(machine.reports_) == 4


def test_without_unlabelled_samples_it_is_svc():
    X, y = make_moons(100, noise=0.3, random_state=0)
    machine, plain = TransductiveSVC(C=2.0).fit(X, y), SVC(C=2.0).fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), plain.decision_function(X), atol=1e-9)
    assert machine.steps_ == []
    np.testing.assert_array_equal(machine.transduction_, y)


@pytest.mark.parametrize("store", [np.float32, sp.csr_matrix, sp.coo_array, "precomputed"])
def test_every_storage_comes_to_the_same(store):
    X, y = make_moons(90, noise=0.2, random_state=5)
    X = X.astype(np.float32).astype(float)  # the same values in single precision
    few = few_labels(y, 4)
    plain = TransductiveSVC(gamma=1.0, tol=1e-6).fit(X, few)
    if store == "precomputed":
        data: object = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
        machine = TransductiveSVC(kernel="precomputed", tol=1e-6).fit(data, few)
    else:
        data = store(X)
        machine = TransductiveSVC(gamma=1.0, tol=1e-6).fit(data, few)
    np.testing.assert_array_equal(machine.transduction_, plain.transduction_)
    np.testing.assert_allclose(machine.decision_function(data), plain.decision_function(X), atol=1e-4)
    assert machine.certificate(data).proves(1e-5)


def test_weight_zero_is_absence():
    X, y = make_moons(90, noise=0.2, random_state=5)
    few, weights = few_labels(y, 4), np.ones(90)
    weights[10:30] = 0
    weights[few != -1] = 1
    machine = TransductiveSVC(gamma=1.0).fit(X, few, weights)
    without = TransductiveSVC(gamma=1.0).fit(X[weights > 0], few[weights > 0])
    np.testing.assert_allclose(machine.decision_function(X), without.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(machine.transduction_[weights > 0], without.transduction_)
    assert machine.certificate(X).proves(1e-3)


def test_limits_leave_a_machine():
    X, y = make_moons(300, noise=0.3, random_state=5)
    few = few_labels(y, 4)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        machine = TransductiveSVC(time_limit=1e-9).fit(X, few)
    assert set(machine.transduction_) == {0, 1}
    with pytest.warns(ConvergenceWarning, match="iteration_limit"):
        assert TransductiveSVC(max_iter=2).fit(X, few).fit_status_ == 1
    seen = []

    def stop_late(progress):
        seen.append((progress.machine, progress.n_done))
        return len(seen) > 8

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        machine = TransductiveSVC(callback=stop_late).fit(X, few)
    assert len(seen) == 9
    assert all(number == 0 and n_done <= 1 for number, n_done in seen)
    assert len(machine.steps_) >= 1


def test_machines_that_are_trained_twice_are_told_to_listeners():
    X, y = make_moons(60, noise=0.3, random_state=0)
    seen = []
    NuSVC(nu=0.8, class_weight={0: 1, 1: 30}, callback=lambda p: seen.append(p.machine)).fit(X, y)
    assert set(seen) == {0}


@pytest.mark.parametrize(
    ("y", "share", "message"),
    [
        ([-1, -1, 1, 1], None, "If -1 is a class of yours"),
        ([-1, -1, -1, -1], None, "no sample is labelled"),
        ([0, 1, -1, -1], {0: 0.5}, "each class once"),
        ([0, 1, -1, -1], {0: 0.5, 1: 0.7}, "add up to 1"),
        ([0, 1, 2, -1], 0.5, "share of each of 3 classes"),
        ([0, 1, -1, -1], 1.5, "'share'"),
        ([0.5, 1.3, 2.2, -1], None, "continuous"),
    ],
)
def test_bad_input_is_named(y, share, message):
    with pytest.raises(ValueError, match=message):
        TransductiveSVC(share=share).fit(np.arange(4.0)[:, None], y)


def test_a_certificate_needs_a_fit():
    with pytest.raises(NotFittedError):
        TransductiveSVC().certificate([[0.0]])
