"""What the toy's page is told is what the library says."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_score
from visitor import scene_of

import hinge
from hinge.toy.answers import SOLVERS
from hinge.toy.scene import KERNELS

GRID = np.stack(np.meshgrid(np.linspace(0, 1, 16), np.linspace(0, 1, 16)), axis=-1).reshape(-1, 2)


def parts(numbers, n):
    return numbers[:n], numbers[n : 2 * n], numbers[2 * n :]


@pytest.mark.parametrize("kernel", KERNELS)
def test_two_classes(toy, kernel):
    scene = scene_of(kernel=kernel, gamma=2.0, coef0=0.5)
    head, numbers = toy.ask("fit", scene=scene)
    points = np.array(scene["points"])
    machine = hinge.SVC(C=10, kernel=kernel, gamma=2.0, coef0=0.5).fit(points[:, :2], points[:, 2])
    alphas, slacks, field = parts(numbers, len(points))
    np.testing.assert_allclose(field, machine.decision_function(GRID), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(np.flatnonzero(alphas), np.sort(machine.support_))
    own = machine.decision_function(points[:, :2]) * np.where(points[:, 2] == 1, 1, -1)
    np.testing.assert_allclose(slacks, np.maximum(1 - own, 0), atol=1e-4)
    assert head["status"] == "converged"
    assert head["violation"] <= head["tolerance"] == 1e-3


def test_many_classes(toy):
    scene = scene_of(n=40, n_classes=4)
    head, numbers = toy.ask("fit", scene=scene)
    points = np.array(scene["points"])
    machine = hinge.SVC(C=10, gamma=5, decision_function_shape="ovo").fit(points[:, :2], points[:, 2])
    _, slacks, field = parts(numbers, len(points))
    np.testing.assert_array_equal(field, machine.predict(GRID))
    assert head["classes"] == [0, 1, 2, 3]
    # A point that every one of its pairs classifies with a margin has no slack, and one that is wrong has some.
    wrong = machine.predict(points[:, :2]) != points[:, 2]
    assert (slacks[wrong] > 0).all()
    assert (slacks == 0).any()


@pytest.mark.parametrize("machine", ["SVR", "NuSVR"])
def test_regression(toy, machine):
    scene = scene_of(machine)
    head, numbers = toy.ask("fit", scene=scene)
    points = np.array(scene["points"])
    settings = {"epsilon": 0.1} if machine == "SVR" else {"nu": 0.3}
    fitted = getattr(hinge, machine)(C=10, gamma=5, **settings).fit(points[:, :1], points[:, 1])
    alphas, slacks, curve = parts(numbers, len(points))
    np.testing.assert_allclose(curve, fitted.predict(np.linspace(0, 1, 16)[:, None]), atol=1e-4)
    distance = np.abs(points[:, 1] - fitted.predict(points[:, :1]))
    np.testing.assert_allclose(slacks, np.maximum(distance - head["tube"], 0), atol=1e-4)
    assert (distance[alphas == 0] <= head["tube"] + 1e-2).all()


def test_one_class(toy):
    scene = scene_of("OneClassSVM")
    _, numbers = toy.ask("fit", scene=scene)
    points = np.array(scene["points"])[:, :2]
    machine = hinge.OneClassSVM(nu=0.3, gamma=5).fit(points)
    np.testing.assert_allclose(numbers[60:], machine.decision_function(GRID), atol=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("machine", ["SVC", "NuSVC", "SVR", "OneClassSVM"])
def test_a_solver_goes_step_by_step_to_the_same_end(toy, solver, machine):
    if (solver, machine) == ("Platt's SMO", "NuSVC"):
        assert "two groups" in toy.refused("step", scene=scene_of(machine), solver=solver, steps=1)
        return
    scene = scene_of(machine, n=10, C=2)
    _, optimum = toy.ask("fit", scene=scene)
    objectives, steps = [], 0
    while True:
        steps += 1
        head, numbers = toy.ask("step", scene=scene, solver=solver, steps=steps)
        objectives.append(head["objective"])
        if head["is_over"]:
            break
        assert head["pair"], steps
        assert len(head["pair"]) <= (6 if solver == "block" else 2)
        assert steps < 2000
    assert (np.diff(objectives) <= 1e-9).all()
    assert head["status"] == "converged"
    np.testing.assert_allclose(numbers[20:], optimum[20:], atol=0.05)


def test_a_step_moves_what_it_says(toy):
    scene = scene_of(n=20)
    before = np.zeros(20)
    for steps in range(1, 8):
        head, numbers = toy.ask("step", scene=scene, solver="second order", steps=steps)
        moved = np.flatnonzero(np.abs(numbers[:20] - before) > 1e-6)
        assert set(moved) <= set(head["pair"])
        before = numbers[:20].copy()


def test_the_map_is_a_cross_validation(toy):
    scene = scene_of(n=40)
    head, scores = toy.ask("map", scene=scene)
    assert head["score"] == "accuracy"
    table = scores.reshape(len(head["C"]), len(head["gamma"]))
    points = np.array(scene["points"])
    dealt = StratifiedKFold(head["folds"], shuffle=True, random_state=0)
    for row, column in ((2, 5), (6, 6), (9, 3)):
        machine = hinge.SVC(C=head["C"][row], gamma=head["gamma"][column])
        expected = cross_val_score(machine, points[:, :2], points[:, 2], cv=dealt).mean()
        assert table[row, column] == pytest.approx(expected, abs=0.026)  # a sample on the boundary


@pytest.mark.parametrize(
    ("question", "changes", "sentence"),
    [
        ("fit", {"scene": scene_of(n=1)}, "at least two points"),
        ("fit", {"scene": scene_of(n=4, n_classes=1)}, "two classes"),
        ("fit", {"scene": scene_of(C=0)}, "C must be between"),
        ("fit", {"scene": scene_of(C="10")}, "C must be a number, got '10'"),
        ("fit", {"scene": scene_of(gamma=True)}, "gamma must be a number"),
        ("fit", {"scene": scene_of(kernel="precomputed")}, "kernel must be one of"),
        ("fit", {"scene": scene_of(machine="__class__")}, "machine must be one of"),
        ("fit", {"scene": scene_of(degree=2.5)}, "degree must be a whole number"),
        ("fit", {"scene": scene_of(points=[[0, 0, 0]] * 501)}, "at most 500 points"),
        ("fit", {"scene": scene_of(points=[[0, 0], [1, 1]])}, "point 0 must be"),
        ("fit", {"scene": scene_of(points=[[0, 0, 0], [1, 1e30, 1]])}, "point 1: y must be between"),
        ("fit", {"scene": scene_of(points=[[0, 0, 0.5], [1, 1, 1]])}, "whole numbers"),
        ("fit", {"scene": scene_of(colour="red")}, "no 'colour'"),
        ("fit", {"scene": None}, "a scene is an object"),
        ("fit", {"scene": scene_of(), "side": 10**6}, "side must be between"),
        ("fit", {"scene": scene_of(), "left": 1, "right": 0}, "view is empty"),
        ("fit", {"scene": scene_of("NuSVC", points=[[0, 0, 0], *([[1, 0, 1]] * 9)], nu=0.9)}, "nu"),
        ("step", {"scene": scene_of(n_classes=3), "solver": "block", "steps": 1}, "two classes"),
        ("step", {"scene": scene_of(), "solver": "guess", "steps": 1}, "solver must be one of"),
        ("step", {"scene": scene_of(), "solver": "block", "steps": 10**9}, "steps must be between"),
        ("map", {"scene": scene_of("OneClassSVM")}, "choose SVC or SVR"),
        ("map", {"scene": scene_of(kernel="linear")}, "a kernel that has a gamma"),
        ("map", {"scene": scene_of(points=[[0, 0, 0], [1, 1, 1], [1, 0, 1]])}, "two points of every class"),
        ("riddle", {"scene": scene_of()}, "nobody answers"),
    ],
)  # fmt: skip
def test_nonsense_gets_a_sentence(toy, question, changes, sentence):
    assert sentence in toy.refused(question, **changes)
