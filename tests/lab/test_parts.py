"""The parts that the algorithms are made of, on numbers small enough to follow."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from hinge import Gram, Kernel, Settings, lab, solve
from hinge.dual.formulations import c_svc, epsilon_svr
from hinge.lab.algorithms import platt
from hinge.lab.algorithms.chunking import disagreement, projected_conjugate_gradient
from hinge.lab.algorithms.decomposition import (
    OSUNA_SIZE,
    by_conjugate_directions,
    by_gradient_projection,
    by_pair_steps,
    osuna,
)
from hinge.lab.algorithms.gain_rows import _best_partner, _largest_gain
from hinge.lab.algorithms.gradient_projection import ascend
from hinge.lab.algorithms.interior_point import solve_quadratic_program
from hinge.lab.algorithms.pairs import move
from hinge.lab.algorithms.platt import main_routine
from hinge.lab.algorithms.platt_steps import (
    FREE,
    TURN,
    _joint_step,
    _next_violator,
    _second_choice,
    assemble,
    examine_pass,
)
from hinge.lab.algorithms.simple_svm import _FreeSet
from hinge.lab.algorithms.subproblem import extract, worst_violators
from hinge.solvers.state import State

POINTS = np.array([[0.0], [1.0], [2.0], [3.0]])
LABELS = np.array([-1, -1, 1, 1])


def start(C=10.0, X=POINTS, y=LABELS):
    problem = c_svc(y, C=C)
    return State(problem, Gram(X, Kernel("linear"), precision="double"), problem.start.copy(), problem.v.copy())


def standing(beta, errors, lo, hi, diagonal=None):
    """Platt's machine at this point, with kernel rows and the threshold 0."""
    n = len(beta)
    whole = assemble(start(X=np.arange(float(n))[:, None], y=np.arange(n) % 2 * 2 - 1))
    arrays = (np.array(values, float) for values in (beta, errors, lo, hi, diagonal or np.ones(n)))
    point = dict(zip(("beta", "errors", "lo", "hi", "diagonal"), arrays, strict=True))
    return whole._replace(**point, rows=np.zeros((1, n)))


@pytest.mark.parametrize(
    ("beta", "step"),
    [
        ((0.0, 0.0), 2.0),  # slope 2, curvature 1, room 10
        ((-9.0, 0.0), 1.0),  # β₁ may fall by 1 only (eq. 13)
        ((0.0, 9.5), 0.5),  # β₂ may grow by ½ only
        ((-10.0, 0.0), 0.0),  # no room at all
    ],
)
def test_joint_step_of_two_variables_is_clipped_to_the_box(beta, step):
    two = standing(beta, [-1.0, 1.0], [-10.0, 0.0], [0.0, 10.0], diagonal=[1.0, 4.0])
    assert _joint_step(two, 0, 1, 2.0) == step


def test_without_curvature_the_better_end_of_the_segment_is_taken():
    box = [-3.0, 0.0], [0.0, 3.0]
    assert _joint_step(standing([0.0, 0.0], [-1.0, 1.0], *box), 0, 1, 1.0) == 3.0
    assert _joint_step(standing([0.0, 0.0], [1.0, 1.0], *box), 0, 1, 1.0) == 0.0  # both ends are alike


def test_first_and_second_choice_of_platt():
    machine = standing([0.0, 0.5, 0.5, 1.0], [0.3, -0.2, 0.1, 0.4], np.zeros(4), np.ones(4))
    machine.place[:] = [-1, 0, 1, -1]
    free = np.array([1, 2])

    def next_violator(turn, only_free):
        machine.counts[TURN] = turn
        return _next_violator(machine, np.arange(4), only_free, 0.01)

    assert next_violator(0, False) == 0
    assert next_violator(1, False) == 1
    assert next_violator(0, True) == 1
    assert next_violator(3, False) == 4  # at its bound on the right side: none is left
    assert _second_choice(0, free, machine.errors, 0.0) == 1  # the free one of smallest residual
    assert _second_choice(1, free, machine.errors, 0.0) == 2


def test_platts_weight_vector_and_list_of_free_samples_follow_the_steps():
    """Four points on a line: after every step the machine is what it would be if it were built anew."""
    state = start()
    machine = assemble(state)
    for _ in range(20):
        machine.counts[TURN] = 0
        examine_pass(machine, np.arange(4), False, 1e-6, 1)
        fresh = assemble(state)
        assert machine.weights == pytest.approx(fresh.weights)
        n_free = fresh.counts[FREE]
        assert machine.counts[FREE] == n_free
        assert sorted(machine.free[:n_free]) == fresh.free[:n_free].tolist()
        free = fresh.free[:n_free]
        assert machine.errors[free] == pytest.approx(state.problem.v[free] - POINTS[free] @ fresh.weights)
    assert state.beta == pytest.approx([0, -2, 2, 0], abs=1e-5)


def test_platt_on_samples_sorted_by_class_in_many_stretches(monkeypatch):
    """No stretch has both classes: the pass over all samples at once makes the first steps."""
    monkeypatch.setattr(platt, "_STRETCH", 10)
    rng = np.random.default_rng(5)
    y = np.repeat([1, -1], 60)
    X = rng.normal(size=(120, 2)) + 0.7 * y[:, None]
    problem, gram = c_svc(y, C=1.0), Gram(X, Kernel("rbf", gamma=0.5))
    report = lab.get("platt").solve(problem, gram, Settings(tol=1e-4)).report
    assert report.converged
    best = solve(problem, Gram(X, Kernel("rbf", gamma=0.5)), Settings(tol=1e-6)).report.objective
    assert report.objective == pytest.approx(best, rel=1e-6)


def test_main_routine_alternates_between_all_and_free_samples():
    answers = iter([5, 3, 0, 2, 0, 0])
    asked = []

    def examine(only_free):
        asked.append(only_free)
        return next(answers)

    main_routine(examine)
    assert asked == [False, True, True, False, True, False]


def test_moves_end_exactly_at_bounds():
    beta, lo, hi = np.array([0.05 - 7e-18 - 0.02, 0.0]), np.zeros(2), np.full(2, 0.05)
    move(0, 0.02, beta, lo, hi)
    move(1, -1e-20, beta, lo, hi)
    assert beta.tolist() == [0.05, 0.0]


def test_worst_violators_are_the_two_ends():
    state = start()
    state.residual[:] = [-1.0, -3.0, 2.0, 5.0]
    assert worst_violators(state, 2).tolist() == [1, 3]
    assert worst_violators(state, 4).tolist() == [0, 1, 2, 3]


def test_osuna_keeps_the_size_of_its_set():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3 * OSUNA_SIZE, 1))
    state = start(X=X, y=np.where(X[:, 0] + rng.normal(size=len(X)) > 0, 1, -1))
    choose = osuna()
    for _ in range(8):
        state.residual[:] = rng.normal(size=len(X))
        members = choose(state)
        assert len(np.unique(members)) == len(members) <= OSUNA_SIZE
        assert set(worst_violators(state, 2)) <= set(members)
    assert len(members) == OSUNA_SIZE


@pytest.mark.parametrize(
    "inner", [by_pair_steps, by_gradient_projection, by_conjugate_directions, solve_quadratic_program]
)
def test_every_inner_solver_finds_the_margin_of_two_points(inner):
    sub = extract(start(), np.array([1, 2]))
    assert inner(sub, 1e-8) >= 1
    assert sub.beta == pytest.approx([-2, 2])
    assert sub.residual == pytest.approx([-3, -3])


def test_subproblem_of_two_variables_of_one_sample():
    X = np.array([[1.0], [2.0]])
    problem = epsilon_svr([0.5, 1.5], C=1.0, epsilon=0.1)
    state = State(problem, Gram(X, Kernel("linear"), precision="double"), np.zeros(4), problem.v.copy())
    sub = extract(state, np.array([1, 3]))
    assert sub.kernel.tolist() == [[4.0, 4.0], [4.0, 4.0]]
    assert sub.problem.v == pytest.approx([1.4, 1.6])


def test_conjugate_directions_end_after_as_many_steps_as_dimensions():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 12))
    problem = replace(c_svc(np.tile([1, -1], 6)), lo=np.full(12, -1e9), hi=np.full(12, 1e9))  # no bound is met
    state = State(problem, Gram(X, Kernel("linear"), precision="double"), problem.start.copy(), problem.v.copy())
    steepest, conjugate = extract(state, np.arange(12)), extract(state, np.arange(12))
    n_conjugate, is_member = ascend(conjugate, 1e-7, conjugate=True)
    n_steepest, _ = ascend(steepest, 1e-7, conjugate=False)
    assert is_member.all()
    assert n_conjugate <= 20 < n_steepest
    assert conjugate.beta == pytest.approx(steepest.beta, rel=1e-4)


def test_evicted_variables_do_not_move():
    state = start(C=1.0)
    sub = extract(state, np.arange(4))
    _, is_member = ascend(sub, 1e-9, conjugate=True)
    assert sub.beta.sum() == pytest.approx(0, abs=1e-12)
    assert sub.beta.tolist() == [0.0, -1.0, 1.0, 0.0]
    assert not is_member.any() or sub.violation() <= 1e-9


def test_threshold_of_chunking_ends_the_search_early():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    state = start(C=5.0, X=X, y=np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0, 1, -1))
    rough, exact = extract(state, np.arange(60)), extract(state, np.arange(60))
    assert projected_conjugate_gradient(rough, 1e-8, 1e-2) < projected_conjugate_gradient(exact, 1e-8, 1e-18)
    assert exact.violation() <= 1e-8 < rough.violation()


def test_disagreement_is_that_of_the_free_variables():
    state = start()
    state.beta[:] = [0.0, -1.0, 1.0, 0.0]
    state.residual[:] = [9.0, -1.0, 1.5, -9.0]
    assert disagreement(state) == 2.5


def test_sums_are_restored_without_leaving_a_bound():
    problem = c_svc(LABELS, C=1.0)
    restored = problem.near(np.array([0.0, -0.5, 0.5 + 1e-9, 1.0]))
    assert restored[[0, 3]].tolist() == [0.0, 1.0]
    assert restored.sum() == pytest.approx(0, abs=1e-15)


def test_inverse_of_the_free_set_is_kept_by_bordering():
    X = np.random.default_rng(2).normal(size=(5, 6))
    state = start(X=X, y=np.array([1, -1, 1, -1, 1]))
    K = X @ X.T
    free = _FreeSet(state)
    free.begin(3)
    for t in (0, 4, 1):
        border = free.border(K[t])
        free.add(t, border, K[t, t] - border @ free.inverse @ border)
    free.remove(1)
    assert free.members == [3, 4, 1]
    matrix = np.ones((4, 4))
    matrix[0, 0], matrix[1:, 1:] = 0.0, K[np.ix_(free.members, free.members)]
    assert free.inverse == pytest.approx(np.linalg.inv(matrix))
    by_bordering = free.inverse.copy()
    free.invert()
    assert free.inverse == pytest.approx(by_bordering)


def test_largest_gain_is_the_best_of_all_pairs():
    """With b = 0: slope 2, curvature 1 and gain 2 for t = 1; slope 5, curvature 4 for t = 2, room allowing."""
    case = SimpleNamespace(
        row=np.array([1.0, 0.5, 0.0, 0.0]),
        diagonal=np.array([1.0, 1.0, 3.0, 1.0]),
        r=np.array([1.0, -1.0, -4.0, 1.0]),
    )
    lo, hi = np.zeros(4), np.full(4, 10.0)
    for beta_2, gain, partner in ((5.0, 12.5 / 4, 2), (0.1, 2.0, 1)):
        beta = np.array([1.0, 5.0, beta_2, 0.0])
        arguments = (0, case.row, case.diagonal, beta, case.r, lo, hi)
        assert _largest_gain(*arguments) == pytest.approx((gain, 5.0))
        assert _best_partner(*arguments) == partner
