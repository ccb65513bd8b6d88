"""Ctrl-C at random moments of searches, predictions, many machines, compiling and commands.

One child process goes through a list of works that would each take half a minute and more; it says when it begins
one, and what it has kept when it was stopped.
"""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import hinge

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX systems")

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(hinge.__file__).parents[1])}

WORKS = """
    import sys, time, warnings
    import numpy as np
    from hinge import SVC
    from hinge.many import cross_validate_many
    from hinge.selection import GridSearch, cross_validate, leave_one_out, regularisation_path

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2500, 200)), rng.integers(0, 2, 2500)
    few, theirs = X[:100, :20], y[:100]
    grid = {"C": list(2.0 ** np.arange(0, 16)), "gamma": list(2.0 ** np.arange(-12, -2))}
    threads = GridSearch(SVC(), grid, cv=10)
    alone = GridSearch(SVC(), grid, cv=10, n_jobs=1)
    fitted = SVC(kernel="laplacian", gamma=0.01).fit(X, y)
    many = SVC()
    calibrated = SVC(C=1e3, tol=1e-8, probability=True)
    costs = 2.0 ** np.arange(0, 20)
    queries = rng.normal(size=(200_000, 200))

    def kept(search):
        scores = getattr(search, "cv_results_", {}).get("mean_test_score", np.zeros(0))
        return f"{np.isfinite(scores).all()} {not hasattr(search, 'best_estimator_')}"

    works = {
        "predict": (lambda: fitted.predict(queries), lambda: len(fitted.predict(queries[:5]))),
        "cross_validate": (lambda: cross_validate(SVC(C=1e6, tol=1e-8, gamma=0.01), X, y, cv=100), lambda: ""),
        "GridSearch": (lambda: threads.fit(X, y), lambda: kept(threads)),
        "GridSearch alone": (lambda: alone.fit(X, y), lambda: kept(alone)),
        "leave_one_out": (lambda: leave_one_out(SVC(gamma=0.005, C=10.0), X, y), lambda: ""),
        "path": (lambda: regularisation_path(SVC(gamma=0.001, tol=1e-8), X, y, costs), lambda: ""),
        "probability": (lambda: calibrated.fit(X, y), lambda: getattr(calibrated, "fit_status_", 1)),
        "many problems": (lambda: cross_validate_many(SVC(), X[:1500], y[:1500], columns=[range(9)] * 10**5), str),
        "classes": (lambda: many.fit(X, np.arange(2500) // 2), lambda: getattr(many, "fit_status_", 1)),
    }
    SVC(probability=True).fit(few, theirs)  # compiled code is loaded
    leave_one_out(SVC(gamma=0.1), few, theirs)
    GridSearch(SVC(), {"C": [1.0, 2.0]}, n_jobs=2).fit(few, theirs)
    for name in sys.argv[1].split(","):
        work, keep = works[name]
        print("ready", flush=True)
        try:
            work()
        except KeyboardInterrupt:
            print("stopped", keep(), flush=True)
        else:
            print("ended", flush=True)
"""

EXPECTED = {
    "predict": "stopped 5", "cross_validate": "stopped", "GridSearch": "stopped True True",
    "GridSearch alone": "stopped True True", "leave_one_out": "stopped", "path": "stopped",
    "many problems": "stopped", "probability": "stopped 1", "classes": "stopped 1",
}  # fmt: skip


@pytest.mark.slow
def test_works_of_half_a_minute_end_soon_after_ctrl_c(one_second):
    moments = random.Random(0)
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WORKS), ",".join(EXPECTED)],
        stdout=subprocess.PIPE, text=True, env=ENVIRONMENT,
    )  # fmt: skip
    told, took = {}, {}
    try:
        for name in EXPECTED:
            assert child.stdout.readline().strip() == "ready"
            time.sleep(moments.uniform(0.0, 1.0))
            sent = time.perf_counter()
            child.send_signal(signal.SIGINT)
            told[name] = child.stdout.readline().strip()
            took[name] = time.perf_counter() - sent
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    assert told == EXPECTED
    assert max(took.values()) < 3 * one_second, took


COMPILING = """
    import os, signal
    import numpy as np
    from numba.core import event
    from hinge import SVC
    from hinge.solvers.one_pass import _solve_parts

    class Impatient(event.Listener):
        def on_start(self, news):
            if "_solve_parts" in news.data["name"]:
                signal.raise_signal(signal.SIGINT)
        def on_end(self, news):
            pass

    event.register("numba:run_pass", Impatient())
    X = np.random.default_rng(0).normal(size=(60, 3))
    try:
        SVC().fit(X, X[:, 0] > 0)
    except KeyboardInterrupt:
        print("stopped", len(_solve_parts.signatures), flush=True)
    event._registered["numba:run_pass"].pop()  # patience from now on
    print(SVC().fit(X, X[:, 0] > 0).report_.status, len(_solve_parts.signatures) > 0)
"""


@pytest.mark.slow
def test_ctrl_c_ends_compiling_before_the_function_is_done(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(COMPILING)], env=ENVIRONMENT | {"NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["stopped 0", "converged True"], done.stderr


@pytest.mark.parametrize("module", ["numpy", "scipy.sparse", "numba", "hinge.kernel.gram"])
def test_ctrl_c_while_a_command_is_imported_leaves_no_traceback(module, tmp_path):
    """Lines of ``-X importtime`` tell how far it is."""
    child = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "hinge.cli", "train", str(tmp_path / "no-such-file")],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=ENVIRONMENT,
    )  # fmt: skip
    for line in child.stderr:
        if line.rsplit("|", 1)[-1].strip() == module:
            child.send_signal(signal.SIGINT)
            break
    rest = child.stderr.read()
    child.stderr.close()
    assert child.wait() in (1, -signal.SIGINT)
    assert "Traceback" not in rest
    assert "KeyboardInterrupt" not in rest


def test_ctrl_c_during_predict_leaves_no_output_file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30)).round(2)
    lines = [f"{1 if row[0] > 0 else -1} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) for row in X]
    (tmp_path / "train").write_text("\n".join(lines) + "\n")
    (tmp_path / "test").write_text(("\n".join(lines) + "\n") * 250)
    command = [sys.executable, "-m", "hinge.cli"]
    run = {"cwd": tmp_path, "env": ENVIRONMENT, "stdout": subprocess.DEVNULL}
    subprocess.run([*command, "train", "-q", "-t", "2", "train", "model"], check=True, **run)
    child = subprocess.Popen(
        [*command, "predict", "test", "model", "output"], stderr=subprocess.PIPE, text=True, **run
    )
    while child.poll() is None and not any("output" in path.name for path in tmp_path.iterdir()):
        time.sleep(0.001)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert errors.strip() == "hinge predict: interrupted"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "test", "train"]
