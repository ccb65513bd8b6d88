"""LIBSVM's model file as text: read with every claim checked, written as LIBSVM writes it."""

from __future__ import annotations

import io
import os
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Vector, sparse
from hinge.data.lines import Lines
from hinge.io.atomic import atomic_write
from hinge.io.budget import Budget
from hinge.io.models.libsvm_model import (
    CLASSIFIERS,
    KERNEL_TYPES,
    MOST_DEGREE,
    SVM_TYPES,
    LibsvmModel,
    dense_columns,
)
from hinge.io.svmlight.errors import DataFileError, malformed
from hinge.io.svmlight.read import TooManyRowsError, read_rows
from hinge.kernel.kernels import Kernel, kind_of

# No line of a file is read into memory beyond this, and beyond what the budget allows: in the header words become
# objects, of two bytes each at worst, and numbers stay objects until all are there.
_LONGEST_LINE = 2**28
_BYTES_A_BYTE = 48
_BYTES_A_NUMBER = 40

_KEY = re.compile(rb"[ \t\r\n]*([!-~]{1,80})")
_INTEGER = re.compile(rb"[-+]?[0-9]{1,10}")
_NUMBER = re.compile(rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_MOST_INTEGER = 2**31 - 1

N_MARKS = 10


class ModelFileError(ValueError):
    """A model file cannot be read, or a model cannot be written as one.

    Attributes
    ----------
    path : str
        The file.
    line : int
        The line to blame, counted from 1; 0 for the file as a whole.

    Examples
    --------
    >>> print(ModelFileError("expected a number, found 'x'", "m.model", 3))
    m.model: line 3: expected a number, found 'x'
    """

    def __init__(self, message: str, path: str = "", line: int = 0) -> None:
        super().__init__(message, path, line)
        self.message, self.path, self.line = message, path, line

    def __str__(self) -> str:
        where = [self.path] if self.path else []
        if self.line:
            where.append(f"line {self.line}")
        return ": ".join([*where, self.message])


# ---------------------------------------------------------------------- reading


def read_libsvm_model(source: str | os.PathLike[str] | BinaryIO) -> LibsvmModel:
    """Read a LIBSVM model file.

    A model file is data: nothing of it is executed, no memory is reserved on its word, and what its header claims
    is compared with what follows, while that is read.

    Parameters
    ----------
    source : path or binary file
        What to read.

    Returns
    -------
    LibsvmModel
        The model in LIBSVM's conventions.

    Raises
    ------
    ModelFileError
        The file is malformed; the message names the line. Or what it holds takes more than half of the free
        memory; ``HINGE_FILE_MEMORY`` in the environment sets another limit, in megabytes.

    Examples
    --------
    >>> text = (b"svm_type epsilon_svr\\nkernel_type linear\\nnr_class 2\\ntotal_sv 1\\nrho 0.5\\nSV\\n"
    ...         b"2 1:3 \\n")
    >>> model = read_libsvm_model(io.BytesIO(text))
    >>> model.coefficients, model.vectors.toarray()
    (array([[2.]]), array([[0., 3.]]))
    """
    if isinstance(source, str | os.PathLike):
        with open(source, "rb") as file:
            return _Reader(file, os.fspath(source)).read()
    return _Reader(source, str(getattr(source, "name", "<file>"))).read()


class _Reader:
    """Reads one model file; knows the line it is at."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.file, self.path, self.line = file, path, 0
        self.header: dict[str, Any] = {}
        self.budget = Budget(path, ModelFileError)
        self.longest = min(_LONGEST_LINE, self.budget.limit // _BYTES_A_BYTE)

    def fail(self, message: str, line: int | None = None) -> NoReturn:
        raise ModelFileError(message, self.path, self.line if line is None else line)

    def read(self) -> LibsvmModel:
        for key, words in self._header_lines():
            if key in self.header:
                self.fail(f"{key} is given twice")
            self.header[key] = self._value(key, words)
        self._check_header()
        return self._support_vectors()

    def _header_lines(self) -> Iterator[tuple[str, list[bytes]]]:
        while True:
            text = self._next_line()
            if not text:
                self.fail("the file ends before the word SV")
            if not text.strip():
                continue
            match = _KEY.match(text)
            key = match.group(1).decode("ascii") if match else ""
            if key == "SV" and text.strip() == b"SV":
                return
            if key not in _HEADER:
                self.fail(f"unknown text in model file: [{key or _shown(text.strip())}]")
            yield key, text.split()[1:]

    def _next_line(self) -> bytes:
        text = self.file.readline(self.longest + 1)
        self.line += 1
        if len(text) > self.longest:
            if self.longest < _LONGEST_LINE:
                raise self.budget.error()
            self.fail(f"a line is longer than {_LONGEST_LINE} bytes")
        return text

    def _value(self, key: str, words: list[bytes]) -> Any:
        parse, is_list = _HEADER[key]
        if not is_list and len(words) != 1:
            self.fail(f"expected one value of {key}, found {len(words)}")
        self.budget.keep(_BYTES_A_NUMBER * len(words))
        values = [parse(word) for word in words]
        for word, value in zip(words, values, strict=True):
            if value is None:
                self.fail(f"expected {_EXPECTED[parse]} for {key}, found {_shown(word)}")
        return values if is_list else values[0]

    def _check_header(self) -> None:
        header = self.header
        is_classifier = header.get("svm_type") in CLASSIFIERS
        kernel_type = header.get("kernel_type")
        uses_gamma = kernel_type is not None and "gamma" in kind_of(KERNEL_TYPES[kernel_type]).uses
        needed = ["svm_type", "kernel_type", "nr_class", "total_sv", "rho"]
        needed += ["label", "nr_sv"] if is_classifier else []
        needed += ["gamma"] if uses_gamma else []
        for key in needed:
            if key not in header:
                self.fail(f"the header lacks {key}")
        k, n = header["nr_class"], header["total_sv"]
        if k < 1 or n < 0:
            self.fail(f"nr_class {k} and total_sv {n} are not counts")
        if not is_classifier and k != 2:
            self.fail(f"nr_class is 2 for {header['svm_type']}, found {k}")
        n_pairs = k * (k - 1) // 2
        n_sigmoids = n_pairs if is_classifier else 1
        lengths = {"rho": n_pairs, "label": k, "nr_sv": k, "probA": n_sigmoids, "probB": n_pairs,
                   "prob_density_marks": N_MARKS}  # fmt: skip
        for key, length in lengths.items():
            if key in header and len(header[key]) != length:
                self.fail(f"expected {length} values of {key} with nr_class {k}, found {len(header[key])}")
        if is_classifier:
            self._check_classes(n)
        if header["svm_type"] == "svdd" and kernel_type == "precomputed":
            self.fail("svdd needs k(x, x), which rows of a precomputed kernel do not hold")
        if ("probB" in header) != (is_classifier and "probA" in header):
            self.fail("probA and probB go together in classification, and probA alone in regression")

    def _check_classes(self, n: int) -> None:
        counts, labels = self.header["nr_sv"], self.header["label"]
        if min(counts) < 0 or sum(counts) != n:
            self.fail(f"nr_sv must be counts that add up to total_sv {n}; their sum is {sum(counts)}")
        if len(set(labels)) != len(labels):
            self.fail("a label occurs twice")

    def _kernel(self) -> Kernel:
        header = self.header
        degree = header.get("degree", 3)
        if not 0 <= degree <= MOST_DEGREE:
            self.fail(f"degree must lie between 0 and {MOST_DEGREE}, found {degree}")
        try:
            return Kernel(
                KERNEL_TYPES[header["kernel_type"]], gamma=header.get("gamma", 1.0),
                coef0=header.get("coef0", 0.0), degree=degree,
            )  # fmt: skip
        except ValueError as error:
            self.fail(str(error))

    def _support_vectors(self) -> LibsvmModel:
        header, kernel = self.header, self._kernel()
        k, n = header["nr_class"], header["total_sv"]
        if k == 1:
            if n:
                self.fail(f"one class has no support vectors, but total_sv is {n}")
            coefficients, vectors = np.zeros((0, 0)), sparse().csr_matrix((0, 1))
        else:
            coefficients, vectors = self._rows(k - 1, n)
        if kernel.is_precomputed:
            self._check_serials(vectors)
        return LibsvmModel(
            header["svm_type"], kernel, np.array(header["rho"], np.float64), coefficients, vectors,
            labels=_array(header.get("label"), np.int64), n_support=_array(header.get("nr_sv"), np.int64),
            prob_a=_array(header.get("probA"), np.float64), prob_b=_array(header.get("probB"), np.float64),
            density_marks=_array(header.get("prob_density_marks"), np.float64),
        )  # fmt: skip

    def _rows(self, n_coefficients: int, n: int) -> tuple[Vector, Any]:
        """Read the support vectors: all but the last coefficient here, the rest as a data file."""
        header_lines = self.line
        leading, rest = self._leading(n_coefficients - 1, n) if n_coefficients > 1 else (array("d"), self.file)
        try:
            data = read_rows(rest, self.budget, n)
        except TooManyRowsError:
            self.fail(f"total_sv is {n}, but more support vectors follow", 0)
        except DataFileError as error:
            errors = [replace(line, line=line.line + header_lines) for line in error.errors]
            worst = malformed("", errors, error.n_errors).message if errors else error.message
            raise ModelFileError(worst.replace("the label", "a coefficient"), self.path) from None
        if data.qid is not None:
            self.fail("qid: has no meaning in a model file", 0)
        if len(data.y) != n:
            self.fail(f"total_sv is {n}, but {len(data.y)} support vectors follow", 0)
        self.budget.keep(8 * n_coefficients * n)
        coefficients = np.empty((n_coefficients, n))
        coefficients[-1] = data.y
        if leading:
            coefficients[:-1] = np.frombuffer(leading).reshape(n, -1).T
        vectors = data.X if data.X.shape[1] else sparse().csr_matrix((n, 1))
        return coefficients, vectors

    def _leading(self, n: int, most_rows: int) -> tuple[array[float], BinaryIO]:
        """Take the first ``n`` numbers off every line; return them, and the lines without them."""
        numbers, rest = array("d"), io.BytesIO()
        while text := self._next_line():
            words = text.split(None, n)
            if not words:
                rest.write(b"\n")  # a blank line, kept so that lines count right
                continue
            values = [_number(word) for word in words[:n]]
            if len(words) <= n or None in values:
                self.fail(f"expected {n + 1} coefficients in front of the features")
            if len(numbers) == n * most_rows:
                self.fail(f"total_sv is {most_rows}, but more support vectors follow", 0)
            self.budget.keep(8 * n + len(words[n]))
            numbers.extend(value for value in values if value is not None)
            rest.write(words[n] if words[n].endswith(b"\n") else words[n] + b"\n")
        rest.seek(0)
        return numbers, rest

    def _check_serials(self, vectors: Any) -> None:
        column = dense_columns(vectors, np.array([0]))[:, 0]
        if not ((column >= 1) & (column <= _MOST_INTEGER) & (column == np.floor(column))).all():
            self.fail("every support vector of a precomputed kernel is 0:serial, a whole number from 1", 0)
        if vectors.shape[1] > 1 and (vectors.indices > 0).any():
            self.fail("support vectors of a precomputed kernel hold nothing but 0:serial", 0)


def _integer(word: bytes) -> int | None:
    if not _INTEGER.fullmatch(word):
        return None
    return int(word) if -_MOST_INTEGER <= int(word) <= _MOST_INTEGER else None


def _number(word: bytes) -> float | None:
    value = float(word) if len(word) <= 400 and _NUMBER.fullmatch(word) else np.inf
    return value if np.isfinite(value) else None


def _svm_type(word: bytes) -> str | None:
    return name if (name := word.decode("latin-1")) in SVM_TYPES else None


def _kernel_type(word: bytes) -> str | None:
    return name if (name := word.decode("latin-1")) in KERNEL_TYPES else None


_EXPECTED: dict[Any, str] = {
    _integer: "a whole number",
    _number: "a finite number",
    _svm_type: "one of " + ", ".join(SVM_TYPES),
    _kernel_type: "one of " + ", ".join(KERNEL_TYPES),
}

# What each key of the header holds, and whether that is a list.
_HEADER: dict[str, tuple[Callable[[bytes], Any], bool]] = {
    "svm_type": (_svm_type, False),
    "kernel_type": (_kernel_type, False),
    "degree": (_integer, False),
    "gamma": (_number, False),
    "coef0": (_number, False),
    "nr_class": (_integer, False),
    "total_sv": (_integer, False),
    "rho": (_number, True),
    "label": (_integer, True),
    "probA": (_number, True),
    "probB": (_number, True),
    "prob_density_marks": (_number, True),
    "nr_sv": (_integer, True),
}


def _array(values: Any, dtype: Any) -> Any:
    return None if values is None else np.array(values, dtype)


def _shown(text: bytes) -> str:
    return repr(text[:24].decode("ascii", "backslashreplace"))


# ---------------------------------------------------------------------- writing


def write_libsvm_model(model: LibsvmModel, path: str | os.PathLike[str], *, digits: int = 8) -> None:
    """Write a model in LIBSVM's format.

    A file that is there already is replaced only when the new one is complete.

    Parameters
    ----------
    model : LibsvmModel
        The model.
    path : path
        Where to write.
    digits : int
        Significant digits of the support vectors' values: 8 as LIBSVM has it, 17 for all of them. Everything
        else is always written in full.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import make_moons
    >>> from hinge import SVC
    >>> from hinge.estimators import save_model
    >>> from hinge.io import read_libsvm_model, write_libsvm_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(SVC().fit(*make_moons(50)), Path(folder) / "moons.model")
    ...     model = read_libsvm_model(Path(folder) / "moons.model")
    ...     write_libsvm_model(model, Path(folder) / "full.model", digits=17)
    ...     print((Path(folder) / "full.model").read_text().splitlines()[0])
    svm_type c_svc
    """
    if not 1 <= digits <= 17:
        raise ValueError(f"digits must lie between 1 and 17, got {digits}")
    with atomic_write(path, "wb") as file:
        file.write("".join(f"{line}\n" for line in _header_of(model)).encode("ascii"))
        for block in _rows_of(model, digits):
            file.write(block)


def kernel_type_of(kernel: Kernel) -> str:
    """Return LIBSVM's name of a kernel.

    Raises
    ------
    ModelFileError
        It has none.
    """
    for theirs, ours in KERNEL_TYPES.items():
        if ours == kernel.label:
            return theirs
    raise ModelFileError(f"LIBSVM's format has no {kernel.label} kernel; it knows {', '.join(KERNEL_TYPES)}")


def _header_of(model: LibsvmModel) -> Iterator[str]:
    kernel = model.kernel
    yield f"svm_type {model.svm_type}"
    yield f"kernel_type {kernel_type_of(kernel)}"
    for key in ("degree", "gamma", "coef0"):
        if key in kernel.uses:
            yield f"{key} {getattr(kernel, key):.17g}"
    yield f"nr_class {model.n_classes}"
    yield f"total_sv {model.coefficients.shape[1]}"
    lists: list[tuple[str, NDArray[Any] | None]] = [
        ("rho", model.rho), ("label", model.labels), ("probA", model.prob_a), ("probB", model.prob_b),
        ("prob_density_marks", model.density_marks), ("nr_sv", model.n_support),
    ]  # fmt: skip
    for key, values in lists:
        if values is not None:
            yield " ".join([key, *number_texts(values, 17)])
    yield "SV"


def _rows_of(model: LibsvmModel, digits: int, rows_at_once: int = 1024) -> Iterator[bytes]:
    is_gram = model.kernel.is_precomputed
    n = model.coefficients.shape[1]
    for start in range(0, n, rows_at_once):
        stop = min(start + rows_at_once, n)
        vectors = _ascending(model.vectors[start:stop])
        values = number_texts(vectors.data, 10 if is_gram else digits)
        features = [f"{i}:{value} " for i, value in zip(vectors.indices.tolist(), values, strict=True)]
        ends = vectors.indptr.tolist()
        coefficients = [number_texts(row, 17) for row in model.coefficients[:, start:stop]]
        heads = [" ".join(column) for column in zip(*coefficients, strict=True)]
        lines = [f"{head} {''.join(features[a:b])}\n" for head, a, b in zip(heads, ends, ends[1:], strict=False)]
        yield "".join(lines).encode("ascii")


def _ascending(rows: Any) -> Any:
    """Return rows as the arrays of a CSR matrix, with ascending indices."""
    if isinstance(rows, Lines):
        return rows
    matrix = sparse().csr_matrix(rows)
    return matrix if matrix.has_sorted_indices else matrix.sorted_indices()


def number_texts(values: NDArray[Any], digits: int) -> list[str]:
    """Write numbers as C's ``%.{digits}g`` does.

    Most data repeats a few values over and over, so each different one is written once.

    Examples
    --------
    >>> number_texts(np.array([0.1, 1e-5, -2.0]), 17), number_texts(np.array([1 / 3]), 6)
    (['0.10000000000000001', '1.0000000000000001e-05', '-2'], ['0.333333'])
    """
    values = np.asarray(values)
    if values.dtype.kind != "f":
        return [str(int(value)) for value in values.tolist()]
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)  # tells -0.0 from 0.0
    different, which = np.unique(bits, return_inverse=True)
    texts = [f"{value:.{digits}g}" for value in different.view(np.float64).tolist()]
    return np.array(texts, object)[which].tolist()  # type: ignore[no-any-return]
