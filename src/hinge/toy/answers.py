"""What the page gets back: a trained machine, one step of a solver, or a map of scores over C and γ.

Answers are a dictionary of small things and arrays of large ones; `packed` makes one message of both.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold

import hinge
from hinge import Gram, Kernel, Model, Report, Settings, Sizes, Solution, Status, lab
from hinge.arrays import Vector
from hinge.dual import formulations
from hinge.dual.problem import DualProblem
from hinge.kernel.base import KINDS
from hinge.runtime import clock
from hinge.selection import GridSearch
from hinge.toy.scene import KERNELS, MACHINES, Scene, SceneError, choice, number

# Fits that take longer than this, in seconds, are shown as far as they came.
_MOST_SECONDS = 2.0

# Points along each side of the drawn field, at most; the page asks for fewer while the mouse moves.
_FINEST = 200

# Steps that a solver is followed for.
_MOST_STEPS = 5000

# The map of scores: powers of ten and their number along each side, and folds of the cross-validation.
_MAP_C, _MAP_GAMMA, _MAP_SIDE, _MAP_FOLDS = (-2.0, 5.0), (-2.0, 3.0), 11, 5

# Working sets of the block method on the page: small, so that there is something to see.
_SMALL_SETS = Sizes(one_set=1, smallest_set=6, largest_set=6, cheap_subset=10**6, dear_subset=10**6)

#: How solvers are called on the page, and what they are in the laboratory.
SOLVERS = {
    "second order": "smo-second-order",
    "maximal violating pair": "smo-mvp",
    "maximum gain": "smo-mg",
    "hybrid maximum gain": "smo-hmg",
    "Platt's SMO": "platt",
    "block": "block",
}


@dataclass(frozen=True, eq=False)
class Answer:
    """Small things by name, and arrays in the order in which the page reads them."""

    head: dict[str, Any]
    arrays: tuple[Vector, ...] = ()

    def packed(self) -> bytes:
        """Return one message: the length of the head, the head as JSON, the arrays as float32."""
        head = json.dumps(self.head).encode()
        head += b" " * (-len(head) % 4)  # arrays of a page begin at multiples of their items' size
        body = b"".join(np.ascontiguousarray(array, dtype="<f4").tobytes() for array in self.arrays)
        return len(head).to_bytes(4, "little") + head + body


def answer(question: str, asked: Any) -> Answer:
    """Answer a question of the page.

    Parameters
    ----------
    question : {"about", "fit", "step", "map"}
        What is asked for.
    asked : dict
        ``scene``, and what the question needs besides; ``"about"`` needs nothing.

    Raises
    ------
    SceneError
        The question makes no sense; the message is for the person at the page.
    """
    if not isinstance(question, str) or question not in ("about", *_QUESTIONS):
        raise SceneError(f"nobody answers {question!r}")
    if not isinstance(asked, dict):
        raise SceneError("a question is an object with a scene")
    if question == "about":
        kernels = {name: {"formula": KINDS[name].formula, "uses": list(KINDS[name].uses)} for name in KERNELS}
        return Answer({"kernels": kernels, "solvers": list(SOLVERS)})
    scene = Scene.of(asked.get("scene"))
    if len(scene.points) < 2:
        raise SceneError("draw at least two points")
    if scene.is_classifier and len(np.unique(scene.labels)) < 2:
        raise SceneError("draw points of two classes: press 2, then click")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the page shows the status
        try:
            return _QUESTIONS[question](scene, asked)
        except SceneError:
            raise
        except ValueError as error:  # such as a ν that the classes do not allow
            raise SceneError(str(error)) from None


def _fit(scene: Scene, asked: dict[str, Any]) -> Answer:
    begun = clock.now()
    machine = getattr(hinge, scene.machine)(**scene.parameters, time_limit=_MOST_SECONDS)
    if len(np.unique(scene.labels)) > 2 and scene.is_classifier:
        machine.set_params(decision_function_shape="ovo")
    machine.fit(scene.X, scene.y)
    milliseconds = 1000.0 * (clock.now() - begun)
    report = machine.report_
    alphas = np.zeros(len(scene.points))
    alphas[machine.support_] = np.abs(machine.dual_coef_).sum(axis=0)
    head = {
        "classes": [int(label) for label in machine.classes_] if scene.is_classifier else [],
        "milliseconds": milliseconds, "solver": report.solver,
    }  # fmt: skip
    shows_values = scene.is_regression or len(head["classes"]) > 2
    own = machine.predict(scene.X) if scene.is_regression else machine.decision_function(scene.X)
    return _drawn(
        scene,
        asked,
        head | _told(scene, report),
        alphas,
        own,
        machine.predict if shows_values else machine.decision_function,
    )


def _step(scene: Scene, asked: dict[str, Any]) -> Answer:
    name = choice(asked, "solver", tuple(SOLVERS))
    steps = int(number(asked, "steps", 1, _MOST_STEPS))
    if scene.is_classifier and len(np.unique(scene.labels)) > 2:
        raise SceneError("solvers are followed on two classes; erase the others, or leave step mode")
    problem = _problem(scene)
    kernel = Kernel(scene.kernel, gamma=scene.gamma, coef0=scene.coef0, degree=scene.degree)
    gram = Gram(scene.X, kernel, precision="double")
    here = _after(name, problem, gram, scene.tol, steps)
    before = problem.start if steps == 1 else _after(name, problem, gram, scene.tol, steps - 1).beta
    n, levels = len(scene.points), here.multipliers
    unit = abs(levels[0] - levels[1]) / 2 if scene.machine == "NuSVC" else 1.0  # its margin is where |f| is this
    unit = unit if unit > 0 else 1.0
    coefficients = problem.coefficients(here.beta) / unit
    model = Model(kernel, scene.X, np.arange(n), coefficients[None, :], np.array([levels.mean() / unit]))
    # Others may change in their last digit, when a run that is cut short brings its sums in order.
    moved = np.flatnonzero(np.abs(here.beta - before) > 1e-9 * np.abs(here.beta).max()) % n
    head = {
        "classes": [int(label) for label in np.unique(scene.labels)] if scene.is_classifier else [],
        "pair": [int(place) for place in np.unique(moved)], "steps": steps, "solver": name,
        "is_over": here.report.status not in (Status.ITERATION_LIMIT, Status.INTERRUPTED),
    }  # fmt: skip

    def decide(X: Vector) -> Vector:
        return model.decide(X)[:, 0]

    return _drawn(scene, asked, head | _told(scene, here.report), np.abs(coefficients), decide(scene.X), decide)


def _problem(scene: Scene) -> DualProblem:
    """The dual problem of a scene of two classes, a regression or one class."""
    signs = np.where(scene.labels == scene.labels.max(initial=0), 1.0, -1.0)
    match scene.machine:
        case "SVC":
            return formulations.c_svc(signs, C=scene.C)
        case "NuSVC":
            return formulations.nu_svc(signs, nu=scene.nu)
        case "SVR":
            return formulations.epsilon_svr(scene.y, C=scene.C, epsilon=scene.epsilon)
        case "NuSVR":
            return formulations.nu_svr(scene.y, C=scene.C, nu=scene.nu)
    return formulations.one_class(len(scene.points), nu=scene.nu)


def _after(name: str, problem: DualProblem, gram: Gram, tol: float, steps: int) -> Solution:
    """Return where a solver is after a number of steps. It starts anew: a step takes microseconds."""
    if name == "block":
        settings = Settings(tol=tol, sizes=_SMALL_SETS, callback=lambda progress: progress.outer_steps >= steps)
    else:
        settings = Settings(tol=tol, max_iter=steps, shrinking=False)
    return lab.get(SOLVERS[name]).solve(problem, gram, settings).solution


def _map(scene: Scene, _: dict[str, Any]) -> Answer:
    if scene.machine not in ("SVC", "SVR"):
        raise SceneError("the map shows C and gamma: choose SVC or SVR")
    if scene.kernel == "linear":
        raise SceneError("the map shows C and gamma: choose a kernel that has a gamma")
    fewest = (
        int(np.bincount(scene.labels)[np.unique(scene.labels)].min()) if scene.is_classifier else len(scene.points)
    )
    if fewest < 2:
        raise SceneError("the map needs two points of every class")
    folds = min(_MAP_FOLDS, fewest)
    dealt = (StratifiedKFold if scene.is_classifier else KFold)(folds, shuffle=True, random_state=0)
    costs, gammas = np.logspace(*_MAP_C, _MAP_SIDE), np.logspace(*_MAP_GAMMA, _MAP_SIDE)
    machine = getattr(hinge, scene.machine)(**scene.parameters)
    grid = {"C": list(costs), "gamma": list(gammas)}
    search = GridSearch(machine, grid, cv=dealt, refit=False, n_jobs=1)
    begun = clock.now()
    search.fit(scene.X, scene.y)
    scores = np.empty((_MAP_SIDE, _MAP_SIDE))
    for parameters, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        scores[grid["C"].index(parameters["C"]), grid["gamma"].index(parameters["gamma"])] = score
    head = {
        "C": list(costs), "gamma": list(gammas), "folds": folds, "seconds": clock.now() - begun,
        "score": "accuracy" if scene.is_classifier else "R²",
    }  # fmt: skip
    return Answer(head, (scores,))


_QUESTIONS: dict[str, Callable[[Scene, dict[str, Any]], Answer]] = {"fit": _fit, "step": _step, "map": _map}


def _told(scene: Scene, report: Report) -> dict[str, Any]:
    """What a report says, as JSON can hold it."""
    values = {
        "violation": report.violation, "tolerance": scene.tol, "gap": report.gap, "objective": report.objective,
    }  # fmt: skip
    told: dict[str, Any] = {
        name: float(value) if value is not None and np.isfinite(value) else None for name, value in values.items()
    }
    return told | {"status": str(report.status), "message": report.message, "iterations": int(report.iterations)}


def _drawn(
    scene: Scene,
    asked: dict[str, Any],
    head: dict[str, Any],
    alphas: Vector,
    own: Vector,
    decide: Callable[[Vector], Vector],
) -> Answer:
    """Put together what every picture has: strengths and slacks of the points, and the field behind them."""
    view = [number(asked, name, -20.0, 20.0) for name in ("left", "right", "bottom", "top")]
    side = int(number(asked, "side", 2, _FINEST))
    if not (view[0] < view[1] and view[2] < view[3]):
        raise SceneError("the view is empty")
    across = np.linspace(view[0], view[1], side)
    if scene.is_regression:
        field = decide(across[:, None])
    else:
        x, y = np.meshgrid(across, np.linspace(view[2], view[3], side))
        field = decide(np.column_stack([x.ravel(), y.ravel()]))
    head |= {"side": side, "n_support": int(np.count_nonzero(alphas)), "tube": _tube(scene, alphas, own)}
    return Answer(head, (alphas, _slacks(scene, head["classes"], own, head["tube"]), field))


def _tube(scene: Scene, alphas: Vector, own: Vector) -> float | None:
    """Half of the width of a regression's tube. ν-SVR chooses it: free support vectors are on its edge."""
    if not scene.is_regression:
        return None
    if scene.machine == "SVR":
        return scene.epsilon
    is_free = (alphas > 0) & (alphas < (1 - 1e-9) * scene.C)
    distances = np.abs(scene.points[:, 1] - own)
    return float(np.median(distances[is_free])) if is_free.any() else None


def warm_up() -> None:
    """Compile what the page will ask for, so that nobody waits while a point is dragged."""
    points = [[0.1 * k, (0.3 * k) % 1.0, k % 2] for k in range(8)]
    view = {"left": 0, "right": 1, "bottom": 0, "top": 1, "side": 8}
    numbers = {"C": 1, "gamma": 1, "coef0": 0, "nu": 0.5, "epsilon": 0.1, "tol": 1e-3, "degree": 3}
    for machine in MACHINES:
        scene = {"machine": machine, "kernel": "rbf", "points": points, **numbers}
        answer("fit", {"scene": scene, **view})
    for solver in SOLVERS:
        answer(
            "step",
            {
                "scene": {"machine": "SVC", "kernel": "rbf", "points": points, **numbers},
                "solver": solver,
                "steps": 1,
                **view,
            },
        )


def _slacks(scene: Scene, classes: list[int], own: Vector, tube: float | None) -> Vector:
    """Return by how much each point is on the wrong side of its margin; 0 where it is not."""
    if scene.is_regression:
        return np.maximum(np.abs(scene.points[:, 1] - own) - (tube or 0.0), 0.0)
    if not scene.is_classifier:
        return np.maximum(-own, 0.0)
    if own.ndim == 1:
        return np.maximum(1.0 - np.where(scene.labels == classes[-1], own, -own), 0.0)
    slacks, column = np.zeros(len(own)), 0
    for place, first in enumerate(classes):
        for second in classes[place + 1 :]:
            for label, sign in ((first, 1.0), (second, -1.0)):
                mine = scene.labels == label
                slacks[mine] = np.maximum(slacks[mine], 1.0 - sign * own[mine, column])
            column += 1
    return slacks
