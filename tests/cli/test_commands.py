"""The commands by themselves: messages, exit codes, files."""

import bz2
import json
import os
import signal
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from hinge import SVC, SVR
from hinge.estimators import load_model
from hinge.io import read_libsvm_model

RNG = np.random.default_rng(0)


def write(path, X, y):
    rows = [" ".join([f"{label:g}", *(f"{j + 1}:{v:.6g}" for j, v in enumerate(row) if v)]) for row, label in
            zip(X, y, strict=True)]  # fmt: skip
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def two_classes(tmp_path):
    X = RNG.normal(size=(60, 3))
    return write(tmp_path / "two", X, np.where(X[:, 0] + 0.3 * RNG.normal(size=60) > 0, 1, -1))


@pytest.fixture
def three_classes(tmp_path):
    X = RNG.normal(size=(60, 3))
    return write(tmp_path / "three", X, np.digitize(X[:, 0], [-0.5, 0.5]))


# ---------------------------------------------------------------------- train


def test_a_margin_without_width_is_told(hinge, tmp_path):
    X = RNG.normal(size=(60, 1))
    path = write(tmp_path / "noise", X, np.where(np.arange(60) % 2, 1, -1))
    result = hinge("train", "-q", "-s", "1", "-n", "0.1", "-t", "0", path, tmp_path / "model")
    assert result.code == 0
    assert "nu = 0.1 is smaller than these data allow: in 1 of 1 machines the margin has no width" in result.err
    assert hinge("train", "-q", "-s", "1", "-n", "0.9", "-t", "0", path, tmp_path / "model").err == ""


@pytest.mark.parametrize("kind", ["-s 0 -w1 3", "-s 3"])
def test_a_squared_loss_is_that_of_the_estimators(kind, two_classes, hinge, tmp_path):
    X, y = (part.toarray() if hasattr(part, "toarray") else part for part in load_svmlight_file(str(two_classes)))
    options = [*kind.split(), "--loss", "squared", "-c", "3", "-g", "0.5", "-e", "1e-7"]
    assert hinge("train", "-q", *options, two_classes, tmp_path / "model").err == ""
    if kind == "-s 3":
        machine = SVR(loss="squared_epsilon_insensitive", C=3.0, gamma=0.5, tol=1e-7).fit(X, y)
        np.testing.assert_allclose(load_model(tmp_path / "model").predict(X), machine.predict(X), atol=1e-5)
    else:
        machine = SVC(loss="squared_hinge", C=3.0, gamma=0.5, class_weight={1: 3.0}, tol=1e-7).fit(X, y)
        found = load_model(tmp_path / "model").decision_function(X)
        np.testing.assert_allclose(found, machine.decision_function(X), atol=1e-5)
    assert "Cross Validation" in hinge("train", *options, "-v", "3", two_classes).out


def test_a_search_passes_the_loss_on(two_classes, hinge):
    search = ["grid", "-log2c", "1,1,1", "-log2g", "-1,-1,1", "-out", "null", "-gnuplot", "null", "-q", "-s", "3"]
    plain, squared, alone = (
        float(hinge(*search, *words, two_classes).out.split()[-1])
        for words in ([], ["--loss", "squared"], ["--loss", "squared", "-b", "1"])
    )
    assert squared == pytest.approx(alone, rel=1e-3)  # a process of its own for the point
    assert abs(squared - plain) > 1e-3 * plain


def test_a_gap_that_suffices_and_a_rule_reach_the_solver(two_classes, hinge, tmp_path):
    words = ["train", "-q", "--solver", "smo", "--rule", "hmg", "--gap-tol", "0.5", "--json"]
    (machine,) = json.loads(hinge(*words, two_classes, tmp_path / "model").out)["machines"]
    assert (machine["solver"], machine["rule"]) == ("smo", "hmg")


def test_train_writes_beside_the_caller(two_classes, hinge, tmp_path, monkeypatch):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    result = hinge("train", two_classes)
    assert (result.code, result.err) == (0, "")
    assert os.listdir(folder) == ["two.model"]
    lines = result.out.splitlines()
    assert set(lines[0]) <= {".", "*"}
    heads = ["optimization finished, #iter = ", "nu = 0.", "obj = -", "nSV = ", "Total nSV = "]
    assert all(line.startswith(head) for line, head in zip(lines[1:], heads, strict=True))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-s 7", "unknown svm type"),
        ("--loss squared -s 1", "--loss squared is for C-SVC (-s 0) and epsilon-SVR (-s 3)"),
        ("--loss squared --solver smo", "--loss squared needs --solver block or auto"),
        ("--rule hmg", "--rule hmg needs --solver smo"),
        ("-t 5", "unknown kernel type"),
        ("-g -1", "gamma < 0"),
        ("-t 1 -d -1", "degree of polynomial kernel < 0"),
        ("-m 0", "cache_size <= 0"),
        ("-e 0", "eps <= 0"),
        ("-c 0", "C <= 0"),
        ("-s 4 -c -1", "C <= 0"),
        ("-s 1 -n 0", "nu <= 0 or nu > 1"),
        ("-s 2 -n 1.5", "nu <= 0 or nu > 1"),
        ("-s 3 -p -1", "p < 0"),
        ("-h 2", "shrinking != 0 and shrinking != 1"),
        ("-b 2", "probability != 0 and probability != 1"),
        ("-s 1 -n 1", "specified nu is infeasible"),
        ("-t 1 -d 100000", "degree of polynomial kernel > 1000"),
        ("-w1 -1", "weight < 0"),
    ],
)
def test_parameter_errors(options, message, hinge, tmp_path):
    path = write(tmp_path / "data", RNG.normal(size=(5, 2)), [1, 1, 1, 2, 2])
    result = hinge("train", *options.split(), path, tmp_path / "model")
    assert (result.code, result.out, result.err) == (1, "", f"ERROR: {message}\n")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("text", "options", "error"),
    [
        ("1 1:1\n2 x\n", "", "Wrong input format at line 2\n"),
        ("1 1:nan\n", "", "Wrong input format at line 1\n"),
        ("1 2:1 1:1\n", "", "Wrong input format at line 1\n"),
        ("", "", "ERROR: "),
        ("1 1:1\n2 1:2\n", "-t 4", "Wrong input format: first column must be 0:sample_serial_number\n"),
        ("1 0:3 1:1 2:1\n2 0:1 1:1 2:1\n", "-t 4", "Wrong input format: sample_serial_number out of range\n"),
    ],
)
def test_bad_data(text, options, error, hinge, tmp_path):
    (tmp_path / "data").write_text(text)
    result = hinge("train", *options.split(), tmp_path / "data", tmp_path / "model")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(error)
    assert not (tmp_path / "model").exists()


def test_of_an_asymmetric_matrix_the_symmetric_part(hinge, tmp_path):
    bent, even = "1 0:1 1:2 2:1.5\n2 0:2 1:0.5 2:2\n", "1 0:1 1:2 2:1\n2 0:2 1:1 2:2\n"
    models = []
    for name, text in (("bent", bent), ("even", even)):
        (tmp_path / name).write_text(text)
        result = hinge("train", "-q", "-t", "4", tmp_path / name, tmp_path / f"{name}.model")
        assert result.code == 0
        assert ("WARNING: the precomputed kernel matrix is not symmetric" in result.err) == (name == "bent")
        models.append((tmp_path / f"{name}.model").read_text())
    assert models[0] == models[1]


@pytest.mark.parametrize("kernel", range(5))
def test_large_index_takes_no_memory(kernel, hinge, tmp_path):
    data, model, out = (tmp_path / name for name in ("data", "model", "out"))
    data.write_text("1 0:1 1:2 2:0.5 2147483646:1\n-1 0:2 1:0.5 2:2\n")
    hinge("train", "-q", "-t", kernel, data, model)  # compile before memory is watched
    tracemalloc.start()
    try:
        for words in (["train", "-q", "-t", kernel, data, model], ["predict", data, model, out], ["check", data]):
            assert hinge(*words).code == 0
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
    assert out.read_text() == "1\n-1\n"


def test_missing_files(two_classes, hinge, tmp_path):
    missing, nowhere = tmp_path / "missing", tmp_path / "no" / "folder"
    assert hinge("train", missing).err.startswith(f"can't open input file {missing}\n")
    result = hinge("train", "-q", two_classes, nowhere)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"can't save model to file {nowhere}\n")
    assert hinge("train", "-q", two_classes, tmp_path / "model").code == 0
    assert hinge("predict", missing, tmp_path / "model", "out").err.startswith(f"can't open input file {missing}")
    assert hinge("predict", two_classes, missing, "out").err == f"can't open model file {missing}\n"
    result = hinge("predict", two_classes, tmp_path / "model", nowhere)
    assert result.code == 1
    assert result.err.startswith(f"can't open output file {nowhere}\n")
    assert hinge("scale", missing).err.startswith(f"can't open file {missing}\n")
    assert hinge("check", missing).err.startswith(f"can't open input file {missing}\n")


def test_warnings(two_classes, hinge, tmp_path):
    result = hinge("train", "-q", "-w7", 2, two_classes, tmp_path / "model")
    assert (result.code, result.err) == (0, "WARNING: class label 7 specified in weight is not found\n")
    lone = write(tmp_path / "lone", RNG.normal(size=(4, 2)), [3, 3, 3, 3])
    result = hinge("train", lone, tmp_path / "model")
    assert result.out == "WARNING: training data in only one class. See README for details.\nTotal nSV = 0\n"
    assert (tmp_path / "model").read_text().splitlines()[3:] == [
        "nr_class 1", "total_sv 0", "rho", "label 3", "nr_sv 0", "SV"]  # fmt: skip
    assert hinge("predict", "-q", lone, tmp_path / "model", tmp_path / "out").code == 0
    assert (tmp_path / "out").read_text() == "3\n" * 4
    result = hinge("train", "-q", "-v", 9, lone)
    assert result.err == (
        "WARNING: # folds (9) > # data (4). Will use # folds = # data instead "
        "(i.e., leave-one-out cross validation)\n"
    )
    result = hinge("train", "-s", 2, "-b", 1, "-n", 0.9, lone, tmp_path / "model")
    assert "too few to do a probability estimation" in result.err
    assert read_libsvm_model(tmp_path / "model").density_marks is None


def test_limits_are_reported(two_classes, hinge, tmp_path):
    report = tmp_path / "report.json"
    assert hinge("train", "-q", "--report", report, "--cost=2", two_classes, tmp_path / "model").code == 0
    figures = json.loads(report.read_text())
    assert figures["n_samples"] == 60
    assert figures["options"]["cost"] == 2
    assert figures["machines"][0]["status"] == "converged"
    assert figures["total_sv"] == read_libsvm_model(tmp_path / "model").coefficients.shape[1]
    result = hinge("train", "-q", "-v", 3, "--report", report, two_classes)
    assert f"{json.loads(report.read_text())['cv_accuracy']:g}%" in result.out
    hard = write(tmp_path / "hard", RNG.normal(size=(1500, 20)), np.sign(RNG.normal(size=1500)))
    result = hinge("train", "-q", "-c", 1e6, "-e", 1e-9, "--time-limit", 0.05, hard, tmp_path / "slow")
    assert result.code == 0
    assert "did not converge (time_limit)" in result.err


def test_solvers_and_threads_agree(three_classes, hinge, tmp_path):
    texts = set()
    for options in (["--threads", 1], ["--threads", 2], ["--threads", 2, "--solver", "block", "-m", 10]):
        assert hinge("train", "-q", *options, three_classes, tmp_path / "model").code == 0
        texts.add((tmp_path / "model").read_text())
    assert len(texts) == 1
    assert hinge("train", "-q", "--solver", "smo", three_classes, tmp_path / "model").code == 0
    result = hinge("train", "--threads", 0, three_classes)
    assert (result.code, result.err) == (2, "hinge train: --threads takes a number from 1, got '0'\n")


def test_full_precision(hinge, tmp_path):
    path = tmp_path / "data"
    path.write_text("1 1:0.12345678901234566\n-1 1:-1\n")
    hinge("train", "-q", path, tmp_path / "model")
    assert " 1:0.12345679 \n" in (tmp_path / "model").read_text()
    hinge("train", "-q", "--full-precision", path, tmp_path / "model")
    assert " 1:0.12345678901234566 \n" in (tmp_path / "model").read_text()


def test_compressed_files_and_tables(two_classes, hinge, tmp_path):
    packed = tmp_path / "packed.bz2"
    packed.write_bytes(bz2.compress(two_classes.read_bytes()))
    table = tmp_path / "table.csv"
    rows = [line.split() for line in two_classes.read_text().splitlines()]
    table.write_text("label,a,b,c\n" + "\n".join(
        ",".join([row[0], *(cell.split(":")[1] for cell in row[1:])]) for row in rows) + "\n")  # fmt: skip
    models = []
    for path in (two_classes, packed, table):
        assert hinge("train", "-q", path, tmp_path / "model").code == 0
        models.append((tmp_path / "model").read_text())
    assert models[0] == models[1] == models[2]


def test_huge_indices(hinge, tmp_path):
    path = tmp_path / "data"
    path.write_text("1 2147483646:1\n-1 1:1\n1 2147483646:2\n")
    for kernel in (0, 2):
        assert hinge("train", "-q", "-t", kernel, path, tmp_path / "model").code == 0
        assert hinge("predict", path, tmp_path / "model", tmp_path / "out").code == 0
    path.write_text("1 2147483647:1\n")
    assert "the limit max_index" in hinge("train", path).err


# ---------------------------------------------------------------------- predict


def test_predict_messages(two_classes, hinge, tmp_path):
    model, out = tmp_path / "model", tmp_path / "out"
    hinge("train", "-q", two_classes, model)
    result = hinge("predict", two_classes, model, out)
    assert result.out.startswith("Accuracy = ")
    assert "/60) (classification)\n" in result.out
    assert hinge("predict", "-q", two_classes, model, out).out == ""
    result = hinge("predict", "-b", 1, two_classes, model, out)
    assert (result.code, result.err) == (1, "Model does not support probabiliy estimates\n")
    hinge("train", "-q", "-b", 1, two_classes, model)
    result = hinge("predict", two_classes, model, out)
    assert result.out.startswith("Model supports probability estimates, but disabled in prediction.\n")
    hinge("train", "-q", "-b", 1, "-s", 3, two_classes, model)
    lines = hinge("predict", "-b", 1, two_classes, model, out).out.splitlines()
    assert lines[0] == "Prob. model for test data: target value = predicted value + z,"
    assert lines[1].startswith("z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma=")
    assert lines[2].startswith("Mean squared error = ")
    assert lines[3].startswith("Squared correlation coefficient = ")
    assert hinge("predict", two_classes, model).code == 1
    assert hinge("predict", "-x", two_classes, model, out).err.startswith(
        "Unknown option: -x\nUsage: hinge predict"
    )


def test_predict_refuses_broken_models(two_classes, hinge, tmp_path):
    model, out = tmp_path / "model", tmp_path / "out"
    model.write_text("svm_type c_svc\nfoo 1\n")
    result = hinge("predict", two_classes, model, out)
    assert result.code == 1
    assert result.err.splitlines() == [
        "unknown text in model file: [foo]",
        "ERROR: fscanf failed to read model",
        f"can't open model file {model}",
    ]
    assert not out.exists()
    gram = tmp_path / "gram"
    gram.write_text("1 0:1 1:2 2:0\n-1 0:2 1:0 2:2\n")
    assert hinge("train", "-q", "-t", 4, gram, model).code == 0
    gram.write_text("1 0:1 1:2\n")
    assert "needs kernel values with training sample 2" in hinge("predict", gram, model, out).err
    gram.write_text("1 1:1 2:2\n")
    assert hinge("predict", gram, model, out).err.startswith("Wrong input format: first column must be")


def test_unseen_features_count(hinge, tmp_path):
    """Features that no support vector has still add to the distance of an RBF kernel."""
    (tmp_path / "train").write_text("1 1:1\n-1 1:-1\n")
    (tmp_path / "test").write_text("1 1:1\n1 1:1 9:3\n")
    hinge("train", "-q", "-g", 1, tmp_path / "train", tmp_path / "model")
    out = tmp_path / "decisions"
    hinge("predict", "-q", "--decision-values", out, tmp_path / "test", tmp_path / "model", tmp_path / "out")
    near, far = np.loadtxt(out)
    assert abs(far) < 1e-3 < near


# ---------------------------------------------------------------------- scale, check, subset


def test_scale_messages(hinge, tmp_path):
    data, ranges = tmp_path / "data", tmp_path / "ranges"
    data.write_text("1 1:1 2:5 3:2\n2 1:2 3:4\n")
    assert hinge("scale", "-l", 1, "-u", 0, data).err == "inconsistent lower/upper specification\n"
    assert hinge("scale", "-y", 1, 1, data).err == "inconsistent lower/upper specification\n"
    assert hinge("scale", "-s", "a", "-r", "b", data).err == "cannot use -r and -s simultaneously\n"
    result = hinge("scale", "-z", 1, data)
    assert (result.code, result.err.splitlines()[0]) == (1, "unknown option")
    result = hinge("scale", "-s", ranges, data)
    assert result.out == "1 1:-1 2:1 3:-1 \n2 1:1 2:-1 3:1 \n"
    assert result.err.startswith("WARNING: original #nonzeros 5\n       > new      #nonzeros 6\n")
    data.write_text("1 1:1.5 2:3 4:7\n2 4:1\n")
    assert "feature index 4 appeared in file" in hinge("scale", "-r", ranges, data).err
    for text in (
        "",
        "z\n",
        "x\n1\n",
        "x\n0 1\n1 2\n",
        "x\n0 1\n2 0 1\n1 0 1\n",
        "x\n0 1\n1.5 0 1\n",
        "x\n0 nan\n",
    ):
        ranges.write_text(text)
        result = hinge("scale", "-r", ranges, data)
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith("ERROR: failed to read scaling parameters\n")
    data.write_text("1 0:5 1:1\n2 0:7 1:3\n3 1:4\n")
    result = hinge("scale", data)
    assert result.out == "1 0:-1 1:-1 \n2 0:1 1:0.333333 \n3 1:1 \n"
    assert result.err == "WARNING: minimal feature index is 0, but indices should start from 1\n"


def test_check(two_classes, hinge, tmp_path):
    assert hinge("check", two_classes) == (0, "No error.\n", "")
    bad = tmp_path / "bad"
    bad.write_text("1 1:nan\n1 1:1\n2 3:1 2:1\n1,2 1:1\n")
    result = hinge("check", bad)
    assert result.code == 1
    lines = result.out.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == [
        "line 1, column 5", "line 3, column 7", "line 4, column 1"]  # fmt: skip
    assert lines[-1] == "Found 3 lines with error."
    assert "and 2 more" in hinge("check", "--max-errors", 1, bad).out
    assert hinge("check", "--max-errors", 0, bad).code == 2
    bad.write_text("1 1:1")
    result = hinge("check", bad)
    assert (result.code, result.out.splitlines()[-1]) == (1, "Found 1 lines with error.")


def test_subset(hinge, tmp_path):
    data, part, rest = tmp_path / "data", tmp_path / "part", tmp_path / "rest"
    lines = [f"{label} 1:{k}\n" for k, label in enumerate([1] * 50 + [2] * 48 + [3, 3])]
    data.write_text("".join(lines))
    assert hinge("subset", "--seed", 4, data, 10, part, rest).code == 0
    chosen, left = (path.read_text().splitlines(keepends=True) for path in (part, rest))
    assert sorted(chosen + left, key=lines.index) == lines
    assert chosen == sorted(chosen, key=lines.index)
    assert [sum(line[0] == label for line in chosen) for label in "123"] == [4, 5, 1]
    assert hinge("subset", "--seed", 4, data, 10).out == part.read_text()
    assert len(hinge("subset", "-s", 1, data, 100).out.splitlines()) == 100
    assert "at least one instance per class" in hinge("subset", data, 2).err
    assert "fewer than 101" in hinge("subset", data, 101).err
    assert hinge("subset", data, "x").code == 2
    assert hinge("subset", "-s", 2, data, 5).code == 1
    assert hinge("subset", tmp_path / "missing", 5).err.startswith("can't open input file")


# ---------------------------------------------------------------------- as programs


def program(name):
    """A command line that runs an entry point, whether or not it is installed."""
    return [sys.executable, "-c", f"import sys; from hinge.cli import {name}; sys.exit({name}())"]


def test_as_grid_py_calls_it(two_classes, tmp_path):
    """grid.py runs ``svmtrain -c C -g G -v 5 OPTIONS FILE`` in a shell and looks for the word Cross."""
    rates = []
    for c, g in ((2, 0.5), (8, 0.125)):
        words = [*program("svm_train"), "-c", str(c), "-g", str(g), "-v", "5", "-q", str(two_classes)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE)
        out, _ = process.communicate()
        for line in out.splitlines():
            if b"Cross" in line:
                rates.append(float(line.split()[-1][0:-1]))
    assert len(rates) == 2
    assert all(50 < rate <= 100 for rate in rates)


def test_programs_and_pipes(two_classes, tmp_path):
    run = {"capture_output": True, "text": True, "check": True, "cwd": tmp_path}
    scaled = subprocess.run([*program("svm_scale"), "two"], **run).stdout
    subprocess.run([*program("svm_train"), "-q", "-", "model"], input=scaled, **run)
    done = subprocess.run([*program("svm_predict"), "-", "model", "out"], input=scaled, **run)
    assert "(classification)" in done.stdout
    half = subprocess.run(f"{sys.executable} -m hinge.cli train --help | head -1", shell=True, **run)
    assert half.stderr == ""


WAITS_AT_EACH_STEP = """
import sys
import hinge.cli
from hinge.solvers.run import Run

def check(run, violation, n_active, go_on=Run.check):
    print("a step", flush=True)
    sys.stdin.read()
    go_on(run, violation, n_active)

Run.check = check
sys.exit(hinge.cli.main())
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_interrupt_leaves_the_old_model(tmp_path):
    X = RNG.normal(size=(2500, 5))  # more than one working set: there are steps to stop between
    path = write(tmp_path / "hard", X, np.where(RNG.normal(size=2500) > 0, 1, -1))
    (tmp_path / "model").write_text("old")
    words = [sys.executable, "-c", WAITS_AT_EACH_STEP, "train", "-c", "1e6", "-e", "1e-9", str(path), "model"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(words, cwd=tmp_path, **pipes)
    assert process.stdout.readline() == b"a step\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)  # which closes its input: it goes on
    assert process.returncode == 1
    assert b"interrupted" in errors
    assert set(os.listdir(tmp_path)) == {"hard", "model"}
    assert (tmp_path / "model").read_text() == "old"


def test_light_to_start(two_classes, tmp_path):
    """Neither training nor prediction waits for scikit-learn."""
    code = (
        "import sys; from hinge.cli import main; main(['train', '-q', 'two', 'model']); "
        "main(['predict', '-q', 'two', 'model', 'out']); print('sklearn' in sys.modules, 'rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "False False\n"


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_progress_is_shown_on_a_terminal_only(three_classes, tmp_path):
    terminal, end = os.openpty()
    words = [sys.executable, "-m", "hinge.cli", "train", str(three_classes), "model"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=end, check=True, cwd=tmp_path)
    os.close(end)
    shown = os.read(terminal, 2**16)
    os.close(terminal)
    assert b"machines" in shown
    assert b"\x1b" not in done.stdout
    assert b"Total nSV" in done.stdout
