"""What a fit says of itself is true of all its machines: neither a mistake nor the best of them speaks for it."""

from dataclasses import replace

import numpy as np
import pytest

from hinge import SVC, SVR, Gram, Kernel, Settings, Sizes, Status, solve
from hinge.dual.formulations import c_svc
from hinge.solvers import conclusion
from hinge.solvers.conclusion import conduct
from hinge.solvers.many import Parts
from hinge.solvers.run import Run
from hinge.training.machine import combined_report
from hinge.training.tasks import Task
from hinge.training.trainer import Trainer
from reference import kernel_matrix, violation

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1300, 6))
NOISE = np.sign(RNG.normal(size=1300))  # labels that mean nothing: nearly every sample becomes a support vector
THREE = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=1300), [-0.5, 0.5])
ENDS = [status for status in Status if status is not Status.CONVERGED]


def mistaken(n_right, starts):
    """A solver that claims to have converged when it has not, but for its runs from ``n_right`` on."""

    def answer(problem, gram, settings):
        starts.append(settings.start)
        right = len(starts) > n_right
        return solve(problem, gram, settings if right else replace(settings, tol=0.5))

    return answer


@pytest.mark.parametrize("make", [lambda: SVC(gamma=0.1, C=5.0), lambda: SVR(gamma=0.1, C=5.0, epsilon=0.01)])
def test_a_solver_that_errs_to_the_end_is_not_called_converged(make, monkeypatch):
    starts = []
    monkeypatch.setattr("hinge.training.trainer.solve", mistaken(10**9, starts))
    machine = make()
    with pytest.warns(UserWarning, match="stalled"):
        machine.fit(X, NOISE)
    assert machine.report_.status == "stalled"
    assert machine.fit_status_ == 1
    assert machine.report_.violation > machine.tol
    assert len(starts) == 3


@pytest.mark.parametrize("n_right", [1, 2])
def test_a_solver_that_errs_is_asked_again_from_where_it_was(n_right, monkeypatch):
    starts = []
    monkeypatch.setattr("hinge.training.trainer.solve", mistaken(n_right, starts))
    machine = SVC(gamma=0.1, C=5.0).fit(X, NOISE)
    assert machine.report_.status == "converged"
    assert machine.report_.violation <= machine.tol
    assert len(starts) == n_right + 1
    assert starts[0] is None
    for start in starts[1:]:
        assert np.count_nonzero(start) > 100
    problem = c_svc(NOISE, C=5.0)
    beta = np.zeros(len(X))
    beta[machine.support_] = machine.dual_coef_[0]
    assert violation(beta, kernel_matrix("rbf", X, X, gamma=0.1), problem) <= 1.001 * machine.tol


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("status", ENDS)
@pytest.mark.parametrize("which", range(3))
def test_one_machine_that_did_not_converge_speaks_for_the_fit(status, which, n_jobs, monkeypatch):
    """Three pairs of classes, trained in one loop but for one, which ends otherwise."""
    rows, y, order, solve_parts = X[:120], THREE[:120], [], Parts.solve

    def answer(problem, gram, settings):
        solution = solve(problem, gram, settings)
        order.append(problem)
        is_it = (problem.n_samples, int((problem.v > 0).sum())) == marked
        return replace(solution, report=replace(solution.report, status=status)) if is_it else solution

    def leave_one(parts, *arguments):
        solve_parts(parts, *arguments)
        parts.is_certified[parts.sizes == marked[0]] = False

    pairs = [(0, 1), (0, 2), (1, 2)]
    counts = [(int(np.isin(y, pair).sum()), int((y == pair[0]).sum())) for pair in pairs]
    assert len(set(counts)) == 3
    marked = counts[which]
    monkeypatch.setattr("hinge.training.trainer.solve", answer)
    monkeypatch.setattr(Parts, "solve", leave_one)
    machine = SVC(n_jobs=n_jobs)
    with pytest.warns(UserWarning, match=status):
        machine.fit(rows, y)
    assert machine.report_.status is status
    assert len(order) == 1
    assert [report.status for report in machine.reports_] == [
        status if pair == which else Status.CONVERGED for pair in range(3)
    ]
    assert machine.report_.message.startswith("2 of 3 machines converged")
    assert machine.fit_status_ == 1


@pytest.mark.parametrize("second", [Status.CONVERGED, Status.UNCERTAIN])
def test_a_point_that_rounding_leaves_in_doubt_is_solved_once_more_and_more_sharply(second, monkeypatch):
    verdicts, aims = iter([Status.UNCERTAIN, second]), []
    monkeypatch.setattr(conclusion, "verdict", lambda state, tol: next(verdicts))
    problem, gram = c_svc([1, -1]), Gram(np.array([[1.0], [-1.0]]), Kernel("linear"))

    def method(state, tol, run):
        aims.append(tol)
        state.adopt(np.array([0.5, -0.5]))

    _, status = conduct(problem, gram, Run(Settings(tol=1e-3), problem, gram.team), method)
    assert status is second
    assert len(aims) == 2
    assert aims[1] < aims[0] == 1e-3


def test_machines_that_end_differently_by_themselves():
    """Two classes far apart are done in a step, two that mix are not: the fit met its limit."""
    rows = np.vstack([X[:60], X[60:120], X[120:180] + 30.0])
    y = np.repeat([0, 1, 2], 60)
    machine = SVC(C=10.0, kernel="linear", max_iter=30)
    with pytest.warns(UserWarning, match="iteration_limit"):
        machine.fit(rows, y)
    assert machine.report_.status == "iteration_limit"
    assert machine.report_.message.startswith("2 of 3 machines converged")
    assert machine.report_.violation > 1.0


def test_sums_and_extremes_of_all_machines_are_reported():
    sizes = Sizes(one_set=50, smallest_set=30, largest_set=50)
    gram = Gram(X[:400], Kernel("rbf", gamma=0.1), threads=2)
    parts = [np.arange(0, 150), np.arange(100, 400), np.arange(20, 50)]
    tasks = [Task(part, c_svc(NOISE[part], C=2.0)) for part in parts]
    machines = Trainer(gram, Settings(sizes=sizes)).train(tasks)
    reports = [machine.solution.report for machine in machines]
    together = combined_report(machines, gram, 1.0, n_support=123)
    assert [report.largest_set for report in reports][2] == 30  # it fits one set
    assert together.largest_set == max(report.largest_set for report in reports) > 30
    assert together.fewest_active == min(report.fewest_active for report in reports) <= 30
    assert together.n_support == 123  # of all machines together, which only their caller knows
    assert together.violation == max(report.violation for report in reports)
    assert together.objective == pytest.approx(sum(report.objective for report in reports))
    for machine, task in zip(machines, tasks, strict=True):
        K = kernel_matrix("rbf", X[task.samples], X[task.samples], gamma=0.1)
        assert violation(machine.solution.beta, K, task.problem) <= 1.001e-3
