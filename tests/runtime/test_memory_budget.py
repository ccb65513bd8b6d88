"""``cache_size`` holds: kernel values of small problems and of pairs of classes count like those of large ones."""

import tracemalloc

import numpy as np
import pytest

from hinge import SVC, SVR, Gram, Kernel, NuSVC
from hinge.dual.formulations import c_svc
from hinge.training.pair_grams import PairGrams
from hinge.training.tasks import Task
from hinge.training.trainer import Trainer

MB = 2**20


def samples(n, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    return X, X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.2 * rng.normal(size=n)


def peak_of(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("estimator", "n", "labels"),
    [
        (SVC(C=10.0), 2000, lambda f: f > 0.5),
        (SVC(C=10.0), 2000, lambda f: np.digitize(f, [0.0, 0.5, 1.0])),
        (SVC(kernel="linear"), 1500, lambda f: f > 0.5),
        (NuSVC(nu=0.2), 1800, lambda f: f > 0.5),
        (SVR(), 1000, lambda f: f),
    ],
    ids=["two classes", "four classes", "linear", "nu", "regression"],
)
def test_a_megabyte_is_a_megabyte(estimator, n, labels):
    X, f = samples(n)
    y = labels(f).astype(float)
    roomy = estimator.set_params(cache_size=500.0, n_jobs=2).fit(X, y)
    objective, decisions = roomy.report_.objective, roomy.predict(X)
    machine = estimator.set_params(cache_size=1.0)
    machine.fit(X, y)  # what is compiled does not count
    peak = peak_of(lambda: machine.fit(X, y))
    assert peak < 7 * MB, "beside the budget a few panels and copies of the data"
    assert machine.report_.converged
    assert machine.report_.objective == pytest.approx(objective, rel=1e-3)
    assert np.mean(np.abs(machine.predict(X) - decisions) > 1e-2) < 0.01


def test_small_problems_are_solved_whole_where_the_budget_allows():
    X, f = samples(600)
    machine = SVC(cache_size=3 * 8 * 600**2 / MB).fit(X, f > 0.5)
    assert "one working set" in machine.report_.reason
    assert machine.report_.outer_steps == 1
    machine = SVC(cache_size=3 * 8 * 599**2 / MB).fit(X, f > 0.5)
    assert "one working set" not in machine.report_.reason
    assert machine.report_.outer_steps > 1


def test_a_stored_matrix_counts_into_the_budget():
    X, _ = samples(100)
    gram = Gram(X, Kernel("rbf"), cache_bytes=200_000)
    assert gram.stored().cache_bytes == 200_000 - 8 * 100**2
    assert not gram.has_room_for(100)
    assert Gram(X, Kernel("rbf"), cache_bytes=240_000).stored().has_room_for(100)
    expensive = Gram(samples(100, 90)[0], Kernel("rbf"), cache_bytes=160_000)
    trainer = Trainer(expensive)
    trainer.prepare([Task(np.arange(100), c_svc(np.resize([1.0, -1.0], 100), C=1.0))], n_runs=3)
    assert trainer.gram.cache_bytes == 80_000


@pytest.mark.parametrize("cache_bytes", [10_000, 200_000, 300_000, 10_000_000])
def test_blocks_of_classes_are_kept_within_the_budget(cache_bytes):
    X, _ = samples(250)
    gram = Gram(X, Kernel("rbf"), cache_bytes=cache_bytes)
    classes = np.split(np.arange(250), 5)
    pairs = PairGrams(gram, 100, n_workers=1)
    whole = Gram(X, Kernel("rbf"), precision="double").block(np.arange(250))
    for i in range(5):
        for j in range(i + 1, 5):
            both = np.concatenate([classes[i], classes[j]])
            part = pairs.gram_of(both, 50)
            if cache_bytes < 24 * 100**2:
                assert part is None
            else:
                np.testing.assert_allclose(part.block(np.arange(100)), whole[np.ix_(both, both)], rtol=1e-12)
    kept = sum(block.nbytes for block in pairs._own.values())
    assert kept + 24 * 100**2 <= max(cache_bytes, 24 * 100**2)
    assert (len(pairs._own) == 5) == (cache_bytes == 10_000_000)
