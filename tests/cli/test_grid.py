"""``hinge grid``: LIBSVM's own rates at every point, grid.py's lines and files, and clear refusals."""

import json
import re
import shutil
import stat
import subprocess
import sys

import numpy as np
import pytest

from hinge.cli.commands import grid
from hinge.cli.grid_points import Rates, bisected, steps, visiting_order
from hinge.cli.tables import GRID

TIGHT = ("-e", "1e-5")  # LIBSVM's answer at its default tolerance may put a sample on the other side


def write_data(path, X, y):
    lines = [
        f"{label:g} " + " ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(row))
        for label, row in zip(y, X, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def blobs(tmp_path, monkeypatch):
    """Two classes that overlap, in a file of the current folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(80) < 0.4, 1, -1)
    X = rng.normal(size=(80, 4)) + 0.8 * y[:, None]
    return write_data(tmp_path / "blobs", X, y)


def rates_of(text):
    """Rates of an .out file by point."""
    numbers = [[float(word.partition("=")[2]) for word in line.split()] for line in text.splitlines()]
    return {tuple(row[:-1]): row[-1] for row in numbers}


SMALL = ("-log2c", "-1,5,3", "-log2g", "-1,-7,-3", "-gnuplot", "null")

PROBLEMS = [
    ("heart_scale", ""),
    ("heart_scale", "-t 0 -v 3"),
    ("heart_scale", "-t 1 -d 2 -r 1"),
    ("heart_scale", "-w1 3 -w-1 0.5"),
    ("heart_scale", "-s 1 -n 0.4"),
    ("iris.scale", ""),
    ("glass.scale", "-v 4"),
    ("housing_scale", "-s 3 -p 0.5"),
    ("pyrim", "-s 4 -n 0.3"),
]


@pytest.mark.parametrize(("name", "options"), PROBLEMS)
def test_rates_are_those_of_svm_train(hinge, libsvm, data_file, tmp_path, monkeypatch, name, options):
    monkeypatch.chdir(tmp_path)
    path = data_file(name)
    words = [*options.split(), *TIGHT]
    assert hinge("grid", *SMALL, "-out", "ours", *words, path).code == 0
    ours = rates_of((tmp_path / "ours").read_text())
    assert len(ours) == 9
    folds = [] if "-v" in words else ["-v", "5"]
    for (c, g), rate in ours.items():
        theirs = libsvm("svm-train", "-q", "-c", 2.0**c, "-g", 2.0**g, *folds, *words, path).out.splitlines()[0]
        is_error = "squared" in theirs
        assert rate == pytest.approx(float(theirs.split()[-1].rstrip("%")), rel=1e-3 if is_error else 0)


def test_files_and_result_are_those_of_grid_py(hinge, libsvm, data_file, tmp_path, monkeypatch):
    script = shutil.which("svm-grid")
    if script is None:
        pytest.skip("svm-grid not installed (Debian package libsvm-tools)")
    monkeypatch.chdir(tmp_path)
    path = data_file("heart_scale")
    words = ["-log2c", "-1,9,2", "-log2g", "-3,-11,-4", "-gnuplot", "null", *TIGHT]
    theirs = subprocess.run(
        [sys.executable, script, *words, "-svmtrain", shutil.which("svm-train"), "-out", "theirs.out", path],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    ours = hinge("grid", *words, "-out", "ours.out", path).out.splitlines()
    assert sorted((tmp_path / "ours.out").read_text().splitlines()) == sorted(
        (tmp_path / "theirs.out").read_text().splitlines()
    )
    assert ours[-1] == theirs[-1]
    assert sorted(line.partition(" (")[0] for line in ours) == sorted(line.partition(" (")[0] for line in theirs)
    assert ours[-2].partition("(")[2] == theirs[-2].partition("(")[2]


@pytest.mark.slow
def test_default_grid_prints_whole_numbers_and_ends_with_the_best_point(hinge, blobs):
    result = hinge("grid", "-v", "2", "-gnuplot", "null", blobs)
    lines = result.out.splitlines()
    assert len(lines) == 111
    assert result.err == ""
    pattern = r"\[local\] -?\d+ -?\d+ \d+\.\d+ \(best c=[\d.e-]+, g=[\d.e-]+, rate=\d+\.\d+\)"
    assert all(re.fullmatch(pattern, line) for line in lines[:-1])
    c, gamma, rate = map(float, lines[-1].split())
    rates = rates_of((blobs.parent / "blobs.out").read_text())
    assert rates[np.log2(c), np.log2(gamma)] == rate == max(rates.values())


def test_points_come_in_the_order_of_grid_py():
    assert bisected(steps(-5, 15, 2)) == [5, -1, 11, -3, 9, 3, 15, -5, 7, 1, 13]
    order = visiting_order(bisected(steps(1, 3, 1)), bisected(steps(1, 2, 1)))
    assert order == [(2, 2), (1, 2), (2, 1), (1, 1), (3, 2), (3, 1)]


def test_best_point_does_not_depend_on_the_order_of_computation():
    order = visiting_order(bisected(steps(-3, 3, 2)), bisected(steps(-3, 3, 2)))
    rng = np.random.default_rng(0)
    rates = dict(zip(order, rng.integers(80, 83, len(order)).astype(float), strict=True))
    best_rate, best = -1.0, (None, None)
    for (c, g), rate in rates.items():  # as grid.py does it
        if rate > best_rate or (rate == best_rate and g == best[1] and c < best[0]):
            best_rate, best = rate, (c, g)
    for _ in range(5):
        table = Rates(order)
        for point in rng.permutation(len(order)):
            table.add({order[point]: rates[order[point]]})
        assert table.best() == best


def test_one_parameter(hinge, blobs):
    result = hinge("grid", "-log2c", "null", "-log2g", "-5,-1,2", blobs)
    assert all(re.match(r"\[local\] -[135].0 \d+\.\d+ \(best g=", line) for line in result.out.splitlines()[:-1])
    assert (blobs.parent / "blobs.out").read_text().count("log2g=-3.0 rate=") == 1
    assert len(result.out.splitlines()[-1].split()) == 2
    linear = hinge("grid", "-t", "0", "-log2g", "null", "-log2c", "-3,1,2", "--plot", "c.svg", blobs)
    assert linear.code == 0
    assert "<svg" in (blobs.parent / "c.svg").read_text()
    assert not (blobs.parent / "blobs.png").exists()


def test_what_does_not_change_the_machine_is_not_computed_again(hinge, blobs):
    result = hinge("grid", "-t", "0", *SMALL, "--report", "r.json", blobs)
    report = json.loads((blobs.parent / "r.json").read_text())
    assert len(report["points"]) == 9  # as grid.py prints them
    assert len(report["cells"]) == 3
    assert result.code == 0


def test_regression_takes_the_smallest_error(hinge, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    path = write_data(tmp_path / "r", X, np.sin(X[:, 0]) + X[:, 1])
    last = hinge("grid", "-s", "3", *SMALL, path).out.splitlines()[-1]
    assert float(last.split()[-1]) == min(rates_of((tmp_path / "r.out").read_text()).values())


@pytest.mark.slow
def test_probabilities_and_rare_classes_are_searched_point_by_point(hinge, blobs):
    few = ("-log2c", "1,1,1", "-log2g", "-1,-1,1", "-gnuplot", "null")
    result = hinge("grid", "-b", "1", *few, blobs)
    assert "trained by itself" in result.err
    wanted = hinge("train", "-b", "1", "-q", "-v", "5", "-c", "2", "-g", "0.5", blobs).out
    assert rates_of((blobs.parent / "blobs.out").read_text())[1.0, -1.0] == float(wanted.split()[-1].rstrip("%"))
    assert hinge("grid", "-b", "1", *few, "--cluster", "loky", blobs).code == 1


def test_svmtrain_is_run_for_every_point(hinge, blobs):
    program = blobs.parent / "my-train"
    program.write_text('#!/bin/sh\necho "$@" >> words\necho "Cross Validation Accuracy = 5$4%" | tr -d .\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    result = hinge(
        "grid", "-svmtrain", program, "-log2c", "1,2,1", "-log2g", "0,0,1", "-h", "0", "-gnuplot", "null", blobs
    )
    assert result.code == 0, result.err
    assert f"{program} is run for every point" in result.err
    calls = sorted((blobs.parent / "words").read_text().splitlines())
    assert calls == [f"-c {c} -g 1.0 -v 5 -h 0 {blobs}" for c in ("2.0", "4.0")]
    failing = hinge("grid", "-svmtrain", "false", *SMALL, blobs)
    assert failing.code == 1
    assert "false failed" in failing.err


REFUSED = [
    (["-c", "1"], "Use -log2c and -log2g.", 1),
    (["-log2c", "null", "-log2g", "null"], "should not be null simultaneously", 1),
    (["-log2c", "1,2"], "begin,end,step", 2),
    (["-log2c", "1,5,-1"], "a step that leads", 2),
    (["-log2g", "1,5,0"], "not 0", 2),
    (["-v", "1"], "n must >= 2", 1),
    (["-svmtrain", "no-such-program"], "svm-train executable not found", 1),
    (["-resume", "nothing.out"], "file for resumption not found", 1),
    (["--plot", "a.bmp"], "png, svg, pdf", 1),
    (["-n", "2", "-s", "1"], "nu <= 0 or nu > 1", 1),
    (["--cluster", "no-such-backend"], "neither a backend of joblib nor", 1),
    (["-x", "1"], "Unknown option: -x", 1),
]


@pytest.mark.parametrize(("words", "message", "code"), REFUSED)
def test_refusals(hinge, blobs, words, message, code):
    result = hinge("grid", *words, blobs)
    assert result.code == code
    assert message in result.err


def test_missing_data(hinge, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = hinge("grid", "nowhere")
    assert (result.code, result.err.splitlines()[0]) == (1, "can't open input file nowhere")


def test_plot_of_the_search(hinge, blobs):
    assert hinge("grid", *SMALL[:4], blobs).code == 0
    assert (blobs.parent / "blobs.png").read_bytes().startswith(b"\x89PNG")


def test_no_plot_without_matplotlib(hinge, blobs, monkeypatch):
    monkeypatch.setattr(grid.importlib.util, "find_spec", lambda name: None)
    quiet = hinge("grid", *SMALL[:4], blobs)
    assert quiet.code == 0
    assert "hinge-svm[plot]" in quiet.err
    assert hinge("grid", "--plot", "a.png", *SMALL[:4], blobs).code == 1


def test_output_file_that_cannot_be_written(hinge, blobs):
    result = hinge("grid", *SMALL, "-out", blobs.parent / "no" / "folder.out", blobs)
    assert result.code == 1
    assert "can't open output file" in result.err


def test_interrupted_search_says_how_to_go_on(hinge, blobs, monkeypatch):
    def interrupted(search, strategy):
        search.on_rate((2.0, -4.0), 50.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(grid, "share", interrupted)
    result = hinge("grid", *SMALL, blobs)
    assert result.code == 1
    assert "1 rates are in blobs.out; -resume goes on from there" in result.err


def test_one_dash_words_and_resume_without_a_file():
    assert grid.translated(["-resume", "-v", "3", "d/x"]) == ["--resume", "x.out", "-v", "3", "d/x"]
    assert grid.translated(["-resume", "a", "x"]) == ["--resume", "a", "x"]
    assert grid.translated(["-resume", "x"]) == ["--resume", "x.out", "x"]
    assert GRID.parse(grid.translated(["-log2c", "-1,0,1", "x"]))["log2c"] == "-1,0,1"


def test_refinement_finds_a_good_point_with_fewer(hinge, blobs):
    everything = float(hinge("grid", "-gnuplot", "null", blobs).out.split()[-1])
    refined = hinge("grid", "--strategy", "refine", "--plot", "refined.png", "-out", "refined.out", blobs)
    assert refined.code == 0, refined.err
    assert refined.out.count("[local]") < 50
    assert float(refined.out.split()[-1]) >= everything - 2
    again = hinge("grid", "--strategy", "refine", "-gnuplot", "null", "-resume", "refined.out", blobs)
    assert again.out.count("[local]") == 0
    assert again.out.splitlines()[-1] == refined.out.splitlines()[-1]
    assert hinge("grid", "--strategy", "refine", "-b", "1", blobs).code == 1
