"""What a solver answers: the solution, and a report that says how far it can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from html import escape
from itertools import combinations
from math import isnan, nan
from typing import Any, Self, overload

import numpy as np

from hinge.arrays import Vector
from hinge.trace import Trace


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
class ClusterWork:
    """What a fit on a cluster asked of it.

    Attributes
    ----------
    workers, shards : int
        Workers that held shards in the end, and shards.
    questions : int
        Questions that were put to all of them.
    bytes_sent, bytes_received : int
        What the arrays of questions and answers took.
    seconds_waited : float
        Time between questions and answers; of threads that wait side by side, of each.
    rebuilt : int
        Shards that were made again after their worker was lost.

    Examples
    --------
    >>> print(ClusterWork(workers=2, shards=8, questions=40, bytes_sent=3_000_000, bytes_received=500_000))
    2 workers with 8 shards, 40 questions in 0 s, 3 MB sent, 0.5 MB received
    """

    workers: int = 0
    shards: int = 0
    questions: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    seconds_waited: float = 0.0
    rebuilt: int = 0

    def __str__(self) -> str:
        rebuilt = f", {self.rebuilt} shards made again" if self.rebuilt else ""
        return (
            f"{self.workers} workers with {self.shards} shards, {self.questions:,} questions in "
            f"{self.seconds_waited:.3g} s, {self.bytes_sent / 1e6:.3g} MB sent, "
            f"{self.bytes_received / 1e6:.3g} MB received{rebuilt}"
        )


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
    trace : Trace or None
        The course of the run, where it was asked for; of several machines that of the one that took longest.
    cluster : ClusterWork or None
        What was asked of a cluster, where the fit ran on one.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from hinge import SVC
    >>> report = SVC().fit(*make_moons(50)).report_
    >>> report.converged, report.violation <= 1e-3, report.n_support > 0
    (True, True, True)
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
    trace: Trace | None = field(default=None, compare=False, repr=False)
    cluster: ClusterWork | None = None

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

    def after(self, earlier: Report) -> Report:
        """Return the report of two runs, where this one went on from the end of an earlier one."""
        trace = self.trace
        if trace is not None and earlier.trace is not None:
            trace = earlier.trace.followed_by(trace.shifted(earlier.seconds, earlier.iterations))
        return replace(
            self,
            iterations=earlier.iterations + self.iterations,
            outer_steps=earlier.outer_steps + self.outer_steps,
            seconds=earlier.seconds + self.seconds,
            trace=trace,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as a plain dictionary, ready for JSON."""
        figures = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("trace", "cluster")}
        if self.cluster is not None:
            figures["cluster"] = vars(self.cluster).copy()
        course = {} if self.trace is None else {"trace": self.trace.as_dict()}
        return {**figures, "status": str(self.status), **course}

    def rows(self) -> list[tuple[str, str]]:
        """Return what a person wants to know first: names and values."""
        doubt = f", rounding at most {self.rounding:.1e}" if self.rounding > 0 else ""
        work = f"{self.iterations:,} steps in {self.outer_steps:,} rounds"
        if self.kernel_evaluations:
            work += f", {self.kernel_evaluations:,} kernel values"
        rows = [
            ("status", f"{self.status}: {self.message}"),
            ("violation", f"{_number(self.violation)}{doubt}"),
            ("objective", f"{self.objective:.8g}, duality gap {_number(self.gap)}"),
            ("support vectors", f"{self.n_support:,}, of which {self.n_bounded:,} are at their bound"),
            ("solver", self.solver if self.rule in ("none", "") else f"{self.solver} ({self.rule})"),
            ("because", self.reason),
            ("kernel values", f"{self.precision} precision, {self.storage}" if self.storage else ""),
            ("work", work),
            ("seconds", f"{self.seconds:.3g}"),
            ("cluster", "" if self.cluster is None else str(self.cluster)),
            ("trace", "" if self.trace is None else f"{len(self.trace)} points"),
        ]
        return [(name, value) for name, value in rows if value]

    def row(self) -> tuple[str, ...]:
        """Return status, violation, support vectors, steps and seconds, for a table of many."""
        counts = f"{self.n_support:,}", f"{self.iterations:,}"
        return str(self.status), _number(self.violation), *counts, f"{self.seconds:.3g}"

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        return html_table([], self.rows())


class Ledger(Sequence[Report]):
    """Reports of many machines; of those that ended alike only the figures in which they differ are kept.

    Parameters
    ----------
    others : list of Report or None
        The report of every machine; None for those that ended alike.
    shared : Report, optional
        What these have in common.
    names : sequence of str
        In which figures they differ.
    figures : array of shape (n_machines, n_figures), optional
        These figures of every machine; lines of the others are not looked at.

    Examples
    --------
    >>> alike = Report(Status.CONVERGED, solver="block")
    >>> ledger = Ledger([None, Report(Status.STALLED)], alike, ["iterations"], np.array([[7.0], [0.0]]))
    >>> ledger[0].solver, ledger[0].iterations, ledger[1].converged
    ('block', 7, False)
    """

    def __init__(
        self,
        others: list[Report | None],
        shared: Report | None = None,
        names: Sequence[str] = (),
        figures: Vector | None = None,
    ) -> None:
        self.others, self.shared, self.names, self.figures = others, shared, tuple(names), figures

    def __len__(self) -> int:
        return len(self.others)

    @property
    def common(self) -> Report | None:
        """What all reports have in common, where all machines ended alike."""
        return self.shared if self.others.count(None) == len(self.others) else None

    @overload
    def __getitem__(self, number: int) -> Report: ...
    @overload
    def __getitem__(self, number: slice) -> list[Report]: ...
    def __getitem__(self, number: int | slice) -> Report | list[Report]:
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(len(self)))]
        if (other := self.others[number]) is not None:
            return other
        assert self.shared is not None
        assert self.figures is not None
        kinds = (type(getattr(self.shared, name)) for name in self.names)
        values = (kind(value) for kind, value in zip(kinds, self.figures[number].tolist(), strict=True))
        return replace(self.shared, **dict(zip(self.names, values, strict=True)))

    def column(self, name: str) -> Vector:
        """Return one figure of all reports."""
        if self.shared is None or self.figures is None:
            return np.array([getattr(report, name) for report in self.others])
        if name in self.names:
            column = self.figures[:, self.names.index(name)].copy()
        else:
            column = np.full(len(self), getattr(self.shared, name))
        if self.common is None:
            for number, report in enumerate(self.others):
                if report is not None:
                    column[number] = getattr(report, name)
        return column

    def combined(self, combine: Callable[..., Any], *names: str) -> dict[str, Any]:
        """Return figures of all reports taken together: ``combine`` is `numpy.sum`, `numpy.max` or `numpy.min`.

        Examples
        --------
        >>> ledger = Ledger([Report(Status.CONVERGED, iterations=2), Report(Status.STALLED, iterations=5)])
        >>> ledger.combined(np.sum, "iterations"), ledger.combined(np.max, "iterations")
        ({'iterations': 7}, {'iterations': 5})
        """
        kinds = {name: type(getattr(self[0] if self.shared is None else self.shared, name)) for name in names}
        found: dict[str, Any] = {}
        if self.common is not None and self.figures is not None:
            found = dict(zip(self.names, combine(self.figures, axis=0).tolist(), strict=True))
        return {
            name: kind(found[name] if name in found else combine(self.column(name)))
            for name, kind in kinds.items()
        }

    def statuses(self) -> Counter[Status]:
        """Count how many machines ended in each way."""
        statuses = Counter(report.status for report in self.others if report is not None)
        if self.shared is not None:
            statuses[self.shared.status] += self.others.count(None)
        return +statuses


class Reports(tuple[Report, ...]):
    """The reports of all machines of a fit, which know whose they are.

    Parameters
    ----------
    reports : iterable of Report
        One a machine.
    classes : sequence
        The classes, sorted; empty where there are none.
    scheme : {"ovo", "ovr", "crammer_singer"}
        A machine for each pair of classes, one for each class against the rest, or one for all classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hinge import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SVC().fit(X, load_iris().target_names[y])
    >>> machine.reports_.names
    ['setosa against versicolor', 'setosa against virginica', 'versicolor against virginica']
    """

    classes: Sequence[Any]
    scheme: str

    def __new__(cls, reports: Iterable[Report], classes: Sequence[Any] = (), scheme: str = "ovo") -> Self:
        made = super().__new__(cls, reports)
        made.classes, made.scheme = classes, scheme
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Reports, (tuple(self), self.classes, self.scheme)

    @property
    def names(self) -> list[str]:
        """Whose each report is: the class where the machine is positive, and the one where it is negative."""
        return machine_names(self.classes, self.scheme, len(self))

    def _table(self) -> tuple[list[str], list[tuple[str, ...]]]:
        head = ["machine", "status", "violation", "support vectors", "steps", "seconds"]
        return head, [(name, *report.row()) for name, report in zip(self.names, self, strict=True)]

    def __str__(self) -> str:
        head, rows = self._table()
        widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
        lines = (
            "  ".join(f"{cell:<{width}}" if k < 2 else f"{cell:>{width}}" for k, (cell, width) in enumerate(pairs))
            for pairs in (zip(row, widths, strict=True) for row in (head, *rows))
        )
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        return html_table(*self._table())


def machine_names(classes: Sequence[Any], scheme: str = "ovo", count: int = 1) -> list[str]:
    """Return what machines tell apart, the class where each is positive first; without classes, their targets.

    Examples
    --------
    >>> machine_names(["a", "b", "c"], "ovr")
    ['a against the rest', 'b against the rest', 'c against the rest']
    """
    labels = [str(label) for label in classes]
    if not labels:
        return [""] * count if count <= 1 else [f"target {number}" for number in range(count)]
    if len(labels) == 2 and scheme != "crammer_singer":
        return [f"{labels[1]} against {labels[0]}"]
    if scheme == "crammer_singer":
        return ["all classes"]
    if scheme == "ovr":
        return [f"{label} against the rest" for label in labels]
    return [f"{first} against {second}" for first, second in combinations(labels, 2)]


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in HTML; the first cell of a row is its heading."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, *cells in rows
    )
    above = f"<thead><tr>{top}</tr></thead>" if head else ""
    return f"<table>{above}<tbody>{body}</tbody></table>"


def _number(value: float) -> str:
    return "unknown" if isnan(value) else f"{value:.3g}"


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
    error : array of shape (n_samples,), optional
        How far the residual of each sample may be from its true value, those that are not up to date included;
        None where nobody has asked.
    weights : array of shape (n_features,), optional
        The weight vector that the residual and the report's violation and gap belong to, where it is not Xᵀβ to
        the last digit (`Settings.weights_gap`).

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
    error: Vector | None = None
    weights: Vector | None = None
