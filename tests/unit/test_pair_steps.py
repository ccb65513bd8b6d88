"""The compiled pair loop on examples small enough to follow by hand."""

import numpy as np
import pytest

from hinge import Gram, Kernel, Settings, solve
from hinge.dual.formulations import c_svc
from hinge.settings import RULES
from hinge.solvers.pairs import loop
from hinge.solvers.pairs.rules import HMG, MG, MVP, NUMBER_OF, SECOND_ORDER
from hinge.solvers.pairs.step import CONVERGED, NEEDS_ROWS, STEP_LIMIT, STUCK, UNBOUNDED, Point, Rows, pair_step
from strategies import SURE_RULES

INF = np.inf


@pytest.mark.parametrize(
    ("gradient", "curvature", "room_i", "room_j", "expected"),
    [
        (2.0, 4.0, 9.0, 9.0, 0.5),  # inside
        (2.0, 4.0, 0.25, 9.0, 0.25),  # i meets its upper bound
        (2.0, 4.0, 9.0, 0.125, 0.125),  # j meets its lower bound
        (2.0, 4.0, 0.25, 0.25, 0.25),  # both at once: a corner
        (2.0, 4.0, 0.5, 0.5, 0.5),  # the optimum on the corner
        (2.0, 4.0, 0.0, 9.0, 0.0),  # no room
        (2.0, 0.0, 3.0, 5.0, 3.0),  # flat: to the end of the segment
        (2.0, -1.0, 5.0, 3.0, 3.0),  # concave: likewise
        (2.0, 4.0, INF, INF, 0.5),
        (2.0, 0.0, INF, INF, INF),  # nothing stops it
        (2.0, -1.0, INF, 7.0, 7.0),
    ],
)
def test_pair_step(gradient, curvature, room_i, room_j, expected):
    assert pair_step(gradient, curvature, room_i, room_j) == expected


def optimise(K, v, lo, hi, rule, *, beta=None, group=None, n_groups=1, max_steps=1, pair=(-1, -1), tol=1e-9):
    """Run the loop on a full matrix; returns code, steps, violation, β and the last group's last pair."""
    K, v, lo, hi = (np.array(a, dtype=np.float64) for a in (K, v, lo, hi))
    beta = np.zeros(len(v)) if beta is None else np.array(beta, dtype=np.float64)
    r = v - K @ beta
    group = np.zeros(len(v), np.int8) if group is None else np.array(group, np.int8)
    pairs, start = np.tile(np.array(pair, dtype=np.int64), (max(n_groups, 1), 1)), beta.copy()
    point, rows = Point(beta, r, lo, hi, group, n_groups), Rows.of_matrix(K, K.diagonal().copy())
    outcome = loop.optimise(point, rows, rule, pairs, tol, max_steps)
    change = 0.5 * beta @ K @ beta - v @ beta - (0.5 * start @ K @ start - v @ start)
    assert outcome.change == pytest.approx(change)
    assert outcome.way >= np.abs(beta - start) @ np.sqrt(K.diagonal()) * (1 - 1e-12)
    np.testing.assert_allclose(r, v - K @ beta, atol=1e-12)
    return *outcome[:3], beta, tuple(int(t) for t in pairs[-1])


def test_a_sample_that_is_there_twice_moves_to_its_bound():
    """Beside kernel values of 1e20 a curvature of nought is unknown, unless both rows are the same."""
    huge = np.full((2, 2), 1e20)
    code, steps, _, beta, _ = optimise(huge, [1.0, -1.0], [0.0, -8.0], [8.0, 0.0], SECOND_ORDER)
    assert (code, steps, *beta) == (CONVERGED, 1, 8.0, -8.0)


def test_a_pair_that_rounding_holds_lets_others_move():
    """Half a unit in the last place is no step for the first two; the others have the smaller violation."""
    beta, residual = np.array([1e17, -1e17, 0.0, 0.0]), np.array([0.0, -16.0, 1.0, -1.0])
    box, group = np.full(4, 2e17), np.array([0, 0, 1, 1], np.int8)
    point = Point(beta, residual, -box, box, group, 2)
    outcome = loop.optimise(point, Rows.of_matrix(np.eye(4), np.ones(4)), SECOND_ORDER, None, 1e-9, 9)
    assert outcome.code == STUCK
    np.testing.assert_array_equal(beta, [1e17, -1e17, 1.0, -1.0])


# Nine numbers: K of three variables, all of which may move both ways. r = v at zero.
K = [[2.0, 0.0, 1.5], [0.0, 1.0, 0.0], [1.5, 0.0, 2.0]]
V = [1.0, -1.0, -0.9]
WIDE = {"lo": [-9.0] * 3, "hi": [9.0] * 3}


def test_maximal_violating_pair():
    """r = (1, −1, −0.9): largest and smallest."""
    assert optimise(K, V, **WIDE, rule=MVP)[-1] == (0, 1)


def test_second_order_prefers_the_larger_gain():
    """With i = 0: j = 1 gains 2² / 3, j = 2 gains 1.9² / (2 + 2 − 3)."""
    assert optimise(K, V, **WIDE, rule=SECOND_ORDER)[-1] == (0, 2)


def test_second_order_skips_what_may_not_fall():
    bounds = {"lo": [-9.0, -9.0, 0.0], "hi": [9.0] * 3}
    assert optimise(K, V, **bounds, rule=SECOND_ORDER)[-1] == (0, 1)


@pytest.mark.parametrize("rule", [MG, HMG])
def test_maximum_gain_keeps_a_variable_of_the_last_pair(rule):
    """From the last pair (1, 2) the gains are 4/6 (0, 1), 3.61/2 (0, 2) and 0.01/6 (2, 1)."""
    assert optimise(K, V, **WIDE, rule=rule, pair=(1, 2))[-1] == (0, 2)


def test_maximum_gain_counts_the_box():
    """β₀ can rise by 0.0005 only, so that the pair (2, 1) gains more than (0, 1) or (0, 2)."""
    bounds = {"lo": [-9.0] * 3, "hi": [0.0005, 9.0, 9.0]}
    assert optimise(K, V, **bounds, rule=MG, pair=(1, 2))[-1] == (2, 1)


def test_hybrid_takes_the_maximal_violating_pair_when_the_last_one_is_at_its_bounds():
    """The pair (2, 3) sits at its bounds; (0, 1), which shares nothing with it, violates most."""
    K4, v = np.eye(4), [5.0, -5.0, 1.0, -1.0]
    state = {"lo": [-9, -9, 0, -1], "hi": [9, 9, 1, 0], "beta": [0.0, 0.0, 1.0, -1.0], "pair": (2, 3)}
    assert optimise(K4, v, **state, rule=HMG)[-1] == (0, 1)


def test_maximum_gain_gives_up_where_no_pair_near_the_last_can_move():
    """Only (0, 1) can move, which shares nothing with (2, 3)."""
    state = {"lo": [-9, -9, 0, 0], "hi": [9, 9, 0, 0], "pair": (2, 3)}
    assert optimise(np.eye(4), [1.0, -1.0, 0.0, 0.0], **state, rule=MG)[:2] == (STUCK, 0)
    assert optimise(np.eye(4), [1.0, -1.0, 0.0, 0.0], **state, rule=HMG)[-1] == (0, 1)


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
def test_rules_that_look_back_need_the_last_pair_and_others_do_not(rule):
    point = Point(np.zeros(3), np.array(V), np.full(3, -9.0), np.full(3, 9.0), np.zeros(3, np.int8), 1)
    rows = Rows.of_matrix(np.array(K), np.array(K).diagonal().copy())
    if rule.looks_back:
        with pytest.raises(ValueError, match="working-set rule"):
            loop.optimise(point, rows, NUMBER_OF[rule.name], None, 1e-9, 1)
    else:
        assert loop.optimise(point, rows, NUMBER_OF[rule.name], None, 1e-9, 1).steps == 1


def test_a_number_that_no_rule_has_is_an_error():
    with pytest.raises(ValueError, match="working-set rule"):
        optimise(K, V, **WIDE, rule=len(RULES))


def test_groups_are_never_mixed():
    """The worst pair overall, (0, 3), lies across two groups; the worst inside one is (2, 3)."""
    v = [5.0, 4.0, 3.0, -5.0]
    wide = {"lo": [-9] * 4, "hi": [9] * 4}
    for rule in NUMBER_OF.values():
        *_, beta, pair = optimise(np.eye(4), v, **wide, rule=rule, group=[0, 0, 1, 1], n_groups=2)
        assert pair == (2, 3)
        np.testing.assert_array_equal(beta, [0, 0, 4, -4])


@pytest.mark.parametrize("rule", NUMBER_OF.values())
def test_single_steps_without_groups(rule):
    """K = diag(1, 4): v = (3, 4) wants β = (3, 1), each variable alone; the bound 2 cuts the first."""
    code, steps, violation, beta, _ = optimise(
        np.diag([1.0, 4.0]), [3.0, 4.0], [0, 0], [2, 2], rule, n_groups=0, max_steps=10
    )  # fmt: skip
    assert (code, steps, violation) == (CONVERGED, 2, 0.0)
    np.testing.assert_array_equal(beta, [2.0, 1.0])


@pytest.mark.parametrize("rule", NUMBER_OF.values())
def test_bounds_are_assigned_not_approached(rule):
    """0.1 + 0.2 is not 0.3 in floating point: the variable must still land on its bound."""
    code, _, violation, beta, _ = optimise(
        np.eye(2), [9.0, -9.0], [-0.5, -0.3], [0.3, 0.5], rule, beta=[0.1, -0.1], max_steps=5
    )  # fmt: skip
    assert (code, violation) == (CONVERGED, 0.0)
    np.testing.assert_array_equal(beta, [0.3, -0.3])


def test_why_the_loop_returns():
    flat = {"lo": [0, -INF], "hi": [INF, 0], "rule": SECOND_ORDER, "max_steps": 5}
    assert optimise(np.ones((2, 2)), [1, -1], **flat)[0] == UNBOUNDED
    assert optimise(np.eye(2), [1, -1], **flat)[0] == CONVERGED
    assert optimise(K, V, **WIDE, rule=MVP, max_steps=2)[:2] == (STEP_LIMIT, 2)


@pytest.mark.parametrize("rule", NUMBER_OF.values())
def test_a_missing_row_is_asked_for_and_nothing_moves(rule):
    K2, beta, r = np.eye(2), np.zeros(2), np.array([1.0, -1.0])
    point = Point(beta, r, np.array([0.0, -1.0]), np.array([1.0, 0.0]), np.zeros(2, np.int8), 1)
    rows = Rows(K2[:1].copy(), np.array([0, -1]), np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(2))
    outcome = loop.optimise(point, rows, rule, np.full((1, 2), -1, np.int64), 1e-9, 10)
    assert (outcome.code, outcome.steps) == (NEEDS_ROWS, 0)
    assert 1 in (outcome.first, outcome.second)
    np.testing.assert_array_equal(beta, 0.0)


@pytest.mark.parametrize("rule", SURE_RULES)
def test_what_reaches_its_bound_is_there_exactly(rule):
    """However the cost rounds: β + (C − β) need not be C, and a support vector at its bound must be seen to be."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=200) > 0, 1.0, -1.0)
    problem = c_svc(y, C=0.3, weights=rng.uniform(0.1, 3.0, size=200))
    cost = problem.hi - problem.lo
    start = np.where(y > 0, problem.hi, problem.lo) * rng.uniform(0, 1, size=200)
    solution = solve(problem, Gram(X, Kernel("rbf")), Settings(solver="smo", rule=rule, start=start))
    beta = np.abs(solution.beta)
    near = np.minimum(np.abs(beta - cost), beta) < 1e-9 * cost
    assert np.count_nonzero(near) > 50
    assert ((beta == cost) | (beta == 0))[near].all()
    assert solution.report.n_bounded == np.count_nonzero(beta == cost)
