"""Samples in shards answer as the same samples in one place do, whatever the shards forget."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from hinge import Gram, Kernel, solve
from hinge.data.contents import extremes, fingerprints, moments
from hinge.data.sharded import ShardedRows
from hinge.dual.formulations import c_svc, epsilon_svr
from hinge.kernel.shard import LocalShards, Shard
from hinge.settings import Settings, Sizes

N = 600
SMALL = Settings(tol=1e-8, sizes=Sizes(one_set=60, smallest_set=40, largest_set=60, cheap_subset=80))


def dense(n_features, offset=0.0, dtype=np.float64):
    rng = np.random.default_rng(n_features)
    return (rng.standard_normal((N, n_features)) + offset).astype(dtype)


DATA = {
    "few features": dense(5),
    "single": dense(20, dtype=np.float32),
    "off centre": dense(20, offset=40.0),
    "sparse": sp.random_array((N, 200), density=0.03, format="csr", rng=1),
    "bits": (np.random.default_rng(2).random((N, 70)) < 0.2).astype(np.float64),
    "sparse bits": sp.csr_array(np.random.default_rng(3).random((N, 300)) < 0.02).astype(np.float32),
}


class Forgetful(LocalShards):
    """Shards of which one is rebuilt from its rows before every third question."""

    asked = 0

    def ask(self, question, common, own, cancelled):
        self.asked += 1
        if self.asked % 3 == 0:
            place = self.asked // 3 % len(self._shards)
            self._shards[place] = Shard(self._shards[place].rows, 1)
        return super().ask(question, common, own, cancelled)


@pytest.fixture(autouse=True)
def few_are_very_few(monkeypatch):
    """Let parts of sixty samples be worked on in shards."""
    from dataclasses import replace

    import hinge.data.sharded as module

    monkeypatch.setattr(module, "LAYOUT", replace(module.LAYOUT, few_samples=50, values_at_once=7_000))


def shared(X, kind=LocalShards, cuts=(0, 1, 150, 151, 420, N)):
    pairs = pairwise(cuts)
    return ShardedRows(kind([Shard(X[start:stop], 1) for start, stop in pairs]))


def labels(X):
    side = np.asarray(X @ np.random.default_rng(4).standard_normal(X.shape[1])).ravel()
    noise = np.random.default_rng(5).standard_normal(N)
    return np.where(side - side.mean() + 0.5 * side.std() * noise > 0, 1.0, -1.0)


@pytest.mark.parametrize("kind", [LocalShards, Forgetful])
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("kernel", [Kernel("rbf", gamma=0.05), Kernel("poly", gamma=0.1, coef0=1.0, degree=2)])
def test_images_are_those_of_samples_in_one_place(kind, name, kernel):
    X = DATA[name]
    here, there = Gram(X, kernel, threads=1), Gram(shared(X, kind), kernel, threads=1)
    assert (here.storage, here.precision) == (there.storage, there.precision)
    assert np.allclose(here.diagonal, there.diagonal, rtol=1e-12)
    rng = np.random.default_rng(6)
    coefficients = np.where(rng.random(N) < 0.3, rng.standard_normal(N), 0.0)
    rows = rng.choice(N, 100, replace=False)
    size = np.abs(here.product(np.abs(coefficients))).max()
    assert np.allclose(here.product(coefficients), there.product(coefficients), rtol=0, atol=1e-12 * size)
    assert np.allclose(
        here.product(coefficients, rows), there.product(coefficients, rows), rtol=0, atol=1e-12 * size
    )
    assert np.allclose(here.rounding(coefficients), there.rounding(coefficients), rtol=1e-6)
    sharp, sharp_there = (gram.sharp_product(coefficients, rows) for gram in (here, there))
    assert np.allclose(sum(sharp), sum(sharp_there), rtol=0, atol=1e-15 * size)
    part = rng.permutation(N)[:300]  # in no order, as the samples of a pair of classes are
    for mine, theirs in [(here.restrict(part), there.restrict(part)), (here.in_double(), there.in_double())]:
        assert theirs.source.samples.is_apart
        index = rng.choice(mine.n, 40, replace=False)
        assert np.allclose(mine.block(index), theirs.block(index), rtol=1e-5, atol=1e-6 * size)
        before = np.zeros(mine.n), np.zeros(mine.n)
        mine.update(before[0], np.sort(index), np.ones(40))
        theirs.update(before[1], np.sort(index), np.ones(40))
        assert np.allclose(*before, rtol=0, atol=1e-5 * size)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("kind", [LocalShards, Forgetful])
def test_the_solver_finds_the_same_answer(name, kind):
    X = DATA[name]
    y, kernel = labels(X), Kernel("rbf", gamma=0.05)
    for problem in (c_svc(y, 3.0), epsilon_svr(y, 1.0, 0.1)):
        here, there = (solve(problem, Gram(x, kernel, threads=1), SMALL) for x in (X, shared(X, kind)))
        assert there.report.converged
        assert there.report.fewest_active < N
        decisions = [
            Gram(X, kernel, precision="double").product(problem.coefficients(found.beta)) + found.multipliers
            for found in (here, there)
        ]
        assert np.abs(decisions[0] - decisions[1]).max() < 1e-6


@pytest.mark.parametrize("name", DATA)
def test_contents_are_those_of_the_rows(name):
    X = DATA[name]
    rows = shared(X).select(np.flatnonzero(np.arange(N) % 7))
    own = X[rows.places]
    assert extremes(rows) == extremes(own)
    assert np.array_equal(fingerprints(rows, 3), fingerprints(own, 3))
    assert all(
        np.array_equal(*pair) for pair in zip(moments(rows, 1.0, 0.5, 2), moments(own, 1.0, 0.5, 2), strict=True)
    )
    index = np.array([17, 3, 400, 2])
    assert abs(rows[index] - own[index]).max() == 0


def test_few_samples_are_worked_on_where_the_caller_is():
    gram = Gram(shared(DATA["few features"]), Kernel("rbf"))
    assert gram.restrict(np.arange(51)).source.samples.is_apart
    assert not gram.restrict(np.arange(50)).source.samples.is_apart


def test_copies_are_asked_for_once():
    class Counting(LocalShards):
        copied = 0

        def ask(self, question, common, own, cancelled):
            if question == "copies":
                self.copied += sum(len(arguments[0]) for arguments in own if arguments is not None)
            return super().ask(question, common, own, cancelled)

    rows = shared(DATA["few features"], Counting)
    gram = Gram(rows, Kernel("rbf"))
    for start in range(5):
        gram.block(np.arange(start, start + 40))
    assert rows.shards.copied == 44


def test_a_question_is_given_up_when_nobody_waits_for_the_answer():
    from hinge.runtime.interrupt import Cancelled, within

    class Slow(LocalShards):
        def ask(self, question, common, own, cancelled):
            if question == "image" and cancelled():
                raise Cancelled
            return super().ask(question, common, own, cancelled)

    gram = Gram(shared(DATA["few features"], Slow), Kernel("rbf"))
    with within(0.0), pytest.raises(Cancelled):
        gram.product(np.ones(N))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("place", [(0, 0), (1, 0), (2, 1), (2, 2)])
def test_the_place_of_what_is_not_finite(form, place):
    rows = np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 4.0], [0.0, 5.0, 6.0]])
    rows[place] = np.nan
    assert Shard(form(rows), 1).facts(np.arange(3)).fault == place
