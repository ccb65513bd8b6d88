"""How the rates of a grid are found: shared between points by `hinge.selection`, or by a program a point."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Index
from hinge.cli.data import DataFile
from hinge.cli.folds import GlibcRandom
from hinge.cli.grid_points import Point
from hinge.cli.machines import folds_of, group_classes
from hinge.cli.options import Parsed
from hinge.cli.parameters import Parameters
from hinge.cli.tables import TRAIN
from hinge.runtime.interrupt import Cancelled, catching, requested, submit, together
from hinge.runtime.threads import available_threads

if TYPE_CHECKING:
    from hinge.selection import Cell, Job

OnRate = Callable[[Point, float], None]

# C and gamma of a candidate; None for what its machine does not look at.
_Key = tuple[float | None, float | None]

# How often a thread that waits for a program looks whether somebody wants to stop.
_SECONDS_TO_LOOK = 0.1


@dataclass(frozen=True, eq=False)
class Sought:
    """What is searched.

    Attributes
    ----------
    parameters : Parameters
        The options of ``hinge train``.
    samples : DataFile
        The data.
    n_folds : int
        Number of folds.
    """

    parameters: Parameters
    samples: DataFile
    n_folds: int

    def digest(self) -> str:
        """Return a name for the data."""
        rows = self.samples.rows
        digest = hashlib.sha256()
        for array in (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data, self.samples.y):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def folds(self) -> list[Index]:
        """Return the folds of ``svm-train -v``."""
        n = self.samples.n
        labels = self.samples.labels() if self.parameters.is_classifier else None
        return folds_of(labels, n, min(self.n_folds, n), GlibcRandom())

    def class_numbers(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the classes in LIBSVM's order, to which ties go, and the number of every sample's class."""
        order, members = group_classes(self.samples.labels())
        numbers = np.empty(self.samples.n, np.int64)
        for number, places in enumerate(members):
            numbers[places] = number
        return order, numbers


def can_share(problem: Sought) -> bool:
    """Whether estimators solve what LIBSVM solves: not for ``-b 1``, nor for folds that lack all but one class."""
    p = problem.parameters
    if p.probability:
        return False
    if not p.is_classifier:
        return True
    _, numbers = problem.class_numbers()
    for fold in problem.folds():
        counts = np.bincount(np.delete(numbers, fold))
        present = counts[counts > 0]
        if len(present) < 2:
            return False
        smallest, others = present.min(), np.sort(present)[1:]
        if p.svm_type == "nu_svc" and (p.nu * (smallest + others) / 2 > smallest).any():
            return False
    return True


def share(search: SharedSearch, strategy: str) -> list[Cell]:
    """Find rates with everything shared that points have in common; return the cells.

    Parameters
    ----------
    search : SharedSearch
        What to search, and how.
    strategy : {"grid", "refine"}
        Every point; or a coarse grid, and then ever finer ones around the best point.
    """
    from hinge.selection.strategies import refine

    candidates = search.candidates()
    if strategy == "grid":
        search.evaluate(search.job, candidates)
    else:
        names = sorted({name for candidate in candidates for name in candidate})
        axes = {name: sorted({candidate[name] for candidate in candidates}) for name in names}
        refine(search.evaluate, search.job, axes, "score")
    return search.cells


class SharedSearch:
    """A search whose points share their kernel values.

    Parameters
    ----------
    problem : Sought
        What is searched.
    points : sequence of Point
        All points, in the order in which their gammas are to be taken.
    known : mapping
        Rates that are known already.
    engine : object
        Where to compute; see `hinge.selection.run_units`.
    on_rate : callable
        Told of every new rate as soon as it is known, one call at a time.
    """

    def __init__(
        self,
        problem: Sought,
        points: Sequence[Point],
        known: Mapping[Point, float],
        engine: Any,
        on_rate: OnRate,
    ) -> None:
        self.problem, self.known, self.engine, self.on_rate = problem, known, engine, on_rate
        self.job = _job(problem)
        self.cells: list[Cell] = []
        # An error is a score that is the better, the smaller it is.
        self._scale = (-1.0 if problem.parameters.is_regression else 100.0) / problem.samples.n
        self._points: dict[_Key, list[Point]] = {}
        for point in points:
            self._points.setdefault(self._key(point), []).append(point)

    def _key(self, point: Point) -> _Key:
        """Return C and γ of a point as far as the machine and the kernel look at them."""
        c, gamma = point
        has_gamma = "gamma" in self.problem.parameters.kernel(self.problem.samples.max_index).uses
        return (
            None if c is None or not hasattr(self.job.estimator, "C") else 2.0**c,
            None if gamma is None or not has_gamma else 2.0**gamma,
        )

    def candidates(self) -> list[dict[str, Any]]:
        """Return the parameters of all points that differ."""
        return [
            {name: value for name, value in zip(("C", "gamma"), key, strict=True) if value is not None}
            for key in self._points
        ]

    def evaluate(self, job: Job, candidates: Sequence[dict[str, Any]]) -> list[Cell]:
        """Return the cells of candidates; those whose rates are known hold the rate and nothing else."""
        from hinge.selection import plan, run_units

        keys: list[_Key] = [(candidate.get("C"), candidate.get("gamma")) for candidate in candidates]
        found = {k: cell for k, key in enumerate(keys) if (cell := self._known_cell(k, key)) is not None}
        new = [k for k in range(len(keys)) if k not in found]
        lock = threading.Lock()

        def tell(cell: Cell) -> None:
            k = new[cell.index]
            rate = float(f"{self._scale * sum(cell.test_scores['score']):g}")  # the digits that svm-train prints
            with lock:
                found[k] = cell
                self.cells.append(cell)
                for point in self._points[keys[k]]:
                    if point not in self.known:
                        self.on_rate(point, rate)

        units = plan(job.estimator, [candidates[k] for k in new])
        for _ in run_units(job, units, self.engine, self.problem.parameters.threads or available_threads(), tell):
            pass
        return [found[k] for k in range(len(keys))]

    def _known_cell(self, index: int, key: _Key) -> Cell | None:
        from hinge.selection import Cell

        rates = [self.known[point] for point in self._points[key] if point in self.known]
        if len(rates) < len(self._points[key]):
            return None
        score = rates[0] / self._scale / self.problem.n_folds
        return Cell(index, {}, {"score": [score] * self.problem.n_folds}, {}, [], [], [], [], True)


def _job(problem: Sought) -> Job:
    from hinge import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM
    from hinge.selection import Job

    p, samples = problem.parameters, problem.samples
    kernel = p.kernel(samples.max_index)
    chosen: dict[str, Any] = {
        "kernel": kernel.label, "tol": p.validation_tolerance, "shrinking": bool(p.shrinking),
        "solver": p.solver, "rule": p.rule, "gap_tol": p.gap_tol,
        "cache_size": "auto" if p.cache is None else p.cache,
    }  # fmt: skip
    chosen |= {name: getattr(kernel, name) for name in kernel.uses}
    y: Any = samples.y
    if p.is_classifier:
        order, y = problem.class_numbers()
        if p.svm_type == "c_svc":
            chosen["class_weight"] = _class_weights(p, order)
    if p.is_squared:
        chosen["loss"] = "squared_hinge" if p.is_classifier else "squared_epsilon_insensitive"
    machines: dict[str, Any] = {
        "c_svc": SVC, "nu_svc": partial(NuSVC, nu=p.nu), "one_class": partial(OneClassSVM, nu=p.nu),
        "epsilon_svr": partial(SVR, epsilon=p.epsilon), "nu_svr": partial(NuSVR, nu=p.nu),
        "svdd": partial(SVDD, nu=p.nu),
    }  # fmt: skip
    machine = machines[p.svm_type](**chosen)
    everyone = np.arange(samples.n)
    folds = [np.sort(fold) for fold in problem.folds()]
    splits = [(np.setdiff1d(everyone, fold, assume_unique=True), fold) for fold in folds]
    scorer = minus_squared_errors if p.is_regression else n_right
    return Job(machine, samples.training_data(kernel), y, splits, scorer, error_score="raise")


def _class_weights(p: Parameters, order: NDArray[np.int64]) -> dict[int, float] | None:
    weights = dict.fromkeys(range(len(order)), 1.0)
    numbers = {label: number for number, label in enumerate(order.tolist())}
    for label, weight in p.weights:
        if label in numbers:
            weights[numbers[label]] *= weight
        else:
            print(f"WARNING: class label {label} specified in weight is not found", file=sys.stderr)
    return weights if p.weights else None


def n_right(estimator: Any, X: Any, y: Any) -> float:
    """Score a fold by the number of samples that are predicted right."""
    return float(np.count_nonzero(estimator.predict(X) == y))


def minus_squared_errors(estimator: Any, X: Any, y: Any) -> float:
    """Score a fold by the sum of squared errors; with a minus, so that more is better."""
    return -float(((estimator.predict(X) - y) ** 2).sum())


# Options that svm-train does not have, which change what is trained. A program that refuses them says so.
_OURS = ("loss", "gap-tol")


@dataclass(frozen=True)
class Program:
    """An ``svm-train`` that is run for every point.

    Attributes
    ----------
    command : tuple of str
        The program, and words that come first.
    options : tuple of str
        What is passed on to it.
    path : str
        The data file.
    n_folds : int
        Number of folds.
    """

    command: tuple[str, ...]
    options: tuple[str, ...]
    path: str
    n_folds: int

    @classmethod
    def of(cls, parsed: Parsed) -> Program:
        """Take it from a command line: ``-svmtrain``'s program, or ``hinge train`` where none is named."""
        own = (sys.executable, "-m", "hinge.cli", "train", "--threads", "1")
        command = own if parsed["svmtrain"] is None else (parsed["svmtrain"],)
        return cls(command, tuple(_train_words(parsed)), parsed.files[0], parsed["folds"])

    def rate(self, point: Point) -> float:
        """Run the program; RuntimeError says why it gave no rate."""
        words = list(self.command)
        for flag, exponent in zip(("-c", "-g"), point, strict=True):
            words += [] if exponent is None else [flag, str(2.0**exponent)]
        words += ["-v", str(self.n_folds), *self.options, self.path]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, errors="replace"
        ) as process:
            output, errors = _outputs(process)
        found = [line for line in output.splitlines() if "Cross" in line]
        if process.returncode or not found:
            complaint = errors.strip().splitlines() or [f"it ended with {process.returncode} and printed no rate"]
            raise RuntimeError(f"{self.command[0]} failed at {words[1:]}: {complaint[0]}")
        return float(found[0].split()[-1].rstrip("%"))


def run_program(program: Program, points: Sequence[Point], threads: int | None, on_rate: OnRate) -> None:
    """Find rates by running a program for every point, several at a time."""
    with catching(), ThreadPoolExecutor(threads or available_threads()) as pool, together():
        futures = {submit(pool, program.rate, point): point for point in points}
        try:
            for future in as_completed(futures):
                on_rate(futures[future], future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _outputs(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return what a program prints in the end, on its output and as errors; end it if somebody asks to stop."""
    while True:
        try:
            return process.communicate(timeout=_SECONDS_TO_LOOK)
        except subprocess.TimeoutExpired:
            if requested():
                process.kill()
                process.communicate()
                raise Cancelled from None


def _train_words(parsed: Parsed) -> Iterator[str]:
    """Return the options that were given and decide about a rate, in svm-train's spelling where it has them."""
    for option in TRAIN.options:
        if option.long not in parsed.given or option.long == "folds" or not (option.short or option.long in _OURS):
            continue
        yield f"-{option.short}" if option.short else f"--{option.long}"
        if option.n_words:
            yield str(parsed[option.long])
    for label, weight in parsed.weights:
        yield from (f"-w{label}", str(weight))
