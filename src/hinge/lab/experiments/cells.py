"""Cells: one run of one algorithm on one problem, and how it went."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from hinge import lab
from hinge.certificates import certificate
from hinge.dual.formulations import c_svc
from hinge.io.datasets import DataSetNotFound
from hinge.kernel.gram import Gram
from hinge.kernel.kernels import Kernel
from hinge.lab.experiments.data import prepare
from hinge.lab.race import warm_up
from hinge.report import Solution, Status
from hinge.runtime import clock
from hinge.runtime.threads import blas_on_one_thread
from hinge.settings import Progress, Settings

# The clock on the wall may show this many times a cell's limit of processor time before the run is ended: others
# may want the processor too, and that is no fault of the algorithm.
_WALL_FACTOR = 30.0

#: Largest violation that runs may leave, unless a cell says otherwise.
TOLERANCE = 1e-3

# Up to this number of kernel values the violation is computed again, in double precision, from β alone.
_CHECKED_VALUES = 1e8

_ROUNDED_SIDE = 500  # samples of a square of kernel values that are rounded at a time


@dataclass(frozen=True)
class Cell:
    """What to run.

    Attributes
    ----------
    data : str
        A set, as `hinge.lab.experiments.data.prepare` names them.
    algorithm : str
        A name of the laboratory.
    kernel : str
        ``"linear"`` or ``"rbf"``.
    C, gamma : float
        Parameters of the machine.
    cache_mb : float
        Megabytes for kernel rows.
    precision : {"auto", "double"}
        Of kernel values; ``"auto"`` takes single precision where the data allows it, and then may end somewhat
        below the tolerance.
    shrinking : bool
        Whether settled samples are set aside.
    trial : int
        Seed of the order of the samples, on which the first working set depends; 0 leaves them as they are.
    tol : float
        Largest violation allowed.
    limit : float
        Most seconds of processor time.
    family : str
        Cells of one family and algorithm grow; after one that meets the limit the larger ones are not run.
    held_out : int
        Rows of the set, none of those trained on, on which the machine is tried.
    rounded : bool
        Whether the objective is computed again from kernel values rounded to single precision, as LIBSVM keeps
        them.
    """

    data: str
    algorithm: str
    kernel: str
    C: float
    gamma: float = 1.0
    cache_mb: float = 40.0
    precision: Literal["auto", "double"] = "auto"
    shrinking: bool = True
    trial: int = 0
    tol: float = TOLERANCE
    limit: float = 60.0
    family: str = ""
    held_out: int = 0
    rounded: bool = False

    @property
    def name(self) -> str:
        """Name of the cell: readable, and different for different cells. Its limit is no part of it."""
        figures = {**asdict(self), "limit": 0, "family": ""}
        digest = hashlib.sha256(json.dumps(figures, sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.data.replace(':', '-')}_{self.kernel}_{self.algorithm}_{digest}"


@dataclass(frozen=True)
class Origin:
    """Where the figures of a cell come from.

    Attributes
    ----------
    date : str
        The day on which it ran.
    computer, versions : str
        What it ran on: processor, system, libraries.
    commit : str
        Of this library, where it ran from a checkout.
    command : str
        What repeats this cell alone.
    """

    date: str
    computer: str
    versions: str
    commit: str
    command: str


@dataclass(frozen=True)
class Outcome:
    """How a cell went.

    Attributes
    ----------
    status : str
        A `hinge.report.Status`; or ``"limit"``, ``"skipped"`` (a smaller one met the limit), ``"missing"`` (no
        such data here), ``"uncovered"`` (not a problem for this algorithm), ``"unbudgeted"`` (the budget was used
        up before), ``"pending"`` (Ctrl-C came first).
    limit : float
        The limit that it ran under.
    n, n_free, n_bounded : int
        Samples; support vectors that are free and at their bound.
    iterations, outer_steps, kernel_evaluations : int
        Work: steps, working sets or rounds, kernel values.
    violation : float
        Where it ended.
    checked : float or None
        The violation computed again, in double precision, from β alone; None where that would take too long.
    objective : float
        ½ βᵀKβ − vᵀβ where it ended.
    rounded : float or None
        The objective at the same β with kernel values rounded to single precision.
    seconds, cpu_seconds : float
        On the wall, of the processor; neither contains compilation.
    load : float or None
        How many programs wanted a processor meanwhile (the system's load average), if it is known.
    error : float or None
        Share of the held-out rows whose label is not found.
    origin : Origin or None
        Where this comes from.
    """

    status: str
    limit: float
    n: int = 0
    n_free: int = 0
    n_bounded: int = 0
    iterations: int = 0
    outer_steps: int = 0
    kernel_evaluations: int = 0
    violation: float = 0.0
    checked: float | None = None
    objective: float = 0.0
    rounded: float | None = None
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    load: float | None = None
    error: float | None = None
    origin: Origin | None = field(default=None, compare=False)

    @property
    def converged(self) -> bool:
        """Whether the run came to its end."""
        return self.status == Status.CONVERGED

    @property
    def ran_out(self) -> bool:
        """Whether the limit ended it, or a smaller cell's limit kept it from starting."""
        return self.status in ("limit", "skipped")


Outcomes = dict[Cell, Outcome]


class Stage(IntEnum):
    """When a cell has its turn: what matters most comes first, in case the budget ends before the cells do."""

    TABLES = 0
    LARGE = 1
    MAP = 2
    LIGHT = 3
    PLATT = 4
    BOTTOU = 5
    CAUSES = 6
    MNIST = 7
    REST = 8


Staged = tuple[Stage, Cell]


def run_cell(cell: Cell) -> Outcome:
    """Run one cell on one thread and tell how it went.

    Whatever has to be compiled is compiled before, on a few samples; what that leaves is on no clock either.

    Examples
    --------
    >>> run_cell(Cell("noise:60", "smo-second-order", "linear", C=0.1)).status
    'converged'
    """
    try:
        X, y, stretch = prepare(cell.data)
    except DataSetNotFound:
        return Outcome("missing", cell.limit)
    kernel = Kernel(cell.kernel, gamma=cell.gamma / stretch**2)
    if cell.kernel == "linear" and stretch != 1.0:
        X = X / stretch  # never packed into bits: no need to stretch
    if cell.trial:
        order = np.random.default_rng(cell.trial).permutation(len(y))
        X, y = X[order], y[order]
    algorithm = lab.get(cell.algorithm)
    try:
        warm_up(algorithm, X, y, kernel, cell.C)
        return _timed(cell, algorithm, X, y, kernel)
    except ValueError:
        return Outcome("uncovered", cell.limit, n=len(y))


def _timed(cell: Cell, algorithm: lab.Algorithm, X: Any, y: Any, kernel: Kernel) -> Outcome:
    gram = Gram(X, kernel, cache_bytes=int(cell.cache_mb * 2**20), threads=1, precision=cell.precision)
    problem = c_svc(y, C=cell.C)
    started = clock.processor_seconds()
    ran_out = False

    def is_over(progress: Progress) -> bool:
        nonlocal ran_out
        ran_out = clock.processor_seconds() - started > cell.limit
        return ran_out

    settings = Settings(
        tol=cell.tol, shrinking=cell.shrinking, time_limit=_WALL_FACTOR * cell.limit, callback=is_over
    )
    with blas_on_one_thread():
        solution = algorithm.solve(problem, gram, settings)
    cpu_seconds = clock.processor_seconds() - started
    report = solution.report
    if report.status is Status.INTERRUPTED and not ran_out:
        raise KeyboardInterrupt  # it was not the limit: somebody wants to leave
    was_limited = ran_out or report.status is Status.TIME_LIMIT
    status = "limit" if was_limited else str(report.status)
    checked = None
    if report.n_support * len(y) <= _CHECKED_VALUES:
        checked = certificate(problem, gram, solution.beta).violation
    return Outcome(
        status=status,
        limit=cell.limit,
        n=len(y),
        n_free=report.n_support - report.n_bounded,
        n_bounded=report.n_bounded,
        iterations=report.iterations,
        outer_steps=report.outer_steps,
        kernel_evaluations=report.kernel_evaluations,
        seconds=report.seconds,
        cpu_seconds=cpu_seconds,
        objective=report.objective,
        violation=report.violation,
        checked=checked,
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        error=_error(cell, X, kernel, solution) if cell.held_out else None,
        rounded=_rounded(X, kernel, solution) if cell.rounded else None,
    )


def _error(cell: Cell, X: Any, kernel: Kernel, solution: Solution) -> float:
    """Try a machine on rows that it has not seen: they are samples without a coefficient."""
    others, labels, _ = prepare(cell.data, rest=cell.held_out)
    stacked = sp.vstack([X, others]).tocsr() if sp.issparse(X) else np.vstack([X, others])
    coefficients = np.concatenate([solution.beta, np.zeros(len(labels))])
    decisions = Gram(stacked, kernel, threads=1).product(coefficients)[len(solution.beta) :]
    return float(np.mean((decisions + solution.multipliers[0] > 0) != (labels > 0)))


def _rounded(X: Any, kernel: Kernel, solution: Solution) -> float:
    """Return the objective with every kernel value rounded to single precision, sums and features in double."""
    support = np.flatnonzero(solution.beta)
    beta, features = solution.beta[support], X[support]
    features = features.toarray() if sp.issparse(features) else features
    gram = Gram(features.astype(np.float64), kernel, threads=1, precision="double")
    product = np.zeros(len(support))
    for first in range(0, len(support), _ROUNDED_SIDE):
        rows = np.arange(first, min(first + _ROUNDED_SIDE, len(support)))
        for begin in range(0, len(support), _ROUNDED_SIDE):
            columns = np.arange(begin, min(begin + _ROUNDED_SIDE, len(support)))
            both = gram.block(np.concatenate([rows, columns]))[: len(rows), len(rows) :]
            product[rows] += both.astype(np.float32).astype(np.float64) @ beta[columns]
    return float(0.5 * beta @ product - np.abs(beta).sum())
