"""Weights of linear machines whose sums would lose more to rounding than decisions can bear."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from hinge import SVC, SVR, LinearSVC


def exactly(values):
    return [[Fraction(float(v)) for v in row] for row in np.atleast_2d(values)]


def with_a_number_of_the_patient(largest, n=200, seed=0):
    """Small whole numbers beside one large feature that says nothing."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 11, (n, 4)).astype(float)
    X[:, 0] = rng.integers(600, largest, n)
    y = np.where(X[:, 1:].sum(axis=1) + rng.normal(0, 2, n) > 16, 1, -1)
    return X, y


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("make", [lambda: SVC(kernel="linear"), lambda: SVR(kernel="linear", C=10.0)])
def test_decisions_are_those_of_the_coefficients(make, container):
    X, y = with_a_number_of_the_patient(100_000)
    machine = make().fit(container(X), y)
    coefficients, rows = (
        exactly(machine.dual_coef_.toarray() if container is not np.asarray else machine.dual_coef_),
        exactly(X),
    )
    support = [rows[i] for i in machine.support_]
    weights = [sum(c * x[f] for c, x in zip(coefficients[0], support, strict=True)) for f in range(X.shape[1])]
    intercept = Fraction(float(machine.intercept_[0]))
    decisions = [float(sum(w * v for w, v in zip(weights, row, strict=True)) + intercept) for row in rows]
    decide = machine.decision_function if isinstance(machine, SVC) else machine.predict
    np.testing.assert_allclose(decide(container(X)), decisions, rtol=0, atol=1e-7)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_weights_have_the_objective_that_the_report_claims(loss):
    X, y = with_a_number_of_the_patient(1_000_000)
    machine = LinearSVC(loss=loss, C=1.0).fit(X, y)
    assert machine.report_.converged
    weights, intercept = exactly(machine.coef_)[0], Fraction(float(machine.intercept_[0]))
    slacks = [
        max(Fraction(0), 1 - int(label) * (sum(w * v for w, v in zip(weights, row, strict=True)) + intercept))
        for row, label in zip(exactly(X), y, strict=True)
    ]
    power = 1 if loss == "hinge" else 2
    objective = (sum(w * w for w in weights) + intercept * intercept) / 2 + sum(slack**power for slack in slacks)
    claimed = -machine.report_.objective
    assert float(objective) - claimed <= machine.report_.gap + 1e-7 * claimed
