"""Ctrl-C: the best point so far, within a second, and an interpreter that goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hinge

# Signals go to a process of their own; labels without meaning at a huge C keep it busy for minutes.
SCRIPT = """
import json, os, signal, sys, threading, time
from dataclasses import replace
import numpy as np
from hinge import Gram, Kernel, Settings, certificate, solve
from hinge.dual.formulations import c_svc

solver, rule, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng = np.random.default_rng(0)
X, y = rng.normal(size=(n, 20)), np.sign(rng.normal(size=n))
settings = Settings(solver=solver, rule=rule, tol=1e-9)
solve(c_svc(y[:100], C=1.0), Gram(X[:100], Kernel("rbf", gamma=0.01)), settings)  # compiled code is loaded
sent = []

def interrupt():
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

problem, gram = c_svc(y, C=1e6), Gram(X, Kernel("rbf", gamma=0.01))
solve(problem, gram, replace(settings, max_iter=2000))
threading.Timer(1.0, interrupt).start()
solution = solve(problem, gram, settings)
delay = time.perf_counter() - sent[0]
again = solve(c_svc(y[:100], C=1.0), Gram(X[:100], Kernel("rbf", gamma=0.01)), settings)
print(json.dumps({
    "delay": delay,
    "status": str(solution.report.status.value),
    "objective": solution.report.objective,
    "feasible": bool(np.all((problem.lo <= solution.beta) & (solution.beta <= problem.hi))),
    "sum": float(abs(solution.beta.sum())),
    "handler restored": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "again": str(again.report.status.value),
}))
"""


@pytest.mark.parametrize(("solver", "rule"), [("auto", "second_order"), ("block", "second_order"), ("smo", "hmg")])
@pytest.mark.parametrize("n", [4000, 20000])
def test_interrupt_returns_the_best_point_within_a_second(solver, rule, n, one_second):
    environment = os.environ | {"PYTHONPATH": str(Path(hinge.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, solver, rule, str(n)],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["status"] == "interrupted"
    assert outcome["delay"] < one_second
    assert outcome["feasible"]
    assert outcome["sum"] <= 1e-12 * 1e6 * n
    assert outcome["objective"] < 0
    assert outcome["handler restored"]
    assert outcome["again"] == "converged"
