"""What tests do to workers, and the data they do it with."""

import os
import signal
import threading
import time

import numpy as np


def until(condition, seconds=30):
    """Wait for something."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def kill(client, which=0):
    """Kill a worker process, without a word of warning."""
    pids = client.run(os.getpid)
    os.kill(pids[sorted(pids)[which]], signal.SIGKILL)


class Killer:
    """A callback of a fit that kills a worker in some rounds."""

    def __init__(self, client, rounds, everybody=False):
        self.client, self.rounds, self.everybody = client, set(rounds), everybody
        self.calls = 0

    def __call__(self, progress):
        self.calls += 1
        if self.calls in self.rounds:
            pids = list(self.client.run(os.getpid).values())
            for pid in pids if self.everybody else pids[:1]:
                os.kill(pid, signal.SIGKILL)


def two_classes(n=3500, n_features=6, seed=0):
    """Samples that take some rounds beyond one working set."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features))
    noise = rng.standard_normal(n)
    return X, np.where(np.sin(2 * X[:, 0] + X[:, 1]) + 0.3 * noise > 0, 1, -1)


def in_background(function):
    """Call a function on another thread; return what waits for its result."""
    box = {}

    def run():
        try:
            box["result"] = function()
        except BaseException as error:
            box["error"] = error

    thread = threading.Thread(target=run)
    thread.start()

    def result(seconds=60):
        thread.join(seconds)
        assert not thread.is_alive(), "it hangs"
        if "error" in box:
            raise box["error"]
        return box["result"]

    return result
