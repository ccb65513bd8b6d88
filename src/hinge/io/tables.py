"""Read data from ``.npz``, ``.npy``, ``.csv`` and ``.parquet`` files, so that nobody needs to convert."""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hinge.arrays import is_sparse, sparse
from hinge.io.budget import Budget
from hinge.io.delimited import read_delimited
from hinge.io.labels import Columns, label_column
from hinge.io.svmlight.errors import DataFileError
from hinge.io.svmlight.read import Data

_COMPRESSIONS = (".gz", ".bz2", ".xz")

# Bytes per value for taking the label column out of a sparse matrix.
_BYTES_TO_SPLIT = 40

# NumPy reads headers of whatever length they claim before it refuses those above 10,000 bytes.
_LONGEST_HEADER = 2**14

# Names of arrays in an archive.
_OF_USE = ("X", "y", "qid", "format", "shape", "data", "indices", "indptr")

_NPY_HEADERS: dict[tuple[int, int], Callable[[Any], Any]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def ending(path: str | os.PathLike[str]) -> str:
    """Return the ending that tells a file's format, without that of a compression.

    Examples
    --------
    >>> ending("folder/Data.CSV.gz")
    '.csv'
    """
    name = os.fspath(path).lower()
    for compression in _COMPRESSIONS:
        name = name.removesuffix(compression)
    return os.path.splitext(name)[1]


def read_table(
    path: str | os.PathLike[str], *, label: str | int | None = None, dtype: DTypeLike = np.float64
) -> Data:
    """Read a table of numbers; its ending tells the format.

    - ``.npz``: arrays ``X`` and ``y``, optionally ``qid``; or a CSR matrix as `scipy.sparse.save_npz` writes
      it, with a label column.
    - ``.npy``: one array with a label column.
    - ``.csv``, ``.tsv``: columns separated by commas, semicolons or tabs, compressed or not. A first line
      with anything but numbers names the columns, unless a single word stands where later lines have words, too.
    - ``.parquet``: needs pyarrow.

    The label column is the one called ``label``, ``target`` or ``y`` (in this order; capitals do not matter),
    else the only one of words, else the first. Labels of ``.csv``, ``.tsv`` and ``.parquet`` may be words.

    Parameters
    ----------
    path : path
        The file.
    label : str, int or None
        Name or position of the label column, if it is another.
    dtype : float64 or float32
        Type of the values in ``X``.

    Returns
    -------
    Data
        The samples, dense unless the file is sparse, and their labels.

    Raises
    ------
    DataFileError
        The file does not hold a table of finite numbers with a label for each row; or what it holds takes more
        than half of the free memory. ``HINGE_FILE_MEMORY`` in the environment sets another limit, in megabytes.

    Examples
    --------
    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "flowers.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("width,height,label\\n1.5,2,1\\n0.5,3,-1\\n")
    >>> X, y = read_table(path)
    >>> X, y
    (array([[1.5, 2. ],
           [0.5, 3. ]]), array([ 1., -1.]))
    """
    dtype = np.dtype(dtype)
    if dtype not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32, got {dtype}")
    reader = READERS.get(ending(path))
    if reader is None:
        raise ValueError(f"{os.fspath(path)}: expected one of the endings {', '.join(READERS)}")
    budget = Budget(os.fspath(path))
    return _checked(reader(os.fspath(path), label, budget), os.fspath(path), dtype, budget)


def _checked(data: Data, path: str, dtype: np.dtype[Any], budget: Budget) -> Data:
    """Give the numbers their types; refuse what is not finite."""
    X: Any
    X, y = data
    if X.ndim != 2 or y.shape != (X.shape[0],):
        raise DataFileError(f"expected one label per row, found X {X.shape} and y {y.shape}", path)
    if X.dtype.kind not in "biuf" or y.dtype.kind not in "biufU":
        raise DataFileError(f"expected numbers, found X of type {X.dtype} and y of type {y.dtype}", path)
    n_values, row_number = (X.nnz, 8) if is_sparse(X) else (X.size, 0)
    in_new_type = 0 if X.dtype == dtype else dtype.itemsize
    budget.lend(n_values * (1 + row_number + in_new_type))  # one byte says whether it is finite
    with np.errstate(over="ignore"):  # what overflows is refused below
        X = sparse().csr_matrix(X, dtype=dtype) if is_sparse(X) else np.ascontiguousarray(X, dtype)
    if is_sparse(X):
        X.sum_duplicates()
    has_words = y.dtype.kind == "U"
    y = y if has_words else y.astype(np.float64)
    finite = np.ones(len(y), bool) if has_words else np.isfinite(y)
    if is_sparse(X):
        finite[np.repeat(np.arange(len(y)), np.diff(X.indptr))[~np.isfinite(X.data)]] = False
    else:
        finite &= np.isfinite(X).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite)) + 1
        raise DataFileError(f"row {row}: expected finite numbers in the range of {dtype}", path)
    if data.qid is not None and (data.qid.shape != y.shape or data.qid.dtype.kind not in "iu"):
        raise DataFileError(f"expected one integer per row in qid, found {data.qid.dtype} {data.qid.shape}", path)
    return replace(data, X=X, y=y, qid=None if data.qid is None else data.qid.astype(np.int64))


def _read_npy(path: str, label: str | int | None, budget: Budget) -> Data:
    with open(path, "rb") as file:
        try:
            shape, size = _shape_and_size(file)
            if len(shape) != 2 or size > os.stat(path).st_size:
                raise ValueError(f"its shape cannot be {shape}")
            budget.keep(2 * size)  # the array, and the same without its label column
            file.seek(0)
            table = np.lib.format.read_array(file, allow_pickle=False)
        except DataFileError:
            raise
        except Exception as error:  # NumPy evaluates the header as Python text: anything may happen
            raise DataFileError(f"this is not an array of numbers in two dimensions ({error})", path) from error
    return Columns(table, label_column(None, table.shape[1], label, path)).data()


def _shape_and_size(file: Any) -> tuple[tuple[int, ...], int]:
    """Return the shape that an array's header claims, and its bytes; no more than a header's length is read."""
    head = io.BytesIO(file.read(_LONGEST_HEADER))
    shape, _, dtype = _NPY_HEADERS[np.lib.format.read_magic(head)](head)
    return shape, math.prod(shape) * dtype.itemsize


def _read_npz(path: str, label: str | int | None, budget: Budget) -> Data:
    arrays = _archive(path, budget)
    if "X" in arrays and "y" in arrays:
        return Data(arrays["X"], arrays["y"], arrays.get("qid"))
    if not {"format", "shape", "data", "indices", "indptr"} <= set(arrays):
        names = ", ".join(arrays) or "none"
        raise DataFileError(f"expected arrays X and y or a CSR matrix, found {names}", path)
    X = _sparse(arrays, path)
    if "y" in arrays:
        return Data(X, arrays["y"], arrays.get("qid"))
    budget.lend(X.nnz * _BYTES_TO_SPLIT)
    return _split_sparse(X, label_column(None, X.shape[1], label, path).at)


def _archive(path: str, budget: Budget) -> dict[str, NDArray[Any]]:
    """Read the arrays of an archive that can be of use; of others, what they are called.

    Their sizes are checked before memory is set aside for them.
    """
    arrays: dict[str, NDArray[Any]] = {}
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                for member in archive.infolist():
                    name = member.filename.removesuffix(".npy")
                    arrays[name] = _member(archive, member, budget) if name in _OF_USE else np.empty(0)
        except DataFileError:
            raise
        except Exception as error:  # NumPy evaluates the headers as Python text: anything may happen
            raise DataFileError(f"this is not an archive of arrays of numbers ({error})", path) from error
    return arrays


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, budget: Budget) -> NDArray[Any]:
    with archive.open(member) as file:
        _, size = _shape_and_size(file)
    if size > member.file_size:
        raise ValueError(f"{member.filename} is cut short")
    budget.keep(size)
    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _sparse(arrays: dict[str, NDArray[Any]], path: str) -> Any:
    """Make a CSR matrix of the arrays that `scipy.sparse.save_npz` writes."""
    try:
        if arrays["format"].size != 1 or bytes(arrays["format"].astype("S").item()) != b"csr":
            raise ValueError("it is not in CSR form: save X.tocsr() instead")
        n_rows, n_columns = (int(length) for length in arrays["shape"])
        if n_rows != len(arrays["indptr"]) - 1:
            raise ValueError("shape and indptr disagree")
        X = sparse().csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(n_rows, n_columns))
        X.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataFileError(f"the sparse matrix cannot be used ({error})", path) from error
    return X


def _split_sparse(X: Any, at: int) -> Data:
    """Take column ``at`` out of a CSR matrix, without work in proportion to the number of columns."""
    X.sum_duplicates()
    n_rows, n_columns = X.shape
    rows = np.repeat(np.arange(n_rows), np.diff(X.indptr))
    is_label = X.indices == at
    y = np.zeros(n_rows)
    y[rows[is_label]] = X.data[is_label]
    kept = ~is_label
    columns = X.indices[kept]
    columns -= columns > at
    pointers = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=n_rows))])
    return Data(sparse().csr_matrix((X.data[kept], columns, pointers), shape=(n_rows, n_columns - 1)), y)


def _read_parquet(path: str, label: str | int | None, budget: Budget) -> Data:
    try:
        pa = import_module("pyarrow")
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(f"reading {path} needs pyarrow: pip install pyarrow") from error
    try:
        with open(path, "rb") as raw, parquet.ParquetFile(raw) as file:
            schema = file.schema_arrow
            is_words = [pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in schema.types]
            chosen = label_column(schema.names, len(schema.names), label, path, np.flatnonzero(is_words).tolist())
            for name, kind, at in zip(schema.names, schema.types, range(len(is_words)), strict=True):
                is_number = pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
                if not is_number and not (at == chosen.at and is_words[at]):
                    raise DataFileError(f"expected numbers in column {name!r}, found {kind}", path)
            pieces, words = [np.empty((0, len(schema.names)))], []
            for batch in file.iter_batches():
                budget.keep(2 * 8 * batch.num_rows * batch.num_columns)  # the pieces, and what is made of them
                _refuse_gaps(batch, path)
                columns = list(batch.columns)
                if is_words[chosen.at]:
                    budget.keep(2 * columns[chosen.at].nbytes)
                    words += columns[chosen.at].to_pylist()
                    columns[chosen.at] = pa.nulls(batch.num_rows, pa.float64())
                pieces.append(
                    np.column_stack([c.to_numpy(zero_copy_only=False) for c in columns]).astype(np.float64)
                )
    except (pa.ArrowException, OSError) as error:  # of damage too Arrow says OSError, but without a number
        if getattr(error, "errno", None) is not None:
            raise
        raise DataFileError(f"this is not a Parquet file ({error})", path) from error
    table = np.concatenate(pieces)
    pieces.clear()
    return Columns(table, chosen, words if is_words[chosen.at] else None).data()


def _refuse_gaps(batch: Any, path: str) -> None:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if column.null_count:
            raise DataFileError(f"expected no missing values in column {name!r}", path)


READERS: dict[str, Callable[[str, str | int | None, Budget], Data]] = {
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".csv": read_delimited,
    ".tsv": read_delimited,
    ".parquet": _read_parquet,
}
