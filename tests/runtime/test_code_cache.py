"""Compiled code on disk: full disks and damaged files cost time and one warning, never an answer."""

import importlib.util
import os
import pickle
import shutil
import sys
import warnings

import numpy as np
import pytest

try:
    import resource
except ImportError:
    resource = None

SOURCE = """
from hinge.runtime.jit import compiled

@compiled
def total(x):
    s = 0.0
    for i in range(len(x)):
        s += {factor} * x[i]
    return s
"""


class Place:
    """A module of one compiled function in a folder of its own; `call` imports it as a new process would."""

    def __init__(self, folder):
        self.folder, self.path = folder, folder / "probe.py"
        self.path.write_text(SOURCE.format(factor=1))
        self.cache = folder / "__pycache__"

    def call(self, dtype=np.float64, factor=1):
        """Call the function; return the messages of its warnings and whether it was read from the disk."""
        spec = importlib.util.spec_from_file_location("probe", self.path)
        module = importlib.util.module_from_spec(spec)
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                spec.loader.exec_module(module)
                assert module.total(np.array([1, 2, 4], dtype)) == 7 * factor
                assert module.total(np.array([1, 2, 5], dtype)) == 8 * factor
        finally:
            sys.dont_write_bytecode = before
        return [str(warning.message) for warning in caught], sum(module.total.stats.cache_hits.values()) == 1

    def files(self, ending):
        return sorted(self.cache.glob(f"*.{ending}"))


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr("numba.core.config.CACHE_DIR", "")
    if importlib.util.find_spec("hinge.runtime.code_cache"):
        monkeypatch.setattr("hinge.runtime.code_cache._has_warned", False)
    place = Place(tmp_path)
    assert place.call() == ([], False)
    assert place.call() == ([], True)
    assert len(place.files("nbi")) == len(place.files("nbc")) == 1
    return place


def cut(data):
    return data[: len(data) // 2]


def flip(data):
    at = 2 * len(data) // 3  # in the midst of machine code, where no pickle would notice
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


DAMAGE = {
    "cut": cut,
    "empty": lambda data: b"",
    "flipped": flip,
    "another type": lambda data: pickle.dumps(17) * 9,
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_damaged_file_is_compiled_anew_with_one_warning(place, ending, damage, monkeypatch):
    (path,) = place.files(ending)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    messages, was_on_disk = place.call()
    assert not was_on_disk
    if messages or damage != "another type" or ending != "nbi":  # there it looks like that of another version
        (message,) = messages
        assert f"cannot be read from {place.cache} (" in message
        assert "NUMBA_CACHE_DIR" in message
    assert place.call() == ([], True), "it was not written anew"


@pytest.mark.skipif(resource is None, reason="needs POSIX")
def test_a_full_disk_keeps_code_in_memory(tmp_path, place):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    shutil.rmtree(place.cache)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        messages, was_on_disk = place.call()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    (message,) = messages
    assert f"cannot be kept in {place.cache} (File too large): it stays in memory" in message
    assert not was_on_disk
    assert place.files("nbi") == place.files("nbc") == []
    assert place.call() == ([], False)
    assert place.call() == ([], True)


def test_the_warning_comes_once(place):
    for ending in ("nbi", "nbc"):
        (path,) = place.files(ending)
        path.write_bytes(b"")
    messages = place.call()[0] + place.call(np.float32)[0]
    place.files("nbi")[0].write_bytes(b"")
    assert len(messages + place.call()[0]) == 1


def test_a_disk_that_fills_up_between_two_files_does_not_bring_old_code_back(place, monkeypatch):
    place.path.write_text(SOURCE.format(factor=3))
    real = os.replace

    def full(source, target):
        if str(target).endswith(full.refused):
            raise OSError(28, "No space left on device")
        real(source, target)

    for full.refused in (".nbc", ".nbi"):
        monkeypatch.setattr(os, "replace", full)
        place.call(factor=3)
        monkeypatch.setattr(os, "replace", real)
        assert place.call(factor=3)[0] == []
        place.path.write_text(SOURCE.format(factor=1))
        place.call(factor=1)
        place.path.write_text(SOURCE.format(factor=3))


def test_a_folder_in_the_place_of_a_file(place):
    (path,) = place.files("nbi")
    path.unlink()
    path.mkdir()
    messages, was_on_disk = place.call()
    assert len(messages) == 1
    assert not was_on_disk
