"""A search that is killed goes on where it was: nothing is lost, nothing is mixed, the table is the same."""

import json
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

WORDS = ("-log2c", "-5,15,2", "-log2g", "3,-9,-4", "-gnuplot", "null")
N_POINTS = 11 * 4


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Classes that overlap: the rates of neighbours differ."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    y = np.where(rng.random(100) < 0.5, 1, -1)
    X = rng.normal(size=(100, 5)) + 0.5 * y[:, None]
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{v:.5f}" for j, v in enumerate(row))
        for label, row in zip(y, X, strict=True)
    ]
    (tmp_path / "data").write_text("\n".join(lines) + "\n")
    return tmp_path / "data"


def table_of(path):
    lines = path.read_text().splitlines()
    assert len(set(lines)) == len(lines)
    return sorted(lines)


def n_lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_and_resume(part, data, n_kills):
    """Start the search as often as that, and kill it each time, some points later."""
    draw = random.Random(0)
    for _ in range(n_kills):
        before = n_lines(part)
        resume = ["-resume", str(part)] if part.exists() else []
        command = [sys.executable, "-m", "hinge.cli", "grid", *WORDS, "-out", str(part), *resume, str(data)]
        moment = before + draw.randint(0, N_POINTS // n_kills)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while n_lines(part) < moment and process.poll() is None:
            time.sleep(0.002)
        time.sleep(draw.random() * 0.01)
        process.send_signal(signal.SIGKILL)
        error = process.communicate()[1]
        assert process.returncode in (0, -signal.SIGKILL), error.decode()
        assert n_lines(part) >= before  # whatever was there stays there


@pytest.mark.slow
def test_killed_search_ends_with_the_same_table(hinge, data):
    whole, part = data.parent / "whole.out", data.parent / "part.out"
    last = hinge("grid", *WORDS, "-out", whole, data).out.splitlines()[-1]
    kill_and_resume(part, data, 3)
    result = hinge("grid", *WORDS, "-out", part, *(["-resume", part] if part.exists() else []), data)
    assert result.code == 0, result.err
    assert table_of(part) == table_of(whole)
    assert result.out.splitlines()[-1] == last


SMALL = ("-log2c", "-1,3,2", "-log2g", "-1,-3,-2", "-gnuplot", "null")


def test_torn_line_is_computed_again(hinge, data):
    hinge("grid", *SMALL, data)
    out = data.parent / "data.out"
    whole = table_of(out)
    text = out.read_text()
    out.write_text(text[:-4])  # rate=83.3333 became rate=83.: still a number, but not the rate
    result = hinge("grid", *SMALL, "-resume", data)
    assert result.out.count("[resumed]") == 5
    assert result.out.count("[local]") == 1
    assert table_of(out) == whole


def test_other_data_or_parameters_are_refused(hinge, data):
    hinge("grid", *SMALL, data)
    out = data.parent / "data.out"
    before = out.read_bytes()
    folds = hinge("grid", *SMALL, "-v", "3", "-resume", data)
    assert folds.code == 1
    assert "folds was 5, now it is 3" in folds.err
    data.write_text(data.read_text() + "1 1:0.25\n")
    other = hinge("grid", *SMALL, "-resume", data)
    assert other.code == 1
    assert "the data are not the same" in other.err
    assert "-out" in other.err
    assert out.read_bytes() == before


def test_larger_grid_goes_on_from_a_smaller_one(hinge, data):
    hinge("grid", *SMALL, data)
    larger = ("-log2c", "-1,5,2", *SMALL[2:])
    result = hinge("grid", *larger, "-resume", data)
    assert (result.out.count("[resumed]"), result.out.count("[local]")) == (6, 2)
    afresh = hinge("grid", *larger, "-out", "afresh.out", data)
    assert afresh.out.splitlines()[-1] == result.out.splitlines()[-1]


def test_file_of_grid_py_is_taken_on_trust(hinge, data):
    (data.parent / "theirs.out").write_text("log2c=1 log2g=-1 rate=99.5\n")
    result = hinge("grid", *SMALL, "-resume", "theirs.out", data)
    assert result.out.splitlines()[-1] == "2.0 0.5 99.5"
    assert "log2c=1.0 log2g=-1.0 rate=99.5\n" in (data.parent / "data.out").read_text()


def test_file_of_something_else_is_refused(hinge, data):
    (data.parent / "data.out").write_text("log2c=1 log2g=-1 rate=99.5\nhello\n")
    result = hinge("grid", *SMALL, "-resume", data)
    assert result.code == 1
    assert "data.out, line 2: not a line of a grid search" in result.err


def test_search_afresh_forgets_the_old_rates(hinge, data):
    (data.parent / "data.out").write_text("log2c=1 log2g=-1 rate=99.5\n")
    hinge("grid", *SMALL, data)
    text = (data.parent / "data.out").read_text()
    assert "99.5" not in text
    assert len(text.splitlines()) == 6
    about = json.loads((data.parent / "data.out.json").read_text())
    assert about["folds"] == 5
