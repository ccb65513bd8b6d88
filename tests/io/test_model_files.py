"""LIBSVM model files: what is read and refused, what is written, estimators there and back."""

import io
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from libsvm import svmutil

from hinge import SVC, SVR, Kernel, NuSVC, NuSVR, OneClassSVM
from hinge.estimators import load_model, save_model
from hinge.io import (
    LibsvmModel,
    ModelFileError,
    read_libsvm_model,
    write_libsvm_model,
)
from hinge.io.models.libsvm_model import KERNEL_TYPES, with_common_columns
from strategies import NAMED

GOOD = b"""svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 3
total_sv 4
rho 0.1 -0.2 0.3
label 7 -1 3
nr_sv 2 1 1
SV
1 0.5 1:1 3:-2.5 
0.25 0.5 2:1e-3 
-1.25 1 1:3 
-1 -1 
"""  # noqa: W291 - every token is followed by a space

PRECOMPUTED = b"""svm_type one_class
kernel_type precomputed
nr_class 2
total_sv 2
rho 1.5
SV
1 0:4 
0.5 0:7 
"""  # noqa: W291


def read(text):
    return read_libsvm_model(io.BytesIO(text))


@pytest.fixture(name="X")
def features():
    return np.random.default_rng(0).normal(size=(60, 4)).round(2)


@pytest.fixture
def y(X):
    return np.digitize(X[:, 0] + X[:, 1] ** 2, [0, 1.5])


def test_what_a_file_says():
    model = read(GOOD)
    assert model.svm_type == "c_svc"
    assert model.kernel == Kernel("rbf", gamma=0.5)
    assert model.labels.tolist() == [7, -1, 3]
    assert model.n_support.tolist() == [2, 1, 1]
    assert model.coefficients.tolist() == [[1, 0.25, -1.25, -1], [0.5, 0.5, 1, -1]]
    assert model.vectors.toarray().tolist() == [[0, 1, 0, -2.5], [0, 0, 1e-3, 0], [0, 3, 0, 0], [0, 0, 0, 0]]
    assert model.prob_a is model.prob_b is model.density_marks is None
    assert read(PRECOMPUTED).serials().tolist() == [4, 7]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.rstrip(b"\n "),
        lambda text: text.replace(b"rho", b"\nrho"),  # a blank line in the header
        lambda text: text + b"\n\n",
        lambda text: text.replace(b"gamma 0.5\n", b"").replace(b"rho", b"gamma 5e-1\nrho"),  # any order
        lambda text: text.replace(b"rho 0.1", b"rho +.1e0"),
    ],
)
def test_accepted(change):
    model = read(change(GOOD))
    np.testing.assert_array_equal(model.coefficients, read(GOOD).coefficients)
    np.testing.assert_array_equal(model.rho, read(GOOD).rho)


def test_a_regression_has_no_second_line_of_probabilities():
    text = b"svm_type epsilon_svr\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0.5\nprobA 0.1\n"
    assert read(text + b"SV\n2 1:3\n").prob_a == [0.1]
    with pytest.raises(ModelFileError, match="probA alone in regression"):
        read(text + b"probB 0.2\nSV\n2 1:3\n")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"c_svc", b"d_svc", "line 1: expected one of c_svc.*found 'd_svc'"),
        (b"rbf", b"RBF", "line 2: expected one of linear"),
        (b"gamma 0.5\n", b"", "lacks gamma"),
        (b"gamma 0.5", b"gamma -1", "gamma must be"),
        (b"gamma 0.5", b"gamma nan", "line 3: expected a finite number for gamma"),
        (b"gamma 0.5", b"gamma 0.5 1", "line 3: expected one value of gamma, found 2"),
        (b"gamma 0.5", b"gamma 1e999", "line 3: expected a finite number"),
        (b"gamma 0.5", b"gamma 0x1p3", "line 3: expected a finite number"),
        (b"gamma", b"gimma", r"line 3: unknown text in model file: \[gimma\]"),
        (b"gamma", b"\xff\xfe", "line 3: unknown text"),
        (b"nr_class 3", b"nr_class 0", "not counts"),
        (b"nr_class 3", b"nr_class 4", "expected 6 values of rho"),
        (b"nr_class 3", b"nr_class 99999999999999", "line 4: expected a whole number"),
        (b"nr_class 3", b"nr_class 2147483647", "values of rho with nr_class 2147483647"),
        (b"nr_class 3", b"nr_class 1_0", "line 4: expected a whole number"),
        (b"nr_class 3", b"nr_class 3\nnr_class 3", "line 5: nr_class is given twice"),
        (b"total_sv 4", b"total_sv 5", "add up to total_sv 5"),
        (b"total_sv 4\n", b"", "lacks total_sv"),
        (b"total_sv 4", b"total_sv -4", "not counts"),
        (b"label 7 -1 3", b"label 7 7 3", "a label occurs twice"),
        (b"label 7 -1 3", b"label 7 -1", "expected 3 values of label"),
        (b"label 7 -1 3", b"label 7 -1 3.5", "expected a whole number for label, found '3.5'"),
        (b"nr_sv 2 1 1", b"nr_sv 5 -2 1", "must be counts"),
        (b"nr_sv", b"probA 1 1 1\nnr_sv", "probA and probB go together"),
        (b"nr_sv", b"probB 1 1 1\nnr_sv", "probA and probB go together"),
        (b"SV\n", b"", "unknown text"),
        (b"1 0.5 1:1", b"1 1:1", "line 10.*in front of the features|line 10, column"),
        (b"1 0.5 1:1", b"x 0.5 1:1", "line 10: expected 2 coefficients"),
        (b"1 0.5 1:1", b"1 inf 1:1", "line 10, column 1: expected a finite number as a coefficient"),
        (b"3:-2.5", b"1:-2.5", "line 10, column.*an index above 1"),
        (b"3:-2.5", b"3:nan", "line 10, column.*finite"),
        (b"3:-2.5", b"3000000000:1", "up to 2147483646"),
        (b"2:1e-3", b"2:", "line 11, column"),
        (b"-1 -1 \n", b"", "total_sv is 4, but 3 support vectors follow"),
        (b"-1 -1 \n", b"-1 -1 \n1 1 1:1\n", "total_sv is 4, but more support vectors follow"),
        (b"-1 -1 \n", b"-1 -1 qid:3\n", "qid: has no meaning"),
        (b"-1 -1 \n", b"# -1 -1\n", "line 13: expected 2 coefficients"),
    ],
)
def test_refused(old, new, message):
    assert old in GOOD
    with pytest.raises(ModelFileError, match=f"(?s){message}"):
        read(GOOD.replace(old, new, 1))


@pytest.mark.parametrize(
    "text", [b"", b"\x00" * 100, b"svm_type", GOOD[:-60], b"SV\n", GOOD[: GOOD.index(b"SV\n")]]
)
def test_cut_short(text):
    with pytest.raises(ModelFileError):
        read(text)


@pytest.mark.parametrize("serial", [b"0:0", b"0:1.5", b"0:-1", b"1:4", b"0:4 1:1", b"0:4000000000"])
def test_serials_of_precomputed_kernels(serial):
    with pytest.raises(ModelFileError, match="serial"):
        read(PRECOMPUTED.replace(b"0:4", serial))


def test_degree_is_bounded():
    poly = GOOD.replace(b"kernel_type rbf", b"kernel_type polynomial\ndegree 2000000000")
    with pytest.raises(ModelFileError, match="degree must lie between 0 and 1000"):
        read(poly)


def test_huge_indices_cost_nothing():
    model = read(GOOD.replace(b"3:-2.5", b"2147483646:-2.5"))
    first, second = with_common_columns(model.vectors, sp.csr_matrix(np.eye(3)))
    assert first.shape[1] == second.shape[1] == 4  # indices 0, 1, 2 and the huge one
    ((start, decisions),) = model.decide(sp.csr_matrix(np.eye(3)))
    assert (start, decisions.shape) == (0, (3, 3))


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "bad.model"
    path.write_bytes(GOOD[:-9])
    with pytest.raises(ModelFileError, match=r"bad\.model: total_sv is 4"):
        load_model(path)


def test_text_is_written_as_it_was_read(tmp_path):
    path = tmp_path / "model"
    for text in (GOOD, PRECOMPUTED):
        clean = text.replace(b"1e-3", b"0.001").replace(b"gamma 0.5", b"gamma 0.5")
        write_libsvm_model(read(clean), path, digits=8)
        again = path.read_bytes()
        numbers = read(again)
        assert again.split()[:10] == clean.split()[:10]
        np.testing.assert_array_equal(numbers.rho, read(clean).rho)
        assert again[again.index(b"SV\n") :] == clean[clean.index(b"SV\n") :]


def test_digits(tmp_path):
    model = replace(read(GOOD), vectors=sp.csr_matrix(np.full((4, 2), [0, 1 / 3])))
    for digits, text in ((8, b"1:0.33333333 "), (17, b"1:0.33333333333333331 ")):
        write_libsvm_model(model, tmp_path / "model", digits=digits)
        assert text in (tmp_path / "model").read_bytes()
    with pytest.raises(ValueError, match="digits"):
        write_libsvm_model(model, tmp_path / "model", digits=18)


@pytest.mark.parametrize("options", ["-s 0", "-s 1 -t 0", "-s 0 -b 1", "-s 2", "-s 2 -b 1", "-s 3", "-s 4 -t 1",
                                     "-s 3 -b 1", "-s 0 -t 3", "-s 0 -t 4"])  # fmt: skip
def test_files_of_libsvm_round_trip_byte_by_byte(options, X, y, tmp_path):
    rows = X if "-t 4" not in options else np.column_stack([np.arange(1, 61), X @ X.T])
    theirs = svmutil.svm_train(y.astype(float), rows, f"{options} -q")
    svmutil.svm_save_model(str(tmp_path / "theirs"), theirs)
    write_libsvm_model(read_libsvm_model(tmp_path / "theirs"), tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


# ---------------------------------------------------------------------- estimators

ESTIMATORS = [
    SVC(), SVC(kernel="poly", coef0=1.0, degree=2), SVC(kernel="sigmoid", gamma=0.05), SVC(probability=True),
    SVC(kernel="linear", decision_function_shape="ovo"), NuSVC(nu=0.3), NuSVC(nu=0.3, probability=True), SVR(),
    SVR(probability=True), NuSVR(kernel="linear"), OneClassSVM(nu=0.3), OneClassSVM(nu=0.3, probability=True),
]  # fmt: skip


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_estimators_come_back(estimator, n_classes, X, y, tmp_path):
    y = np.array([-3, 5, 9])[np.minimum(y, n_classes - 1)]
    estimator.fit(X, y)
    save_model(estimator, tmp_path / "model", digits=17)
    back = load_model(tmp_path / "model")
    assert type(back) is type(estimator)
    for method in ("decision_function", "predict", "predict_proba"):
        if hasattr(estimator, method) and not (method == "predict" and isinstance(estimator, OneClassSVM)):
            if hasattr(back, "decision_function_shape"):
                back.decision_function_shape = estimator.decision_function_shape
            expected, found = getattr(estimator, method)(X), getattr(back, method)(X)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert back.n_support_.tolist() == estimator.n_support_.tolist()
    np.testing.assert_allclose(back.dual_coef_, estimator.dual_coef_)
    np.testing.assert_allclose(back.intercept_, estimator.intercept_)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM(nu=0.3)], ids=str)
def test_libsvm_decides_as_the_estimator(estimator, n_classes, X, y, tmp_path):
    y = np.minimum(y, n_classes - 1)
    estimator.fit(X, y)
    save_model(estimator, tmp_path / "model", digits=17)
    text = (tmp_path / "model").read_text().replace("svm_type nu_svc", "svm_type c_svc")
    (tmp_path / "model").write_text(text)  # svm_predict reserves too little memory for pairs of nu-SVC
    labels, _, values = svmutil.svm_predict([], X, svmutil.svm_load_model(str(tmp_path / "model")), "-q")
    if hasattr(estimator, "decision_function_shape"):
        estimator.decision_function_shape = "ovo"
        np.testing.assert_array_equal(labels, estimator.predict(X))
    decide = getattr(estimator, "decision_function", estimator.predict)
    expected = decide(X).reshape(len(X), -1)
    np.testing.assert_allclose(np.array(values)[:, : expected.shape[1]], expected, atol=1e-9)


def test_precomputed_estimators(X, y, tmp_path):
    K = X @ X.T
    machine = SVC(kernel="precomputed").fit(K, y)
    save_model(machine, tmp_path / "model")
    back = load_model(tmp_path / "model", n_features=len(K))
    np.testing.assert_array_equal(back.predict(K), machine.predict(K))
    assert back.support_.tolist() == machine.support_.tolist()


def test_classes_in_any_order(X, y, tmp_path):
    labels = np.array([4.0, -2.0, 3.0])[y]
    theirs = svmutil.svm_train(labels, X, "-b 1 -q")
    svmutil.svm_save_model(str(tmp_path / "model"), theirs)
    back = load_model(tmp_path / "model")
    assert back.classes_.tolist() == [-2, 3, 4]
    predicted, _, probabilities = svmutil.svm_predict([], X, theirs, "-b 1 -q")
    np.testing.assert_array_equal(back.predict(X), predicted)
    order = np.argsort(theirs.get_labels())
    np.testing.assert_allclose(back.predict_proba(X), np.array(probabilities)[:, order], atol=5e-3)


def test_sigmoids_and_decisions_of_classes_in_any_order(X, y, tmp_path):
    """Sigmoids far from the middle, so that one that is turned the wrong way shows; LIBSVM reads the same file."""
    path = tmp_path / "model"
    labels = np.array([4.0, -2.0, 3.0])[y]
    svmutil.svm_save_model(str(path), svmutil.svm_train(labels, X, "-b 1 -q"))
    model = replace(
        read_libsvm_model(path), prob_a=np.array([-2.0, -1.5, -1.0]), prob_b=np.array([0.9, -0.7, 0.4])
    )
    write_libsvm_model(model, path, digits=17)
    theirs = svmutil.svm_load_model(str(path))
    _, _, probabilities = svmutil.svm_predict([], X, theirs, "-b 1 -q")
    order = np.argsort(theirs.get_labels())
    np.testing.assert_allclose(load_model(path).predict_proba(X), np.array(probabilities)[:, order], atol=1e-2)
    _, _, decisions = svmutil.svm_predict([], X, theirs, "-q")
    rows = sp.csr_matrix(np.hstack([np.zeros((len(X), 1)), X]))  # indices begin at 1
    ((_, ours),) = read_libsvm_model(path).decide(rows)
    np.testing.assert_allclose(ours, decisions, atol=1e-9)


@pytest.mark.parametrize("kernel", sorted(set(NAMED) - set(KERNEL_TYPES.values())))
def test_a_kernel_that_the_format_does_not_know(kernel, X, y, tmp_path):
    with pytest.raises(ModelFileError, match=f"no {kernel} kernel; it knows linear, polynomial"):
        save_model(SVC(kernel=kernel).fit(abs(X), y), tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SVC(), "not fitted yet"),
        (object(), "not object"),
        ("callable", "no callable kernel"),
        ("ovr", "one machine per pair"),
        ("names", "whole numbers"),
    ],
)
def test_what_the_format_cannot_hold(estimator, message, X, y, tmp_path):
    match estimator:
        case "callable":
            estimator = SVC(kernel=lambda a, b: a @ b.T).fit(X, y)
        case "ovr":
            estimator = SVC(multi_class="ovr").fit(X, y)
        case "names":
            estimator = SVC().fit(X, np.array(["a", "b", "c"])[y])
    with pytest.raises(ModelFileError, match=message):
        save_model(estimator, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_number_of_features(X, y, tmp_path):
    machine = SVC().fit(np.column_stack([X, np.zeros(len(X))]), y)
    save_model(machine, tmp_path / "model")
    assert load_model(tmp_path / "model").n_features_in_ == 4
    assert load_model(tmp_path / "model", n_features=5).n_features_in_ == 5
    with pytest.raises(ModelFileError, match="n_features is 3, but index 4 occurs"):
        load_model(tmp_path / "model", n_features=3)


# ---------------------------------------------------------------------- kill -9

WRITER = """
import sys
import numpy as np
import scipy.sparse as sp
from dataclasses import replace
from hinge.io import read_libsvm_model, write_libsvm_model
model = read_libsvm_model(sys.argv[1])
print("ready", flush=True)
for k in range(10**9):
    write_libsvm_model(replace(model, rho=np.array([float(k)])), sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs kill -9")
def test_killed_while_writing(tmp_path):
    """After each of 20 kills (``HINGE_KILLS`` for more) the old or the new model is there, whole."""
    rng = np.random.default_rng(0)
    n = 2000
    model = LibsvmModel(
        "epsilon_svr",
        Kernel("linear"),
        np.zeros(1),
        rng.normal(size=(1, n)),
        sp.csr_matrix(rng.normal(size=(n, 20))),
    )
    path = tmp_path / "model"
    write_libsvm_model(model, path)
    model = read_libsvm_model(path)
    delays = random.Random(0)
    for _ in range(int(os.environ.get("HINGE_KILLS", 20))):
        command = [sys.executable, "-c", WRITER, path]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(delays.uniform(0.0, 0.1))
            process.send_signal(signal.SIGKILL)
        found = read_libsvm_model(path)
        np.testing.assert_array_equal(found.coefficients, model.coefficients)
        np.testing.assert_array_equal(found.vectors.data, model.vectors.data)
    left = [file for file in Path(tmp_path).iterdir() if file != path]
    assert all(file.name.startswith(".model") and file.suffix == ".tmp" for file in left)
