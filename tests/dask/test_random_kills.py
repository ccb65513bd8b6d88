"""Workers and clients are killed at random moments of a fit: it ends, converged, with the same answer.

``HINGE_DASK_KILLS=100`` has so many fits lose a worker, and a fifth of that every worker, or their client.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from workers import in_background, two_classes, until

from hinge import SVC
from hinge.dask import DaskSVC

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("HINGE_DASK_KILLS", "1"))
FEWER = max(KILLS // 5, 1)
N = 6000
PARAMETERS = {"C": 5.0, "tol": 1e-8}

# Seconds after which a fit counts as hanging.
_FOR_EVER = 180


@pytest.fixture(scope="module")
def samples():
    return two_classes(N)


@pytest.fixture(scope="module")
def answer(samples):
    """The decisions of a machine that was trained on one computer."""
    return SVC(**PARAMETERS).fit(*samples).decision_function(samples[0])


@pytest.fixture(scope="module")
def usual_seconds(client, samples):
    """What a fit takes that nobody disturbs."""
    DaskSVC(client=client).fit(*(part[:500] for part in samples))  # compiles
    begun = time.monotonic()
    DaskSVC(**PARAMETERS, client=client).fit(*collections(samples))
    return time.monotonic() - begun


def collections(samples):
    return tuple(da.from_array(part, chunks=(1200, *part.shape[1:])) for part in samples)


def pids_of(client):
    """Return the worker processes; no worker is asked for its own."""
    return [nanny.pid for nanny in client.cluster.workers.values() if nanny.pid]


def all_back(client):
    return len(client.nthreads()) == len(pids_of(client)) == 2


class Assassin:
    """Kills processes, each at a moment of its own."""

    def __init__(self, pids, moments):
        self.killed, self._is_over = 0, threading.Event()
        self._threads = [
            threading.Thread(target=self._wait_and_kill, args=pair) for pair in zip(pids, moments, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def _wait_and_kill(self, pid, moment):
        if not self._is_over.wait(moment):
            os.kill(pid, signal.SIGKILL)
            self.killed += 1

    def stop(self):
        self._is_over.set()
        for thread in self._threads:
            thread.join()


def fitted_while_killed(client, samples, how_many, seconds, is_local, rng):
    """Return a machine of a fit that lost so many workers; fits that ended before do not count."""
    while True:
        until(lambda: all_back(client), 60)
        # Without this most of the fit would be imports of workers that have begun again.
        DaskSVC(client=client).fit(*(part[:500] for part in samples))
        victims = rng.sample(pids_of(client), how_many)
        machine = DaskSVC(**PARAMETERS, client=client)
        fit = in_background(lambda: machine.fit(*(samples if is_local else collections(samples))))  # noqa: B023
        assassin = Assassin(victims, [rng.uniform(0, seconds) for _ in victims])
        try:
            fit(_FOR_EVER)
        finally:
            assassin.stop()
        if assassin.killed == how_many:
            return machine


def assert_the_same(machine, answer, samples):
    assert machine.report_.status == "converged"
    assert machine.report_.violation <= PARAMETERS["tol"]
    assert np.abs(machine.decision_function(samples[0]) - answer).max() < 1e-6


@pytest.mark.parametrize(("how_many", "fits"), [(1, KILLS), (2, FEWER)])
def test_workers_are_killed_at_random_moments(client, samples, answer, usual_seconds, how_many, fits):
    rng = random.Random(how_many)
    for number in range(fits):
        machine = fitted_while_killed(client, samples, how_many, usual_seconds, number % 2 == 1, rng)
        assert_the_same(machine, answer, samples)
    until(lambda: all_back(client), 60)


CLIENT = """
import json, sys
from unittest.mock import patch
from distributed import Client
from hinge.dask import DaskSVC, checkpoints
from test_random_kills import PARAMETERS, N, collections
from workers import two_classes

_, address, path, is_resumed = sys.argv
pace = checkpoints.Pace(seconds=0.0, share=1e9)
with Client(address) as client, patch.object(checkpoints, "Pace", lambda: pace):
    X, y = two_classes(N)
    rows, labels = collections((X, y))
    machine = DaskSVC(**PARAMETERS, client=client, checkpoint=path, warm_start=is_resumed == "resumed")
    print("begun", flush=True)
    machine.fit(rows, labels)
    report = machine.report_
    print(json.dumps({
        "status": str(report.status), "iterations": report.iterations, "values": report.kernel_evaluations,
        "decisions": machine.decision_function(X).tolist(),
    }), flush=True)
"""


def client_process(client, path, how):
    words = [sys.executable, "-c", CLIENT, client.scheduler.address, str(path), how]
    here = Path(__file__).parent
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), *sys.path])}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=surroundings)
    assert process.stdout.readline() == "begun\n"
    return process


def ended(process):
    out, _ = process.communicate(timeout=_FOR_EVER)
    assert process.returncode == 0
    return json.loads(out)


def is_on_its_way(checkpoint):
    """Whether a checkpoint holds more than the beginning of a fit."""
    if not checkpoint.exists():
        return False
    with np.load(checkpoint) as file:
        return "beta0" in file and file["beta0"].any()


def test_clients_are_killed_at_random_moments_and_go_on(client, samples, answer, tmp_path):
    rng = random.Random(3)
    process = client_process(client, tmp_path / "whole", "anew")
    until(lambda: is_on_its_way(tmp_path / "whole"), _FOR_EVER)
    begun = time.monotonic()
    whole = ended(process)
    seconds = time.monotonic() - begun
    done = tried = 0
    while done < FEWER:
        tried += 1
        path = tmp_path / str(tried)
        process = client_process(client, path, "anew")
        until(lambda: is_on_its_way(path), _FOR_EVER)  # noqa: B023
        time.sleep(rng.uniform(0, seconds))
        process.kill()
        process.communicate()
        if process.returncode == 0:  # it had ended before
            continue
        later = ended(client_process(client, path, "resumed"))
        assert later["status"] == "converged"
        assert np.abs(np.array(later["decisions"]) - answer).max() < 1e-6
        assert later["iterations"] < whole["iterations"]
        done += 1
