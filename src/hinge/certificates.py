"""A certificate: everything that can be said of β, recomputed from β alone, with a bound on its own rounding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any, Self

import numpy as np

from hinge.arrays import Vector
from hinge.dual.optimality import gap_of, most_violation_of, multipliers_of, objective_of, violation_of
from hinge.dual.problem import DualProblem
from hinge.dual.residuals import exact_residual
from hinge.kernel.gram import Gram

# Residuals are computed so that their rounding error is far below this, relative to the targets.
_WANTED = 1e-6


@dataclass(frozen=True, eq=False)
class Certificate:
    """What β proves.

    Attributes
    ----------
    box_error : float
        Largest distance outside the box; 0 for an exact solver.
    sum_error : float
        Largest deviation of a group's sum.
    violation : float
        Largest violation of the optimality conditions.
    rounding : float
        Bound on how much larger the true violation may be: kernel values and their sums are rounded.
    objective : float
        ½ βᵀKβ − vᵀβ, the value that is minimised (LIBSVM's ``obj``).
    dual, primal : float
        −objective, and the primal objective at the multipliers: dual ≤ optimum ≤ primal.
    gap : float
        primal − dual.
    multipliers : array
        Intercept of each group.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import Gram, Kernel, certificate
    >>> from hinge.dual.formulations import c_svc
    >>> gram = Gram(np.array([[0.0], [1.0], [2.0], [3.0]]), Kernel("linear"))
    >>> proof = certificate(c_svc([-1, -1, 1, 1], C=10.0), gram, np.array([0.0, -1.0, 1.0, 0.0]))
    >>> proof.box_error, proof.violation, proof.gap > 0      # feasible, yet far from the optimum
    (0.0, 1.0, True)
    """

    box_error: float
    sum_error: float
    violation: float
    rounding: float
    objective: float
    dual: float
    primal: float
    gap: float
    multipliers: Vector


class Certificates(tuple[Certificate, ...]):
    """What a fitted estimator proves: a certificate for each of its machines, and the worst of them together.

    Parameters
    ----------
    certificates : iterable of Certificate
        One a machine.
    names : sequence of str
        Which classes each machine tells apart; "" where there are none.
    parameters : mapping
        The parameters of the problem that it was certified for: C, ν, ε.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hinge import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> proofs = SVC().fit(X, y).certificate(X, y)
    >>> len(proofs), proofs.violation < 1e-3
    (3, True)
    """

    names: Sequence[str]
    parameters: Mapping[str, Any]

    def __new__(
        cls, certificates: Iterable[Certificate], names: Sequence[str], parameters: Mapping[str, Any]
    ) -> Self:
        made = super().__new__(cls, certificates)
        made.names, made.parameters = list(names), dict(parameters)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self), self.names, self.parameters)

    @property
    def violation(self) -> float:
        """The largest violation of any machine."""
        return max(one.violation for one in self)

    @property
    def rounding(self) -> float:
        """The largest bound on how much larger a true violation may be."""
        return max(one.rounding for one in self)

    @property
    def box_error(self) -> float:
        """The largest distance outside of a box."""
        return max(one.box_error for one in self)

    @property
    def sum_error(self) -> float:
        """The largest deviation of a sum."""
        return max(one.sum_error for one in self)

    @property
    def gap(self) -> float:
        """The duality gaps, summed up."""
        return fsum(one.gap for one in self)

    @property
    def objective(self) -> float:
        """The objectives, summed up."""
        return fsum(one.objective for one in self)

    def proves(self, tol: float) -> bool:
        """Whether every machine is optimal to within a tolerance, rounding errors included.

        Parameters
        ----------
        tol : float
            Largest violation allowed; no bound and no sum may be missed by more either.
        """
        return self.violation + self.rounding <= tol and max(self.box_error, self.sum_error) <= tol

    def rows(self) -> list[tuple[str, ...]]:
        """Return name, violation, gap and objective of each machine, as text."""
        return [
            (name, f"{one.violation:.3g}", f"{one.gap:.3g}", f"{one.objective:.8g}")
            for name, one in zip(self.names, self, strict=True)
        ]

    def __str__(self) -> str:
        known = ", ".join(f"{name} = {value:.6g}" for name, value in self.parameters.items())
        lines = [
            ("problem", known),
            ("violation", f"{self.violation:.3g}, rounding at most {self.rounding:.1e}"),
            ("duality gap", f"{self.gap:.3g}"),
            ("objective", f"{self.objective:.8g}"),
            ("constraints", f"box within {self.box_error:.1e}, sums within {self.sum_error:.1e}"),
        ]
        if len(self) > 1:
            lines.append(("machines", f"{len(self)}; the worst is {self.names[self._worst]}"))
        return "\n".join(f"{name:<11}  {value}" for name, value in lines)

    @property
    def _worst(self) -> int:
        return int(np.argmax([one.violation for one in self]))


def certificate(problem: DualProblem, gram: Gram, beta: Vector) -> Certificate:
    """Recompute feasibility, violation, objectives and gap from β alone.

    This evaluates every kernel value between a sample and a support vector in double precision, about the work of
    a good training run; and in double-double arithmetic, fifty times slower, for samples of which double
    precision cannot tell the residual to a millionth.

    Parameters
    ----------
    problem : DualProblem
        The problem.
    gram : Gram
        Its kernel values.
    beta : array of shape (n_variables,)
        The point to certify.

    Returns
    -------
    Certificate
        The figures.

    Examples
    --------
    >>> from hinge import Gram, Kernel, certificate, solve
    >>> from hinge.dual.formulations import c_svc
    >>> gram = Gram(np.array([[0.0], [1.0], [2.0], [3.0]]), Kernel("linear"))
    >>> problem = c_svc([-1, -1, 1, 1], C=10.0)
    >>> cert = certificate(problem, gram, solve(problem, gram).beta)
    >>> round(cert.dual, 6), round(cert.primal, 6), cert.violation <= 1e-3
    (2.0, 2.0, True)
    """
    beta = problem.check_point(beta)
    wanted = _WANTED * max(float(np.abs(problem.v).max(initial=0.0)), 1.0)
    everyone = np.arange(problem.n_samples)
    residual, error = exact_residual(problem, gram, beta, everyone, wanted)
    if not error.max() <= wanted:  # what copies of a sample do may cancel
        problem = replace(problem, alike=gram.alike())
        residual, error = exact_residual(problem, gram, beta, everyone, wanted)
    residual, error = residual.ravel(), np.tile(error, len(residual))
    violation = violation_of(problem, beta, residual)
    outside = np.maximum(problem.lo - beta, beta - problem.hi)
    sums = np.array([fsum(beta[problem.group == g]) for g in range(problem.n_groups)])
    multipliers = multipliers_of(problem, beta, residual)
    objective = objective_of(problem, beta, residual)
    gap = gap_of(problem, beta, residual, multipliers)
    return Certificate(
        box_error=float(max(outside.max(), 0.0)),
        sum_error=float(np.abs(sums - problem.sums).max(initial=0.0)),
        violation=violation,
        rounding=max(most_violation_of(problem, beta, residual, error) - violation, 0.0),
        objective=objective,
        dual=-objective,
        primal=gap - objective,
        gap=gap,
        multipliers=multipliers,
    )
