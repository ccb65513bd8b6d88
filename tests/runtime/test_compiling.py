"""Compiling: what it costs is nobody's time, what it makes is the same from the compiler and from the disk."""

import gc
import hashlib
import io
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numba.core.errors import TypingError

import hinge
from hinge import SVC, SVR, Gram, Kernel, NuSVC, OneClassSVM, Settings, Status, solve
from hinge.cli import main
from hinge.dual.formulations import c_svc
from hinge.runtime import clock, compiler, interrupt
from hinge.runtime.jit import borrowing, compiled, inlined
from hinge.solvers import one_pass

SOURCE = Path(hinge.__file__).parents[1]


class Hands:
    """A clock that is moved by hand."""

    def __init__(self, monkeypatch):
        self.time = 1000.0
        monkeypatch.setattr("hinge.runtime.clock.time.perf_counter", lambda: self.time)

    @contextmanager
    def compiling(self, seconds):
        with clock.standing_still():
            yield
            self.time += seconds


@pytest.fixture
def hands(monkeypatch):
    return Hands(monkeypatch)


def test_the_clock_stands_still_while_something_compiles(hands):
    begun, before = clock.now(), clock.compiled_seconds()
    with hands.compiling(5.0), hands.compiling(7.0):  # a function and one that it calls
        assert clock.stands_still()
        hands.time += 1.0
        assert clock.now() == begun
        assert clock.compiled_seconds() == before + 1.0
    assert not clock.stands_still()
    assert clock.now() == begun
    assert clock.compiled_seconds() == before + 13.0
    hands.time += 2.0
    assert clock.now() == begun + 2.0


def test_compiling_uses_up_no_deadline(hands):
    with interrupt.within(10.0):
        with hands.compiling(100.0):
            pass
        assert not interrupt.requested()
        hands.time += 11.0
        assert interrupt.requested()


def test_a_fit_that_compiles_for_longer_than_its_time_limit_takes_its_steps(hands):
    def compile_meanwhile(progress):
        with hands.compiling(100.0):
            hands.time += 1.0

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    problem = c_svc(np.where(X[:, 0] > 0, 1.0, -1.0))
    gram = Gram(X, Kernel("rbf"))
    report = solve(problem, gram, Settings(time_limit=3.0, callback=compile_meanwhile)).report
    assert report.status is Status.CONVERGED
    assert report.iterations > 0
    assert report.compile_seconds >= 101.0
    assert report.seconds == pytest.approx(0.0, abs=1e-9)


def test_a_first_call_counts_as_compiling_and_a_second_one_does_not():
    @compiled
    def double(x):
        return 2.0 * x

    before = clock.compiled_seconds()
    assert double(1.5) == 3.0
    after = clock.compiled_seconds()
    assert after > before
    assert double(2.5) == 5.0
    assert clock.compiled_seconds() == after


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_what_only_compiled_code_calls_is_not_made_callable_until_python_calls_it():
    @inlined
    def part(x):
        return x + 1.0

    @compiled
    def entry(x):
        return 2.0 * part(x)

    assert entry(1.0) == 4.0
    assert part.signatures == []
    assert part(1.0) == 2.0
    assert len(part.signatures) == 1


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_small_fits_of_every_kind_share_one_compiled_form():
    X = np.random.default_rng(0).normal(size=(40, 3))
    for machine in (SVC(), SVC(kernel="linear"), NuSVC(nu=0.3), OneClassSVM()):
        machine.fit(X, np.arange(40) % 2)
    SVC().fit(X, np.arange(40) % 4)
    SVR().fit(X, X[:, 0])
    assert len(one_pass._solve_parts.signatures) == 1


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
@pytest.mark.parametrize("is_on", [True, False])
def test_compiling_leaves_the_garbage_collector_as_it_was(is_on):
    @compiled
    def wrong(x):
        return x + "a"

    was_on = gc.isenabled()
    try:
        gc.enable() if is_on else gc.disable()
        with pytest.raises(TypingError):
            wrong(1.0)
        assert gc.isenabled() == is_on
    finally:
        gc.enable() if was_on else gc.disable()


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_a_part_of_a_hot_loop_does_not_draw_its_own_parts_into_it():
    @borrowing
    def apart(x):
        return x + 1.0

    @inlined
    def within(x):
        return apart(x) * 2.0

    @compiled
    def entry(x):
        return within(x)

    assert entry(1.0) == 4.0
    (code,) = entry.inspect_llvm().values()
    calls = [line for line in code.splitlines() if "call" in line]
    assert any("apart" in line for line in calls)
    assert not any("within" in line for line in calls)


class Stream(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self.isatty = lambda: is_terminal


@pytest.mark.parametrize("is_terminal", [True, False])
def test_only_a_person_at_a_terminal_is_told_once_why_the_first_fit_takes_long(hands, monkeypatch, is_terminal):
    stream, passes = Stream(is_terminal), compiler.Passes()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(clock, "_compiling", (0.0, 0.0, None))
    passes.on_start(None)  # somebody else's function
    with hands.compiling(0.0):
        passes.on_start(None)
        assert stream.getvalue() == ""
        for _ in range(3):
            hands.time += 1.0
            passes.on_start(None)
    assert stream.getvalue() == ("hinge: compiling, once on this computer\n" if is_terminal else "")


FITS = """
import hashlib, sys
import numpy as np
import scipy.sparse as sp
from hinge import SVC, SVR

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 30))
y = X[:, 0] + rng.normal(size=300) > 0
digest = hashlib.sha256()
for machine in (SVC(C=10.0), SVC(kernel="linear")):
    digest.update(machine.fit(X, y).decision_function(X).tobytes())
S = sp.random(300, 200, 0.05, format="csr", random_state=0)
digest.update(SVC().fit(S, y).decision_function(S).tobytes())
digest.update(SVR().fit(X[:, :3], X[:, 1]).predict(X[:, :3]).tobytes())
print(digest.hexdigest())
"""


def python(script, *arguments, **environment):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), **environment}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_code_from_the_compiler_and_from_the_disk_give_the_same_bits(tmp_path):
    first = python(FITS, NUMBA_CACHE_DIR=str(tmp_path))
    assert len(first.strip()) == 2 * hashlib.sha256().digest_size
    assert list(tmp_path.rglob("*.nbc"))
    assert python(FITS, NUMBA_CACHE_DIR=str(tmp_path)) == first


COMMAND = """
import gc
import sys
from hinge.cli import main
assert main(sys.argv[1:]) == 0
assert gc.isenabled()
print("FROZEN", gc.get_freeze_count())
print("MODULES", *sys.modules)
"""


def modules_of(*words):
    return set(python(COMMAND, *words).rsplit("MODULES", 1)[1].split())


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_imports_no_library(words):
    assert not modules_of(*words) & {"numba", "numpy", "scipy", "sklearn", "joblib", "rich"}


def test_training_imports_nothing_that_it_does_not_use(tmp_path):
    data = tmp_path / "data"
    data.write_text("".join(f"{i % 2} 1:{i / 7} 2:{(i * i) % 5}\n" for i in range(20)))
    command = ["train", str(data), str(tmp_path / "model")]
    modules_of(*command)  # compiles
    imported = modules_of(*command)
    assert "numba" in imported
    unused = {"sklearn", "joblib", "rich", "pandas", "matplotlib", "scipy.sparse", "scipy.linalg",
              "numba.np.linalg", "hinge.selection", "hinge.estimators", "hinge.lab",
              "hinge.solvers.block.block"}  # fmt: skip
    assert imported & unused == set()


def test_a_command_does_not_look_for_garbage_among_what_it_imports(tmp_path):
    data = tmp_path / "data"
    data.write_text("1 1:1\n0 1:2\n")
    said = python(COMMAND, "train", str(data), str(tmp_path / "model"))
    assert int(said.rsplit("FROZEN", 1)[1].split()[0]) > 10_000
    frozen = gc.get_freeze_count()
    assert main(["train", "-q", str(data), str(tmp_path / "model")]) == 0
    assert gc.get_freeze_count() == frozen  # a process that has begun otherwise is left as it is


@pytest.fixture
def short_tour(monkeypatch, tmp_path):
    from hinge import tour

    monkeypatch.setattr(tour, "STOPS", {"files": tour.STOPS["files"]})
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))


def test_warming_up_fills_the_cache_and_finds_it_full_the_next_time(short_tour, tmp_path, capsys):
    first = hinge.warm_up()
    assert first.compiled > 0
    assert first.found == 0
    assert first.bytes == sum(file.stat().st_size for file in tmp_path.rglob("*.nbc"))
    assert all(folder.startswith(str(tmp_path)) for folder in first.folders)
    assert main(["warm-up", "--processes", "1"]) == 0
    said = capsys.readouterr().out
    assert "compiled 0 functions" in said
    assert f"found {first.compiled} from before" in said
    assert first.folders[0] in said


def test_a_process_that_dies_while_warming_up_is_an_error(short_tour, monkeypatch):
    from hinge import tour

    monkeypatch.setattr(tour, "STOPS", {"no such stop": None})
    with pytest.raises(RuntimeError, match="no such stop"):
        hinge.warm_up()
