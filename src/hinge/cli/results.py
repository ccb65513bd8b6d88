"""The lines that LIBSVM's tools print about their results; scripts parse them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.arrays import Vector
from hinge.cli.machines import ModelPlan, Shared, Training
from hinge.io.models.libsvm_model import LibsvmModel
from hinge.training.machine import half_margin

# Iterations for each dot, or the number of samples where that is less.
_DOT = 1000


def plan_lines(plan: ModelPlan, model: LibsvmModel, run: Shared) -> list[str]:
    """Return what ``svm-train`` prints while it trains one model."""
    lines = []
    is_classifier = model.is_classifier
    if is_classifier and model.n_classes == 1:
        lines.append("WARNING: training data in only one class. See README for details.")
    for k, training in enumerate(plan.trainings):
        for held_out in plan.held_out[k] if plan.held_out else []:
            if isinstance(held_out.training, Training):
                lines += training_lines(held_out.training, run)
                if is_classifier:
                    lines.append(f"Total nSV = {np.count_nonzero(held_out.training.machine.coefficients)}")
        if model.is_regression and model.prob_a is not None:
            lines += noise_lines(float(model.prob_a[0]), "sigma= ")
        lines += training_lines(training, run)
    if is_classifier:
        lines.append(f"Total nSV = {model.coefficients.shape[1]}")
    return lines


def noise_lines(sigma: float, name: str) -> list[str]:
    """Return what is said of a regression's noise."""
    return [
        "Prob. model for test data: target value = predicted value + z,",
        f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),{name}{sigma:g}",
    ]


def training_lines(training: Training, run: Shared) -> list[str]:
    """Return the lines about one machine: progress, iterations, objective, rho, support vectors."""
    machine, problem = training.machine, training.task.problem
    solution, n = machine.solution, problem.n_samples
    svm_type = run.parameters.svm_type
    dots = "." * (solution.report.iterations // min(max(n, 1), _DOT))
    lines = [f"{dots}*", f"optimization finished, #iter = {solution.report.iterations}"]
    total = float(np.abs(machine.coefficients).sum())
    scale = 1.0
    if svm_type == "svdd":
        square = -2.0 * (solution.report.objective + float(solution.beta @ solution.residual))
        lines.append(f"R^2 = {machine.intercept + square:f}")
    elif svm_type == "nu_svc":
        half_width = half_margin(solution)
        scale = half_width if half_width > 0 else 1.0
        lines.append(f"C = {1 / scale:f}")
    elif problem.ridge is not None:
        pass  # coefficients without an upper bound are no share of it
    elif svm_type == "epsilon_svr" or (svm_type == "c_svc" and training.costs[0] == training.costs[1]):
        lines.append(f"nu = {total / (training.costs[0] * n) if training.costs[0] else 0.0:f}")
    elif svm_type == "nu_svr":
        upper, lower = solution.multipliers
        lines.append(f"epsilon = {float(upper - lower) / 2:f}")
    beta = solution.beta
    at_bound = (beta != 0) & ((beta == problem.lo) | (beta == problem.hi))
    n_bounded = int(np.count_nonzero(at_bound.reshape(-1, n).any(axis=0) & (machine.coefficients != 0)))
    lines.append(f"obj = {solution.report.objective / scale**2:f}, rho = {0.0 - machine.intercept:f}")
    lines.append(f"nSV = {np.count_nonzero(machine.coefficients)}, nBSV = {n_bounded}")
    return lines


def cross_validation_lines(is_regression: bool, y: Vector, predicted: Vector) -> tuple[list[str], dict[str, Any]]:
    """Return what ``svm-train -v`` prints, and the same as figures."""
    if is_regression:
        error, r2 = regression_scores(y, predicted)
        lines = [
            f"Cross Validation Mean squared error = {error:g}",
            f"Cross Validation Squared correlation coefficient = {r2:g}",
        ]
        return lines, {"cv_mean_squared_error": error, "cv_squared_correlation": r2}
    accuracy = 100.0 * int(np.count_nonzero(y == predicted)) / len(y)
    return [f"Cross Validation Accuracy = {accuracy:g}%"], {"cv_accuracy": accuracy}


def prediction_lines(is_regression: bool, y: Vector, predicted: Vector) -> list[str]:
    """Return what ``svm-predict`` prints at its end."""
    n = len(y)
    if is_regression:
        error, r2 = regression_scores(y, predicted)
        return [
            f"Mean squared error = {error:g} (regression)",
            f"Squared correlation coefficient = {r2:g} (regression)",
        ]
    n_right = int(np.count_nonzero(y == predicted))
    share = n_right / n * 100 if n else float("nan")
    return [f"Accuracy = {share:g}% ({n_right}/{n}) (classification)"]


def prediction_scores(is_regression: bool, y: Vector, predicted: Vector) -> dict[str, float]:
    """Return the same as figures."""
    if is_regression:
        error, r2 = regression_scores(y, predicted)
        return {"mean_squared_error": error, "squared_correlation": r2}
    return {"accuracy": 100.0 * int(np.count_nonzero(y == predicted)) / len(y) if len(y) else float("nan")}


def regression_scores(y: Vector, predicted: Vector) -> tuple[float, float]:
    """Return the mean squared error and r², by LIBSVM's sums."""
    n = len(y)
    v, w = predicted, y
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.float64(((v - w) ** 2).sum()) / n
        top = (n * (v * w).sum() - v.sum() * w.sum()) ** 2
        r2 = np.float64(top) / ((n * (v**2).sum() - v.sum() ** 2) * (n * (w**2).sum() - w.sum() ** 2))
    return float(error), float(r2)
