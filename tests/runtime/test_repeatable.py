"""The same data and settings give the same answer: to the last bit on any number of threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from hinge import SVC, SVR, Gram, Kernel, NuSVC, NuSVR, OneClassSVM, Settings, solve
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, nu_svr, one_class

N = 2600  # more than one working set holds, and several tiles

FORMULATIONS = {
    "c_svc": lambda y, target: c_svc(y, 5.0),
    "c_svc_without_threshold": lambda y, target: c_svc(y, 5.0, fit_intercept=False),
    "nu_svc": lambda y, target: nu_svc(y, 0.3),
    "one_class": lambda y, target: one_class(len(y), 0.2),
    "epsilon_svr": lambda y, target: epsilon_svr(target, 2.0, 0.1),
    "nu_svr": lambda y, target: nu_svr(target, 2.0, 0.4),
}


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 70))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.5 * rng.normal(size=N) > 0, 1.0, -1.0)
    return X, y, np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=N)


def data_of(name, X):
    """Storages whose kernel values come in different ways, cheap or expensive, and the kernel that suits them."""
    return {
        "few features": (X[:, :8], Kernel("rbf", gamma=0.1)),
        "dense": (X[:, :40], Kernel("rbf", gamma=0.02)),
        "expensive": (np.hstack([X, X**2]), Kernel("rbf", gamma=0.003)),
        "sparse": (sp.csr_matrix(np.where(np.abs(X) > 1.3, X, 0.0)), Kernel("rbf", gamma=0.03)),
        "bits": ((X > 0.8).astype(float), Kernel("rbf", gamma=0.05)),
        "few features, linear": (X[:, :30], Kernel("linear")),
    }[name]


@pytest.mark.parametrize(
    ("data", "formulation"),
    [(data, formulation) for data in ("few features", "expensive") for formulation in FORMULATIONS]
    + [(data, "c_svc") for data in ("dense", "sparse", "bits", "few features, linear")],
)
def test_any_number_of_threads_gives_the_same_bits(data, formulation, samples):
    X, kernel = data_of(data, samples[0])
    problem = FORMULATIONS[formulation](*samples[1:])
    solutions = []
    for threads in (1, 1, 3):
        gram = Gram(X, kernel, threads=threads, cache_bytes=1 << 26)
        solutions.append(solve(problem, gram, Settings(max_iter=20_000)))
    for other in solutions[1:]:
        np.testing.assert_array_equal(other.beta, solutions[0].beta)
        np.testing.assert_array_equal(other.multipliers, solutions[0].multipliers)
        assert other.report.kernel_evaluations == solutions[0].report.kernel_evaluations
        assert other.report.iterations == solutions[0].report.iterations


@pytest.mark.parametrize(
    "machine", [SVC(C=5.0), NuSVC(nu=0.5), SVR(C=2.0), NuSVR(C=2.0), OneClassSVM(nu=0.2)], ids=str
)
def test_a_fit_repeats_to_the_bit_on_any_number_of_threads_and_to_the_tolerance_with_any_cache(machine, samples):
    X, y, target = samples
    wanted = target if isinstance(machine, SVR | NuSVR) else y

    def decide(**parameters):
        fitted = clone(machine).set_params(gamma=0.01, **parameters).fit(X, wanted)
        assert fitted.report_.violation <= fitted.tol
        decide = fitted.predict if isinstance(machine, SVR | NuSVR) else fitted.decision_function
        return decide(X[:500])

    expected = decide(n_jobs=1, cache_size=400)
    np.testing.assert_array_equal(decide(n_jobs=3, cache_size=400), expected)
    np.testing.assert_allclose(decide(cache_size=5), expected, atol=5e-3)


def test_machines_of_many_classes_repeat_to_the_bit_on_any_number_of_threads(samples):
    X, _, target = samples
    labels = np.digitize(target, [-1.2, 1.2])  # the middle one takes part in pairs beyond one working set
    assert np.bincount(labels).min() > 100
    expected = SVC(n_jobs=1, cache_size=400).fit(X[:, :8], labels).decision_function(X[:500, :8])
    for threads in (2, 3):
        found = SVC(n_jobs=threads, cache_size=400).fit(X[:, :8], labels).decision_function(X[:500, :8])
        np.testing.assert_array_equal(found, expected)
