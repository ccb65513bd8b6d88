"""Transduction: samples without labels get some, such that a wide margin separates all (Joachims 1999).

What is to be minimised depends on the labels z of the unlabelled samples too,

    ½ ‖w‖²  +  C Σ ξ_labelled  +  C*₊ Σ ξ over z = +1  +  C*₋ Σ ξ over z = −1,

and so nobody finds its least value but by trying them all. Joachims' algorithm finds a good one: the machine of
the labelled samples alone gives the first labels, as many positive ones as wanted. C* begins small and doubles. At
each price a positive and a negative label change places wherever that lowers the objective (as it does where both
have a slack and ξ_m + ξ_l > 2, theorem 2), all such pairs at once, and the machine is trained again, from where it
was. No step at one price raises the objective: one that would, because the machine is known to its tolerance only,
is taken back. The end is a local optimum in the labels: no exchange of two of them lowers the objective by more
than that tolerance, as long as the machine stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hinge.arrays import Index, Vector
from hinge.dual.formulations import c_svc
from hinge.report import Status
from hinge.training.data import TrainingData
from hinge.training.formulation import Classification, Decide
from hinge.training.machine import Machine
from hinge.training.tasks import Task

#: The number of the class of a sample without label.
UNLABELLED = -1

_ENDED = (Status.TIME_LIMIT, Status.INTERRUPTED, Status.ITERATION_LIMIT)


@dataclass(frozen=True)
class Growth:
    """How the price of unlabelled samples grows.

    Attributes
    ----------
    first : float
        The first price, as a share of the last.
    factor : float
        By how much it grows when no exchange of labels helps.
    """

    first: float = 1e-5
    factor: float = 2.0


class Step(NamedTuple):
    """One step of a transduction.

    Attributes
    ----------
    machine : int
        Which machine: 0 for two classes, else the number of the class that it tells from the rest.
    prices : tuple of float
        C* of the positive and of the negative unlabelled samples.
    exchanged : int
        Pairs of labels that changed places before the machine was trained again; 0 where the price had grown.
    before, exchanged_to, after : float
        The objective before the labels changed places, after that with the same machine, and with the machine that
        was trained then. Where the price had grown all three are the last.
    is_kept : bool
        Whether it was kept; what would have raised the objective is taken back.
    """

    machine: int
    prices: tuple[float, float]
    exchanged: int
    before: float
    exchanged_to: float
    after: float
    is_kept: bool = True


@dataclass
class _Standing:
    """Where the labels of one machine stand: z, the prices, and what is to be compared with the next machine."""

    z: Vector
    prices: tuple[float, float]  # of positive and negative unlabelled samples
    pending: tuple[Vector, Vector, int, float, float] | None = (
        None  # z and β to go back to, and the step under way
    )
    is_settled: bool = False


class Transduction(Classification):
    """Two classes, or each of many against the rest, with samples whose label is to be found.

    Parameters
    ----------
    data : TrainingData
        The samples that count; their targets are numbers of classes, `UNLABELLED` for none.
    labels : array
        The classes by number.
    C, C_unlabeled : float
        Price of labelled samples, and the last price of unlabelled ones.
    shares : array of shape (n_classes,)
        Share of each class among the unlabelled samples.
    growth : Growth, optional
        How that price comes there.

    Attributes
    ----------
    steps : list of Step
        What has been done.
    """

    def __init__(
        self, data: TrainingData, labels: NDArray[np.generic], C: float, C_unlabeled: float, shares: Vector,
        growth: Growth | None = None,
    ) -> None:  # fmt: skip
        self._labels = labels
        super().__init__(data, "ovr", np.ones(len(labels)), lambda y, costs: c_svc(y, 1.0, costs))
        self._codes = np.asarray(data.y, np.int64)
        self._is_open = self._codes == UNLABELLED
        self._C, self._last, self._shares = C, C_unlabeled, shares
        self._growth = growth or Growth()
        self._standings: dict[int, _Standing] = {}
        self._ended: set[int] = set()
        self.steps: list[Step] = []

    @property
    def labels(self) -> NDArray[np.generic]:
        """The classes, sorted."""
        return self._labels

    @property
    def strata(self) -> Index:
        """The class number of every sample: the given one, or what has been found for it."""
        codes = self._codes.copy()
        if not self._standings:
            return np.maximum(codes, 0)
        signs = np.column_stack([self._standings[k].z for k in range(len(self._duels)) if k in self._standings])
        found = (signs[:, 0] > 0) if len(self._duels) == 1 else np.argmax(signs, axis=1)
        codes[self._is_open] = found[self._is_open]
        return codes

    @property
    def order(self) -> None:
        """Support vectors are sorted by their place: the classes of some are only guessed."""

    def tasks(self) -> Sequence[Task]:  # type: ignore[override]
        """Return the machines with the labels that are known by now; unlabelled samples count nothing at first."""
        return [self._task_of(k) for k in range(len(self._duels))]

    def costs_and_signs(self, k: int) -> tuple[Vector, Vector]:
        """Return the cost and the sign ±1 of every sample, as machine k sees them by now."""
        z = np.where(self._codes == self._duels[k].positive, 1.0, -1.0)
        costs = np.where(self._is_open, 0.0, self._C) * self.data.weights
        if k in self._standings:
            standing, up = self._standings[k], self._standings[k].z > 0
            z = standing.z
            open_costs = np.where(up, *standing.prices) * self.data.weights
            costs = np.where(self._is_open, open_costs, costs)
        return costs, z

    def _task_of(self, k: int, start: Vector | None = None) -> Task:
        costs, z = self.costs_and_signs(k)
        return Task(np.arange(len(z)), c_svc(z, 1.0, costs), k, start=start)

    # ------------------------------------------------------------------ the schedule

    def revised(self, machines: Sequence[Machine], decide: Decide) -> list[Task]:
        """Return the machines that go on, each with other labels or at another price."""
        if not self._is_open.any():
            return []
        return [task for k in range(len(machines)) if (task := self._next(k, machines[k], decide)) is not None]

    def _next(self, k: int, machine: Machine, decide: Decide) -> Task | None:
        if k in self._ended:
            return None
        if machine.solution.report.status in _ENDED:
            self._ended.add(k)
            if k not in self._standings:  # some labels there must be
                self._begin(k, decide(machine))
                self._standings[k].prices = (0.0, 0.0)  # this machine knows nothing of them
            return None
        decisions = decide(machine)
        if k not in self._standings:
            self._begin(k, decisions)
            return self._task_of(k, machine.solution.beta)
        standing, beta = self._standings[k], machine.solution.beta
        if standing.pending is not None and (task := self._compare(k, machine, decisions)) is not None:
            return task
        objective = self._objective(k, machine, decisions)
        if not standing.is_settled and (pairs := self._exchanges(k, decisions)) is not None:
            old = standing.z.copy()
            standing.z[pairs.ravel()] *= -1
            exchanged_to = self._objective(k, machine, decisions)
            if exchanged_to < objective:  # or rounding has made it look worthwhile
                standing.pending = old, beta, len(pairs), objective, exchanged_to
                return self._task_of(k, np.where(standing.z == old, beta, 0.0))
            standing.z = old
        if min(standing.prices) >= self._last:
            self._ended.add(k)
            return None
        up, down = (min(self._growth.factor * price, self._last) for price in standing.prices)
        standing.prices, standing.is_settled = (up, down), False
        objective = self._objective(k, machine, decisions)
        self.steps.append(Step(k, standing.prices, 0, objective, objective, objective))
        return self._task_of(k, beta)

    def _begin(self, k: int, decisions: Vector) -> None:
        """Give the samples of the highest decisions a positive label: as many as wanted."""
        z = np.where(self._codes == self._duels[k].positive, 1.0, -1.0)
        mine = np.flatnonzero(self._is_open)
        n_up = round(float(self._shares[self._duels[k].positive]) * len(mine))
        best = mine[np.argsort(-decisions[mine], kind="stable")[:n_up]]
        z[best] = 1.0
        first = self._growth.first * self._last
        # Both sides begin with the same total: a rare class does not drown in the other one.
        ratio = n_up / (len(mine) - n_up) if 0 < n_up < len(mine) else 1.0
        self._standings[k] = _Standing(z, (min(first / ratio, self._last), first))

    def _compare(self, k: int, machine: Machine, decisions: Vector) -> Task | None:
        """Look at what an exchange has led to; return the way back if that is not further down."""
        standing = self._standings[k]
        assert standing.pending is not None
        z, beta, count, before, exchanged_to = standing.pending
        standing.pending = None
        after = self._objective(k, machine, decisions)
        is_kept = after < before
        self.steps.append(Step(k, standing.prices, count, before, exchanged_to, after, is_kept))
        if is_kept:
            return None
        standing.z, standing.is_settled = z, True
        return self._task_of(k, beta)

    def _exchanges(self, k: int, decisions: Vector) -> Index | None:
        """Return pairs of a positive and a negative unlabelled sample that are to change places."""
        _, z = self.costs_and_signs(k)
        up, down = self._standings[k].prices
        slack, turned = (np.maximum(1 - side * decisions, 0.0) for side in (z, -z))
        gain = self.data.weights * np.where(z > 0, up * slack - down * turned, down * slack - up * turned)
        ups, downs = (
            side[np.argsort(-gain[side], kind="stable")]
            for side in (np.flatnonzero(self._is_open & (z > 0)), np.flatnonzero(self._is_open & (z < 0)))
        )
        n = min(len(ups), len(downs))
        good = gain[ups[:n]] + gain[downs[:n]] > 0
        return np.column_stack([ups[:n][good], downs[:n][good]]) if good.any() else None

    def _objective(self, k: int, machine: Machine, decisions: Vector) -> float:
        """The objective of a machine at the labels and prices as they are."""
        costs, z = self.costs_and_signs(k)
        length = float(np.dot(machine.coefficients, decisions - machine.intercept))
        return 0.5 * length + float(np.dot(costs, np.maximum(1 - z * decisions, 0.0)))
