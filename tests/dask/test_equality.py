"""Five machines, three storages, one to five workers, odd partitions: always the machine of one computer.

The violation is computed again by `reference`'s plain formulas, on a kernel matrix of another library.
"""

import itertools
import os
from functools import cache
from types import SimpleNamespace

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from workers import two_classes, until

import reference
from hinge import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from hinge.dask import DaskNuSVC, DaskNuSVR, DaskOneClassSVM, DaskSVC, DaskSVR

N = 2100  # more than one working set
KINDS = {
    "C": (DaskSVC, SVC, {"C": 3.0}),
    "nu": (DaskNuSVC, NuSVC, {"nu": 0.4}),
    "epsilon": (DaskSVR, SVR, {"epsilon": 0.1, "C": 2.0}),
    "nu regression": (DaskNuSVR, NuSVR, {"nu": 0.4}),
    "one class": (DaskOneClassSVM, OneClassSVM, {"nu": 0.2}),
}
FORMS = ("dense", "sparse", "bits")
WORKERS = (1, 2, 5)
CHUNKINGS = ("rows of the client", "uneven", "empty", "a class in one partition")
TIGHT, USUAL = 1e-8, 1e-3


@cache
def data(form, is_sorted):
    """Return samples, labels and numbers; sorted, so that a partition has samples of one class only."""
    X, y = two_classes(N, seed=5)
    rng = np.random.default_rng(6)
    if form == "sparse":
        X = np.where(rng.random((N, 60)) < 0.06, np.tile(X, 10), 0.0)
    if form == "bits":
        X = (np.tile(X, 4) + 0.5 * rng.standard_normal((N, 24)) > 0).astype(float)
    numbers = X[:, 0] ** 2 + np.sin(X[:, 1]) + 0.1 * rng.standard_normal(N)
    if is_sorted:
        order = np.argsort(y, kind="stable")
        X, y, numbers = X[order], y[order], np.sort(numbers)
    return X, y, numbers


def targets(kind, labels, numbers):
    return {"one class": None, "epsilon": numbers, "nu regression": numbers}.get(kind, labels)


@cache
def matrix(form, is_sorted, gamma):
    X = data(form, is_sorted)[0]
    return np.exp(-gamma * cdist(X, X, "sqeuclidean"))


@cache
def decisions_here(kind, form, is_sorted):
    X, labels, numbers = data(form, is_sorted)
    _, ours, parameters = KINDS[kind]
    return decided(ours(**parameters, tol=TIGHT).fit(X, targets(kind, labels, numbers)), X)


def decided(machine, X):
    return (machine.decision_function if hasattr(machine, "decision_function") else machine.predict)(X)


def laid_out(form, chunking, rows, y):
    """Return samples and targets as a user might have them."""
    if chunking == "rows of the client":
        return sp.csr_array(rows) if form == "sparse" else rows, y
    sizes = {
        "uneven": (1, 2, 1600, 1, N - 1604),
        "empty": (700, 300, 500, 300, N - 1200),
        "a class in one partition": (100, int(rows.shape[0] * 0.3), N - 100 - int(rows.shape[0] * 0.3)),
    }[chunking]
    keeps = np.ones(sum(sizes), bool)
    if chunking == "empty":  # partitions of which nothing is left, and the others of unknown sizes
        keeps[700:1000] = keeps[1500:1800] = False
    spread = np.full(len(keeps), -1)
    spread[keeps] = np.arange(N)
    X = da.from_array(rows[spread], chunks=(sizes, rows.shape[1]))
    chosen = da.from_array(keeps, chunks=(sizes,))
    if chunking == "empty":
        X = X[chosen]
    if form == "sparse":
        X = X.map_blocks(sp.csr_array, dtype=X.dtype, meta=sp.csr_array((0, rows.shape[1])))
    if y is None:
        return X, None
    y = da.from_array(np.asarray(y)[spread], chunks=(sizes,))
    return X, y[chosen] if chunking == "empty" else y


def dual_problem(kind, machine, y, n):
    """Return β of a machine, by its coefficients, and the problem that it is said to solve."""
    coefficients = np.zeros(n)
    found = machine.dual_coef_  # sparse where the samples are
    coefficients[machine.support_] = np.ravel(found.toarray() if sp.issparse(found) else found)
    ones, zeros = np.ones(n), np.zeros(n)
    up, down = np.maximum(coefficients, 0), np.minimum(coefficients, 0)
    if kind == "C":
        lo, hi = np.minimum(machine.C * y, 0), np.maximum(machine.C * y, 0)
        return coefficients, problem(y.astype(float), lo, hi, zeros, [0.0], n)
    if kind == "nu":
        beta = coefficients / np.abs(coefficients).max()  # some samples are at their bound
        mass = machine.nu * n / 2
        return beta, problem(zeros, np.minimum(y, 0), np.maximum(y, 0), y < 0, [mass, -mass], n)
    if kind == "one class":
        return coefficients, problem(zeros, zeros, ones, zeros, [machine.nu * n], n)
    box = np.concatenate([zeros, -machine.C * ones]), np.concatenate([machine.C * ones, zeros])
    beta = np.concatenate([up, down])
    if kind == "epsilon":
        tube = np.concatenate([y - machine.epsilon, y + machine.epsilon])
        return beta, problem(tube, *box, np.zeros(2 * n), [0.0], n)
    mass = machine.C * machine.nu * n / 2
    return beta, problem(np.concatenate([y, y]), *box, np.repeat([0, 1], n), [mass, -mass], n)


def problem(v, lo, hi, group, sums, n):
    return SimpleNamespace(
        v=v, lo=lo, hi=hi, group=np.asarray(group).astype(int), sums=np.array(sums), n_samples=n
    )


@pytest.fixture(scope="module")
def crowd(request, client):
    """The client while there are so many workers."""
    client.cluster.scale(request.param)
    until(lambda: len(client.nthreads()) == request.param, 60)
    yield client, request.param
    client.cluster.scale(2)
    until(lambda: len(client.nthreads()) == 2, 60)


def cases():
    """Return what is tried: everything, or every machine with every storage and every number of workers once."""
    if "HINGE_SLOW" in os.environ:
        return list(itertools.product(WORKERS, KINDS, FORMS, CHUNKINGS))
    chosen = [
        (n_workers, kind, form)
        for (c, n_workers), (a, kind), (b, form) in itertools.product(*map(enumerate, (WORKERS, KINDS, FORMS)))
        if (a + b + c) % len(WORKERS) == 0
    ]
    return [(*case, chunking) for case, chunking in zip(chosen, itertools.cycle(CHUNKINGS), strict=False)]


@pytest.mark.parametrize(("crowd", "kind", "form", "chunking"), cases(), indirect=["crowd"])
def test_the_machine_is_that_of_one_computer(crowd, kind, form, chunking):
    client, n_workers = crowd
    is_sorted = chunking == "a class in one partition"
    X, labels, numbers = data(form, is_sorted)
    y = targets(kind, labels, numbers)
    theirs, _, parameters = KINDS[kind]
    there = theirs(**parameters, tol=TIGHT, client=client).fit(*laid_out(form, chunking, X, y))
    assert there.report_.cluster.workers <= n_workers
    assert there.report_.storage == form
    expected = decisions_here(kind, form, is_sorted)
    assert np.abs(decided(there.to_local(), X) - expected).max() < 1e-6 * max(1.0, np.abs(expected).max())
    usual = theirs(**parameters, tol=USUAL, client=client).fit(*laid_out(form, chunking, X, y))
    assert usual.report_.converged
    assert usual._gamma == there._gamma
    beta, dual = dual_problem(kind, usual, y, N)
    assert_sums(beta, dual)
    assert reference.violation(beta, matrix(form, is_sorted, usual._gamma), dual) <= USUAL * (1 + 1e-6)


def assert_sums(beta, dual):
    """Make sure that a point is one of the problem's."""
    assert (dual.lo <= beta).all()
    assert (beta <= dual.hi).all()
    found = np.array([beta[dual.group == g].sum() for g in range(len(dual.sums))])
    np.testing.assert_allclose(found, dual.sums, atol=1e-9 * max(1.0, np.abs(beta).sum()))
