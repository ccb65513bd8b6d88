"""Cells of real data against scikit-learn's SVC: equal, but for samples that sit on the boundary itself."""

import lzma
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn import svm
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import minmax_scale

from hinge import SVC
from hinge.selection import GridSearch

TOL = 1e-5
BOUNDARY = 1e-3  # decisions this near to zero may have either sign: both machines are exact to a few tolerances

CASES = {  # rows, values of log2 C, values of log2 gamma
    "a1a": (None, (1, 9), (-5, -9)),
    "german.numer": (None, (-1, 7, 11), (-3, -9)),
    "svmguide1": (None, (-1, 7), (1, -5)),
    "satimage.scale": (1500, (1, 7), (1, -5)),
}


def load(name, rows):
    with lzma.open(Path(os.environ["HINGE_DATA"]) / f"{name}.xz") as file:
        X, y = load_svmlight_file(file)
    X = X if name == "a1a" else minmax_scale(X.toarray(), (-1, 1))
    if rows is not None:
        chosen = np.random.default_rng(0).choice(len(y), rows, replace=False)
        X, y = X[chosen], y[chosen]
    return X, y


@pytest.mark.data
@pytest.mark.parametrize("name", CASES)
def test_cells_equal_those_of_scikit_learn(name):
    rows, costs, gammas = CASES[name]
    X, y = load(name, rows)
    splits = list(StratifiedKFold(3).split(X, y))
    grid = {"C": [2.0**c for c in costs], "gamma": [2.0**g for g in gammas]}
    search = GridSearch(SVC(tol=TOL), grid, cv=splits, refit=False).fit(X, y)
    assert search.shares_kernel_
    for cell, params in enumerate(search.cv_results_["params"]):
        for k, (train, test) in enumerate(splits):
            peer = svm.SVC(tol=TOL, cache_size=500, decision_function_shape="ovo", **params)
            peer.fit(X[train], y[train])
            decisions = peer.decision_function(X[test])
            on_boundary = np.abs(decisions.reshape(len(test), -1)).min(axis=1) < BOUNDARY
            mine = round(search.cv_results_[f"split{k}_test_score"][cell] * len(test))
            theirs = (peer.predict(X[test]) == y[test]).sum()
            assert abs(mine - theirs) <= on_boundary.sum(), (params, k)
            assert search.cv_results_[f"split{k}_violation"][cell] <= TOL
