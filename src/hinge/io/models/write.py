"""LIBSVM's model files are written, as LIBSVM writes them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import sparse
from hinge.data.lines import Lines
from hinge.io.atomic import atomic_write
from hinge.io.models.libsvm_model import KERNEL_TYPES, LibsvmModel, ModelFileError
from hinge.kernel.kernels import Kernel


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
