"""Progress that tells the truth: shares that never fall, estimates that hold or are not given."""

import io
import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hinge import SVC, Gram, Kernel, Settings, Sizes, solve
from hinge.dual.formulations import c_svc
from hinge.settings import Progress
from hinge.training import progress as shown
from hinge.training.pace import Pace, duration
from hinge.training.progress import FitProgress, LogListener, verbose_listener

SMALL = Sizes(one_set=60, smallest_set=20, largest_set=60, cheap_subset=50, dear_subset=50)


def at(known, violation=None, tol=1e-3):
    return Progress(1, 1, known if violation is None else violation, 0.0, 0.0, 10, known, tol, "all samples")


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 5))
    return X, np.where(X[:, 0] * X[:, 1] + 0.7 * random.normal(size=600) > 0, 1.0, -1.0)


@pytest.mark.parametrize("solver", ["block", "smo"])
def test_the_share_of_a_real_run_never_falls_and_comes_near_the_end(data, solver):
    X, y = data
    pace, told = Pace(), []

    def listen(progress):
        pace.note(0, progress, progress.seconds)
        told.append((pace.share, progress.known, progress.phase))

    settings = Settings(solver=solver, sizes=SMALL, callback=listen)
    solve(c_svc(y, C=20.0), Gram(X, Kernel("rbf", gamma=0.3), threads=1), settings)
    shares, known, phases = zip(*told, strict=True)
    assert (np.diff(shares) >= 0).all()
    assert len(set(shares)) > 5  # it moves
    assert shares[-1] > 0.6
    assert np.isfinite(known).all()
    if solver == "block":
        assert phases[0] == "a quarter first"
        assert {"samples near the margin", "all samples"} & set(phases)


def test_a_steady_rate_is_told_within_a_factor_of_two():
    pace = Pace()
    for second in range(1, 90):
        pace.note(0, at(10.0 * 1e-4 ** (second / 100)), float(second))
        left = pace.seconds_left()
        if second >= 60:
            assert (100 - second) / 2 <= left <= 2 * (100 - second)
        elif second < 45:
            assert left is None


PACES = json.loads((Path(__file__).parent / "paces.json").read_text())


def replay(case):
    """Tell a pace what a real fit told; yield the time, the share and the estimate after each look."""
    looks, n_machines = case["looks"], len(case["parts"])
    pace = Pace(n_machines)
    last = {machine: k for k, (_, machine, _, _) in enumerate(looks)}
    for k, (seconds, machine, violation, known) in enumerate(looks):
        pace.note(machine, at(known, violation), seconds, case["parts"][machine])
        yield seconds, pace.share, pace.seconds_left()
        if last[machine] == k:
            pace.end(machine)


@pytest.mark.parametrize("name", PACES)
def test_estimates_of_real_fits_hold_or_are_withheld(name):
    """Fits of half a minute and more on a busy computer with two cores: in their second half."""
    told = list(replay(PACES[name]))
    whole = PACES[name]["seconds"]
    assert (np.diff([share for _, share, _ in told]) >= 0).all()
    for seconds, _, left in told:
        if seconds > whole / 2 and left is not None:
            assert 0.5 <= left / (whole - seconds) <= 2 or abs(left - whole + seconds) < 1, (seconds, left)


def test_steady_fits_get_an_estimate():
    for name in ("a9a, C=1000", "connect-4, three classes, C=300"):
        whole = PACES[name]["seconds"]
        late = [left is not None for seconds, _, left in replay(PACES[name]) if seconds > whole / 2]
        assert np.mean(late) > 1 / 3, name


def test_telling_costs_little():
    """A look takes far less than a hundredth of the step that it follows."""
    case = PACES["a9a, C=1000"]
    started = time.process_time()
    looks = sum(1 for _ in replay(case))
    assert time.process_time() - started < 0.01 * case["seconds"]
    assert looks > 100


def test_halts_and_jumps_are_given_no_estimate():
    pace = Pace()
    for second in range(1, 50):
        pace.note(0, at(10.0 * 1e-4 ** (second / 100)), float(second))
    for second in range(50, 90):
        pace.note(0, at(10.0 * 1e-4**0.49), float(second))
    assert pace.seconds_left() is None


def test_gains_of_a_part_count_half_until_all_samples_confirm_them():
    part, whole = Pace(), Pace()
    for pace in (part, whole):
        pace.note(0, at(1.0), 0.0)
    part.note(0, at(1.0, violation=1e-3), 1.0)
    assert part.share == pytest.approx(0.5)
    whole.note(0, at(1e-3), 1.0)
    assert whole.share == pytest.approx(1.0)
    part.note(0, at(5.0), 2.0)  # the waiting samples objected
    assert part.share == pytest.approx(0.5)


def test_machines_are_counted_together():
    pace = Pace(n_machines=4)
    pace.note(0, at(1.0), 0.0)
    pace.note(1, at(1.0), 0.0)
    pace.end(0)
    pace.note(1, at(1e-3), 1.0)
    assert pace.share == pytest.approx(0.5)


def test_a_pipe_sees_a_line_now_and_then_and_a_notebook_one_that_is_updated(monkeypatch):
    monkeypatch.setattr(shown, "_LOG_PERIOD", -1.0)
    monkeypatch.setattr(shown, "_UPDATE_PERIOD", -1.0)
    standing = FitProgress(10, 1, 0.1, -1.0, 1.0, 50, 0.1, 1e-3, "all samples")
    pipe, notebook = io.StringIO(), io.StringIO()
    for listener in (LogListener(pipe), LogListener(notebook, is_updating=True)):
        listener.begin(0, 1)
        listener.step(standing)
        listener.step(standing)
        listener.close()
    assert pipe.getvalue().count("\n") == 2
    assert "all samples, violation 1.0e-01 → 1e-03" in pipe.getvalue()
    assert "\n" not in notebook.getvalue()
    assert notebook.getvalue().count("\r") == 4  # two updates, and the line is taken away


def test_a_reader_that_left_does_not_end_a_fit(data, monkeypatch):
    class Broken(io.StringIO):
        def write(self, text):
            raise OSError("no reader")

    monkeypatch.setattr(shown, "_LOG_PERIOD", -1.0)
    monkeypatch.setattr(sys, "stderr", Broken())
    assert SVC(verbose=1).fit(*data).report_.converged
    assert isinstance(verbose_listener(1), LogListener)
    assert verbose_listener(0) is None


def test_durations_in_words():
    assert [duration(s) for s in (0.2, 7.4, 59, 61, 3600)] == [
        "under a second left", "7 s left", "59 s left", "1:01 left", "60:00 left",
    ]  # fmt: skip
