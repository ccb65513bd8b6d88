"""Decisions are what the model says they are, whatever the size, the offset and the type of the data."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from hinge import SVC, SVR, OneClassSVM
from hinge import model as model_module
from reference import kernel_matrix
from strategies import NAMED, suited

FORMS = {
    "dense": np.asarray,
    "float32": np.float32,
    "csr": sp.csr_array,
    "csr of float32": lambda X: sp.csr_array(X.astype(np.float32)),
}

# Offsets and scales; values are rounded so that float32 holds them exactly where it is named.
CASES = {
    "as it is": lambda X: X,
    "offset 1e5": lambda X: np.round(64 * X) / 64 + 1e5,
    "offset 1e8 in one column": lambda X: X + 2.0**27 * (np.arange(X.shape[1]) == 1),
    "times 1e-20": lambda X: X * 1e-20,
    "times 1e19": lambda X: X * 1e19,
    "times 1e30": lambda X: X * 1e30,
    "one row times 1e7": lambda X: X * np.where(np.arange(len(X)) == 3, 1e7, 1.0)[:, None],
    "two clusters far apart": lambda X: X + 1e5 * (np.arange(len(X)) % 2)[:, None],
}


def data(d, n=120, share=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < share, rng.normal(size=(n, d)), 0.0)
    return X, (X[:, 0] + X[:, 1] ** 2 > np.median(X[:, 0] + X[:, 1] ** 2)).astype(int)


def textbook(machine, X):
    """Decisions by plain formulas in long double, from the published attributes."""
    dense = [np.asarray(M.toarray() if sp.issparse(M) else M) for M in (machine.support_vectors_, X)]
    vectors, queries = (part.astype(np.longdouble) for part in dense)
    K = kernel_matrix(
        machine.kernel, queries, vectors, gamma=machine._gamma, coef0=machine.coef0, degree=machine.degree,
        dtype=np.longdouble,
    )  # fmt: skip
    coefficients = machine.dual_coef_
    coefficients = coefficients.toarray() if sp.issparse(coefficients) else coefficients
    return K @ coefficients.ravel() + np.longdouble(machine.intercept_[0])


@pytest.mark.parametrize("d", [5, 40], ids=["few features", "many features"])
@pytest.mark.parametrize("kernel", [name for name in NAMED if name != "linear"])  # which has no kernel values
@pytest.mark.parametrize("case", CASES)
def test_decisions_are_the_formula(case, kernel, d):
    X, y = data(d)
    X = suited(kernel, CASES[case](X).astype(np.float32).astype(float))
    if kernel == "poly" and "offset" in case:
        pytest.skip("kernel values around 1e15: what they leave of a decision is rounding in any form")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for form in FORMS.values():
            machine = SVC(kernel=kernel, C=1.0, max_iter=20_000)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Solver terminated early")  # the formula holds all the same
                machine.fit(form(X), y)
            found, expected = machine.decision_function(form(X)), textbook(machine, X)
            scale = max(float(np.abs(expected).max()), float(np.abs(machine.dual_coef_).max()) * 1e-3)
            assert np.abs(found - expected).max() <= 1e-4 * scale
            doubtful = np.abs(expected) <= 1e-9 * scale
            np.testing.assert_array_equal((found > 0)[~doubtful], (expected > 0)[~doubtful])


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi2"])
@pytest.mark.parametrize("gamma", [1.0, 1e6])
@pytest.mark.parametrize("form", ["csr", "csr of float32"])
def test_few_nonzeros_far_from_zero(form, gamma, kernel):
    """Too few non-zeros to be laid out dense, too large for sums of all features to be subtracted."""
    rng = np.random.default_rng(1)
    X = np.zeros((80, 400))
    columns = rng.integers(0, 400, size=8)
    X[:, columns] = 2.0**17 + np.round(8 * rng.normal(size=(80, 8))) / 8
    X = X.astype(np.float32).astype(float)
    y = (X[:, columns[0]] > X[:, columns[1]]).astype(int)
    machine = SVC(kernel=kernel, gamma=gamma).fit(FORMS[form](X), y)
    assert machine.report_.storage == "sparse"
    # Seen from a corner the features are small, and distances are the same; chi2 has no such twin.
    if kernel == "chi2":
        expected = textbook(machine, X)
    else:
        near = X - np.where(X.any(axis=0), 2.0**17, 0.0)
        expected = SVC(kernel=kernel, gamma=gamma).fit(near, y).decision_function(near)
    np.testing.assert_allclose(machine.decision_function(FORMS[form](X)), expected.astype(float), atol=1e-6)


def test_large_costs_are_decided_in_double():
    """Coefficients of 1e8 magnify what single precision loses of a kernel value."""
    X, y = data(20, n=200)
    X = X.astype(np.float32)
    y = np.where(np.arange(200) % 5 == 0, 1 - y, y)
    machine = SVC(C=1e8, gamma=1e-4, max_iter=3000)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solver terminated early")
        machine.fit(X, y)
    expected = textbook(machine, X)
    assert np.abs(machine.decision_function(X) - expected).max() <= 1e-6 * np.abs(expected).max()


def test_ordinary_float32_data_stays_in_single_precision(monkeypatch):
    used = []
    visit = model_module.Model._visit
    monkeypatch.setattr(
        model_module.Model, "_visit", lambda *args: used.append((args[3].name, args[2].n)) or visit(*args)
    )
    X, y = data(40, n=300)
    machine = SVC().fit(X.astype(np.float32), y)
    machine.decision_function(X.astype(np.float32))
    assert used[0] == ("float32", 300)
    assert sum(n for name, n in used if name == "float64") < 30  # those on the boundary
    used.clear()
    machine.decision_function(X)
    assert used == [("float64", 300)]


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("C", [1.0, 1e6])
def test_labels_are_signs_of_decisions_however_close_to_zero(form, kernel, C, monkeypatch):
    """Labels are found in single precision; samples a rounding away from the boundary are not left to that."""
    X, y = data(200, n=400, share=0.1)
    machine = SVC(kernel=kernel, C=C).fit(FORMS[form](X), y)
    decisions = machine.decision_function(FORMS[form](X))
    low, high = X[np.argmin(decisions)], X[np.argmax(decisions)]
    depth = np.arange(2, 42, 2)
    start, stop = np.zeros(len(depth)), np.ones(len(depth))
    for halving in range(
        depth.max()
    ):  # where the line between the two crosses the boundary, more and more closely
        middle = (start + stop) / 2
        below = machine.decision_function(FORMS[form](low + middle[:, None] * (high - low))) < 0
        start = np.where(below & (halving < depth), middle, start)
        stop = np.where(~below & (halving < depth), middle, stop)
    line = FORMS[form](np.concatenate([low + place[:, None] * (high - low) for place in (start, stop)]))
    expected = machine.decision_function(line) > 0
    kinds = []
    visit = model_module.Model._visit
    monkeypatch.setattr(model_module.Model, "_visit", lambda *args: kinds.append(args[3].name) or visit(*args))
    np.testing.assert_array_equal(machine.predict(line), expected.astype(int))
    assert kinds == ["float32", "float64"]


def test_few_queries_are_decided_as_among_many():
    """Threads share the support vectors where queries are few; their number changes no bit."""
    X, y = data(30, n=3000)
    model = SVC(C=10).fit(X, y)._model
    together = model.decide(X[:1000])
    for few in (1, 7, 100):
        alone = model.decide(X[:few], threads=1)
        np.testing.assert_array_equal(model.decide(X[:few], threads=3), alone)
        np.testing.assert_allclose(alone, together[:few], rtol=0, atol=1e-12 * np.abs(together).max())


@pytest.mark.parametrize("form", FORMS)
def test_samples_on_the_boundary_are_inliers_in_every_form(form):
    X, _ = data(4, n=300)
    X = X.astype(np.float32).astype(float)
    machine = OneClassSVM(nu=0.2).fit(FORMS[form](X))
    values = machine.decision_function(FORMS[form](X))
    free = machine.support_[np.abs(np.ravel(_dense(machine.dual_coef_))) < 1 - 1e-9]
    assert len(free)
    np.testing.assert_array_equal(values[free], 0.0)


def _dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "linear", "chi2"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_values_whose_squares_overflow_are_refused(form, kernel):
    X, y = data(6)
    X = np.abs(X)
    with pytest.raises(ValueError, match=r"overflow.*scale"):
        SVC(kernel=kernel, gamma=1.0).fit(form(1e160 * X), y)
    machine = SVC(kernel=kernel, gamma=1.0).fit(form(X), y)
    far = X.copy()
    far[7] = 1e200
    if kernel == "linear":  # squares nothing, but sums
        assert np.isfinite(machine.decision_function(form(far))).all()
        far[7] = 1.7e308 * np.sign(_dense(machine.coef_)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(ValueError, match=r"overflow.*row 7\b"):
            machine.decision_function(form(far))


@pytest.mark.parametrize("factor", [1e-170, 1e160, 1e300])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_gamma_scale_beyond_floating_point_is_refused(form, factor):
    X, y = data(6)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(ValueError, match=r"gamma='scale'.*[Ss]cale the features"):
            SVC().fit(form(factor * X), y)


@pytest.mark.parametrize("factor", [1e-150, 1e-60, 1e60, 1e150])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_scales_that_double_precision_holds(form, factor):
    X, y = data(6)
    factor = 2.0 ** np.round(np.log2(factor))  # so that nothing rounds
    plain, scaled = SVC().fit(X, y), SVC().fit(form(factor * X), y)
    assert scaled._gamma * factor**2 == pytest.approx(plain._gamma, rel=1e-12)
    np.testing.assert_allclose(scaled.decision_function(form(factor * X)), plain.decision_function(X), atol=1e-7)


def test_single_precision_by_wish_says_what_it_cannot_hold():
    X, y = data(6)
    with pytest.raises(ValueError, match=r"precision='single'.*'auto'"):
        SVC(precision="single").fit(1e-30 * X, y)


@pytest.mark.parametrize(
    "machine", [SVC(gamma=1e300), SVC(kernel="laplacian", gamma=1e305), SVR(gamma=1e-300)], ids=str
)
def test_no_numpy_warning_from_extreme_parameters(machine):
    X, y = data(6)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for form in (*FORMS.values(), lambda X: (X > 0).astype(float), lambda X: 1e-100 * X):
            assert np.isfinite(machine.fit(form(X), y).predict(form(X))).all()
