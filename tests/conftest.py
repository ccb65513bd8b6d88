"""Shared fixtures: Hypothesis settings and the public data sets under ``$HINGE_DATA``."""

import lzma
import os
import signal
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase
from hypothesis import settings as hypothesis_settings
from sklearn.datasets import load_svmlight_file

DATA_FIXTURES = {"real_data", "load_real", "data_file"}
FEATURES = {"spambase": 57, "a9a": 123, "w8a": 300, "ijcnn1": 22}

hypothesis_settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate),  # examples are small already: a failing one is shown as it is
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
hypothesis_settings.register_profile("search", hypothesis_settings.get_profile("repeatable"), derandomize=False)
hypothesis_settings.load_profile("repeatable")


def pytest_configure(config):
    """Let Ctrl-C be tried out where this process was told to ignore it, as a shell tells its background jobs."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items):
    """Mark what asks for real data, and skip what is marked where there is none."""
    for item in items:
        if DATA_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("data")
        if item.get_closest_marker("data") and not os.environ.get("HINGE_DATA"):
            item.add_marker(pytest.mark.skip(reason="HINGE_DATA does not name a folder of data sets"))


def crowd():
    """How many times longer than on an idle computer things take, because other processes run too."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1.0, load / (os.cpu_count() or 1))


@pytest.fixture(autouse=True)
def _no_test_hangs():
    """Raise in a test that runs for two minutes: a solver that never ends is a failure, not a frozen suite."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def too_long(number, frame):
        raise TimeoutError("this test ran for more than two minutes")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(
        signal.ITIMER_REAL, 120 * crowd(), 10
    )  # and again, in case the error is caught and tried again
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def one_second():
    """A second of an idle computer."""
    return crowd()


@pytest.fixture(scope="session")
def real_data():
    """A function that reads a data set by name as a CSR matrix and its labels."""

    def load(name):
        with lzma.open(Path(os.environ["HINGE_DATA"]) / f"{name}.xz") as file:
            return load_svmlight_file(file, n_features=FEATURES[name], zero_based=False)

    return load
