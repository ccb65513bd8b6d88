"""`SVDD`: the smallest sphere around the data."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

import hinge
from hinge import SVDD, Kernel, OneClassSVM
from hinge.cli import main
from hinge.estimators import load_model, save_model
from hinge.io import ModelFileError
from hinge.io.models.libsvm_model import KERNEL_TYPES
from hinge.selection import leave_one_out
from reference import clarabel_minimum, kernel_matrix
from strategies import KERNELS, suited

TIGHT = 1e-9
KERNEL_NAMES = {ours: theirs for theirs, ours in KERNEL_TYPES.items()}
CONSTANT = [name for name in KERNELS if name not in ("linear", "poly")]  # k(x, x) is 1 for every x


def data(n=80, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return np.round(8 * rng.normal(size=(n, d)) + 8) / 8, rng.integers(0, 4, n).astype(float)


# ---------------------------------------------------------------------- the right problem


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("nu", [0.02, 0.3, 0.9])
def test_the_sphere_is_optimal(kernel, nu):
    """Its primal value is the dual one, which is Clarabel's: no sphere is better."""
    X, weights = data()
    X = suited(kernel, X)
    machine = SVDD(kernel=kernel, nu=nu, gamma=0.3, coef0=1.0, tol=TIGHT).fit(X, sample_weight=weights)
    K = kernel_matrix(kernel, X, X, gamma=0.3, coef0=1.0)
    alpha = np.zeros(len(X))
    alpha[machine.support_] = machine.dual_coef_[0]
    assert alpha.sum() == pytest.approx(1.0, abs=1e-12)
    squares = K.diagonal() - 2 * K @ alpha + alpha @ K @ alpha
    outside = np.maximum(0.0, squares - machine.radius_**2)
    primal = machine.radius_**2 + weights @ outside / (nu * weights.sum())
    assert primal == pytest.approx(-2 * machine.report_.objective, rel=1e-6)
    problem = hinge.dual.formulations.svdd(K.diagonal(), nu, weights)
    assert machine.report_.objective == pytest.approx(clarabel_minimum(K, problem), rel=1e-6)
    np.testing.assert_allclose(machine.distance(X), np.sqrt(np.maximum(squares, 0.0)), atol=1e-7)
    np.testing.assert_allclose(machine.decision_function(X), machine.radius_**2 - squares, atol=1e-7)
    share = weights[machine.predict(X) < 0].sum() / weights.sum()
    assert share <= nu + 1e-9
    assert machine.certificate(X, sample_weight=weights).proves(1e-7)


@examples(max_examples=25)
@given(
    kernel=st.sampled_from(CONSTANT),
    nu=st.floats(0.02, 0.95),
    gamma=st.sampled_from((0.05, 0.5, 2.0)),
    is_weighted=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_it_is_the_one_class_machine_where_every_sample_is_as_long(kernel, nu, gamma, is_weighted, seed):
    X, weights = data(40, seed=seed)
    X, weights = suited(kernel, X), weights + 0.5 if is_weighted else np.ones(len(X))
    sphere = SVDD(kernel=kernel, nu=nu, gamma=gamma, tol=TIGHT).fit(X, sample_weight=weights)
    plane = OneClassSVM(kernel=kernel, nu=nu, gamma=gamma, tol=TIGHT).fit(X, sample_weight=weights)
    mass = nu * weights.sum()
    if (plane.offset_ - plane.score_samples(X) != 0).all():  # no free support vector: each takes a middle
        return
    np.testing.assert_allclose(
        sphere.decision_function(X), 2 / mass * plane.decision_function(X), atol=1e-6 * (1 + 1 / mass)
    )


def test_all_samples_are_inside_below_one_share():
    X = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 0.5], [1.0, -1.0]])
    machine = SVDD(kernel="linear", nu=0.1, tol=1e-12).fit(X)
    np.testing.assert_allclose(machine.coef_, [[1.0, 0.0]], atol=1e-9)
    assert machine.radius_ == pytest.approx(1.0)
    np.testing.assert_array_equal(machine.predict(X), 1)
    np.testing.assert_array_equal(machine.decision_function(X[[0, 1]]), 0.0)  # exactly


def test_where_the_origin_lies_does_not_matter():
    X, _ = data()
    near, far = (SVDD(kernel="linear", nu=0.2, tol=1e-8).fit(X + shift) for shift in (0.0, 100.0))
    assert far.radius_ == pytest.approx(near.radius_, rel=1e-6)
    np.testing.assert_allclose(far.coef_, near.coef_ + 100.0, atol=1e-5)
    np.testing.assert_allclose(far.decision_function(X + 100.0), near.decision_function(X), atol=1e-5)


# ---------------------------------------------------------------------- weights, storages, starts


def test_weights_are_repetitions_and_zero_is_absence():
    X, weights = data()
    repeated = np.repeat(X, weights.astype(int), axis=0)
    whole = SVDD(gamma=0.4, nu=0.3, tol=TIGHT).fit(X, sample_weight=weights)
    parts = SVDD(gamma=0.4, nu=0.3, tol=TIGHT).fit(repeated)
    np.testing.assert_allclose(whole.decision_function(X), parts.decision_function(X), atol=1e-7)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("storage", [sp.csr_matrix, np.float32, "precomputed", "callable"])
def test_every_storage_gives_the_same_machine(storage, kernel):
    X, weights = data()
    expected = SVDD(kernel=kernel, gamma=0.4, nu=0.3, tol=TIGHT).fit(X, sample_weight=weights)

    def textbook(A, B):
        return kernel_matrix(kernel, A, B, gamma=0.4)

    options, rows, known = {"kernel": kernel, "gamma": 0.4}, X, {}
    if storage == "precomputed":
        options, rows = {"kernel": "precomputed"}, textbook(X, X)
        known = {} if kernel == "rbf" else {"diagonal": rows.diagonal()}
    elif storage == "callable":
        options = {"kernel": textbook}
    else:
        rows = storage(X)
    machine = SVDD(nu=0.3, tol=TIGHT, **options).fit(rows, sample_weight=weights)
    scale = 1 + np.abs(expected.decision_function(X)).max()
    np.testing.assert_allclose(
        machine.decision_function(rows, **known), expected.decision_function(X), atol=1e-6 * scale
    )
    np.testing.assert_allclose(machine.distance(rows, **known), expected.distance(X), atol=1e-4)
    np.testing.assert_array_equal(machine.predict(rows, **known), expected.predict(X))


def test_a_precomputed_kernel_needs_lengths_that_differ():
    X, _ = data()
    machine = SVDD(kernel="precomputed").fit(X @ X.T)
    with pytest.raises(ValueError, match="needs diagonal=, the values"):
        machine.predict(X @ X.T)
    with pytest.raises(ValueError, match="diagonal= is for kernel='precomputed'"):
        SVDD().fit(X).predict(X, diagonal=np.ones(len(X)))


def test_a_stopped_fit_goes_on_from_where_it_was():
    X, _ = data(3000)
    machine = SVDD(gamma=1.0, nu=0.3, max_iter=50, warm_start=True, tol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert machine.fit(X).fit_status_ == 1
    fresh = SVDD(gamma=1.0, nu=0.3, tol=1e-6).fit(X)
    assert machine.set_params(max_iter=-1).fit(X).fit_status_ == 0
    assert machine.fit(X).n_iter_ < fresh.n_iter_
    np.testing.assert_allclose(machine.decision_function(X), fresh.decision_function(X), atol=1e-5)


# ---------------------------------------------------------------------- what follows from a fit


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_intervals_hold_the_exact_decision(kernel):
    X, _ = data(200)
    new = data(100, seed=1)[0]
    exact = SVDD(kernel=kernel, gamma=0.2, nu=0.2, tol=1e-10).fit(X).decision_function(new)
    for tol in (0.3, 1e-2, 1e-4):
        machine = SVDD(kernel=kernel, gamma=0.2, nu=0.2, tol=tol, solver="smo").fit(X)
        lower, upper = machine.decision_interval(new)
        slack = 1e-7 * (1 + np.abs(exact))
        assert (lower <= exact + slack).all()
        assert (exact <= upper + slack).all()
        labels, is_certain = machine.predict_certain(new)
        np.testing.assert_array_equal(labels[is_certain], np.where(exact >= 0, 1, -1)[is_certain])
    assert SVDD(gamma=0.2, nu=0.2, tol=1e-9, stop="labels").fit(X).report_.converged


def test_probability_agrees_with_predict():
    X, _ = data(200)
    machine = SVDD(nu=0.2, probability=True).fit(X)
    inside = machine.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(inside >= 0.5, machine.predict(X) > 0)
    plane = OneClassSVM(nu=0.2, probability=True).fit(X)
    np.testing.assert_allclose(inside, plane.predict_proba(X)[:, 1], atol=1e-4)
    np.testing.assert_allclose(machine.score_samples(X), -(machine.distance(X) ** 2), atol=1e-12)


def test_leave_one_out_is_brute_force():
    X, _ = data(40)
    for options in ({"gamma": 0.3}, {"kernel": "linear"}, {}):
        machine = SVDD(nu=0.25, tol=1e-8, **options)
        expected = [
            SVDD(**machine.get_params()).fit(np.delete(X, t, axis=0)).predict(X[[t]])[0] for t in range(40)
        ]
        np.testing.assert_array_equal(leave_one_out(machine, X).predictions, expected)


def test_copies_and_other_libraries():
    X, _ = data()
    machine = SVDD(kernel="poly").fit(X)
    same = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(same.decision_function(X), machine.decision_function(X))
    with pytest.raises(TypeError, match="scikit-learn has no counterpart of SVDD"):
        machine.as_sklearn()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with hinge.patched():
            assert machine.predict(X).shape == (80,)


@pytest.mark.parametrize("kernel", [*KERNELS, "sigmoid"])
def test_onnx(kernel):
    pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from skl2onnx import to_onnx

        import hinge.estimators.onnx  # noqa: F401

        X = suited(kernel, data()[0])
        machine = SVDD(kernel=kernel, gamma=0.1, nu=0.3).fit(X)
        graph = to_onnx(machine, X[:1]).SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    labels, values = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_array_equal(labels.ravel(), machine.predict(X))
    np.testing.assert_allclose(values.ravel(), machine.decision_function(X), atol=1e-9)


class Inverse(Kernel):
    """1 / (1 + γ Σ|x − y|): a kernel by the recipe that is like none of the library's."""

    statistic = "l1"

    def apply(self, tile, row_norms, column_norms, statistic):
        tile[:] = 1 / (1 + self.gamma * tile)

    def expression(self, xp, compared, norms, others):
        return 1.0 / (1.0 + self.gamma * compared)

    def reach(self, products):
        return np.ones_like(products), np.ones_like(products)


def test_onnx_asks_any_kernel_for_its_own_values():
    to_onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed").to_onnx
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    import hinge.estimators.onnx  # noqa: F401

    X = data()[0]
    machine = SVDD(kernel="laplacian", gamma=0.1).fit(X)
    machine._model = replace(machine._model, kernel=Inverse("inverse", gamma=0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = to_onnx(machine, X[:1]).SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    _, values = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(values.ravel(), machine.decision_function(X), atol=1e-9)


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_model_files(kernel, tmp_path):
    X, _ = data()
    machine = SVDD(kernel=kernel, nu=0.2, gamma=0.3, probability=True).fit(X)
    save_model(machine, tmp_path / "model", digits=17)
    same = load_model(tmp_path / "model")
    np.testing.assert_allclose(same.decision_function(X), machine.decision_function(X), atol=1e-10)
    np.testing.assert_allclose(same.dual_coef_, machine.dual_coef_, rtol=1e-12)
    np.testing.assert_allclose(same.density_marks_, machine.density_marks_, atol=1e-12)
    assert same.radius_ == pytest.approx(machine.radius_, rel=1e-9)
    assert same.offset_ == pytest.approx(machine.offset_)
    assert same.certificate(X).proves(1e-3)  # its nu follows from its coefficients
    given = SVDD(kernel="precomputed").fit(X @ X.T)
    with pytest.raises(ModelFileError, match="do not hold k"):
        save_model(given, tmp_path / "none")
    text = (
        (tmp_path / "model")
        .read_text()
        .replace("kernel_type " + KERNEL_NAMES.get(kernel, kernel), "kernel_type precomputed")
    )
    (tmp_path / "wrong").write_text(text)
    with pytest.raises(ModelFileError, match="svdd needs k"):
        load_model(tmp_path / "wrong")


def test_the_command_trains_and_predicts(tmp_path, capsys):
    X, _ = data()
    dump_svmlight_file(X, np.ones(len(X)), str(tmp_path / "data"), zero_based=False)
    names = [str(tmp_path / name) for name in ("data", "model", "out")]
    assert main(["train", "-s", "5", "-n", "0.2", "-g", "0.3", "-e", "1e-8", "--full-precision", *names[:2]]) == 0
    machine = SVDD(nu=0.2, gamma=0.3, tol=1e-8).fit(X)
    assert f"R^2 = {machine.radius_**2:.5f}" in capsys.readouterr().out
    assert main(["predict", "-q", *names]) == 0
    np.testing.assert_array_equal(np.loadtxt(names[2]), machine.predict(X))
    assert main(["train", "-s", "5", "-v", "4", names[0]]) == 0
    assert (
        main(
            [
                "grid",
                "-q",
                "-s",
                "5",
                "-log2c",
                "null",
                "-log2g",
                "-2,-1,1",
                "-out",
                "null",
                "-gnuplot",
                "null",
                names[0],
            ]
        )
        == 0
    )
    with pytest.raises(SystemExit):
        main(["train", "-s", "5", "-t", "4", names[0]])
    assert "SVDD needs K(x,x)" in capsys.readouterr().err
