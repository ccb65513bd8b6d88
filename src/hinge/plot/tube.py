"""Regressions: the curve, the tube in which errors cost nothing, and the samples that hold it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from hinge.arrays import Vector
from hinge.plot.style import Display, colour_of, draw_rings, ink_of, legend_beside
from hinge.plot.subjects import Subject, dense, names_of, rows_like

_CURVE_POINTS = 500
_ROOM = 0.04


@dataclass(eq=False)
class RegressionTube(Display):
    """A regression and its tube.

    Over one feature the curve is drawn. Of several features the picture shows what was observed against what is
    predicted: the diagonal is a perfect prediction, and the tube lies around it.

    Attributes
    ----------
    across, curve : arrays
        Where the curve is drawn, and its height.
    x, y : arrays
        The samples.
    half_width : float or None
        Half of the tube's width, in units of the target; None where it is not known.
    strengths : array or None
        α of the samples.
    name : str
        What the horizontal axis is.
    title : str
        What is said above.
    """

    across: Vector
    curve: Vector
    x: Vector
    y: Vector
    half_width: float | None
    strengths: Vector | None
    name: str
    title: str

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None) -> Self:
        """Draw a fitted regression.

        Parameters
        ----------
        estimator : SVR, NuSVR, a pipeline or a search
            The machine, Hinge's or scikit-learn's.
        X, y : array-like
            Samples and targets. ν-SVR finds its own tube, which only the samples that it was trained on can tell.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        %(drawn)s

        Examples
        --------
        >>> import numpy as np
        >>> from hinge import SVR
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> display = RegressionTube.from_estimator(SVR(epsilon=0.2).fit(X, np.sin(X[:, 0])), X, np.sin(X[:, 0]))
        >>> display.half_width
        0.2
        """
        subject = Subject.of(estimator)
        if subject.is_classifier or subject.is_one_class:
            raise TypeError("a tube belongs to a regression; DecisionBoundary draws classes")
        values, names, y = dense(X), names_of(subject.estimator, X), np.asarray(y, dtype=np.float64)
        predicted = np.asarray(subject.estimator.predict(X), dtype=np.float64)
        strengths = subject.strengths(len(y))
        half_width = _half_width(subject.machine, y - predicted, strengths)
        if values.shape[1] == 1:
            x, name = values[:, 0], names[0]
            across = _span(x)
            curve = np.asarray(subject.estimator.predict(rows_like(X, across[:, None])))
        else:
            x, name = predicted, "predicted"
            across = curve = _span(np.concatenate([predicted, y]))
        return cls(across, curve, x, y, half_width, strengths, name, subject.title).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to; by default a new figure.
        """
        ax = self._begin(ax)
        is_curve = self.across is not self.curve
        size = float(np.clip(4000 / len(self.x), 10, 22))
        if self.half_width is not None:
            low, high = self.curve - self.half_width, self.curve + self.half_width
            label = f"tube, ±{self.half_width:.3g}"
            ax.fill_between(self.across, low, high, color=colour_of(0), alpha=0.18, linewidth=0, label=label)
        label = "prediction" if is_curve else "perfect prediction"
        ax.plot(self.across, self.curve, color=colour_of(0), linewidth=1.6, label=label)
        ax.scatter(self.x, self.y, s=size, color=colour_of(1), label=f"sample ({len(self.x)})", zorder=3,
                   edgecolors="white", linewidths=0.3)  # fmt: skip
        if self.strengths is not None:
            support = self.strengths > 0
            draw_rings(ax, self.x[support], self.y[support], self.strengths[support])
        ax.set(xlabel=self.name, ylabel="target" if is_curve else "observed")
        ax.set_xlim(self.across[0], self.across[-1])
        ax.grid(alpha=0.25, color=ink_of(ax), linewidth=0.4)
        ax.set_title(self.title, fontsize=10, loc="left")
        legend_beside(ax)
        return self


def _half_width(machine: Any, residuals: Vector, strengths: Vector | None) -> float | None:
    """Return ε, or what ν-SVR has chosen: its free support vectors lie on the edge of the tube."""
    if not hasattr(machine, "nu"):
        return None if machine.epsilon is None else float(machine.epsilon)
    if strengths is None:
        return None
    is_free = (strengths > 0) & (strengths < (1 - 1e-9) * float(machine.C))
    return float(np.median(np.abs(residuals[is_free]))) if is_free.any() else None


def _span(values: Vector) -> Vector:
    low, high = float(values.min()), float(values.max())
    room = _ROOM * (high - low) or 1.0
    return np.linspace(low - room, high + room, _CURVE_POINTS)
