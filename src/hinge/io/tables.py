"""Read data from ``.npz``, ``.npy``, ``.csv`` and ``.parquet`` files, so that nobody needs to convert."""

from __future__ import annotations

import csv
import io
import math
import os
import zipfile
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from hinge.io.budget import Budget
from hinge.io.svmlight.errors import DataFileError, LineError, malformed
from hinge.io.svmlight.read import Data
from hinge.io.svmlight.source import LONGEST_LINE, LineTooLongError, blocks, open_source

LABEL_NAMES = ("label", "target", "y")

_COMPRESSIONS = (".gz", ".bz2", ".xz")
_MAX_ERRORS = 10

# Bytes that a byte of a long line of cells may take: two make a cell, which is an object in a list.
_BYTES_A_CHARACTER = 40

# Bytes a value for taking the label column out of a sparse matrix.
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
      with anything but numbers names the columns.
    - ``.parquet``: needs pyarrow.

    The label column is the one called ``label``, ``target`` or ``y`` (in this order; capitals do not matter),
    else the first.

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
    if X.dtype.kind not in "biuf" or y.dtype.kind not in "biuf":
        raise DataFileError(f"expected numbers, found X of type {X.dtype} and y of type {y.dtype}", path)
    n_values, row_number = (X.nnz, 8) if sp.issparse(X) else (X.size, 0)
    in_new_type = 0 if X.dtype == dtype else dtype.itemsize
    budget.lend(n_values * (1 + row_number + in_new_type))  # one byte says whether it is finite
    with np.errstate(over="ignore"):  # what overflows is refused below
        X = sp.csr_matrix(X, dtype=dtype) if sp.issparse(X) else np.ascontiguousarray(X, dtype)
    if sp.issparse(X):
        X.sum_duplicates()
    y = y.astype(np.float64)
    finite = np.isfinite(y)
    if sp.issparse(X):
        finite[np.repeat(np.arange(len(y)), np.diff(X.indptr))[~np.isfinite(X.data)]] = False
    else:
        finite &= np.isfinite(X).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite)) + 1
        raise DataFileError(f"row {row}: expected finite numbers in the range of {dtype}", path)
    if data.qid is not None and (data.qid.shape != y.shape or data.qid.dtype.kind not in "iu"):
        raise DataFileError(f"expected one integer per row in qid, found {data.qid.dtype} {data.qid.shape}", path)
    return Data(X, y, None if data.qid is None else data.qid.astype(np.int64))


def _label_column(names: Sequence[str] | None, n_columns: int, label: str | int | None, path: str) -> int:
    """Return the position of the label column."""
    if n_columns == 0:
        raise DataFileError("expected a label column, found no columns", path)
    if isinstance(label, str):
        if names is None or label not in names:
            known = "no names" if names is None else ", ".join(map(repr, names[:20]))
            raise DataFileError(f"expected a column called {label!r}, found {known}", path)
        return names.index(label)
    if label is not None:
        if not -n_columns <= label < n_columns:
            raise DataFileError(f"expected a label column {label}, found {n_columns} columns", path)
        return label % n_columns
    lower = [name.strip().lower() for name in names or ()]
    return next((lower.index(name) for name in LABEL_NAMES if name in lower), 0)


def _split(table: NDArray[Any], names: Sequence[str] | None, label: str | int | None, path: str) -> Data:
    at = _label_column(names, table.shape[1], label, path)
    return Data(np.delete(table, at, axis=1), table[:, at])


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
    return _split(table, None, label, path)


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
    return _split_sparse(X, _label_column(None, X.shape[1], label, path))


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


def _sparse(arrays: dict[str, NDArray[Any]], path: str) -> sp.csr_matrix:
    """Make a CSR matrix of the arrays that `scipy.sparse.save_npz` writes."""
    try:
        if arrays["format"].size != 1 or bytes(arrays["format"].astype("S").item()) != b"csr":
            raise ValueError("it is not in CSR form: save X.tocsr() instead")
        n_rows, n_columns = (int(length) for length in arrays["shape"])
        if n_rows != len(arrays["indptr"]) - 1:
            raise ValueError("shape and indptr disagree")
        X = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(n_rows, n_columns))
        X.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataFileError(f"the sparse matrix cannot be used ({error})", path) from error
    return X


def _split_sparse(X: sp.csr_matrix, at: int) -> Data:
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
    return Data(sp.csr_matrix((X.data[kept], columns, pointers), shape=(n_rows, n_columns - 1)), y)


def _read_csv(path: str, label: str | int | None, budget: Budget) -> Data:
    names: list[str] | None = None
    width = n_lines = n_errors = 0
    delimiter = ","
    tables: list[NDArray[Any]] = []
    errors: list[LineError] = []
    try:
        with open_source(path) as (file, _):
            for text, stop in blocks(file, budget, bytes_a_byte=_BYTES_A_CHARACTER):
                lines = text[:stop].tobytes().decode("utf-8").split("\n")[:-1]
                rows = [(k, line.rstrip("\r")) for k, line in enumerate(lines, n_lines + 1) if line.strip()]
                n_lines += len(lines)
                if rows and not width:
                    delimiter = max(",;\t", key=rows[0][1].count)
                    head = _cells(rows[0][1], delimiter)
                    width = len(head)
                    if not all(map(_is_number, head)):
                        names = head
                        del rows[0]
                if rows:
                    table = _numbers([line for _, line in rows], delimiter, width)
                    if table is None:
                        found = _csv_errors(rows, delimiter, width)
                        n_errors += len(found)
                        errors = (errors + found)[:_MAX_ERRORS]
                    elif not n_errors:
                        budget.keep(2 * table.nbytes)  # the pieces, and what is made of them
                        tables.append(table)
    except UnicodeDecodeError as error:
        raise DataFileError(f"expected text in UTF-8 ({error.reason})", path) from error
    except LineTooLongError:
        raise DataFileError(f"line {n_lines + 1}: expected at most {LONGEST_LINE} bytes", path) from None
    if n_errors:
        raise malformed(path, errors, n_errors)
    if not width:
        raise DataFileError("expected a table, found no lines", path)
    whole = np.concatenate([np.empty((0, width)), *tables])
    tables.clear()
    return _split(whole, names, label, path)


def _numbers(lines: list[str], delimiter: str, width: int) -> NDArray[np.float64] | None:
    """Read lines of finite numbers; None if that fails."""
    try:
        table = np.loadtxt(lines, np.float64, comments=None, delimiter=delimiter, quotechar='"', ndmin=2)
    except ValueError:
        return None
    return table if table.shape == (len(lines), width) and np.isfinite(table).all() else None


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter))
    except csv.Error:
        return line.split(delimiter)


def _is_number(text: str, finite: bool = False) -> bool:
    try:
        number = float(text)
    except ValueError:
        return False
    return "_" not in text and (not finite or math.isfinite(number))


def _csv_errors(rows: list[tuple[int, str]], delimiter: str, width: int) -> list[LineError]:
    """Go through numbered lines again, slowly, to say which are malformed."""
    errors = []
    for k, line in rows:
        cells = _cells(line, delimiter)
        bad = next((c for c, cell in enumerate(cells) if not _is_number(cell, finite=True)), None)
        if len(cells) != width:
            errors.append(LineError(k, 1, f"{width} columns", f"{len(cells)}"))
        elif bad is not None:
            errors.append(LineError(k, bad + 1, "a finite number", ascii(cells[bad][:24])))
    if not errors:  # NumPy refused what Python takes for numbers: digits of other scripts, open quotes
        refused = (row for row in rows if _numbers([row[1]], delimiter, width) is None)
        k, line = next(refused, rows[0])
        errors.append(LineError(k, 1, "plain digits and closed quotes", ascii(line[:24])))
    return errors


def _read_parquet(path: str, label: str | int | None, budget: Budget) -> Data:
    try:
        pa = import_module("pyarrow")
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(f"reading {path} needs pyarrow: pip install pyarrow") from error
    try:
        with open(path, "rb") as raw, parquet.ParquetFile(raw) as file:
            schema = file.schema_arrow
            for name, kind in zip(schema.names, schema.types, strict=True):
                if not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                    raise DataFileError(f"expected numbers in column {name!r}, found {kind}", path)
            pieces = [np.empty((0, len(schema.names)))]
            for batch in file.iter_batches():
                budget.keep(2 * 8 * batch.num_rows * batch.num_columns)  # the pieces, and what is made of them
                pieces.append(_columns(batch, path))
    except (pa.ArrowException, OSError) as error:  # of damage too Arrow says OSError, but without a number
        if getattr(error, "errno", None) is not None:
            raise
        raise DataFileError(f"this is not a Parquet file ({error})", path) from error
    table = np.concatenate(pieces)
    pieces.clear()
    return _split(table, schema.names, label, path)


def _columns(batch: Any, path: str) -> NDArray[np.float64]:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if column.null_count:
            raise DataFileError(f"expected no missing values in column {name!r}", path)
    return np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns]).astype(np.float64)


READERS: dict[str, Callable[[str, str | int | None, Budget], Data]] = {
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
}
