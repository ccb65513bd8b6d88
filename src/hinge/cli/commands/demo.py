"""``hinge demo``: the whole journey in a few seconds, on data that ships with scikit-learn."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hinge import SVC, Certificate, Gram, Kernel, certificate
from hinge.dual.formulations import c_svc
from hinge.runtime import clock

# Reading compiled code from the disk takes less than this, compiling it more.
_READING_SECONDS = 1.0


def run(arguments: Sequence[str]) -> int:
    """Train, cross-validate and report; return the exit code."""
    parser = argparse.ArgumentParser("hinge demo", description=__doc__)
    parser.parse_args(list(arguments))
    console = Console()
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    console.print(f"Breast cancer: {X.shape[0]} samples, {X.shape[1]} features, two classes")

    machine = make_pipeline(StandardScaler(), SVC(C=1.0, kernel="rbf"))
    compiled_before = clock.compiled_seconds()
    machine.fit(X_train, y_train)
    compile_seconds = clock.compiled_seconds() - compiled_before
    seconds = _seconds_to_fit(machine, X_train, y_train)
    scores = cross_val_score(machine, X, y, cv=5)
    _show(console, machine, machine.score(X_test, y_test), scores, (seconds, compile_seconds))
    _show_certificate(console, _certify(machine, X_train, y_train))
    return 0 if machine[-1].report_.converged else 1


def _seconds_to_fit(machine: Any, X: np.ndarray, y: np.ndarray) -> float:
    started = clock.now()
    machine.fit(X, y)
    return clock.now() - started


def _certify(machine: Any, X: np.ndarray, y: np.ndarray) -> Certificate:
    """Recompute everything in double precision from the dual coefficients alone."""
    svc = machine[-1]
    scaled = machine[:-1].transform(X)
    beta = np.zeros(len(y))
    beta[svc.support_] = svc.dual_coef_[0]
    gram = Gram(scaled, Kernel("rbf", gamma=1 / (scaled.shape[1] * scaled.var())))
    return certificate(c_svc(np.where(y == svc.classes_[1], 1, -1), C=svc.C), gram, beta)


def _show(
    console: Console, machine: Any, accuracy: float, scores: np.ndarray, seconds: tuple[float, float]
) -> None:
    report, (training, compiling) = machine[-1].report_, seconds
    table = Table(title="SVC(C=1, kernel='rbf') on standardised features", show_header=False, min_width=64)
    table.add_row("status", f"{report.status}: {report.message}")
    table.add_row("test accuracy", f"{accuracy:.1%}")
    table.add_row("5-fold cross-validation", f"{scores.mean():.1%} ± {scores.std():.1%}")
    table.add_row("support vectors", f"{report.n_support}, {report.n_bounded} of them at their bound")
    table.add_row("pair steps", f"{report.iterations}")
    table.add_row("kernel evaluations", f"{report.kernel_evaluations:,}")
    table.add_row("training time", f"{training:.3f} s")
    if compiling > _READING_SECONDS:
        table.add_row("compiling", f"{compiling:.1f} s, once on this computer")
    else:
        table.add_row("compiling", "none: this computer has the code from an earlier run")
    console.print(table)


def _show_certificate(console: Console, cert: Certificate) -> None:
    table = Table(title="certificate, recomputed in double precision", show_header=False, min_width=64)
    table.add_row("outside the box", f"{cert.box_error:g}")
    table.add_row("error of the sum", f"{cert.sum_error:.1e}")
    table.add_row("violation", f"{cert.violation:.1e}   (tolerance 1.0e-03)")
    table.add_row("dual ≤ optimum ≤ primal", f"{cert.dual:.6f} ≤ … ≤ {cert.primal:.6f}")
    console.print(table)
