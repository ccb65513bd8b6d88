"""What a solver answers: the solution, and a report that says how far it can be trusted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from math import nan
from typing import Any

from hinge.arrays import Vector


class Status(StrEnum):
    """How a run ended. Only ``converged`` is success.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from hinge import SVC, Status
    >>> SVC().fit(*make_moons(50)).report_.status is Status.CONVERGED
    True
    >>> Status.STALLED == "stalled"
    True
    """

    CONVERGED = "converged"
    """The violation, rounding errors included, is at most the tolerance (or the gap at most its own)."""
    UNCERTAIN = "uncertain"
    """The violation computed is within the tolerance; rounding may hide that the true one is not."""
    ITERATION_LIMIT = "iteration_limit"
    """The iteration limit was reached first."""
    TIME_LIMIT = "time_limit"
    """The time limit was reached first."""
    INTERRUPTED = "interrupted"
    """Ctrl-C, or a callback asked to stop."""
    STALLED = "stalled"
    """No step makes progress any more, yet the violation is above the tolerance."""
    INFEASIBLE = "infeasible"
    """A hard margin was asked for on data that no margin separates."""


MESSAGES = {
    Status.CONVERGED: "the violation is within the tolerance",
    Status.UNCERTAIN: "rounding errors may be larger than the tolerance; loosen tol, or scale the features",
    Status.ITERATION_LIMIT: "raise max_iter, loosen tol, or scale the features",
    Status.TIME_LIMIT: "raise time_limit, loosen tol, or continue from this point (start=solution.beta)",
    Status.INTERRUPTED: "the best point so far; continue from it with start=solution.beta",
    Status.STALLED: "no step makes progress at this precision; loosen tol, or scale the features",
    Status.INFEASIBLE: "the classes are not separable with this kernel; choose a finite C",
}


@dataclass(frozen=True)
class Report:
    """How a run went.

    Attributes
    ----------
    status : Status
        How the run ended.
    message : str
        What that means for the caller; by default what `MESSAGES` says of the status.
    solver, rule : str
        Method used and its working-set rule.
    reason : str
        Why this method.
    precision : str
        Type of the kernel values that steps were computed from.
    storage : str
        How the samples were stored.
    iterations, outer_steps : int
        Pair steps, and changes of a set of free variables that move together (of methods on the weight vector:
        moves of a variable, or Newton steps); working sets or rounds.
    violation : float
        Largest violation of the optimality conditions; NaN if an interrupt left no time to compute it.
    rounding : float
        Bound on how much larger the true violation may be, because kernel values and their sums are rounded.
    objective : float
        ½ βᵀKβ − vᵀβ.
    gap : float
        Duality gap at the reported multipliers.
    n_support, n_bounded : int
        Samples with a non-zero coefficient; those of them at their bound.
    kernel_evaluations, cache_hits, cache_misses, cache_bytes : int
        What the Gram matrix did.
    seconds : float
        Wall time, without that of the compiler.
    compile_seconds : float
        Time that compiling took meanwhile, once on a computer, and fetching compiled code from the disk, once in
        a process. No time limit counts it.
    largest_set : int
        Variables of the largest working set; 0 where the method chooses none.
    fewest_active, most_lagging : int
        Samples worked on at a time, where fewest were; samples whose residual was left behind at one time, because
        they were provably out of reach, where most were. Of several machines: the fewest and the most of any.
    """

    status: Status
    message: str = ""
    solver: str = "none"
    rule: str = "none"
    reason: str = ""
    precision: str = "double"
    storage: str = ""
    iterations: int = 0
    outer_steps: int = 0
    violation: float = nan
    rounding: float = nan
    objective: float = 0.0
    gap: float = nan
    n_support: int = 0
    n_bounded: int = 0
    kernel_evaluations: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    cache_bytes: int = 0
    seconds: float = 0.0
    compile_seconds: float = 0.0
    largest_set: int = 0
    fewest_active: int = 0
    most_lagging: int = 0

    def __post_init__(self) -> None:
        if not self.message:
            object.__setattr__(self, "message", MESSAGES[self.status])

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Files that know no enums (skops, JSON) give the status back as text.
        self.__dict__.update(state, status=Status(state["status"]))

    @property
    def converged(self) -> bool:
        """Whether the answer is within the tolerance asked for."""
        return self.status is Status.CONVERGED

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as a plain dictionary, ready for JSON."""
        return {**asdict(self), "status": str(self.status)}


@dataclass(frozen=True, eq=False)
class Solution:
    """A point, its residual and multipliers, and the report of how it was found.

    Attributes
    ----------
    beta : array of shape (n_variables,)
        The signed dual variables.
    residual : array of shape (n_variables,)
        v − Kβ. Samples that provably cannot violate may hold the value of an earlier point; every support vector
        and every sample near the margin is up to date.
    multipliers : array of shape (n_groups,)
        The intercept of each group.
    report : Report
        How the run went.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import Gram, Kernel, solve
    >>> from hinge.dual.formulations import one_class
    >>> solution = solve(one_class(4, nu=0.5), Gram(np.eye(4), Kernel("linear")))
    >>> solution.beta.sum().round(9), str(solution.report.status)
    (np.float64(2.0), 'converged')
    """

    beta: Vector
    residual: Vector
    multipliers: Vector
    report: Report
