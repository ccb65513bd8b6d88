"""What a caller may ask of a solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any, Literal, get_args

from hinge.arrays import Vector
from hinge.trace import Tracing

Solver = Literal["auto", "block", "smo", "proximal", "descent"]


@dataclass(frozen=True)
class Rule:
    """A working-set rule of pair steps: how the pair that moves next is chosen.

    Attributes
    ----------
    name : str
        What `Settings` calls it.
    title : str
        What people call it.
    reference : str
        Paper and section that describe it.
    summary : str
        What it does, in a sentence.
    looks_back : bool
        Whether it chooses among the pairs that share a variable with the last one, so that it is given that pair.
    may_stall : bool
        Whether it may end without an optimum.
    """

    name: str
    title: str
    reference: str
    summary: str
    looks_back: bool = False
    may_stall: bool = False


#: The working-set rules by name; `hinge.solvers.pairs.rules` numbers them in this order.
RULES = {
    rule.name: rule
    for rule in (
        Rule(
            "mvp",
            "maximal violating pair (LIBSVM 2.71)",
            "Bottou & Lin, algorithm 1.3; Glasmachers & Igel, section 1.3",
            "the pair that violates most",
        ),
        Rule(
            "second_order",
            "second order (LIBSVM 2.8)",
            "Bottou & Lin, eq. 1.27; Glasmachers & Igel, section 1.3",
            "with the variable that violates most, the one of largest gain, bounds aside",
        ),
        Rule(
            "mg",
            "maximum gain",
            "Glasmachers & Igel, section 2.3; may end without an optimum (theorem 7)",
            "the pair of largest gain among those that share a variable with the last one",
            looks_back=True,
            may_stall=True,
        ),
        Rule(
            "hmg",
            "hybrid maximum gain",
            "Glasmachers & Igel, section 2.4",
            "likewise; the pair that violates most where the last one is at its bounds",
            looks_back=True,
        ),
    )
}


@dataclass(frozen=True)
class Progress:
    """Where a run stands; what a callback is given after each outer step.

    Attributes
    ----------
    iterations : int
        Pair steps so far.
    outer_steps : int
        Outer steps so far.
    violation : float
        Violation among the samples being worked on.
    objective : float
        The objective so far; it never rises.
    seconds : float
        Time since the start.
    n_active : int
        Samples being worked on; shrinking makes them fewer than all.
    known : float
        Violation on all samples, when it was last known.
    tol : float
        The tolerance.
    phase : str
        What is being done: "a quarter first", "samples near the margin" or "all samples".

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from hinge import SVC
    >>> seen = []
    >>> machine = SVC(callback=lambda progress: seen.append(progress.violation)).fit(*make_moons(50))
    >>> len(seen) > 0
    True
    """

    iterations: int
    outer_steps: int
    violation: float
    objective: float
    seconds: float
    n_active: int
    known: float = float("nan")
    tol: float = float("nan")
    phase: str = ""


@dataclass(frozen=True)
class Sizes:
    """From which sizes on a problem is divided into smaller ones.

    The defaults are fast on current computers. Others lead to the same answer within the tolerance: small ones
    show on little data what happens to large data.

    Parameters
    ----------
    one_set : int
        A problem of up to this many variables is one working set: its whole matrix is cheaper than a second
        choice.
    smallest_set, largest_set : int
        Variables that a working set of a larger problem has at least, and at most. In between, it has somewhat
        more than are free. Memory may allow fewer.
    cheap_subset, dear_subset : int
        A random quarter is solved first where it has at least this many samples, with kernel values that are cheap
        to compute again and with expensive ones.
    one_pass : int
        A problem of up to this many variables, whose matrix is in memory, is solved in one compiled pass.

    Examples
    --------
    >>> Settings(sizes=Sizes(one_set=50, smallest_set=20, largest_set=50)).sizes.largest_set
    50
    """

    one_set: int = 2000
    smallest_set: int = 512
    largest_set: int = 4096
    cheap_subset: int = 1000
    dear_subset: int = 3500
    one_pass: int = 1000

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) >= 1:
                raise ValueError(f"{field.name} must be a positive number, got {getattr(self, field.name)}")
        if self.smallest_set > self.largest_set:
            raise ValueError(f"smallest_set={self.smallest_set} exceeds largest_set={self.largest_set}")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to solve: method, tolerance, limits.

    Parameters
    ----------
    solver : {"auto", "block", "smo", "proximal", "descent"}
        ``"block"`` solves large working sets by matrix products; ``"smo"`` moves pairs; ``"proximal"`` and
        ``"descent"`` work on the weight vector of a linear kernel, all of it at once or one variable at a time;
        ``"auto"`` chooses.
    rule : str
        Working-set rule of ``"smo"``: a name in `RULES`.
    tol : float
        Largest violation of the optimality conditions at which a run has converged.
    gap_tol : float, optional
        Also stop once the duality gap is at most this share of the objective's size.
    weights_gap : float, optional
        Nothing but the weights of a linear kernel is wanted: where no variables in double precision meet the
        tolerance, weights of their own do, and a duality gap of at most this share of the objective's size
        suffices.
    shrinking : bool
        Set aside samples that look settled, and come back to them before convergence is declared.
    max_iter : int, optional
        Most pair steps; by default the larger of ten million and a hundred per variable.
    time_limit : float, optional
        Most seconds, without what is compiled at a first use.
    callback : callable, optional
        Called with a `Progress` after each outer step; a true answer stops the run.
    start : array, optional
        β to start from; it is made feasible, variables at their bounds staying there as far as possible.
    known : Reference, optional
        A point near the optimum whose residual is known (`hinge.dual.residuals.Reference`), to start from instead;
        it need not be feasible.
    sizes : Sizes
        How large a problem must be for working sets, active sets and subsets of it to be chosen.
    trace : Tracing, optional
        Record the course of the run in ``report.trace``.
    keep : callable, optional
        Called after each outer step with a function that returns β where the run stands, for whoever writes it
        down.

    Examples
    --------
    >>> Settings(tol=1e-5, time_limit=60).solver
    'auto'
    """

    solver: Solver = "auto"
    rule: str = "second_order"
    tol: float = 1e-3
    gap_tol: float | None = None
    weights_gap: float | None = None
    shrinking: bool = True
    max_iter: int | None = None
    time_limit: float | None = None
    callback: Callable[[Progress], Any] | None = None
    start: Any = None
    known: Any = None
    sizes: Sizes = Sizes()
    trace: Tracing | None = None
    keep: Callable[[Callable[[], Vector]], None] | None = None

    def __post_init__(self) -> None:
        for name, choices in (("solver", get_args(Solver)), ("rule", RULES)):
            if getattr(self, name) not in choices:
                known = ", ".join(choices)
                raise ValueError(f"unknown {name} {getattr(self, name)!r}; known are {known}")
        for name in ("tol", "gap_tol", "weights_gap", "max_iter", "time_limit"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a positive number, got {value}")

    def gap_suffices(self, report: Any) -> bool:
        """Whether the duality gap that a report tells meets `gap_tol`, if there is one."""
        return self.gap_tol is not None and report.gap <= self.gap_tol * max(1.0, abs(report.objective))

    def __repr__(self) -> str:
        changed = (f for f in fields(self) if getattr(self, f.name) is not f.default)
        return "Settings(" + ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in changed) + ")"
