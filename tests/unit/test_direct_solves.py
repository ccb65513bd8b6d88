"""The factor of direct solves follows its members: it is that of their matrix, whoever came and went before."""

import numpy as np
import pytest

from hinge.solvers.active_set import direct
from hinge.solvers.active_set.direct import Room, settle
from hinge.solvers.pairs.step import Point


@pytest.mark.parametrize("leaving", [[0], [7], [3, 3], [6, 0, 2]])
def test_factor_after_members_left(leaving):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 9))
    kernel, room, size = rows @ rows.T, Room.of(12, 1), 8
    room.members[:size] = [5, 0, 11, 2, 7, 3, 9, 1]
    assert direct._extend(kernel, room, 0, size)
    expected = room.members[:size].tolist()
    for place in leaving:
        direct._drop(room, place, size)
        del expected[place]
        size -= 1
    room.members[size] = 10
    assert direct._extend(kernel, room, size, size + 1)
    members = [*expected, 10]
    assert room.members[: size + 1].tolist() == members
    scale, factor = room.lines[direct._SCALE, : size + 1], np.triu(room.factor[: size + 1, : size + 1])
    scaled = kernel[np.ix_(members, members)] * np.outer(scale, scale) + direct._RIDGE * np.eye(size + 1)
    np.testing.assert_allclose(np.diag(scaled), 1.0, atol=1e-9)
    np.testing.assert_allclose(factor.T @ factor, scaled, atol=1e-12)


def test_where_the_work_is_limited_the_point_is_on_its_way():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(40, 6))
    kernel, v = rows @ rows.T, rng.normal(size=40)
    lo, hi, group = np.full(40, -0.05), np.full(40, 0.05), np.zeros(40, np.int8)
    beta = np.zeros(40)

    def go_on(work):
        point = Point(beta, v - kernel @ beta, lo, hi, group, 1)
        settle(kernel, point, Room.of(40, 1), 1e-12, 12, work)
        np.testing.assert_allclose(point.residual, v - kernel @ beta, atol=1e-12)
        return 0.5 * beta @ kernel @ beta - v @ beta

    objectives = [0.0, *(go_on(1.0) for _ in range(60)), go_on(np.inf)]
    assert (np.diff(objectives) <= 1e-15).all()
    assert objectives[1] < 0
    assert abs(beta.sum()) < 1e-13
    residual = v - kernel @ beta
    assert residual[beta < hi].max() - residual[beta > lo].min() < 1e-10


def test_each_of_two_groups_has_a_multiplier_and_a_sum_of_its_own():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(40, 12))
    kernel, v = rows @ rows.T, rng.normal(size=40)
    group = (np.arange(40) % 3 == 0).astype(np.int8)
    point = Point(np.zeros(40), v.copy(), np.full(40, -0.05), np.full(40, 0.05), group, 2)
    settle(kernel, point, Room.of(40, 2), 1e-12, 12, np.inf)
    residual = v - kernel @ point.beta
    for g in (0, 1):
        mine, beta = residual[group == g], point.beta[group == g]
        assert abs(beta.sum()) < 1e-13
        assert np.count_nonzero(np.abs(beta) < 0.05) > 0
        assert mine[beta < 0.05].max() - mine[beta > -0.05].min() < 1e-10
