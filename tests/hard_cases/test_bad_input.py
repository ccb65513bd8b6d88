"""Input that cannot be solved is refused at once, with the culprit and the remedy in the message."""

import numpy as np
import pytest
import scipy.sparse as sp

from hinge import SVC, Gram, Kernel, Settings, solve
from hinge.dual.formulations import c_svc, epsilon_svr, nu_svc, nu_svr, one_class

Y = np.array([1.0, -1.0, 1.0, -1.0])
X = np.array([[0.5, 1.0], [0.25, 2.0], [1.5, 0.0], [-1.0, 3.0]])
WITH = {bad: np.where(X == 0.25, bad, X) for bad in (np.nan, np.inf, -np.inf)}


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("store", [np.asarray, np.float32, sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("bad", WITH)
def test_nan_and_infinity_in_features(store, bad, kernel):
    with pytest.raises(ValueError, match=r"(?i)X .*(nan|infinit).*(remove|impute)"):
        Gram(store(WITH[bad]), Kernel(kernel))


@pytest.mark.parametrize("bad", WITH)
def test_nan_and_infinity_in_what_a_classifier_is_given(bad):
    with pytest.raises(ValueError, match=r"(?i)nan|infinit"):
        SVC().fit(WITH[bad], Y)
    with pytest.raises(ValueError, match=r"(?i)nan|infinit"):
        SVC().fit(X, Y).predict(WITH[bad])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_in_labels_targets_and_weights(bad):
    worse = np.array([1.0, bad, 1.0, -1.0])
    for formulation in (c_svc, nu_svc, epsilon_svr, nu_svr):
        with pytest.raises(ValueError, match=r"(?i)y .*(nan|infinit|finite)"):
            formulation(worse)
        with pytest.raises(ValueError, match=r"(?i)weights.*(nan|infinit|finite)"):
            formulation(Y, weights=worse)
    with pytest.raises(ValueError, match=r"(?i)weights.*(nan|infinit|finite)"):
        one_class(4, weights=worse)


@pytest.mark.parametrize("formulation", [c_svc, nu_svc, epsilon_svr, nu_svr])
def test_weights_that_are_negative_or_do_not_fit(formulation):
    with pytest.raises(ValueError, match=r"weights.*negative"):
        formulation(Y, weights=[1.0, -1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match=r"(?s)weights.*(3.*4|4.*3)"):
        formulation(Y, weights=np.ones(3))


@pytest.mark.parametrize("formulation", [c_svc, nu_svc])
@pytest.mark.parametrize("y", [[0.0, 1.0], [1.0, 2.0], [1.0, -1.0, 3.0]])
def test_labels_other_than_plus_and_minus_one(formulation, y):
    with pytest.raises(ValueError, match=r"labels .*(\+1|-1)"):
        formulation(np.array(y))


@pytest.mark.parametrize("formulation", [c_svc, nu_svc, epsilon_svr, nu_svr])
@pytest.mark.parametrize("y", [np.ones((2, 2)), np.zeros(0)])
def test_labels_of_the_wrong_shape(formulation, y):
    with pytest.raises(ValueError, match=r"\by\b"):
        formulation(y)


@pytest.mark.parametrize("C", [0.0, -1.0, np.nan])
@pytest.mark.parametrize("formulation", [c_svc, epsilon_svr, nu_svr])
def test_cost_must_be_positive(formulation, C):
    with pytest.raises(ValueError, match=r"\bC\b.*(positive|greater than 0|> 0)"):
        formulation(Y, C=C)


@pytest.mark.parametrize("nu", [0.0, -0.5, 1.5, np.nan])
def test_nu_must_lie_between_zero_and_one(nu):
    for make in (lambda: nu_svc(Y, nu=nu), lambda: one_class(4, nu=nu), lambda: nu_svr(Y, nu=nu)):
        with pytest.raises(ValueError, match=r"\bnu\b.*\b1\b"):
            make()


@pytest.mark.parametrize("epsilon", [-0.1, np.nan, np.inf])
def test_epsilon_must_not_be_negative(epsilon):
    with pytest.raises(ValueError, match=r"\bepsilon\b"):
        epsilon_svr(Y, epsilon=epsilon)


def test_all_labels_equal():
    """C-SVC has the answer β = 0; ν-SVC has no feasible point; a classifier needs a second class."""
    solution = solve(c_svc(np.ones(4)), Gram(X, Kernel("rbf")), Settings())
    assert solution.report.status == "converged"
    np.testing.assert_array_equal(solution.beta, 0.0)
    with pytest.raises(ValueError, match=r"(?i)class|label"):
        nu_svc(np.ones(4), nu=0.5)
    with pytest.raises(ValueError, match=r"(?i)class"):
        SVC().fit(X, np.ones(4))


def test_no_sample():
    with pytest.raises(ValueError, match=r"(?i)sample"):
        SVC().fit(np.zeros((0, 2)), [])


def test_precomputed_matrix_must_be_square():
    with pytest.raises(ValueError, match=r"square.*\(4, 2\)"):
        Gram(X, Kernel("precomputed"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precomputed_matrix_may_be_asymmetric_by_rounding(dtype):
    K = (X @ X.T).astype(dtype)
    K[0, 1] = np.nextafter(K[0, 1], dtype(100))
    solution = solve(c_svc(Y), Gram(K, Kernel("precomputed")), Settings())
    assert solution.report.status == "converged"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_precomputed_matrix_must_be_finite(bad):
    K = X @ X.T
    K[1, 2] = K[2, 1] = bad
    with pytest.raises(ValueError, match=r"(?i)precomputed.*(nan|infinit)"):
        Gram(K, Kernel("precomputed"))


def test_precomputed_matrix_must_be_dense():
    with pytest.raises(TypeError, match=r"dense.*toarray"):
        Gram(sp.csr_array(X @ X.T), Kernel("precomputed"))


def test_callable_must_return_a_matrix_of_the_right_shape():
    with pytest.raises(ValueError, match=r"(?s)kernel function.*shape"):
        solve(c_svc(Y), Gram(X, Kernel(lambda A, B: np.ones(len(A)))), Settings())


def test_callable_must_return_finite_values():
    with pytest.raises(ValueError, match=r"(?i)kernel function.*(nan|infinit)"):
        solve(c_svc(Y), Gram(X, Kernel(lambda A, B: np.full((len(A), len(B)), np.nan))), Settings())


def test_error_inside_a_callable_reaches_the_caller():
    def broken(A, B):
        raise ZeroDivisionError("from the kernel")

    with pytest.raises(ZeroDivisionError, match="from the kernel"):
        solve(c_svc(Y), Gram(X, Kernel(broken)), Settings())


def test_chi2_needs_features_that_are_not_negative():
    for container in (X, X.tolist(), sp.csr_array(X)):
        with pytest.raises(ValueError, match=r"chi2.*negative"):
            Gram(container, Kernel("chi2"))


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"name": "gaussian"}, "gaussian"),
        ({"name": "rbf", "gamma": -1.0}, "gamma"),
        ({"name": "rbf", "gamma": np.nan}, "gamma"),
        ({"name": "poly", "degree": -1}, "degree"),
        ({"name": "poly", "degree": 2.5}, "degree"),
        ({"name": "poly", "coef0": np.inf}, "coef0"),
    ],
)
def test_kernel_parameters(options, culprit):
    with pytest.raises(ValueError, match=culprit):
        Kernel(**options)


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"solver": "newton"}, "newton"),
        ({"rule": "random"}, "random"),
        ({"tol": 0.0}, "tol"),
        ({"tol": -1e-3}, "tol"),
        ({"tol": np.nan}, "tol"),
        ({"gap_tol": -1.0}, "gap_tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"time_limit": -1.0}, "time_limit"),
    ],
)
def test_settings(options, culprit):
    with pytest.raises(ValueError, match=culprit):
        Settings(**options)


def test_gram_options():
    with pytest.raises(ValueError, match="precision"):
        Gram(X, Kernel("rbf"), precision="half")
    with pytest.raises(ValueError, match="cache_bytes"):
        Gram(X, Kernel("rbf"), cache_bytes=-1)
    with pytest.raises(ValueError, match="threads"):
        Gram(X, Kernel("rbf"), threads=0)
    with pytest.raises(ValueError, match="matrix"):
        Gram(X[:, 0], Kernel("rbf"))


def test_problem_and_gram_must_have_the_same_samples():
    with pytest.raises(ValueError, match=r"(?s)3.*4|4.*3"):
        solve(c_svc(Y[:3]), Gram(X, Kernel("rbf")), Settings())


@pytest.mark.parametrize("start", [np.zeros(3), np.array([np.nan, 0, 0, 0]), np.zeros((4, 1))])
def test_warm_start_that_does_not_fit(start):
    with pytest.raises(ValueError, match="start"):
        solve(c_svc(Y), Gram(X, Kernel("rbf")), Settings(start=start))
