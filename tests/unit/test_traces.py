"""Traces: the course of a run as it was on all samples, recorded when asked for."""

import json
import pickle

import numpy as np
import pytest

from hinge import SVC, SVR, Gram, Kernel, OneClassSVM, Settings, Sizes, Tracing, certificate, solve
from hinge.dual.formulations import c_svc

SMALL = Sizes(one_set=60, smallest_set=20, largest_set=60, cheap_subset=50, dear_subset=50)
N = 400


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(N, 5))
    return X, np.where(X[:, 0] * X[:, 1] + 0.7 * random.normal(size=N) > 0, 1.0, -1.0)


def run(data, kernel="rbf", **settings):
    X, y = data
    gram, problem = Gram(X, Kernel(kernel, gamma=0.2), threads=1), c_svc(y, C=5.0)
    return problem, gram, solve(problem, gram, Settings(sizes=SMALL, **settings))


SOLVERS = [("block", "rbf"), ("smo", "rbf"), ("proximal", "linear"), ("descent", "linear")]


@pytest.mark.parametrize(("solver", "kernel"), SOLVERS)
def test_every_entry_is_what_a_certificate_says_of_its_point(data, solver, kernel):
    tracing = Tracing(every_step=solver != "smo", beta=True)
    problem, gram, solution = run(data, kernel, solver=solver, trace=tracing)
    trace = solution.report.trace
    assert len(trace) == len(trace.beta) > 2
    for k in np.unique(np.linspace(0, len(trace) - 1, 12).astype(int)):
        proof = certificate(problem, gram, trace.beta[k])
        assert trace.violation[k] == pytest.approx(proof.violation, rel=1e-3, abs=1e-5)
        assert trace.objective[k] == pytest.approx(proof.objective, rel=1e-5, abs=1e-5)
        assert trace.gap[k] == pytest.approx(proof.gap, rel=1e-3, abs=1e-3)
        assert max(proof.box_error, proof.sum_error) < 1e-9


def test_the_violation_is_that_of_all_samples_while_some_wait(data):
    trace = run(data, trace=Tracing(every_step=True))[2].report.trace
    told = []
    run(data, callback=lambda progress: told.append((progress.n_active, progress.violation)) and False)
    active, violation = np.array(told).T
    assert (active < N).any()  # or this shows nothing
    assert (trace.violation[: len(told)] >= 0.99 * violation).all()  # steps are in single precision
    assert (trace.violation[: len(told)] > 1.1 * violation).any()


def test_recording_changes_neither_the_answer_nor_the_counts(data):
    for solver, kernel in SOLVERS:
        plain = run(data, kernel, solver=solver)[2]
        traced = run(data, kernel, solver=solver, trace=Tracing(beta=True))[2]
        assert np.array_equal(plain.beta, traced.beta)
        assert plain.report.kernel_evaluations == traced.report.kernel_evaluations
        assert plain.report.trace is None
        assert "trace" not in plain.report.as_dict()


def test_smo_can_be_followed_pair_by_pair(data):
    trace = run(data, solver="smo", trace=Tracing(every_step=True, beta=True))[2].report.trace
    moved = (np.diff(trace.beta, axis=0) != 0).sum(axis=1)
    assert (moved[np.diff(trace.iterations) == 1] <= 2).all()
    assert set(np.diff(trace.iterations)) <= {0, 1}


def test_traces_only_go_forward_and_end_with_the_report(data):
    for solver, kernel in SOLVERS:
        report = run(data, kernel, solver=solver, trace=Tracing())[2].report
        trace = report.trace
        for column in (trace.seconds, trace.iterations, trace.kernel_evaluations):
            assert (np.diff(column) >= 0).all()
        assert (np.diff(trace.objective) <= 1e-6).all()
        assert (trace.violation[-1], trace.gap[-1]) == (report.violation, report.gap)
        assert trace.seconds[-1] <= report.seconds


def test_a_trace_goes_through_json_and_pickle(data):
    report = run(data, trace=Tracing())[2].report
    told = json.loads(json.dumps(report.as_dict()))
    assert told["trace"]["violation"] == report.trace.violation.tolist()
    assert "beta" not in told["trace"]
    assert pickle.loads(pickle.dumps(report)) == report


@pytest.mark.parametrize("trace", [True, Tracing(beta=True)])
def test_estimators_record_on_request(data, trace):
    X, y = data
    machine = SVC(trace=trace).fit(X, y)
    recorded = machine.report_.trace
    assert recorded.violation[-1] == machine.report_.violation  # polished
    assert recorded.violation[0] > 1
    assert (recorded.beta is None) == (trace is True)
    assert SVC().fit(X, y).report_.trace is None
    for other in (SVR(trace=True), OneClassSVM(trace=True)):
        assert len(other.fit(X, y).report_.trace) > 1


def test_every_pair_of_classes_has_its_trace(data):
    X, _ = data
    y = np.digitize(X[:, 0], [-1.5, 0.0, 1.5])
    machine = SVC(trace=True).fit(X, y)
    assert all(len(report.trace) > 1 for report in machine.reports_)
    assert np.array_equal(machine.predict(X), SVC().fit(X, y).predict(X))


def test_what_is_no_tracing_is_refused(data):
    with pytest.raises(ValueError, match="'trace' parameter"):
        SVC(trace="yes").fit(*data)
