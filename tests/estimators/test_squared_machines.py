"""Squared losses of `SVC` and `SVR`: everything that the plain ones do."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_score

from hinge import SVC, SVR, certificate
from hinge.estimators import load_model, save_model
from hinge.many import cross_validate_many
from hinge.selection import xi_alpha
from reference import clarabel_minimum, kernel_matrix
from strategies import KERNELS, suited

TIGHT = 1e-8
SQUARED = {SVC: "squared_hinge", SVR: "squared_epsilon_insensitive"}
KINDS = list(SQUARED)


def data(n=80, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 2)
    return X, np.where(X[:, 0] + 0.6 * rng.normal(size=n) > 0, 1, -1), rng.integers(0, 4, n).astype(float)


def machine_of(kind, **parameters):
    return kind(**{"loss": SQUARED[kind], "gamma": 0.3, "tol": TIGHT, **parameters})


def targets(kind, X, y):
    return y if kind is SVC else np.sin(X.sum(axis=1)) + 0.1 * y


def values(machine, X):
    return machine.decision_function(X) if isinstance(machine, SVC) else machine.predict(X)


# ---------------------------------------------------------------------- the right problem


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_is_that_of_an_interior_point_solver(kind, kernel):
    X, y, weights = data()
    X = suited(kernel, X)
    machine = machine_of(kind, kernel=kernel, coef0=1.0, C=3.0).fit(X, targets(kind, X, y), weights)
    task = machine._fitted.formulation.tasks()[0]
    counts = weights > 0
    K = kernel_matrix(kernel, X[counts], X[counts], gamma=0.3, coef0=1.0)
    assert machine.report_.objective == pytest.approx(clarabel_minimum(K, task.problem), rel=1e-6)


@pytest.mark.parametrize("name", ["heart_scale", "australian_scale", "a1a"])
@pytest.mark.parametrize("C", [0.1, 2.0])
def test_liblinear_finds_the_same_with_the_same_threshold(name, C, load_real):
    """Its dual descent (``-s 1``) holds the intercept near zero, as the weight of a feature that is one."""
    X, y = load_real(name)
    widened = sp.hstack([X, np.ones((X.shape[0], 1))], format="csr")
    ours = SVC(kernel="linear", loss="squared_hinge", C=C, fit_intercept=False, tol=1e-8).fit(widened, y)
    theirs = sklearn.svm.LinearSVC(C=C, loss="squared_hinge", dual=True, tol=1e-10, max_iter=10**6, random_state=0)
    theirs.fit(X, y)
    weights = np.append(theirs.coef_, theirs.intercept_)
    np.testing.assert_allclose(ours.coef_.toarray()[0], weights, atol=1e-5 * np.abs(weights).max())
    margins = np.maximum(0.0, 1 - np.where(y == ours.classes_[1], 1, -1) * (widened @ weights))
    primal = 0.5 * weights @ weights + C * (margins**2).sum()
    assert -ours.report_.objective == pytest.approx(primal, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_certificate_is_about_this_loss(kind):
    X, y, weights = data()
    machine = machine_of(kind).fit(X, targets(kind, X, y), weights)
    proof = machine.certificate(X, targets(kind, X, y), weights)
    assert proof.proves(10 * TIGHT)
    assert proof[0].gap < 1e-6
    plain = kind(gamma=0.3, tol=TIGHT).fit(X, targets(kind, X, y), weights)
    assert not certificate(plain, X, targets(kind, X, y), weights, loss=SQUARED[kind]).proves(1e-3)


def test_a_machine_without_intercept_is_proved_as_one():
    X, y, _ = data()
    for loss in ("hinge", "squared_hinge"):
        assert SVC(loss=loss, fit_intercept=False, tol=1e-6).fit(X, y).certificate(X, y).proves(1e-5)


# ---------------------------------------------------------------------- weights, storages, starts


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repetitions_and_zero_is_absence(kind):
    X, y, weights = data()
    t, repeated = targets(kind, X, y), np.repeat(np.arange(len(y)), weights.astype(int))
    whole = machine_of(kind).fit(X, t, weights)
    np.testing.assert_allclose(
        values(whole, X), values(machine_of(kind).fit(X[repeated], t[repeated]), X), atol=1e-6
    )


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_class_weights_are_sample_weights(multi_class):
    X, y, _ = data(120)
    y = y + (X[:, 1] > 0.3)
    options = {"multi_class": multi_class, "decision_function_shape": "ovr"}
    by_class = machine_of(SVC, class_weight={-1: 2.0, 0: 0.5}, **options).fit(X, y)
    by_sample = machine_of(SVC, **options).fit(X, y, np.select([y == -1, y == 0], [2.0, 0.5], 1.0))
    np.testing.assert_allclose(by_class.decision_function(X), by_sample.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("storage", [sp.csr_matrix, np.float32, "precomputed", "callable"])
def test_every_storage_gives_the_same_machine(kind, storage):
    X, y, _ = data()
    X = np.round(X * 8) / 8  # the same numbers in single precision
    expected = values(machine_of(kind).fit(X, targets(kind, X, y)), X)
    if storage == "precomputed":
        rows, options = rbf_kernel(X, gamma=0.3), {"kernel": "precomputed"}
    elif storage == "callable":
        rows, options = X, {"kernel": lambda A, B: rbf_kernel(A, B, gamma=0.3)}
    else:
        rows, options = storage(X), {}
    machine = machine_of(kind, **options).fit(rows, targets(kind, X, y))
    np.testing.assert_allclose(values(machine, rows), expected, atol=1e-5 if storage is np.float32 else 1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_fit_goes_on_from_where_it_was(kind):
    X, y, _ = data(400)
    machine = machine_of(kind, warm_start=True, C=100.0, max_iter=20)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        machine.fit(X, targets(kind, X, y))
    assert caught
    assert machine.fit_status_ == 1
    machine.set_params(max_iter=-1).fit(X, targets(kind, X, y))
    fresh = machine_of(kind, C=100.0).fit(X, targets(kind, X, y))
    assert machine.fit_status_ == 0
    np.testing.assert_allclose(values(machine, X), values(fresh, X), atol=1e-5)
    machine.fit(X, targets(kind, X, y))
    assert machine.report_.iterations <= fresh.report_.iterations


# ---------------------------------------------------------------------- what follows from a fit


def test_probabilities_rest_on_machines_of_the_same_loss():
    X, y, _ = data(150)
    fitted = machine_of(SVC, probability=True, random_state=0).fit(X, y)
    assert (fitted.predict(X) == fitted.classes_[fitted.predict_proba(X).argmax(axis=1)]).all()
    other = SVC(gamma=0.3, tol=TIGHT, probability=True, random_state=0).fit(X, y)
    assert not np.allclose(fitted.probA_, other.probA_)
    assert machine_of(SVR, probability=True).fit(X, targets(SVR, X, y)).noise_scale_ > 0


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_hold_the_exact_decision_of_a_stopped_fit(kind):
    X, y, _ = data(200)
    t = targets(kind, X, y)
    exact = values(machine_of(kind).fit(X, t), X)
    for tol in (1.0, 0.1, 1e-3):
        machine = machine_of(kind, tol=tol, stop="tolerance") if kind is SVC else machine_of(kind, tol=tol)
        lower, upper = machine.fit(X, t).decision_interval(X)
        assert (lower <= exact + 1e-6).all()
        assert (exact <= upper + 1e-6).all()


def test_many_small_fits_are_the_estimators_own():
    X, y, _ = data(45, 6)
    problems = np.stack([X, X[:, ::-1] + 0.1, -X])
    machine = machine_of(SVC, tol=1e-3)
    found = cross_validate_many(machine, problems, y, cv=3)
    expected = [cross_val_score(machine, rows, y, cv=3) for rows in problems]
    assert np.array_equal(found.scores, expected)


def test_the_bound_on_leave_one_out_knows_the_ridge():
    from hinge.selection import leave_one_out

    X, y, weights = data(100)
    for C in (0.1, 1.0, 30.0):
        machine = machine_of(SVC, C=C).fit(X, y)
        assert xi_alpha(machine, X, y).error >= leave_one_out(machine, X, y).error
    one = machine_of(SVC, C=0.2).fit(X, y, 0.5 + weights)
    assert xi_alpha(one, X, y, sample_weight=0.5 + weights).error >= 0


@pytest.mark.parametrize("kind", KINDS)
def test_model_files_hold_the_decisions(kind, tmp_path):
    X, y, _ = data()
    machine = machine_of(kind).fit(X, targets(kind, X, y))
    save_model(machine, tmp_path / "model", digits=17)
    same = load_model(tmp_path / "model")
    np.testing.assert_allclose(values(same, X), values(machine, X), atol=1e-12)
    known = {"C": 1.0} if kind is SVC else {"C": 1.0, "epsilon": 0.1}
    assert certificate(same, X, targets(kind, X, y), loss=SQUARED[kind], **known).proves(1e-6)
    with pytest.raises(ValueError, match="does not hold the price of a squared loss: pass C="):
        certificate(same, X, targets(kind, X, y), loss=SQUARED[kind])


def test_what_it_cannot_do_is_refused():
    X, y, _ = data()
    with pytest.raises(ValueError, match="finite C"):
        machine_of(SVC, C=np.inf).fit(X, y)
    with pytest.raises(ValueError, match="'smo' has no squared losses: choose 'block' or 'auto'"):
        machine_of(SVC, solver="smo").fit(X, y)
    with pytest.raises(ValueError, match="The 'loss' parameter of SVC must be a str among"):
        SVC(loss="squared_epsilon_insensitive").fit(X, y)


# ---------------------------------------------------------------------- gap_tol and rule


def test_a_gap_that_suffices_ends_a_fit():
    X, y, _ = data(2500)
    exact = SVC(C=100.0, tol=1e-6).fit(X, y).report_
    early = SVC(C=100.0, tol=1e-6, gap_tol=0.1).fit(X, y).report_
    assert early.converged
    assert early.gap <= 0.1 * abs(early.objective)
    assert early.violation > 1e-6
    assert early.iterations < exact.iterations


def test_a_rule_needs_the_solver_that_has_rules():
    X, y, _ = data()
    report = SVC(solver="smo", rule="hmg").fit(X, y).report_
    assert (report.solver, report.rule) == ("smo", "hmg")
    with pytest.raises(ValueError, match="rule='mvp' needs solver='smo'"):
        SVC(rule="mvp").fit(X, y)
