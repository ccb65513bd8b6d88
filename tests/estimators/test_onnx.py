"""Conversion to ONNX, checked against onnxruntime."""

import numpy as np
import pytest

pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from skl2onnx import to_onnx  # noqa: E402
from sklearn.datasets import load_iris  # noqa: E402

import hinge.estimators.onnx  # noqa: E402, F401
from hinge import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM  # noqa: E402
from strategies import NAMED  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

X, Y = load_iris(return_X_y=True)


def run(machine, X, **options):
    graph = to_onnx(machine, X[:1], options=options or None)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: X})


@pytest.mark.parametrize("kernel", NAMED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_regression_with_every_kernel(kernel, dtype):
    machine = SVR(kernel=kernel, gamma=0.1).fit(X[:, :3], X[:, 3])
    (values,) = run(machine, X[:, :3].astype(dtype))
    expected = machine.predict(X[:, :3])
    atol = 1e-10 if dtype == np.float64 else 2e-3 * np.ptp(expected)  # sums of large terms in single precision
    np.testing.assert_allclose(values[:, 0], expected, rtol=0, atol=atol)


@pytest.mark.parametrize(
    "machine",
    [
        SVC(),
        SVC(break_ties=True),
        SVC(decision_function_shape="ovo"),
        SVC(multi_class="ovr"),
        LinearSVC(),
        LinearSVC(multi_class="crammer_singer", fit_intercept=False),
        NuSVC(nu=0.2, kernel="linear"),
    ],
    ids=str,
)
def test_many_classes(machine):
    machine.fit(X, Y)
    labels, scores = run(machine, X, zipmap=False)
    np.testing.assert_array_equal(labels, machine.predict(X))
    np.testing.assert_allclose(scores, machine.decision_function(X), atol=1e-10)


def test_text_labels_and_two_classes():
    names = np.array(["a", "b"])[(Y > 0).astype(int)]
    machine = SVC().fit(X, names)
    labels, scores = run(machine, X, zipmap=False)
    assert list(labels) == list(machine.predict(X))
    np.testing.assert_allclose(scores[:, 1], machine.decision_function(X), atol=1e-10)


def test_two_class_probabilities():
    machine = SVC(probability=True, random_state=0).fit(X, Y > 0)
    labels, scores = run(machine, X, zipmap=False)
    np.testing.assert_array_equal(labels, machine.predict(X))
    np.testing.assert_allclose(scores, machine.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"break_ties": True}, {"multi_class": "ovr"}], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_of_many_classes(options, dtype):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 5
    many = (rng.normal(size=(200, 5)) + 2 * np.eye(5)[y]).astype(dtype)
    machine = SVC(probability=True, random_state=0, **options).fit(many, y)
    labels, scores = run(machine, many, zipmap=False)
    np.testing.assert_array_equal(labels, machine.predict(many))
    np.testing.assert_allclose(scores, machine.predict_proba(many), atol=1e-5 if dtype == np.float32 else 1e-10)


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("probability", [False, True])
def test_raw_scores_are_decisions(probability, shape):
    machine = SVC(probability=probability, random_state=0, decision_function_shape=shape).fit(X, Y)
    labels, scores = run(machine, X, zipmap=False, raw_scores=True)
    np.testing.assert_array_equal(labels, machine.predict(X))
    np.testing.assert_allclose(scores, machine.decision_function(X), atol=1e-10)
    machine.fit(X, Y > 0)
    _, scores = run(machine, X, zipmap=False, raw_scores=True)
    decisions = machine.decision_function(X)
    np.testing.assert_allclose(scores, np.column_stack([-decisions, decisions]), atol=1e-10)


def test_linear_machines_of_two_classes_and_of_numbers():
    machine = LinearSVC().fit(X, Y > 0)
    _, scores = run(machine, X, zipmap=False)
    np.testing.assert_allclose(scores[:, 1], machine.decision_function(X), atol=1e-10)
    machine = LinearSVR().fit(X[:, :3], X[:, 3])
    (values,) = run(machine, X[:, :3])
    np.testing.assert_allclose(values[:, 0], machine.predict(X[:, :3]), atol=1e-10)


def test_nu_regression_and_precomputed():
    K = X @ X.T
    machine = NuSVR(kernel="precomputed").fit(K, Y)
    (values,) = run(machine, K)
    np.testing.assert_allclose(values[:, 0], machine.predict(K), atol=1e-9)


def test_one_class():
    machine = OneClassSVM(nu=0.2).fit(X)
    fresh = X + 0.05
    labels, scores = run(machine, fresh)
    np.testing.assert_array_equal(labels[:, 0], machine.predict(fresh))
    np.testing.assert_allclose(scores[:, 0], machine.decision_function(fresh), atol=1e-9)


def test_free_support_vectors_of_one_class_are_inliers():
    """Their decisions are rounding alone."""
    for nu in (0.1, 0.3, 0.5):
        machine = OneClassSVM(nu=nu).fit(X)
        labels, scores = run(machine, X)
        assert (machine.decision_function(X) == 0).any()
        np.testing.assert_array_equal(labels[:, 0], machine.predict(X))
        np.testing.assert_array_equal(scores[:, 0] == 0, machine.decision_function(X) == 0)


def test_what_cannot_be_converted_says_so():
    with pytest.raises(NotImplementedError, match="kernel function of your own"):
        run(SVC(kernel=lambda a, b: a @ b.T).fit(X, Y), X)
