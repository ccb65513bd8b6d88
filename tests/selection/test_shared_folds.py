"""What folds and candidates share changes nothing: each machine decides as one that was fitted by itself.

Scores hide most mistakes: a sample more or less in training rarely changes a label. These compare decisions.
"""

import numpy as np
import pytest
from sklearn.base import clone

from hinge import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM
from hinge.selection import GridSearch, cross_validate
from strategies import KERNELS

TIGHT = 1e-7
RNG = np.random.default_rng(0)
SAMPLES = RNG.normal(size=(90, 4))
TWO = np.where(SAMPLES[:, 0] + 0.6 * RNG.normal(size=90) > 0, 1, 0)
THREE = np.digitize(SAMPLES[:, 0] + 0.4 * RNG.normal(size=90), [-0.5, 0.5])
NUMBERS = np.sin(SAMPLES[:, 0]) + 0.2 * RNG.normal(size=90)
WEIGHTS = np.where(RNG.random(90) < 0.2, 0.0, RNG.uniform(0.3, 3.0, size=90))
FOLDS = [np.sort(part) for part in np.array_split(RNG.permutation(90), 3)]
SPLITS = [(np.setdiff1d(np.arange(90), part), part) for part in FOLDS]
COSTS = [0.03, 0.3, 3.0, 30.0, 300.0]
CASES = {
    "svc": (SVC(gamma=0.3), {"C": COSTS}, TWO),
    "svc-three": (SVC(gamma=0.3), {"C": COSTS}, THREE),
    "svc-scale": (SVC(), {"C": COSTS, "gamma": ["scale"]}, TWO),
    "svc-kernels": (
        SVC(),
        {"kernel": KERNELS, "gamma": [0.2], "C": [0.3, 3.0]},
        THREE,
    ),
    "svc-indefinite": (SVC(kernel="sigmoid", coef0=-1.0, gamma=0.5), {"C": COSTS}, TWO),
    "svc-weights": (SVC(gamma=0.3), {"C": [0.3, 3.0], "class_weight": [None, {0: 5.0}, "balanced"]}, TWO),
    "svc-squared": (SVC(gamma=0.3, loss="squared_hinge"), {"C": COSTS}, THREE),
    "svr-squared": (
        SVR(gamma=0.3, loss="squared_epsilon_insensitive"),
        {"C": [0.3, 30.0], "epsilon": [0.4, 0.1]},
        NUMBERS,
    ),
    "nu-svc": (NuSVC(gamma=0.3), {"nu": [0.1, 0.2, 0.3, 0.4]}, TWO),
    "svr": (SVR(gamma=0.3), {"C": [0.3, 30.0], "epsilon": [0.4, 0.1, 0.01]}, NUMBERS),
    "nu-svr": (NuSVR(gamma=0.3), {"C": [0.3, 30.0], "nu": [0.2, 0.6]}, NUMBERS),
    "one-class": (OneClassSVM(gamma=0.3), {"nu": [0.1, 0.2, 0.5]}, None),
    "svdd": (SVDD(kernel="poly", gamma=0.3), {"nu": [0.11, 0.23, 0.52]}, None),
    "svdd-of-classes": (SVDD(), {"nu": [0.1, 0.5], "gamma": ["scale"]}, THREE),
}


def decisions(machine, rows):
    return np.ravel(machine.predict(rows) if isinstance(machine, SVR | NuSVR) else machine.decision_function(rows))


def fingerprint(machine, rows, y=None):
    """A number that every decision has a part in."""
    values = decisions(machine, rows)
    return float(np.dot(values, 1.0 + np.cos(np.arange(len(values)))))


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("name", CASES)
def test_every_cell_decides_as_a_fit_of_its_own(name, weights):
    estimator, grid, y = CASES[name]
    X = np.abs(SAMPLES) if name == "svc-kernels" else SAMPLES
    estimator = clone(estimator).set_params(tol=TIGHT)
    fit = {} if weights is None else {"sample_weight": weights}
    search = GridSearch(estimator, grid, cv=SPLITS, scoring=fingerprint, refit=False, return_train_score=True)
    table = search.fit(X, y, **fit).cv_results_
    for cell, params in enumerate(table["params"]):
        for k, (train, test) in enumerate(SPLITS):
            alone = clone(estimator).set_params(**params)
            options = {} if weights is None else {"sample_weight": weights[train]}
            alone.fit(X[train], None if y is None else y[train], **options)
            for kind, rows in (("test", test), ("train", train)):
                expected = fingerprint(alone, X[rows])
                found = table[f"split{k}_{kind}_score"][cell]
                assert found == pytest.approx(expected, abs=3e-4 * (1 + np.abs(decisions(alone, X[rows])).sum()))
            assert table[f"split{k}_violation"][cell] <= TIGHT


def test_weights_of_held_out_samples_count_in_the_score():
    found = cross_validate(SVC(gamma=0.3, tol=TIGHT), SAMPLES, TWO, cv=SPLITS, sample_weight=WEIGHTS)["test_score"]
    for (train, test), score in zip(SPLITS, found, strict=True):
        machine = SVC(gamma=0.3, tol=TIGHT).fit(SAMPLES[train], TWO[train], WEIGHTS[train])
        right = machine.predict(SAMPLES[test]) == TWO[test]
        assert score == pytest.approx(np.average(right, weights=WEIGHTS[test]), abs=1e-12)


def test_labels_of_held_out_samples_have_no_part_in_training():
    """Whatever they say: the machines are the same."""
    scores = []
    for flip in (False, True):
        tables = []
        for k, split in enumerate(SPLITS):
            y = THREE.copy()
            if flip:
                y[split[1]] = y[split[1]][::-1]
            search = GridSearch(SVC(tol=TIGHT), {"C": COSTS}, cv=[split], scoring=fingerprint, refit=False)
            tables.append(search.fit(SAMPLES, y).cv_results_["split0_test_score"])
            assert len(tables) == k + 1
        scores.append(tables)
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-3)
