"""Options that limit what a run may use: each has an effect that shows in its report, or in what it starts."""

import json

import numpy as np
import pytest

from hinge.runtime.threads import Team
from reference import kernel_matrix

RNG = np.random.default_rng(0)
N = 2100  # more than one working set, whose whole matrix is computed whatever the cache
X = np.round(RNG.normal(size=(N, 3)), 4)
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=N) > 0, 1, -1)


def write(path, y):
    lines = [f"{t} " + " ".join(f"{j + 1}:{v:g}" for j, v in enumerate(row)) for t, row in zip(y, X, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data") / "data", Y)


@pytest.fixture
def report_of(hinge, data, tmp_path):
    """A function that trains and returns the report of its one machine."""

    def train(*options):
        words = ["train", "-q", "-g", "0.5", *options, "--report", tmp_path / "report", data, tmp_path / "model"]
        result = hinge(*words)
        assert result.code == 0, result.err
        (machine,) = json.loads((tmp_path / "report").read_text())["machines"]
        return machine | {"errors": result.err}

    return train


@pytest.mark.parametrize("solver", ["smo", "block"])
def test_cache_size(report_of, solver):
    """A small cache holds fewer rows; where rows are what a method lives on, they are computed more often."""
    small, large = (report_of("--solver", solver, "-m", m) for m in ("1", "100"))
    assert small["status"] == large["status"] == "converged"
    assert small["cache_bytes"] <= 2**20
    if solver == "smo":
        assert small["cache_bytes"] > 2**19
        assert 2**20 < large["cache_bytes"] <= 100 * 2**20
        assert small["kernel_evaluations"] > large["kernel_evaluations"]
    assert small["objective"] == pytest.approx(large["objective"], rel=1e-3)


@pytest.fixture
def team_sizes(monkeypatch):
    """Sizes of the teams that shared work."""
    seen, share = set(), Team.share

    def noting(team, *arguments):
        seen.add(team.size)
        return share(team, *arguments)

    monkeypatch.setattr(Team, "share", noting)
    return seen


@pytest.mark.parametrize("threads", [1, 3])
def test_threads(hinge, data, report_of, tmp_path, team_sizes, threads):
    report_of("--threads", threads)
    assert max(team_sizes) == threads
    team_sizes.clear()
    assert hinge("predict", "--threads", threads, data, tmp_path / "model", tmp_path / "out").code == 0
    assert max(team_sizes) == threads


def test_shrinking(report_of):
    with_it, without = report_of("-h", "1"), report_of("-h", "0")
    assert with_it["fewest_active"] < N == without["fewest_active"]
    assert with_it["most_lagging"] > 0 == without["most_lagging"]
    assert with_it["status"] == without["status"] == "converged"


def test_tolerance(report_of):
    """The stricter one is kept, and is not the default's answer."""
    loose, strict = report_of("-e", "0.5"), report_of("-e", "1e-6")
    assert strict["violation"] <= 1e-6
    assert 1e-6 < loose["violation"] <= 0.5
    assert loose["iterations"] < strict["iterations"]


def test_time_limit(hinge, tmp_path):
    """What is written is the best model so far: feasible, and better than none."""
    noise = np.sign(np.random.default_rng(1).normal(size=N))
    hard = write(tmp_path / "hard", noise.astype(int))
    words = ["train", "-q", "-c", "1e6", "-e", "1e-9", "-g", "0.5", "--report", tmp_path / "report"]
    assert hinge(*words, "-e", "10", hard, tmp_path / "model").code == 0  # compiled by now
    result = hinge(*words, "--time-limit", "0.2", hard, tmp_path / "model")
    (machine,) = json.loads((tmp_path / "report").read_text())["machines"]
    assert result.code == 0
    assert "did not converge (time_limit)" in result.err
    assert machine["status"] == "time_limit"
    assert machine["seconds"] >= 0.2
    assert machine["objective"] < 0
    text = (tmp_path / "model").read_text().partition("\nSV\n")[2]
    rows = np.array([[float(word.rpartition(":")[2]) for word in line.split()] for line in text.splitlines()])
    beta, vectors = rows[:, 0], rows[:, 1:]
    assert np.abs(beta).max() <= 1e6
    assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
    K = kernel_matrix("rbf", vectors, vectors, gamma=0.5)
    assert 0.5 * beta @ K @ beta - np.abs(beta).sum() == pytest.approx(machine["objective"], rel=1e-4)
