"""The data file of a command, in LIBSVM's terms: column i is the feature of index i."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Vector, sparse
from hinge.cli.options import EXIT_FAILURE, EXIT_USAGE, Parsed
from hinge.data.lines import Lines
from hinge.data.mapped import SHARES
from hinge.data.pages import is_mapped
from hinge.data.sharded import ShardedRows
from hinge.io import DataFileError, read_table
from hinge.io.models.libsvm_model import dense_columns
from hinge.io.svmlight.read import Reader, read_lines
from hinge.io.svmlight.spool import spool_data
from hinge.io.tables import READERS, ending
from hinge.kernel.kernels import Kernel
from hinge.runtime.memory import resident_bytes
from hinge.runtime.threads import lazy

# Bytes that compiled code takes which was not loaded yet, and the least that there must be for kernel values.
_COMPILED_BYTES, _LEAST_BYTES = 64_000_000, 16_000_000


@dataclass(frozen=True, eq=False)
class DataFile:
    """Samples and targets of a file.

    Attributes
    ----------
    stored : Lines, CSR matrix, mapped array or ShardedRows
        The samples as the file has them, zeros that are written out included; column i is index i.
    y : array
        Labels or targets; where they are words, their numbers among ``names``, counted from 1, or 0.
    names : tuple of str
        The words; empty where labels are numbers.
    qid : int64 array, optional
        The query of each sample, where the file tells.
    """

    stored: Any
    y: Vector
    names: tuple[str, ...] = ()
    qid: NDArray[np.int64] | None = None

    @lazy
    def rows(self) -> Any:
        """The samples, lines of text as SciPy's matrix."""
        return self.stored.matrix() if isinstance(self.stored, Lines) else self.stored

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.y)

    @property
    def max_index(self) -> int:
        """The largest index of the file."""
        return max(int(self.stored.shape[1]) - 1, 0)

    def labels(self) -> NDArray[np.int64]:
        """Class labels: whole numbers, cut off as LIBSVM does."""
        return np.clip(np.trunc(self.y), -(2**31), 2**31 - 1).astype(np.int64)

    def serials(self) -> NDArray[np.int64]:
        """Serial numbers of the rows of a precomputed kernel, counted from 1."""
        rows = self.rows
        first = rows.indptr[:-1]
        has_zero = np.zeros(self.n, bool)
        filled = rows.indptr[1:] > first
        has_zero[filled] = rows.indices[first[filled]] == 0
        if not has_zero.all():
            leave("Wrong input format: first column must be 0:sample_serial_number")
        serials = rows.data[first].astype(np.int64)
        if ((serials <= 0) | (serials > self.max_index)).any():
            leave("Wrong input format: sample_serial_number out of range")
        return serials

    def training_data(self, kernel: Kernel) -> Any:
        """Return what training works on: the kernel matrix if that is what the file holds, else the features."""
        if kernel.is_precomputed:
            return dense_columns(self.rows, self.serials())
        stays = is_mapped(self.stored) or isinstance(self.stored, ShardedRows)
        return self.stored if stays else _compact(self.stored)


def leave(message: str, code: int = EXIT_FAILURE) -> Any:
    """Print an error and end the command."""
    print(message, file=sys.stderr)
    raise SystemExit(code)


@contextmanager
def explained(path: str, cannot_open: str) -> Iterator[None]:
    """Turn what goes wrong with a data file into LIBSVM's message, and ours behind it."""
    try:
        yield
    except DataFileError as error:
        if error.errors:
            print(f"Wrong input format at line {error.errors[0].line}", file=sys.stderr)
        leave(str(error))
    except ConnectionError:  # of a cluster, no matter of files
        raise
    except OSError as error:
        print(f"{cannot_open} {path}", file=sys.stderr)
        leave(f"{path}: {error.strerror or error}")


def read_samples(
    path: str, parsed: Parsed, cannot_open: str = "can't open input file", names: tuple[str, ...] = ()
) -> DataFile:
    """Read a data file, or print what is wrong with it and leave.

    Parameters
    ----------
    path : str
        LIBSVM text, ``"-"`` for standard input, or a table; a table's first column is index 1.
    parsed : Parsed
        The command line, which may tell the number of threads and the label column.
    cannot_open : str
        What LIBSVM's tool says of a file that it cannot open.
    names : tuple of str
        The words that a model knows its classes by; those of the file by default.
    """
    label = parsed.values.get("label")
    with explained(path, cannot_open):
        if path != "-" and ending(path) in READERS:
            data = read_table(path, label=_column(label))
            _tell_guess(path, data.label_guess, parsed)
            X = sparse().csr_matrix(data.X)
            rows = sparse().csr_matrix((X.data, X.indices + 1, X.indptr), shape=(X.shape[0], X.shape[1] + 1))
            return replace(_numbered(rows, data.y, names), qid=data.qid)
        if label is not None:
            leave(f"--label is for tables ({', '.join(READERS)}); LIBSVM's text has its labels in front")
        data = read_lines(path, Reader(zero_based=True, threads=parsed["threads"]))
    return DataFile(data.X, data.y, qid=data.qid)


@contextmanager
def spooled_samples(path: str, parsed: Parsed, model_path: str) -> Iterator[tuple[DataFile, int]]:
    """Read a data file into a temporary file; yield its samples and the bytes that are left for training.

    What training puts down on the way goes to the same folder, which is gone at the end, also after Ctrl-C.
    """
    if path != "-" and ending(path) in READERS:
        leave(f"--memory is for LIBSVM's text, not for tables ({', '.join(READERS)})")
    where = parsed["tmp"] or os.path.dirname(os.path.abspath(model_path))
    try:
        folder = Path(tempfile.mkdtemp(prefix=".hinge-", dir=where))
    except OSError as error:
        leave(f"cannot write a temporary file to {where}: {error.strerror or error}")
    former, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        with explained(path, "can't open input file"):
            data = spool_data(path, folder, threads=parsed["threads"])
        left = parsed["memory"] - resident_bytes() - _COMPILED_BYTES
        least = SHARES.of_sample * len(data.y) + _LEAST_BYTES
        if left < least:
            needed = parsed["memory"] - left + least
            leave(f"--memory: {len(data.y)} samples and the program itself take {needed // 10**6} MB at the least")
        yield DataFile(data.X, data.y), left
    finally:
        tempfile.tempdir = former
        shutil.rmtree(folder, ignore_errors=True)


def _column(label: str | None) -> str | int | None:
    """Return a label column as `read_table` takes it: numbers on the command line count from 1."""
    if label is None or not (label.isascii() and label.isdigit()):
        return label
    if int(label) == 0:
        leave("--label counts columns from 1", EXIT_USAGE)
    return int(label) - 1


def _tell_guess(path: str, guess: str, parsed: Parsed) -> None:
    if guess and not parsed.values.get("quiet"):
        print(f"{path}: labels are taken from {guess}; --label says another", file=sys.stderr)


def _numbered(rows: Any, y: Any, names: tuple[str, ...]) -> DataFile:
    """Return samples whose labels are numbers: those of words count from 1."""
    if y.dtype.kind != "U":
        return DataFile(rows, np.asarray(y, np.float64))
    names = names or tuple(np.unique(y).tolist())
    if any("\n" in name for name in names):
        leave("a label holds a line break: labels must be words or numbers")
    number = {name: k for k, name in enumerate(names, 1)}
    return DataFile(rows, np.array([number.get(word, 0) for word in y.tolist()], np.float64), names)


def classes_path(model_path: str) -> str:
    """Return the file beside a model that tells the words for its classes, a line for each number from 1."""
    return f"{model_path}.classes"


def read_classes(model_path: str) -> tuple[str, ...]:
    """Return the words for the classes of a model; nothing where these are numbers."""
    try:
        with open(classes_path(model_path), encoding="utf-8") as file:
            return tuple(file.read().split("\n")[:-1])
    except (OSError, UnicodeDecodeError):
        return ()


def default_model_name(path: str) -> str:
    """Return the model file that LIBSVM writes by default: the data file's name in the current folder."""
    return os.path.basename(path if path != "-" else "stdin") + ".model"


def _compact(rows: Any) -> Any:
    """Return the rows without unused columns, dense where that is no larger."""
    used, places = np.unique(rows.indices, return_inverse=True)
    shape = (rows.shape[0], max(len(used), 1))
    narrow: Any = Lines(rows.data, places.astype(np.int32), rows.indptr, shape)
    if not isinstance(rows, Lines):  # these may have places twice
        narrow = sparse().csr_matrix((narrow.data, narrow.indices, narrow.indptr), shape=shape)
    if 3 * len(narrow.data) >= shape[0] * shape[1]:
        return narrow.toarray()
    return narrow.matrix() if isinstance(narrow, Lines) else narrow
