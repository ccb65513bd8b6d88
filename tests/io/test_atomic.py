"""Atomic writes: whatever happens, the old or the new file is there, whole."""

import errno
import os
import random
import stat
import subprocess
import sys
import time

import pytest

from hinge.io import atomic, atomic_write

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")

# Runs the one file alone, so that a process starts in milliseconds.
ALONE = f"import runpy, sys; atomic_write = runpy.run_path({atomic.__file__!r})['atomic_write']\n"


def only(folder):
    return [path.name for path in folder.iterdir()]


@pytest.mark.parametrize(("mode", "content"), [("w", "new\nβ\r\n"), ("wb", b"\x00new")])
def test_replaces(tmp_path, mode, content):
    path = tmp_path / "file"
    path.write_text("old")
    with atomic_write(path, mode) as file:
        file.write(content)
        assert path.read_text() == "old"
    assert path.read_bytes() == (content.encode() if mode == "w" else content)
    assert only(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("exists", [True, False])
def test_failure_changes_nothing(tmp_path, error, exists):
    path = tmp_path / "file"
    if exists:
        path.write_text("old")

    def fail():
        with atomic_write(path) as file:
            file.write("half")
            raise error

    with pytest.raises(error):
        fail()
    assert only(tmp_path) == (["file"] if exists else [])
    assert not exists or path.read_text() == "old"


def test_full_disk_at_the_last_moment(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"), atomic_write(path) as file:
        file.write("new")
    assert only(tmp_path) == ["file"]
    assert path.read_text() == "old"


@posix
def test_everything_is_on_the_disk_before_the_name_changes_and_the_name_after(tmp_path, monkeypatch):
    """A power cut at any moment leaves one of the two whole: what order the system is asked in."""
    path, asked = tmp_path / "file", []
    path.write_text("old")
    sync, rename = os.fsync, os.replace

    def noting(descriptor):
        what = os.fstat(descriptor)
        asked.append("folder" if stat.S_ISDIR(what.st_mode) else what.st_size)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    monkeypatch.setattr(os, "replace", lambda *names: (asked.append("name"), rename(*names)))
    with atomic_write(path) as file:
        file.write("new text")
    assert asked == [8, "name", "folder"]


@posix
def test_full_disk_half_way(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    code = ALONE + (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))\n"
        "with atomic_write(sys.argv[1]) as file: file.write('x' * 100000)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert b"OSError" in done.stderr
    assert only(tmp_path) == ["file"]
    assert path.read_text() == "old"


@posix
def test_killed_half_way(tmp_path):
    path = tmp_path / "file"
    code = ALONE + (
        "for k in range(10**9):\n"
        "    with atomic_write(sys.argv[1]) as file:\n"
        "        for _ in range(50): file.write(f'{k:09d}' * 1000)\n"
    )
    rng = random.Random(0)
    for _ in range(20):
        process = subprocess.Popen([sys.executable, "-c", code, path])
        while not path.exists():
            time.sleep(0.01)
        time.sleep(rng.uniform(0.05, 0.15))
        process.kill()
        process.wait()
        text = path.read_text()
        assert text == text[:9] * 50000


@posix
def test_links_and_permissions(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    target, link = folder / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write("new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    plain, fresh = tmp_path / "plain", tmp_path / "fresh"
    plain.touch()
    with atomic_write(fresh):
        pass
    assert fresh.stat().st_mode == plain.stat().st_mode


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_nobody_may_read_the_draft_who_may_not_read_the_file(tmp_path, monkeypatch, mode):
    path, seen = tmp_path / "model", []
    path.write_text("secret")
    path.chmod(mode)
    real_open = os.open

    def watching(name, *arguments, **options):
        descriptor = real_open(name, *arguments, **options)
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return descriptor

    before = os.umask(0o022)
    try:
        monkeypatch.setattr(os, "open", watching)
        with atomic_write(path) as file:
            file.write("a new secret")
            file.flush()
            (draft,) = tmp_path.glob(".*.tmp")
            seen.append(stat.S_IMODE(draft.stat().st_mode))
    finally:
        os.umask(before)
    assert seen[1] == stat.S_IMODE(path.stat().st_mode) == mode
    assert not seen[0] & ~mode, "the draft was open to others at first"


@posix
def test_devices_and_folders(tmp_path):
    with atomic_write(os.devnull) as file:
        file.write("gone")
    assert not os.path.isfile(os.devnull)
    with pytest.raises(IsADirectoryError), atomic_write(tmp_path):
        pass
    with (
        pytest.raises(FileNotFoundError, match=r"cannot write beside it.*no/file"),
        atomic_write(tmp_path / "no" / "file"),
    ):
        pass
    with pytest.raises(ValueError, match="mode"), atomic_write(tmp_path / "file", "a"):
        pass
