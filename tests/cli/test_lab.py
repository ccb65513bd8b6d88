"""``hinge lab``: list, race, reproduce."""

from dataclasses import replace

import numpy as np
import pytest

from hinge import lab
from hinge.cli.commands import lab as command
from hinge.lab.experiments.scales import TINY
from strategies import NAMED


@pytest.fixture
def data(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3))
    y = np.where(X[:, 0] > 0, 2, 1)
    lines = [
        f"{label} " + " ".join(f"{k + 1}:{x:.4f}" for k, x in enumerate(row))
        for label, row in zip(y, X, strict=True)
    ]
    path = tmp_path / "data"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_list_names_every_algorithm_and_its_paper(hinge):
    result = hinge("lab", "list")
    assert result.code == 0
    for algorithm in lab.ALGORITHMS.values():
        assert f"{algorithm.name}\n" in result.out
        assert algorithm.reference in result.out


def test_race_prints_a_table_and_draws(hinge, data, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "new" / "race.png"
    words = ("--solvers", "smo-mvp,smo-hmg", "--c", 2, "--gamma", 0.5, "--out", picture)
    result = hinge("lab", "race", data, *words)
    assert result.code == 0, result.err
    for name in ("smo-mvp", "smo-hmg"):
        row = next(line for line in result.out.splitlines() if line.strip().startswith(name))
        assert "converged" in row
    assert "80 samples, 3 features; rbf, C = 2, γ = 0.5" in result.out
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_race_takes_kernel_tolerance_and_limits(hinge, data):
    words = (
        "--kernel",
        "linear",
        "--tolerance",
        1e-6,
        "--cache",
        1,
        "--threads",
        1,
        "--no-shrinking",
        "--time-limit",
        30,
    )
    result = hinge("lab", "race", data, *words)
    assert result.code == 0, result.err
    assert "linear" in result.out
    assert result.out.count("converged") == 4  # the solvers by default


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("list", "more"), 1, "'more' is one argument too many"),
        (("race",), 1, "hinge lab race: DATA is missing"),
        (("rase", "DATA"), 2, "got 'rase'; did you mean race?"),
        ((), 1, "list|race|animate|reproduce is missing"),
        (("walk",), 2, "expected list, race, animate or reproduce, got 'walk'"),
        (("reproduce", "newton"), 2, "expected platt, glasmachers, bottou or all, got 'newton'"),
        (("race", "DATA", "--solvers", "auto,nobody"), 2, "no algorithm is called 'nobody'"),
        (("race", "DATA", "--c", "-1"), 2, "--c takes a number above 0, got '-1'"),
        (("race", "DATA", "--kernel", "cubic"), 2, f"--kernel takes one of {', '.join(NAMED)}, got 'cubic'"),
        (("race", "DATA", "--time-limit", "-3"), 2, "--time-limit takes a number above 0, got '-3'"),
        (("race", "DATA", "--out", "race.pdf"), 2, "--out must end in .png, got 'race.pdf'"),
        (("race", "DATA", "--out", "DATA/race.png"), 1, "is no folder"),
    ],
)
def test_wrong_usage_is_explained(hinge, data, tmp_path, words, code, error):
    named = {"DATA": data, "DATA/race.png": data / "race.png"}
    result = hinge("lab", *(named.get(word, word) for word in words))
    assert result.code == code
    assert error in result.err


def test_a_race_needs_two_classes(hinge, tmp_path, monkeypatch):
    (tmp_path / "three").write_text("1 1:1\n2 1:2\n3 1:3\n")
    result = hinge("lab", "race", tmp_path / "three")
    assert (result.code, "two classes" in result.err) == (1, True)
    (tmp_path / "broken").write_text("1 1:x\n")
    assert hinge("lab", "race", tmp_path / "broken").code == 1
    monkeypatch.setenv("HINGE_DATA", str(tmp_path))
    monkeypatch.setenv("HINGE_CACHE", str(tmp_path))
    result = hinge("lab", "race", "no-such-set")
    assert (result.code, "was not found" in result.err) == (1, True)


@pytest.mark.slow
def test_reproduce_writes_a_report_and_goes_on_where_it_was(hinge, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(
        command, "QUICK", replace(TINY, adult=(), web=(), separable=(60, 80, 100), noise=(40, 60, 80))
    )
    result = hinge("lab", "reproduce", "platt", "--quick", "--out", tmp_path / "out")
    assert result.code == 0, result.err
    report = (tmp_path / "out" / "report.md").read_text()
    assert "Platt: Separable data" in report
    n_cells = len((tmp_path / "out" / "cells.jsonl").read_text().splitlines())
    assert n_cells > 20
    monkeypatch.setattr("hinge.lab.experiments.ledger.run_cell", lambda cell: pytest.fail("it ran again"))
    assert hinge("lab", "reproduce", "platt", "--quick", "--out", tmp_path / "out").code == 0


def test_animate_writes_a_film(hinge, tmp_path):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(30, 2))
    lines = [f"{1 if a * b > 0 else -1} 1:{a:.4f} 2:{b:.4f}" for a, b in X]
    (tmp_path / "plane").write_text("\n".join(lines) + "\n")
    out = tmp_path / "run.gif"
    result = hinge("lab", "animate", tmp_path / "plane", "--solver", "smo-hmg", "--frames", "3", "--out", out)
    assert result.code == 0, result.err
    assert out.read_bytes()[:3] == b"GIF"
    refused = hinge("lab", "animate", tmp_path / "plane", "--out", tmp_path / "run.avi")
    assert refused.code == 2
    assert "a .gif or an .mp4 file" in refused.err
