"""Never hang: limits, Ctrl-C, progress, resuming."""

import io
import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from contextlib import suppress

import numpy as np
import pandas
import pytest
from rich.console import Console
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hinge import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM
from hinge.training.progress import BarListener, FitProgress, LogListener

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 5))
Y = (X[:, 0] * X[:, 1] + 0.5 * RNG.normal(size=400) > 0).astype(int)
MANY = np.digitize(X[:, 2], [-1.0, -0.3, 0.3, 1.0])


@pytest.mark.parametrize("estimator", [SVC, NuSVC, SVR, NuSVR, OneClassSVM])
def test_iteration_limit_is_told(estimator):
    with pytest.warns(ConvergenceWarning, match=r"the violation reached is .*tolerance is 0\.001"):
        machine = estimator(max_iter=2).fit(X, Y)
    assert machine.fit_status_ == 1
    assert str(machine.report_.status) == "iteration_limit"
    assert np.isfinite(machine.predict(X)).all()


def test_warning_names_the_unscaled_feature():
    frame = pandas.DataFrame(X, columns=["age", "height", "income", "weight", "size"])
    frame["income"] *= 1e5
    with pytest.warns(ConvergenceWarning, match=r"feature 2 \('income'\) varies .* times as much"):
        SVC(kernel="linear", C=100.0, max_iter=50).fit(frame, Y)


def test_no_limit_means_a_finite_limit():
    """Every point twice, with both labels, far from the origin, at a huge price: no machine fits it."""
    raw = X[:40] * 1e4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # an end with a warning is an end
        machine = SVC(kernel="linear", C=1e6, max_iter=-1).fit(np.r_[raw, raw], np.r_[Y[:40], 1 - Y[:40]])
    assert machine.report_.iterations <= 10_000_000


def test_time_limit():
    big = np.random.default_rng(0).normal(size=(6000, 20))
    labels = np.random.default_rng(1).integers(0, 4, 6000)
    started = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        machine = SVC(C=1e4, time_limit=0.3).fit(big, labels)
    assert time.perf_counter() - started < 5.0
    assert machine.fit_status_ == 1
    assert set(machine.predict(big[:50])) <= set(range(4))


def classes_of_one_sample(n):
    return np.random.default_rng(n).normal(size=(n, 5)), np.arange(n)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.parametrize("estimator", [SVC(), NuSVC(nu=0.8), SVC(probability=True), SVC(warm_start=True)])
def test_time_limit_holds_for_all_machines_of_many_classes_together(estimator, one_second):
    few, names = classes_of_one_sample(20)
    clone(estimator).fit(few, names)  # compiled code is loaded
    points, names = classes_of_one_sample(800)  # 319,600 machines: far more than the limit allows
    machine = estimator.set_params(time_limit=0.2)
    started = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        machine.fit(points, names)
    assert time.perf_counter() - started < 0.2 + 5 * one_second
    statuses = [str(report.status) for report in machine.reports_]
    assert "time_limit" in statuses
    assert set(statuses) <= {"converged", "time_limit"}  # on a crowded computer none may have converged
    assert str(machine.report_.status) == "time_limit"
    assert f"{statuses.count('converged')} of 319600 machines converged" in machine.report_.message
    assert machine.fit_status_ == 1
    assert set(machine.predict(points[:3])) <= set(names)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_a_fit_goes_on_from_the_machines_that_a_time_limit_left_out():
    points, names = classes_of_one_sample(60)
    machine = SVC(C=10.0, time_limit=1e-6, warm_start=True)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        machine.fit(points, names)
    machine.set_params(time_limit=None).fit(points, names)
    expected = SVC(C=10.0, decision_function_shape="ovo").fit(points, names).decision_function(points)
    machine.decision_function_shape = "ovo"
    np.testing.assert_allclose(machine.decision_function(points), expected, atol=1e-8)


@pytest.mark.parametrize(
    "estimator", [SVC(C=3.0), NuSVC(nu=0.3), SVC(C=100.0, fit_intercept=False, kernel="poly")]
)
def test_small_pairs_of_classes_are_solved_like_any_other(estimator):
    """Pairs of a few samples take a way of their own; a callback sends the same ones along the general way."""
    rng = np.random.default_rng(5)
    points, names = rng.normal(size=(90, 4)), np.arange(90) % 18
    quick = clone(estimator).set_params(decision_function_shape="ovo").fit(points, names)
    general = clone(quick).set_params(callback=lambda progress: False).fit(points, names)
    assert {report.solver for report in (*quick.reports_, *general.reports_)} == {"block"}
    np.testing.assert_allclose(quick.decision_function(points), general.decision_function(points), atol=1e-7)
    for ours, theirs in zip(quick.reports_, general.reports_, strict=True):
        assert ours.violation <= 1e-9
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-9)


@pytest.mark.parametrize("y", [Y, MANY], ids=["two", "many"])
def test_warm_start_resumes(y):
    machine = SVC(C=10.0, max_iter=60, warm_start=True, solver="smo")
    with pytest.warns(ConvergenceWarning):
        machine.fit(X, y)
    first = machine.report_.objective
    with pytest.warns(ConvergenceWarning):
        machine.fit(X, y)
    assert machine.report_.objective < first
    machine.set_params(max_iter=-1).fit(X, y)
    cold = SVC(C=10.0, solver="smo").fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), cold.decision_function(X), atol=1e-6)
    assert machine.fit(X, y).n_iter_.sum() < 0.2 * cold.n_iter_.sum()


def test_without_warm_start_a_fit_forgets():
    machine = SVC().fit(X, Y)
    assert (machine.fit(X, Y).n_iter_ > 10).all()
    assert not hasattr(machine, "_resume")


def test_warm_start_on_other_data_starts_anew():
    machine = SVC(warm_start=True).fit(X, Y)
    np.testing.assert_allclose(
        machine.fit(X[:300], MANY[:300]).decision_function(X),
        SVC().fit(X[:300], MANY[:300]).decision_function(X),
        atol=1e-6,
    )


def test_callback_sees_progress_and_stops():
    seen = []

    def stop_at_three(progress):
        seen.append(progress)
        return len(seen) >= 3

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        machine = SVC(C=10.0, callback=stop_at_three).fit(X, MANY)
    assert all(isinstance(progress, FitProgress) for progress in seen)
    assert seen[0].n_machines == 10
    assert str(machine.report_.status) == "interrupted"
    assert machine.predict(X).shape == (400,)


def test_stopping_before_probabilities():
    with pytest.warns(ConvergenceWarning):
        machine = SVC(C=10.0, probability=True, callback=lambda progress: True).fit(X, MANY)
    with pytest.raises(ValueError, match="predict_proba is not available"):
        machine.predict_proba(X)
    assert machine.predict(X).shape == (400,)


SCRIPT = """
    import sys, time, warnings
    import numpy as np
    from hinge import SVC
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12000, 60)), rng.integers(0, {n_classes}, 12000)
    SVC(max_iter=5).fit(X[:200], y[:200])
    machine = SVC(C=1e5, n_jobs={n_jobs})
    print("ready", flush=True)
    try:
        machine.fit(X, y)
    except KeyboardInterrupt as stop:
        print("stopped", machine.fit_status_, machine.report_.status, len(machine.predict(X[:20])), flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX systems")
@pytest.mark.parametrize(("n_classes", "n_jobs"), [(2, 2), (5, 2), (5, 1)])
def test_ctrl_c_returns_soon_and_leaves_a_marked_machine(n_classes, n_jobs):
    script = textwrap.dedent(SCRIPT.format(n_classes=n_classes, n_jobs=n_jobs))
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        assert process.stdout.readline().strip() == "ready"
        time.sleep(1.5)
        sent = time.perf_counter()
        process.send_signal(signal.SIGINT)
        line = process.stdout.readline().strip()
        took = time.perf_counter() - sent
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert line == "stopped 1 interrupted 20"
    assert took < 3.0  # a second on a machine of one's own


@pytest.mark.parametrize("machine", [SVC(), LinearSVC()], ids=repr)
def test_ctrl_c_that_the_input_swallows_is_heard_all_the_same(machine):
    class Samples:
        def __array__(self, dtype=None, copy=None):
            with suppress(BaseException):  # as Python does in callbacks of weak references
                signal.raise_signal(signal.SIGINT)
            return X

    with pytest.raises(KeyboardInterrupt):
        machine.fit(Samples(), Y)
    assert not hasattr(machine, "report_")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_nothing_is_printed(capfd, caplog):
    with caplog.at_level(logging.INFO, logger="hinge"):
        SVC(verbose=1).fit(X, Y)
    out, err = capfd.readouterr()
    assert out == err == ""
    assert "converged" in caplog.text


def test_quiet_without_verbose(capfd, caplog):
    with caplog.at_level(logging.INFO, logger="hinge"):
        SVC().fit(X, Y)
    assert caplog.text == "".join(capfd.readouterr())


def test_progress_bar():
    text = io.StringIO()
    bar = BarListener(Console(file=text, force_terminal=True, width=100))
    bar.begin(0, 3)
    bar.step(FitProgress(1000, 1, 0.25, -1.0, 0.1, 50, 2.0, 1e-3, "all samples", n_machines=3))
    bar.end(0, SVC().fit(X, Y).report_)
    bar._bar.refresh()
    bar.close()
    assert "33%" in text.getvalue()  # one of three machines is done
    assert "0 of 3 machines, all samples, violation 2.0e+00" in text.getvalue()


def test_log_lines(caplog, monkeypatch):
    listener = LogListener()
    monkeypatch.setattr("hinge.training.progress._LOG_PERIOD", -1.0)
    with caplog.at_level(logging.INFO, logger="hinge"):
        listener.step(FitProgress(1000, 1, 0.25, -1.0, 0.1, 50))
    assert "machine 1 of 1 (0 done): 1000 steps, violation 0.25" in caplog.text


class Recorder:
    """A callback of scikit-learn's protocol that notes what it is told."""

    def __init__(self, stop_after=None):
        self.begun, self.ended, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.name = context.estimator_name

    def teardown(self, estimator, context):
        self.is_over = True

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context.task_name)
        return self.stop_after is not None and len(self.ended) >= self.stop_after


def test_sklearn_callbacks():
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")
    recorder = Recorder()
    SVC(C=10.0).set_callbacks(recorder).fit(X, MANY)
    assert recorder.name == "SVC"
    assert recorder.is_over
    assert sorted(recorder.begun) == sorted(recorder.ended)
    assert recorder.begun.count("machine") == 10
    assert recorder.begun.count("fit") == 1
    assert "round" in recorder.begun


def test_sklearn_callbacks_may_stop():
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        SVC(C=10.0).set_callbacks(Recorder(stop_after=2)).fit(X, MANY)
