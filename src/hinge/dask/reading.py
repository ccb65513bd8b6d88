"""LIBSVM text on a cluster: parts of files, read by the workers."""

from __future__ import annotations

import glob
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from hinge.io.budget import Budget
from hinge.io.svmlight.errors import DataFileError, Faults
from hinge.io.svmlight.read import MAX_INDEX, Reader, Survey
from hinge.io.svmlight.source import BLOCK_BYTES, is_compressed, open_source


@dataclass(frozen=True)
class Part:
    """Bytes of a file: the lines that begin between two places, or all of it.

    Attributes
    ----------
    path : str
        The file.
    start, stop : int
        The two places; ``stop`` is 0 for a compressed file, which is read whole.
    """

    path: str
    start: int = 0
    stop: int = 0

    def open(self) -> Any:
        """Return what `open_source` takes."""
        return _Lines(self) if self.stop else self.path


class _Lines(io.RawIOBase):
    """The lines of a file that begin in a range of bytes."""

    def __init__(self, part: Part) -> None:
        self._file = open(part.path, "rb", buffering=0)  # noqa: SIM115 - closed with this stream
        self.name = part.path
        start, self._stop = (self._next_line(place) for place in (part.start, part.stop))
        self._file.seek(start)

    def _next_line(self, place: int) -> int:
        """Return where the first line begins that does not begin before ``place``."""
        if place == 0:
            return 0
        self._file.seek(place - 1)
        at = place - 1
        while piece := self._file.read(BLOCK_BYTES // 8):
            if (found := piece.find(b"\n")) >= 0:
                return at + found + 1
            at += len(piece)
        return at

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        most = min(len(buffer), self._stop - self._file.tell())
        return self._file.readinto(memoryview(buffer)[:most]) or 0 if most > 0 else 0

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def read_svmlight(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    zero_based: bool | Literal["auto"] = "auto",
    layout: Literal["auto", "sparse", "dense"] = "auto",
    part_bytes: int = 1 << 26,
    max_index: int = MAX_INDEX,
) -> tuple[Any, Any]:
    """Read files in LIBSVM / svmlight format on the workers of a Dask cluster.

    The files must be where every worker finds them. They are gone through once to find out how many samples and
    features there are; blocks of samples are read when they are computed, and again if a worker is lost.

    Parameters
    ----------
    files : str, path or list of these
        Names, which may be patterns such as ``"part-*.svm"``: in sorted order, as seen from here; workers open
        the same paths. Text, or text compressed by gzip,
        bzip2 or xz. Large files are divided, a line belonging to the part where it begins; compressed ones are
        read whole.
    n_features : int, optional
        Number of columns; the largest index of all files by default.
    dtype : float64 or float32
        Type of the values in X. Labels are float64.
    zero_based : bool or "auto"
        Whether index 0 is the first column. By default index 1 is, unless index 0 occurs in some file.
    layout : {"auto", "sparse", "dense"}
        Whether blocks are CSR matrices or arrays; by default whatever is smaller.
    part_bytes : int
        Bytes of text that make a block.
    max_index : int
        Indices above this are refused.

    Returns
    -------
    X, y : Dask arrays
        Samples and labels, divided alike, with known chunks.

    Raises
    ------
    FileNotFoundError
        No file has such a name.
    DataFileError
        A file is malformed: which, and which lines, as `hinge.io.read_data` says it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "part-0.svm").write_text("1 1:0.5 3:2\\n")
    >>> _ = (folder / "part-1.svm").write_text("-1 2:1\\n")
    >>> X, y = read_svmlight(folder / "part-*.svm")
    >>> X.shape, X.chunks, y.compute()
    ((2, 3), ((1, 1), (3,)), array([ 1., -1.]))
    """
    import dask.array as da

    import dask

    if part_bytes < 1:
        raise ValueError(f"part_bytes must be at least 1, got {part_bytes}")
    if layout not in ("auto", "sparse", "dense"):
        raise ValueError(f"layout must be 'auto', 'sparse' or 'dense', got {layout!r}")
    reader = Reader(n_features, np.dtype(dtype), zero_based, max_index, threads=1)
    parts = [part for path in _paths(files) for part in _parts(path, part_bytes)]
    surveys = dask.compute(*(dask.delayed(_survey, pure=True)(part, reader) for part in parts))
    _refuse(parts, surveys)
    starts_at_zero = any(found.has_zero for found in surveys) if zero_based == "auto" else zero_based
    width = n_features
    if width is None:
        width = max(max(found.top for found in surveys) + bool(starts_at_zero), 0)
    for part, found in zip(parts, surveys, strict=True):
        if found.has_zero and zero_based is False:
            raise DataFileError("index 0 occurs in a file said to be one-based: set zero_based='auto'", part.path)
        if starts_at_zero and found.top >= width:
            raise DataFileError(f"indices 0 to {width} occur, but n_features is {width}", part.path)
    kept = [k for k, found in enumerate(surveys) if found.n_rows] or [0]
    sizes = tuple(surveys[k].n_rows for k in kept)
    entry, n_values = reader.dtype.itemsize, sum(found.n_values for found in surveys)
    is_dense = layout == "dense" or (layout == "auto" and sum(sizes) * width * entry <= n_values * (entry + 4))
    reader = replace(reader, n_features=width, zero_based=bool(starts_at_zero))
    name = f"hinge-svmlight-{dask.base.tokenize([parts[k] for k in kept], reader, is_dense)}"
    read: dict[Any, Any] = {(name, i): (_block, parts[k], reader, is_dense) for i, k in enumerate(kept)}
    X: dict[Any, Any] = {**read, **{(f"{name}-X", i, 0): (_first, (name, i)) for i in range(len(kept))}}
    y: dict[Any, Any] = {**read, **{(f"{name}-y", i): (_second, (name, i)) for i in range(len(kept))}}
    meta = np.empty((0, 0), dtype) if is_dense else sp.csr_matrix((0, 0), dtype=dtype)
    return (
        da.Array(X, f"{name}-X", (sizes, (width,)), meta=meta, shape=(sum(sizes), width)),
        da.Array(y, f"{name}-y", (sizes,), meta=np.empty(0), shape=(sum(sizes),)),
    )


def _paths(files: Any) -> list[str]:
    """Return the files that names and patterns stand for."""
    names = [files] if isinstance(files, str | os.PathLike) else list(files)
    paths: list[str] = []
    for given in names:
        name = str(os.fspath(given))
        found = [name] if os.path.isfile(name) else sorted(glob.glob(name))
        if not found:
            raise FileNotFoundError(f"no file is called {name}")
        paths += [os.path.abspath(path) for path in found]  # workers may stand in another folder
    if not paths:
        raise ValueError("files names no file")
    return paths


def _parts(path: str, part_bytes: int) -> list[Part]:
    size = os.path.getsize(path)
    if size == 0 or is_compressed(path):
        return [Part(path)]
    return [Part(path, start, min(start + part_bytes, size)) for start in range(0, size, part_bytes)]


def _survey(part: Part, reader: Reader) -> Survey:
    """Go through a part on a worker: how many samples, the largest index, what is malformed."""
    with open_source(part.open()) as (file, name):
        return reader.survey(file, Budget(name))


def _block(part: Part, reader: Reader, is_dense: bool) -> tuple[Any, Any]:
    """Read a part on a worker."""
    with open_source(part.open()) as (file, name):
        data = reader.read(file, name, Budget(name))
    return data.X.toarray() if is_dense else data.X.matrix(), data.y


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _refuse(parts: Sequence[Part], surveys: Sequence[Survey]) -> None:
    """Raise the error of the first file with malformed lines, their numbers those of the file."""
    for path in dict.fromkeys(part.path for part in parts):
        whole: Faults | None = None
        for part, found in zip(parts, surveys, strict=True):
            if part.path == path:
                whole = whole or Faults(found.faults.most)
                whole.note(found.faults.errors, found.faults.count, found.faults.n_lines)
        if whole is not None:
            whole.refuse(path)
