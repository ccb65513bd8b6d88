"""Hinge's commands beside LIBSVM's own: the same lines, each other's models, the same folds, the same bytes."""

import re

import numpy as np
import pytest
from libsvm import svmutil

from hinge.estimators import load_model
from hinge.io import read_data, read_libsvm_model

C_SVC, NU_SVC, ONE_CLASS, EPSILON_SVR, NU_SVR = range(5)
LINEAR, POLY, RBF, SIGMOID, PRECOMPUTED = range(5)

# file, lines of it, type, kernel, other options
CASES = [
    ("heart_scale", None, C_SVC, RBF, ""),
    ("heart_scale", None, C_SVC, LINEAR, "-c 0.5"),
    ("heart_scale", None, NU_SVC, POLY, "-r 1 -d 2"),
    ("heart_scale", None, ONE_CLASS, RBF, "-n 0.2"),
    ("heart_scale", None, C_SVC, SIGMOID, "-g 0.02"),
    ("heart_scale", None, NU_SVC, RBF, "-b 1"),
    ("iris.scale", None, C_SVC, RBF, "-b 1 -c 10"),
    ("iris.scale", None, NU_SVC, LINEAR, "-n 0.31"),  # 0.3 leaves no free variable, and rho a choice
    ("australian_scale", None, C_SVC, POLY, "-r 1 -g 0.1 -w1 2 -w-1 0.5"),
    ("breast-cancer_scale", None, C_SVC, RBF, "-b 1"),
    ("diabetes_scale", None, NU_SVC, SIGMOID, "-g 0.1 -n 0.6"),
    ("fourclass", None, C_SVC, RBF, "-g 0.01 -c 1"),
    ("german.numer", 400, C_SVC, RBF, "-g 0.0005 -w-1 0.4"),
    ("glass.scale", None, C_SVC, RBF, "-c 10 -g 0.5 -b 1"),
    ("ionosphere_scale", None, ONE_CLASS, SIGMOID, "-g 0.01 -n 0.3"),
    ("svmguide2", None, C_SVC, RBF, "-g 0.5"),
    ("svmguide4", None, C_SVC, LINEAR, "-c 0.001"),
    ("vehicle.scale", 400, NU_SVC, RBF, "-n 0.43"),
    ("vowel.scale", None, C_SVC, RBF, "-c 4 -g 1"),
    ("a1a", 800, C_SVC, LINEAR, "-c 0.1"),
    ("splice", 500, C_SVC, POLY, "-r 1 -d 2 -g 0.02"),
    ("housing_scale", None, EPSILON_SVR, RBF, "-c 10 -p 0.5"),
    ("housing_scale", None, NU_SVR, LINEAR, "-n 0.3"),
    ("bodyfat", None, EPSILON_SVR, LINEAR, "-g 0.01 -p 0.001 -c 0.001"),
    ("mpg", None, NU_SVR, RBF, "-g 0.0001 -n 0.4"),
    ("housing_scale", None, NU_SVR, POLY, "-g 0.1 -d 2 -r 1 -n 0.4"),
    ("pyrim", None, NU_SVR, RBF, "-b 1"),
    ("triazines", None, EPSILON_SVR, RBF, "-b 1 -p 0.05"),
    ("triazines", None, EPSILON_SVR, SIGMOID, "-g 0.01 -p 0.05"),
]

CROSS_VALIDATED = [
    ("heart_scale", None, "-s 0"),
    ("heart_scale", None, "-s 1 -n 0.4"),
    ("heart_scale", None, "-s 0 -b 1"),
    ("heart_scale", None, "-s 2 -n 0.3"),
    ("heart_scale", 40, "-s 0 -v 40"),
    ("iris.scale", None, "-s 0 -t 1 -g 1"),
    ("australian_scale", None, "-s 0 -t 0"),
    ("breast-cancer_scale", None, "-s 0"),
    ("diabetes_scale", None, "-s 0 -c 4"),
    ("fourclass", None, "-s 0 -g 0.01"),
    ("glass.scale", None, "-s 0 -c 10"),
    ("a1a", None, "-s 0 -t 0"),
    ("ionosphere_scale", None, "-s 0 -t 3 -g 0.02"),
    ("svmguide2", None, "-s 0 -g 0.5"),
    ("svmguide4", None, "-s 0 -g 0.001"),
    ("vehicle.scale", None, "-s 0 -c 8"),
    ("vowel.scale", None, "-s 0 -c 4"),
    ("a1a", 800, "-s 0 -c 2"),
    ("splice", 500, "-s 0 -w1 2"),
]

SCALED = (
    "heart_scale", "iris.scale", "housing", "a1a", "svmguide2", "mpg", "diabetes", "pyrim", "breast-cancer",
    "bodyfat", "fourclass", "german.numer",
)  # fmt: skip

NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]\d+)?")


def name_of(case):
    return "-".join(str(part) for part in case if part is not None).replace(" ", "")


def lines_of(text):
    """The lines that scripts parse: without dots and stars, and without advice."""
    return [line for line in text.splitlines() if line.strip(".*") and "using -h 0" not in line]


def shapes_of(text):
    return [NUMBER.sub("#", line) for line in lines_of(text)]


def figures(text, name):
    return np.array([float(found) for found in re.findall(rf"{name} = (-?[\d.]+)", text)])


def predictions(path, skip=0):
    return np.loadtxt(path, skiprows=skip, ndmin=2)


@pytest.fixture(params=CASES, ids=name_of)
def trained(request, hinge, libsvm, data_file, tmp_path):
    name, n_lines, svm_type, kernel, options = request.param
    path = data_file(name, n_lines)
    words = ["-s", svm_type, "-t", kernel, *options.split(), "-e", "1e-5"]
    ours = hinge("train", *words, path, tmp_path / "ours")
    theirs = libsvm("svm-train", *words, path, tmp_path / "theirs")
    return path, tmp_path, ours, theirs, "-b 1" in options


def test_output_and_models(trained, hinge, libsvm):
    path, folder, ours, theirs, has_probabilities = trained
    assert (ours.code, ours.err) == (theirs.code, theirs.err) == (0, "")
    assert shapes_of(ours.out) == shapes_of(theirs.out)
    np.testing.assert_allclose(figures(ours.out, "obj"), figures(theirs.out, "obj"), rtol=1e-3)
    for model in ("ours", "theirs"):
        check_decisions(path, folder, model, hinge)
        for b in (0, 1) if has_probabilities else (0,):
            check_predictions(path, folder, model, b, hinge, libsvm)


def check_predictions(path, folder, model, b, hinge, libsvm):
    by_hinge = hinge("predict", "-b", b, path, folder / model, folder / "hinge.out")
    by_libsvm = libsvm("svm-predict", "-b", b, path, folder / model, folder / "libsvm.out")
    assert (by_hinge.code, by_hinge.err) == (0, "")
    assert shapes_of(by_hinge.out) == shapes_of(by_libsvm.out)
    is_classifier = "(classification)" in by_hinge.out
    heads = [(folder / file).read_text().partition("\n")[0] for file in ("hinge.out", "libsvm.out")]
    skip = int(heads[0].startswith("label"))
    if skip:
        assert heads[0] == heads[1]
    a, z = (predictions(folder / file, skip) for file in ("hinge.out", "libsvm.out"))
    if is_classifier:
        assert by_hinge.out == by_libsvm.out
        np.testing.assert_array_equal(a[:, 0], z[:, 0])
        # LIBSVM 3.24 couples two classes by iteration too, which ends at an accuracy of 0.0025.
        np.testing.assert_allclose(a, z, atol=2e-6 if a.shape[1] != 3 else 3e-3)
    else:
        np.testing.assert_allclose(a, z, rtol=1e-6, atol=1e-6)


def check_decisions(path, folder, model, hinge):
    """Decision values of all pairs beside those of the library behind LIBSVM's tools."""
    hinge("predict", "-q", "--decision-values", folder / "decisions", path, folder / model, folder / "out")
    y, x = svmutil.svm_read_problem(str(path))
    # Decisions of nu-SVC are those of C-SVC; svm_predict reserves too little memory for the former's pairs.
    text = (folder / model).read_text().replace("svm_type nu_svc", "svm_type c_svc")
    (folder / "peer").write_text(text)
    peer = svmutil.svm_load_model(str(folder / "peer"))
    _, _, values = svmutil.svm_predict(y, x, peer, "-q")
    ours = predictions(folder / "decisions")
    values = np.array(values)[:, : ours.shape[1]]
    np.testing.assert_allclose(ours, values, atol=1e-6, rtol=1e-9)
    estimator = load_model(folder / model, n_features=read_data(path).X.shape[1])
    answers = estimator.predict(read_data(path).X)
    labels = predictions(folder / "out")[:, 0]
    is_sharp = np.abs(ours).min(axis=1) > 1e-9
    if read_libsvm_model(folder / model).n_classes == 2 and not hasattr(estimator, "predict_proba"):
        np.testing.assert_allclose(answers[is_sharp], labels[is_sharp], atol=1e-6)


@pytest.mark.parametrize("case", CROSS_VALIDATED, ids=name_of)
def test_cross_validation(case, hinge, libsvm, data_file):
    name, n_lines, options = case
    words = ["-v", "5", *options.split(), "-q", data_file(name, n_lines)]
    assert hinge("train", *words) == libsvm("svm-train", *words)


@pytest.mark.parametrize("case", [("housing_scale", None, "-s 3 -c 10"), ("mpg", None, "-s 4 -g 0.0001"),
                                  ("pyrim", None, "-s 3 -b 1")], ids=name_of)  # fmt: skip
def test_cross_validation_of_regressions(case, hinge, libsvm, data_file):
    name, n_lines, options = case
    words = ["-v", "5", *options.split(), "-q", "-e", "1e-6", data_file(name, n_lines)]
    ours, theirs = hinge("train", *words), libsvm("svm-train", *words)
    assert shapes_of(ours.out) == shapes_of(theirs.out)
    for name in ("error", "coefficient"):
        np.testing.assert_allclose(figures(ours.out, name), figures(theirs.out, name), rtol=1e-4)


@pytest.mark.parametrize("options", ["", "-l 0", "-l 0 -u 2", "-y -1 1", "-l -3 -u 5 -y 0 10"])
@pytest.mark.parametrize("name", SCALED)
def test_scaled_files_are_byte_identical(name, options, hinge, libsvm, data_file, tmp_path):
    path, test_path = data_file(name, 200), data_file(name)
    ours = hinge("scale", *options.split(), "-s", tmp_path / "range", path)
    saved = (tmp_path / "range").read_bytes()
    theirs = libsvm("svm-scale", *options.split(), "-s", tmp_path / "range", path)
    assert ours == theirs
    assert saved == (tmp_path / "range").read_bytes()
    restore = ["-r", tmp_path / "range", test_path]
    assert hinge("scale", *restore) == libsvm("svm-scale", *restore)


def test_precomputed_kernels(hinge, libsvm, data_file, tmp_path):
    X, y = read_data(data_file("heart_scale"))
    K = (X @ X.T).toarray()
    lines = [f"{label:g} 0:{i + 1} " + " ".join(f"{j + 1}:{v:.10g}" for j, v in enumerate(row))
             for i, (label, row) in enumerate(zip(y, K, strict=True))]  # fmt: skip
    path = tmp_path / "gram"
    path.write_text("\n".join(lines[::2] + lines[1::4]) + "\n")  # any rows in any order
    (tmp_path / "test").write_text("\n".join(lines[3::4]) + "\n")
    for svm_type in range(5):
        words = ["-t", 4, "-s", svm_type, "-e", "1e-5", "-c", 0.1, path]
        ours = hinge("train", *words, tmp_path / "ours")
        theirs = libsvm("svm-train", *words, tmp_path / "theirs")
        assert shapes_of(ours.out) == shapes_of(theirs.out)
        np.testing.assert_allclose(figures(ours.out, "obj"), figures(theirs.out, "obj"), rtol=1e-3)
        for model in ("ours", "theirs"):
            check_predictions(tmp_path / "test", tmp_path, model, 0, hinge, libsvm)
    words = ["-t", 4, "-v", 5, "-q", path]
    assert hinge("train", *words) == libsvm("svm-train", *words)


def test_probabilities_of_one_class(hinge, data_file, tmp_path):
    # Debian's tools are older than the density marks; the PyPI package knows them.
    path = data_file("heart_scale")
    assert hinge("train", "-s", 2, "-b", 1, "-n", 0.3, "-e", 1e-5, path, tmp_path / "model").code == 0
    assert hinge("predict", "-b", 1, path, tmp_path / "model", tmp_path / "out").code == 0
    y, x = svmutil.svm_read_problem(str(path))
    peer = svmutil.svm_load_model(str(tmp_path / "model"))
    labels, _, values = svmutil.svm_predict(y, x, peer, "-b 1 -q")
    ours = predictions(tmp_path / "out", skip=1)
    assert (tmp_path / "out").read_text().startswith("label normal outlier\n")
    np.testing.assert_array_equal(ours[:, 0], labels)
    np.testing.assert_allclose(ours[:, 1:], np.array(values), atol=1e-6)
    trained = svmutil.svm_train(y, x, "-s 2 -b 1 -n 0.3 -e 1e-6 -q")
    marks = read_libsvm_model(tmp_path / "model").density_marks
    # Which side samples on the boundary count for is a matter of rounding there.
    np.testing.assert_allclose(marks, trained.prob_density_marks[:10], atol=0.2)


@pytest.mark.parametrize("name", ["heart_scale", "glass.scale"])
def test_probabilities_to_all_digits(name, hinge, data_file, tmp_path):
    path = data_file(name)
    hinge("train", "-q", "-b", 1, path, tmp_path / "model")
    hinge("predict", "-b", 1, path, tmp_path / "model", tmp_path / "out")
    y, x = svmutil.svm_read_problem(str(path))
    labels, _, values = svmutil.svm_predict(y, x, svmutil.svm_load_model(str(tmp_path / "model")), "-b 1 -q")
    ours = predictions(tmp_path / "out", skip=1)
    np.testing.assert_array_equal(ours[:, 0], labels)
    np.testing.assert_allclose(ours[:, 1:], np.array(values), rtol=2e-5)  # the file holds six digits


def test_sigmoids_come_from_the_same_folds(hinge, libsvm, data_file, tmp_path):
    path = data_file("vehicle.scale")
    words = ["-q", "-b", 1, "-e", "1e-6", path]
    hinge("train", *words, tmp_path / "ours")
    libsvm("svm-train", *words, tmp_path / "theirs")
    ours, theirs = (read_libsvm_model(tmp_path / name) for name in ("ours", "theirs"))
    np.testing.assert_allclose(ours.prob_a, theirs.prob_a, rtol=1e-3)
    np.testing.assert_allclose(ours.prob_b, theirs.prob_b, rtol=1e-3, atol=1e-3)
