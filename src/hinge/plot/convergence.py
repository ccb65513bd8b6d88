"""How a fit came to its end: violation and gap over time, from a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from hinge.arrays import Vector
from hinge.plot.style import Display, colour_of, ink_of, legend_beside, line_of, marker_of
from hinge.plot.subjects import Subject
from hinge.trace import Trace

Work = Literal["seconds", "iterations", "kernel_evaluations"]

_LABELS = {"seconds": "seconds", "iterations": "steps", "kernel_evaluations": "kernel values computed"}

# A logarithmic axis has no place for zero; what is below is rounding.
_LEAST = 1e-16

# Markers along a curve.
_MARKS = 8


@dataclass(eq=False)
class Convergence(Display):
    """Violation over time, of one run with its gap beside it.

    Attributes
    ----------
    traces : mapping of Trace
        The runs, by name.
    tol : float or None
        The tolerance, drawn as a line.
    title : str
        What is said above.
    """

    traces: Mapping[str, Trace]
    tol: float | None = None
    title: str = ""

    @classmethod
    def from_estimator(cls, estimator: Any, *, work: Work = "seconds", ax: Any = None) -> Self:
        """Draw how a fit with ``trace=True`` went.

        Parameters
        ----------
        estimator : estimator
            A fitted machine of Hinge, or a pipeline that ends with one.
        work : {"seconds", "iterations", "kernel_evaluations"}
            What the horizontal axis is.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        %(drawn)s

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from hinge import SVC
        >>> machine = SVC(trace=True).fit(*load_iris(return_X_y=True))
        >>> Convergence.from_estimator(machine).ax_.get_yscale()
        'log'
        """
        subject = Subject.of(estimator)
        reports = getattr(subject.machine, "reports_", ())
        names = getattr(reports, "names", [""] * len(reports))
        traces = {name: r.trace for name, r in zip(names, reports, strict=True) if r.trace is not None}
        if not traces:
            raise ValueError("there is no trace of this fit: fit with trace=True")
        if len(traces) == 1:
            traces = {"": next(iter(traces.values()))}
        return cls(traces, float(subject.machine.tol), subject.title).plot(work=work, ax=ax)

    def plot(self, *, work: Work = "seconds", ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        work : {"seconds", "iterations", "kernel_evaluations"}
            What the horizontal axis is.
        ax : matplotlib axes, optional
            Where to; by default a new figure.
        """
        if work not in _LABELS:
            raise ValueError(f"work is one of {', '.join(_LABELS)}, got {work!r}")
        ax = self._begin(ax)
        for k, (name, trace) in enumerate(self.traces.items()):
            is_alone = len(self.traces) == 1
            self._draw(ax, k, "violation" if is_alone else name, getattr(trace, work), trace.violation)
            if is_alone:
                self._draw(ax, 1, "duality gap", getattr(trace, work), trace.gap)
        if self.tol is not None:
            ax.axhline(self.tol, color=ink_of(ax), linestyle=":", linewidth=1.0, label=f"tolerance {self.tol:g}")
        ax.set(yscale="log", xlabel=_LABELS[work])
        ax.locator_params(axis="x", nbins=5)  # seconds of small fits have many digits
        ax.set_ylabel("violation, duality gap" if len(self.traces) == 1 else "violation on all samples")
        ax.grid(alpha=0.25, color=ink_of(ax), linewidth=0.4)
        ax.set_title(self.title, fontsize=10, loc="left")
        legend_beside(ax)
        return self

    def _draw(self, ax: Any, k: int, label: str, work: Vector, height: Vector) -> None:
        every = max(len(work) // _MARKS, 1)
        look = {"color": colour_of(k), "linestyle": line_of(k), "marker": marker_of(k), "markersize": 4}
        ax.plot(work, np.maximum(height, _LEAST), label=label, markevery=every, linewidth=1.4, **look)
