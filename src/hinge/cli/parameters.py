"""The parameters of ``hinge train``, checked as LIBSVM checks them and in its words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hinge.cli.options import Parsed
from hinge.io.models.libsvm_model import KERNEL_TYPES, MOST_DEGREE, SVM_TYPES, OfType, SvmType
from hinge.kernel.kernels import Kernel, kind_of
from hinge.settings import Settings

_MEGABYTE = 2**20

_SIGMOID = list(KERNEL_TYPES.values()).index("sigmoid")

# Folds end well within the tolerance, so that a rate depends neither on where they were started nor on the solver.
_SHARPER = 0.01


@dataclass(frozen=True)
class Parameters(OfType):
    """What to train, and how. The names are those of the long options.

    Attributes
    ----------
    type_number, kernel_number : int
        LIBSVM's numbers of the type of machine and of the kernel.
    degree, gamma, coef0 : int, float, float
        Parameters of the kernel; gamma None for the default.
    cost, nu, epsilon : float
        Parameters of the machine.
    cache, tolerance, shrinking, probability : float or None, float, int, int
        How to train it.
    weights : tuple of (int, float)
        Factors of the cost of classes.
    loss : str
        Whether the loss is "plain" or "squared".
    solver, rule, gap_tol, threads : str, str, float or None, int or None
        Method, its working-set rule, the duality gap that suffices, number of threads.
    """

    type_number: int
    kernel_number: int
    degree: int
    gamma: float | None
    coef0: float
    cost: float
    nu: float
    epsilon: float
    cache: float | None
    tolerance: float
    shrinking: int
    probability: int
    weights: tuple[tuple[int, float], ...]
    loss: str
    solver: Any
    rule: str
    gap_tol: float | None
    threads: int | None

    @classmethod
    def of(cls, parsed: Parsed) -> Parameters:
        """Take them from a command line."""
        same = ("degree", "gamma", "coef0", "cost", "nu", "epsilon", "cache", "tolerance", "shrinking",
                "probability", "loss", "solver", "rule", "threads")  # fmt: skip
        chosen = {name: parsed[name] for name in same}
        return cls(parsed["type"], parsed["kernel"], weights=parsed.weights, gap_tol=parsed["gap-tol"], **chosen)

    @property
    def svm_type(self) -> SvmType:
        """LIBSVM's name of the type of machine."""
        return SVM_TYPES[self.type_number]

    @property
    def is_squared(self) -> bool:
        """Whether errors cost their square."""
        return self.loss == "squared"

    @property
    def validation_tolerance(self) -> float:
        """Tolerance of the folds of a cross-validation."""
        return _SHARPER * self.tolerance

    @property
    def cache_bytes(self) -> int | None:
        """Budget of kernel values; None for the default."""
        return None if self.cache is None else max(int(self.cache * _MEGABYTE), 1)

    def kernel(self, max_index: int) -> Kernel:
        """Return the kernel; gamma defaults to 1 / (largest index)."""
        name = list(KERNEL_TYPES.values())[self.kernel_number]
        gamma = self.gamma or (1.0 / max_index if max_index > 0 else 0.0)
        given: dict[str, Any] = {"gamma": gamma, "coef0": self.coef0, "degree": self.degree}
        return Kernel(name, **{key: given[key] for key in kind_of(name).uses})

    def complaint(self, labels: NDArray[np.int64]) -> str | None:
        """Return LIBSVM's message about what is wrong with them, if anything is (``svm_check_parameter``)."""
        if not 0 <= self.type_number < len(SVM_TYPES):
            return "unknown svm type"
        if not 0 <= self.kernel_number < len(KERNEL_TYPES):
            return "unknown kernel type"
        uses = kind_of(list(KERNEL_TYPES.values())[self.kernel_number]).uses
        uses_cost = self.svm_type in ("c_svc", "epsilon_svr", "nu_svr", "ranking")
        uses_nu = self.svm_type in ("nu_svc", "one_class", "nu_svr", "svdd")
        checks = (
            ("gamma" in uses and (self.gamma or 0.0) < 0, "gamma < 0"),
            ("degree" in uses and self.degree < 0, "degree of polynomial kernel < 0"),
            (self.cache is not None and self.cache <= 0, "cache_size <= 0"),
            (self.tolerance <= 0, "eps <= 0"),
            (uses_cost and self.cost <= 0, "C <= 0"),
            (uses_nu and not 0 < self.nu <= 1, "nu <= 0 or nu > 1"),
            (self.svm_type == "epsilon_svr" and self.epsilon < 0, "p < 0"),
            (self.shrinking not in (0, 1), "shrinking != 0 and shrinking != 1"),
            (self.probability not in (0, 1), "probability != 0 and probability != 1"),
            (self.svm_type == "nu_svc" and not _is_feasible(self.nu, labels), "specified nu is infeasible"),
            (
                self.is_squared and self.svm_type not in ("c_svc", "epsilon_svr"),
                "--loss squared is for C-SVC (-s 0) and epsilon-SVR (-s 3)",
            ),
            (self.is_squared and self.solver == "smo", "--loss squared needs --solver block or auto"),
            (self.rule != Settings.rule and self.solver != "smo", f"--rule {self.rule} needs --solver smo"),
            (
                self.svm_type == "svdd"
                and kind_of(list(KERNEL_TYPES.values())[self.kernel_number]).is_precomputed,
                "SVDD needs K(x,x), which rows of a precomputed kernel do not hold",
            ),
            (
                self.svm_type == "ranking" and (bool(self.probability) or self.kernel_number == _SIGMOID),
                "ranking has no probabilities, and needs a positive semi-definite kernel",
            ),
            # LIBSVM goes on in these cases.
            ("degree" in uses and self.degree > MOST_DEGREE, f"degree of polynomial kernel > {MOST_DEGREE}"),
            (self.is_classifier and any(weight < 0 for _, weight in self.weights), "weight < 0"),
        )
        return next((message for is_wrong, message in checks if is_wrong), None)


def _is_feasible(nu: float, labels: NDArray[np.int64]) -> bool:
    """Whether every pair of classes has enough samples of both for ν."""
    counts = np.unique(labels, return_counts=True)[1].tolist()
    return all(nu * (a + b) / 2 <= min(a, b) for a, b in combinations(counts, 2))
