"""LIBSVM's model files are read: nothing that one claims is believed before it is checked."""

from __future__ import annotations

import io
import os
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, BinaryIO, NoReturn

import numpy as np

from hinge.arrays import Vector, sparse
from hinge.io.budget import Budget
from hinge.io.models.libsvm_model import (
    CLASSIFIERS,
    KERNEL_TYPES,
    MOST_DEGREE,
    SVM_TYPES,
    LibsvmModel,
    ModelFileError,
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
