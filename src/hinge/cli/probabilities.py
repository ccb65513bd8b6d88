"""Probabilities in LIBSVM's way: how a model is calibrated, and how it is asked."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from hinge.arrays import Vector
from hinge.cli.machines import HeldOut, ModelPlan, Shared, Training
from hinge.io.models.libsvm_model import LibsvmModel
from hinge.training.multiclass import count_votes
from hinge.training.probability import (
    LEAST_NORMAL,
    N_MARKS,
    coupling_matrix,
    density_marks,
    fit_sigmoid,
    laplace_scale,
    sigmoid,
)

# Coupling stops at this accuracy, divided by the number of classes.
_COUPLING_TOLERANCE = 0.005
_LEAST_ITERATIONS = 100


def calibrated(model: LibsvmModel, plan: ModelPlan, run: Shared) -> LibsvmModel:
    """Return the model with what ``-b 1`` adds to it."""
    if not run.parameters.probability:
        return model
    if model.is_classifier:
        sigmoids = [
            fit_sigmoid(_decisions(parts, len(signs), run), signs > 0, np.ones(len(signs)))
            for signs, parts in zip(plan.signs, plan.held_out, strict=True)
        ]
        table = np.array(sigmoids, np.float64).reshape(len(sigmoids), 2)
        return replace(model, prob_a=table[:, 0].copy(), prob_b=table[:, 1].copy())
    if model.is_regression:
        decisions = _decisions(plan.held_out[0], len(plan.samples), run)
        residuals = run.y[plan.samples] - decisions
        return replace(model, prob_a=np.array([laplace_scale(residuals, np.ones(len(residuals)))]))
    return replace(model, density_marks=_marks(plan, run))


def _decisions(parts: list[HeldOut], n: int, run: Shared) -> Vector:
    decisions = np.empty(n)
    for part in parts:
        if isinstance(part.training, Training):
            decisions[part.at] = run.decide([part.training.machine], part.queries)[:, 0]
        else:
            decisions[part.at] = part.training
    return decisions


def _marks(plan: ModelPlan, run: Shared) -> Vector | None:
    decisions = run.decide(plan.machines, plan.samples)[:, 0]
    n_low = np.count_nonzero(decisions < 0)
    half = N_MARKS // 2
    if min(n_low, len(decisions) - n_low) < half:
        print(
            f"WARNING: number of positive or negative decision values <{half}; too few to do a probability "
            "estimation.",
            file=sys.stderr,
        )
        return None
    marks = density_marks(decisions)
    return (marks[:-1] + marks[1:]) / 2


# ---------------------------------------------------------------------- asking a model


def class_probabilities(model: LibsvmModel, decisions: Vector) -> Vector:
    """Return the probability of every class in the order of the model's labels, one row per sample."""
    assert model.prob_a is not None
    assert model.prob_b is not None
    if model.n_classes == 1:
        return np.ones((len(decisions), 1))
    first = sigmoid(decisions, model.prob_a, model.prob_b)
    if model.n_classes == 2:
        return np.column_stack([first[:, 0], 1 - first[:, 0]])
    return couple_by_iteration(first, model.n_classes)


def couple_by_iteration(pairwise: Vector, k: int) -> Vector:
    """Combine the probabilities of all pairs as LIBSVM does, down to its stopping rule.

    The second method of Wu, Lin & Weng (2004), algorithm 2: one probability after the other is set to its best
    value, until p satisfies the optimality conditions to 0.005 / k. The exact solution (`probability.couple`)
    differs in the third digit; a command that replaces LIBSVM's must not. Both take and return the same.
    """
    n = len(pairwise)
    Q = coupling_matrix(pairwise, k)
    p = np.full((n, k), 1.0 / k)
    active = np.arange(n)
    for _ in range(max(_LEAST_ITERATIONS, k)):
        Qp = np.einsum("nij,nj->ni", Q[active], p[active])
        pQp = np.einsum("ni,ni->n", p[active], Qp)
        far = np.abs(Qp - pQp[:, None]).max(axis=1) >= _COUPLING_TOLERANCE / k
        active, Qp, pQp = active[far], Qp[far], pQp[far]
        if len(active) == 0:
            break
        p[active] = _coupling_round(Q[active], p[active], Qp, pQp)
    return p


def _coupling_round(Q: Vector, p: Vector, Qp: Vector, pQp: Vector) -> Vector:
    """Set every probability once, keeping Qp and pᵀQp up to date."""
    for t in range(p.shape[1]):
        step = (pQp - Qp[:, t]) / Q[:, t, t]
        p[:, t] += step
        pQp = (pQp + step * (step * Q[:, t, t] + 2 * Qp[:, t])) / (1 + step) ** 2
        Qp = (Qp + step[:, None] * Q[:, t]) / (1 + step)[:, None]
        p /= (1 + step)[:, None]
    return p


def normal_probability(marks: Vector, decisions: Vector) -> Vector:
    """Return P(normal) of one class by LIBSVM's table of density marks."""
    levels = np.clip(np.searchsorted(marks, decisions, side="right"), 1, N_MARKS - 1) / N_MARKS
    return np.where(decisions < marks[0], LEAST_NORMAL, np.where(decisions > marks[-1], 1 - LEAST_NORMAL, levels))


def predict(model: LibsvmModel, decisions: Vector, with_probabilities: bool = False) -> Vector:
    """Return label or value of samples from their decision values (LIBSVM's ``svm_predict``)."""
    if model.is_regression:
        return decisions[:, 0]
    if model.is_novelty:
        return np.where(decisions[:, 0] > 0, 1.0, -1.0)
    assert model.labels is not None
    if with_probabilities:
        codes = np.argmax(class_probabilities(model, decisions), axis=1)
    else:
        codes = np.argmax(count_votes(decisions, model.n_classes), axis=1)  # of several, the first
    return model.labels[codes].astype(np.float64)
