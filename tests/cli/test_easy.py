"""``hinge easy``: easy.py's lines and files, and the model that they lead to."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from hinge.cli.commands import grid
from hinge.cli.tables import EASY
from hinge.io import read_libsvm_model


@pytest.fixture(autouse=True)
def _small_grid(monkeypatch):
    """Nine points instead of 110."""
    monkeypatch.setattr(grid, "_DEFAULTS", {"log2c": (-1, 7, 4), "log2g": (-1, -9, -4)})


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A training and a testing file on very different scales."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    y = np.where(rng.random(120) < 0.5, 1, 2)
    X = (rng.normal(size=(120, 3)) + y[:, None]) * [1.0, 1000.0, 0.01]
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(row)) + "\n"
        for label, row in zip(y, X, strict=True)
    ]
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "train").write_text("".join(lines[:80]))
    (folder / "test").write_text("".join(lines[80:]))
    return folder / "train", folder / "test"


def test_lines_and_files(hinge, files, tmp_path):
    result = hinge("easy", *files)
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    best = lines[2].split()
    assert lines[:2] == ["Scaling training data...", "Cross validation..."]
    assert [word.partition("=")[0] for word in best[1:]] == ["c", "g", "CV", "rate"]
    assert best[1].endswith(",")
    assert lines[3:7] == ["Training...", "Output model: train.model", "Scaling testing data...", "Testing..."]
    assert lines[7].startswith("Accuracy = ")
    assert lines[8] == "Output prediction: test.predict"
    assert float(best[2].partition("=")[2]) == pytest.approx(read_libsvm_model("train.model").kernel.gamma)
    written = {path.name for path in tmp_path.iterdir()} - {"elsewhere"}
    assert written == {
        "train.scale", "train.range", "train.scale.out", "train.scale.out.json", "train.scale.png", "train.model",
        "test.scale", "test.predict",
    }  # fmt: skip


def test_scaled_files_are_those_of_svm_scale(hinge, libsvm, files, tmp_path):
    hinge("easy", *files)
    assert (tmp_path / "train.scale").read_text() == libsvm("svm-scale", "-s", "r", files[0], cwd=tmp_path).out
    assert (tmp_path / "train.range").read_text() == (tmp_path / "r").read_text()
    assert (tmp_path / "test.scale").read_text() == libsvm("svm-scale", "-r", "r", files[1], cwd=tmp_path).out


def test_second_run_goes_on_with_the_rates_of_the_first(hinge, files, tmp_path):
    first = hinge("easy", files[0])
    rates = tmp_path / "train.scale.out"
    whole = sorted(rates.read_text().splitlines())
    rates.write_text("".join(line + "\n" for line in whole[:6]))
    again = hinge("easy", files[0])
    assert again.out == first.out
    assert sorted(rates.read_text().splitlines()) == whole
    assert rates.read_text().startswith("\n".join(whole[:6]))
    files[0].write_text(files[0].read_text() + "1 1:0.5\n")  # other data: afresh
    assert hinge("easy", files[0]).code == 0
    assert not rates.read_text().startswith("\n".join(whole[:6]))


def test_missing_files(hinge, files):
    assert hinge("easy", files[0].parent / "nothing").err.startswith("training file not found")
    assert hinge("easy", files[0], "nothing").err.startswith("testing file not found")
    assert hinge("easy").code == 1
    assert EASY.synopsis in hinge("easy").err


def test_bad_data_leaves_nothing_behind(hinge, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad").write_text("1 1:x\n")
    result = hinge("easy", "bad")
    assert result.code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["bad"]


def test_result_is_that_of_easy_py(hinge, libsvm, data_file, tmp_path, monkeypatch):
    script, program = shutil.which("svm-grid"), shutil.which("svm-train")
    if script is None:
        pytest.skip("svm-grid not installed (Debian package libsvm-tools)")
    monkeypatch.chdir(tmp_path)
    path = data_file("heart_scale")
    ours = hinge("easy", path).out.splitlines()[2]
    (tmp_path / "scaled").write_text(libsvm("svm-scale", path).out)
    ranges = ["-log2c", "-1,7,4", "-log2g", "-1,-9,-4"]
    words = [sys.executable, script, "-svmtrain", program, "-gnuplot", "null", *ranges, "scaled"]
    theirs = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
    rate = float(ours.rpartition("=")[2])
    assert rate == pytest.approx(float(theirs[2]), abs=0.4)  # a sample more or less, at LIBSVM's tolerance
