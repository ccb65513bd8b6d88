"""Data for the estimators' tests."""

import lzma
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file


@pytest.fixture(scope="session")
def load_real():
    """A function that reads the first rows of a public data set, as a CSR matrix and its targets."""

    def load(name, n_rows=None):
        with lzma.open(Path(os.environ["HINGE_DATA"]) / f"{name}.xz") as file:
            X, y = load_svmlight_file(file)
        chosen = np.arange(X.shape[0])
        if n_rows is not None and n_rows < len(chosen):
            chosen = np.sort(np.random.default_rng(0).choice(len(chosen), n_rows, replace=False))
        X = X[chosen]
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # what scikit-learn takes
        return X, y[chosen]

    return load


@pytest.fixture(scope="session")
def blobs():
    """Three overlapping classes in four dimensions."""
    rng = np.random.default_rng(3)
    y = np.arange(180) % 3
    return rng.normal(size=(180, 4)) + 1.2 * np.eye(3, 4)[y], y
