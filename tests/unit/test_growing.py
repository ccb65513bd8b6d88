"""Pairs of classes solved on some of their samples, which grow: the answers are those of the whole matrix."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification

from hinge import SVC
from hinge.estimators.base import KernelMachine
from hinge.settings import Sizes
from hinge.solvers import growing
from hinge.training import trainer

KERNELS = ("rbf", "linear", "poly", "sigmoid", "laplacian")


@pytest.fixture
def growth(monkeypatch):
    """Let pairs grow from 150 samples on; return what was certified, pair by pair."""
    settings, solve = KernelMachine._settings, trainer.solve_growing
    certified = []

    def smaller(self):
        return replace(settings(self), sizes=Sizes(one_set=300, smallest_set=100, largest_set=300))

    def solve_and_note(parts, place, *arguments):
        solve(parts, place, *arguments)
        certified.append(bool(parts.is_certified[place]))

    monkeypatch.setattr(KernelMachine, "_settings", smaller)
    monkeypatch.setattr(trainer, "solve_growing", solve_and_note)
    return certified


def _data(n_classes=4, n=480):
    X, y = make_classification(
        n, 8, n_informative=6, n_classes=n_classes, n_clusters_per_class=1, flip_y=0.1, random_state=0
    )
    X[::7] = X[1::7][: len(X[::7])]  # some samples are there twice, with different labels too
    return X, y


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("kernel", KERNELS)
def test_answers_are_those_of_the_whole_matrix(kernel, C, growth, monkeypatch):
    X, y = _data()
    grown = SVC(kernel=kernel, C=C, decision_function_shape="ovo").fit(X, y)
    assert len(growth) == 6
    monkeypatch.undo()
    whole = SVC(kernel=kernel, C=C, decision_function_shape="ovo").fit(X, y)
    assert grown.certificate(X, y).proves(1e-3)
    if kernel == "sigmoid":  # of several optima
        return
    assert all(growth)
    first, second = grown.decision_function(X), whole.decision_function(X)
    assert np.abs(first - second).max() <= 1e-9 * np.abs(second).max()


def test_figures_are_those_of_all_samples(growth, monkeypatch):
    X, y = _data(n_classes=5, n=600)
    steps, solve_parts = [], growing.solve_parts

    def solve_and_count(*arguments):
        solve_parts(*arguments)
        steps.append(arguments[4].account.figures[0, growing.ITERATIONS])

    monkeypatch.setattr(growing, "solve_parts", solve_and_count)
    machine = SVC(C=10.0).fit(X, y)
    assert all(growth)
    assert sum(report.iterations for report in machine.reports_) == sum(steps)
    assert len(growth) == 10
    for report, certificate in zip(machine.reports_, machine.certificate(X, y), strict=True):
        assert report.converged
        assert report.violation <= 1e-9
        assert certificate.violation <= report.violation + 1e-9
        assert abs(certificate.gap - report.gap) <= 1e-9 * (1 + abs(report.objective))


def test_what_does_not_grow_to_an_end_is_solved_all_the_same(growth, monkeypatch):
    X, y = _data()
    monkeypatch.setattr(growing, "GROWTH", replace(growing.GROWTH, most_turns=1))
    machine = SVC(C=10.0).fit(X, y)
    assert not any(growth)
    assert len(growth) == 6
    assert machine.report_.converged
    assert machine.certificate(X, y).proves(1e-3)


def test_samples_left_out_are_looked_at(growth, monkeypatch):
    """One that violates alone, far from those chosen at first, becomes a support vector."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), np.arange(400) // 100
    X += 6.0 * np.eye(4, 3)[y]
    X[1] = X[399]  # of the first class, in the midst of the last
    machine = SVC(C=1.0).fit(X, y)
    assert all(growth)
    assert 1 in machine.support_
    assert machine.certificate(X, y).proves(1e-3)
