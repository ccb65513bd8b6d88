"""LIBSVM, through the PyPI package ``libsvm-official``, as a second opinion on every formulation."""

from dataclasses import dataclass

import numpy as np
from libsvm import svmutil

TYPES = {"c_svc": 0, "nu_svc": 1, "one_class": 2, "epsilon_svr": 3, "nu_svr": 4}
KERNELS = {"linear": 0, "poly": 1, "rbf": 2, "sigmoid": 3, "precomputed": 4}


@dataclass(frozen=True)
class Peer:
    """What LIBSVM found, in this project's signs: decisions are ``K @ coef + intercept``."""

    coef: np.ndarray
    intercept: float
    objective: float


def train(formulation, X, y, kernel, K, *, C=1.0, nu=0.5, epsilon=0.1, gamma=1.0, coef0=0.0, degree=3, eps=1e-8):
    """Train LIBSVM on rows (on ``K`` itself when the kernel is precomputed).

    The objective is recomputed in float64 from the coefficients and ``K``: LIBSVM only prints its own, and
    its rows of the kernel matrix are float32.
    """
    y = np.asarray(y, dtype=float)
    n = len(y)
    rows = np.column_stack([np.arange(1, n + 1), K]) if kernel == "precomputed" else np.asarray(X, dtype=float)
    options = {
        "-s": TYPES[formulation], "-t": KERNELS[kernel], "-d": degree, "-g": gamma, "-r": coef0,
        "-c": C, "-n": nu, "-p": epsilon, "-e": eps, "-m": 100,
    }  # fmt: skip
    model = svmutil.svm_train(y, rows, " ".join(f"{k} {v!r}" for k, v in options.items()) + " -q")
    coef = np.zeros(n)
    coef[np.array(model.get_sv_indices(), dtype=int) - 1] = [c[0] for c in model.get_sv_coef()]
    scale = nu * n / np.abs(coef).sum() if formulation == "nu_svc" else 1.0
    return Peer(coef, -model.rho[0], _objective(formulation, scale * coef, y, K, epsilon))


def _objective(formulation, coef, y, K, epsilon):
    quadratic = 0.5 * coef @ K @ coef
    if formulation in ("nu_svc", "one_class"):
        return float(quadratic)
    loss = epsilon * np.abs(coef).sum() if formulation == "epsilon_svr" else 0.0
    return float(quadratic - y @ coef + loss)
