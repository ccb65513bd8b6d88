"""Model files as estimators, and data files with as many columns as they expect."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from hinge.cli.data import DataFile, leave
from hinge.estimators.files import load_model
from hinge.io import ModelFileError


def read_model(path: str, n_features: int | None = None) -> Any:
    """Read a model file as an estimator, or print what is wrong with it and leave."""
    try:
        return load_model(path, n_features=n_features)
    except ModelFileError as error:
        leave(str(error))
    except OSError as error:
        leave(f"can't open model file {path}: {error.strerror or error}")


def model_and_samples(path: str, samples: DataFile) -> tuple[Any, Any, Any]:
    """Read a model file for these samples; return the estimator, and X and y as it takes them."""
    machine = read_model(path)
    if machine.kernel == "precomputed":
        X: Any = samples.training_data(machine._model.kernel)
        machine = read_model(path, n_features=X.shape[1])
    else:
        width = max(machine.n_features_in_, samples.max_index)
        machine = read_model(path, n_features=width)
        rows = samples.rows[:, 1:]  # files count features from 1
        X = sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=(samples.n, width))
        X = X.toarray() if 4 * X.nnz >= X.shape[0] * X.shape[1] else X
    y = samples.labels() if hasattr(machine, "classes_") else np.asarray(samples.y)
    return machine, X, y
