"""The course of a run: what is recorded of it when somebody asks, and how that is asked for."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Tracing:
    """What to record of a run.

    Parameters
    ----------
    every_step : bool
        Record every step: each pair step of ``"smo"``, each working set or round of the other methods. By default
        points are left out where recording them would take more than a tenth of the run's time.
    beta : bool
        Keep β of every point too.

    Examples
    --------
    >>> import numpy as np
    >>> from hinge import Gram, Kernel, Settings, Tracing, solve
    >>> from hinge.dual.formulations import c_svc
    >>> gram = Gram(np.array([[0.0], [1.0], [2.0], [3.0]]), Kernel("linear"))
    >>> settings = Settings(solver="smo", rule="mvp", trace=Tracing(every_step=True, beta=True))
    >>> trace = solve(c_svc([-1, -1, 1, 1], C=10.0), gram, settings).report.trace
    >>> trace.iterations, trace.objective.round(6)
    (array([0, 1, 2, 3]), array([ 0.   , -0.5  , -0.875, -2.   ]))
    """

    every_step: bool = False
    beta: bool = False


@dataclass(frozen=True, eq=False)
class Trace:
    """How a run went on, one entry for every point that was recorded; the last one is the solution.

    All figures are those of all samples, also where the solver worked on some of them only.

    Attributes
    ----------
    seconds : float64 array
        Time since the start, without what recording took.
    iterations, kernel_evaluations : int64 arrays
        Work done so far.
    objective, violation, gap : float64 arrays
        Where the run stood.
    n_active : int64 array
        Samples that the solver worked on.
    beta : float64 array of shape (n_points, n_variables) or None
        The points themselves, where they were asked for.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from hinge import SVC
    >>> trace = SVC(trace=True).fit(*make_moons(50, noise=0.2, random_state=0)).report_.trace
    >>> bool(trace.violation[-1] <= 1e-3), len(trace) == len(trace.seconds)
    (True, True)
    """

    seconds: NDArray[np.float64]
    iterations: NDArray[np.int64]
    kernel_evaluations: NDArray[np.int64]
    objective: NDArray[np.float64]
    violation: NDArray[np.float64]
    gap: NDArray[np.float64]
    n_active: NDArray[np.int64]
    beta: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.seconds)

    def shifted(self, seconds: float, iterations: int) -> Trace:
        """Return the trace of the same run, begun after so much work."""
        return replace(self, seconds=self.seconds + seconds, iterations=self.iterations + iterations)

    def followed_by(self, other: Trace) -> Trace:
        """Return this trace with a later one behind it."""
        names = [field.name for field in fields(self)]
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in names}
        joined: Any = {name: None if pair[0] is None else np.concatenate(pair) for name, pair in pairs.items()}
        return Trace(**joined)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as lists, ready for JSON."""
        columns = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: column.tolist() for name, column in columns if column is not None}
