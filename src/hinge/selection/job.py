"""What a search has to do: the job that all workers share, units of work, and the cells they fill.

A *cell* is one candidate (one setting of the parameters) with the scores of all its folds. A *unit* is a list of
cells with the same kernel: they share every kernel value, and each starts from its neighbour's solution. Jobs,
units and cells are plain values: they can be pickled, sent to other computers and written to files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hinge.estimators.base import KernelMachine
from hinge.kernel.kernels import kind_of
from hinge.report import Report

T = TypeVar("T")

Split = tuple[NDArray[np.intp], NDArray[np.intp]]

# Parameters that change kernel values; all others change only what is done with them.
KERNEL_PARAMETERS = ("kernel", "gamma", "degree", "coef0")


@dataclass(eq=False)
class Job:
    """What all units of a search have in common; send it to a worker once.

    Parameters
    ----------
    estimator : KernelMachine
        The estimator whose parameters are searched; it is cloned, never fitted.
    X, y : array-like
        The data.
    splits : sequence of (train, test) index arrays
        The folds.
    scorer : callable or None
        ``scorer(estimator, X, y)`` returns a number or a dictionary of numbers. None is the estimator's own score.
    sample_weight : array, optional
        Passed to fits, and to a scorer that takes weights.
    return_train_score : bool
        Whether training folds are scored too.
    error_score : float or "raise"
        Score of a fold whose fit or scorer fails.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import SVC
    >>> from hinge.selection import Job, evaluate_unit, plan
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> job = Job(SVC(), X, y, splits=[(np.array([0, 3]), np.array([1, 2]))], scorer=None)
    >>> (unit,) = plan(job.estimator, [{"C": 1.0}, {"C": 10.0}])
    >>> [cell.test_scores["score"] for cell in evaluate_unit(job, unit)]
    [[1.0], [1.0]]
    """

    estimator: KernelMachine
    X: Any
    y: Any
    splits: Sequence[Split]
    scorer: Any
    sample_weight: Any = None
    return_train_score: bool = False
    error_score: Any = np.nan

    def __post_init__(self) -> None:
        cls = type(self.estimator)
        if not cls.fit.__module__.startswith(KernelMachine.__module__.partition(".")[0] + "."):
            raise TypeError(
                f"{cls.__name__} has a fit of its own, and fits that share kernel values would not call it; use "
                "scikit-learn's functions of the same name (GridSearchCV for GridSearch)"
            )
        self._shared: Any = None
        self._lock = threading.Lock()

    def shared(self, make: Callable[[Job], T]) -> T:
        """Return what all units that run in this process share, made by the first of them; it does not travel."""
        with self._lock:
            if self._shared is None:
                self._shared = make(self)
            return self._shared

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_shared", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()


@dataclass(frozen=True)
class Unit:
    """Candidates that share their kernel, in the order in which they are solved.

    Attributes
    ----------
    candidates : tuple of dict
        Parameters of each.
    indices : tuple of int
        Their places in the list that was planned.

    Examples
    --------
    >>> from hinge import SVC
    >>> from hinge.selection import plan
    >>> (unit,) = plan(SVC(), [{"C": 10.0}, {"C": 1.0}])
    >>> unit.candidates
    ({'C': 1.0}, {'C': 10.0})
    """

    candidates: tuple[dict[str, Any], ...]
    indices: tuple[int, ...]


@dataclass(frozen=True)
class Cell:
    """A candidate and what its folds came to.

    Attributes
    ----------
    index : int
        Place of the candidate in the list that was planned.
    params : dict
        Its parameters.
    test_scores, train_scores : dict of lists
        Score of each fold, by the name of the metric ("score" where there is one only). No training scores
        unless asked for.
    fit_seconds, score_seconds : list of float
        Time of each fold.
    reports : list of Report or None
        How each fold's fit ended: status, violation, gap and so on; None for one that failed.
    failures : list of str or None
        Why a fold's fit failed.
    is_shared : bool
        Whether every kernel value was computed once; False where the matrix did not fit into memory.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from hinge import SVC
    >>> from hinge.selection import GridSearch
    >>> search = GridSearch(SVC(), {"C": [1.0, 10.0]}).fit(*make_moons(60, noise=0.1, random_state=0))
    >>> sorted(search.cv_results_)[:2]      # made from one cell for each candidate
    ['mean_fit_time', 'mean_score_time']
    """

    index: int
    params: dict[str, Any]
    test_scores: dict[str, list[float]]
    train_scores: dict[str, list[float]]
    fit_seconds: list[float]
    score_seconds: list[float]
    reports: list[Report | None]
    failures: list[str | None]
    is_shared: bool

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON if the parameters are."""
        return {**asdict(self), "reports": [None if r is None else r.as_dict() for r in self.reports]}


def plan(estimator: KernelMachine, candidates: Iterable[Mapping[str, Any]]) -> list[Unit]:
    """Put candidates into units: the same kernel together, C (or ν) ascending.

    Parameters
    ----------
    estimator : KernelMachine
        Where parameters that a candidate does not name come from.
    candidates : iterable of dict
        Parameters of every candidate.

    Returns
    -------
    list of Unit
        In the order in which their first candidates came.

    Examples
    --------
    >>> from hinge import SVC
    >>> units = plan(SVC(), [{"C": 4.0, "gamma": 1.0}, {"C": 1.0, "gamma": 2.0}, {"C": 2.0, "gamma": 1.0}])
    >>> [unit.indices for unit in units]
    [(2, 0), (1,)]
    """
    defaults = {name: getattr(estimator, name) for name in KERNEL_PARAMETERS}  # subclasses may hide parameters
    groups: dict[Any, list[tuple[Any, int, dict[str, Any]]]] = {}
    for index, candidate in enumerate(candidates):
        params = dict(candidate)
        order = _solving_order(params)
        groups.setdefault(_kernel_key({**defaults, **params}), []).append((order, index, params))
    units = []
    for members in groups.values():
        members.sort(key=lambda member: member[:2])
        units.append(Unit(tuple(m[2] for m in members), tuple(m[1] for m in members)))
    return units


def _kernel_key(params: Mapping[str, Any]) -> tuple[Any, ...]:
    kernel = params["kernel"]
    if callable(kernel):
        return (id(kernel),)
    return (kernel, *(params[name] for name in kind_of(kernel).uses))


def _solving_order(params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Everything else first, so that neighbours differ in C or ν alone, which ascend."""
    others = sorted(
        (name, repr(value)) for name, value in params.items() if name not in ("C", "nu", *KERNEL_PARAMETERS)
    )
    return (others, float(params.get("nu", 0.0)), float(params.get("C", 0.0)))
