"""Fixtures of the commands: run one in this process, real LIBSVM tools, data files of ``$HINGE_DATA``."""

import lzma
import os
import shutil
import subprocess
from collections import namedtuple
from pathlib import Path

import pytest

from hinge.cli import main

Result = namedtuple("Result", "code out err")

TOOLS = ("svm-train", "svm-predict", "svm-scale")


@pytest.fixture
def hinge(capsys):
    """A function that runs ``hinge WORDS`` here and returns exit code, output and errors."""

    def run(*words):
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as leaving:
            code = leaving.code
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def libsvm():
    """A function that runs one of LIBSVM's own tools; skips where they are not installed."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed (Debian package libsvm-tools)")

    def run(*words, cwd=None):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, cwd=cwd)
        return Result(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def data_file(tmp_path_factory):
    """A function that returns the path of a data set by name, decompressed."""
    folder = tmp_path_factory.mktemp("data")

    def path_of(name, n_lines=None):
        path = folder / (name if n_lines is None else f"{name}.{n_lines}")
        if not path.exists():
            with lzma.open(Path(os.environ["HINGE_DATA"]) / f"{name}.xz") as file:
                lines = [line for line in file if line.strip()]  # LIBSVM refuses blank lines
            path.write_bytes(b"".join(lines[:n_lines]))
        return path

    return path_of
