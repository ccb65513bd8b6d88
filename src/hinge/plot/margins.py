"""How clearly samples are decided: a histogram of margins, or of a regression's errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from hinge.arrays import Vector
from hinge.plot.style import Display, colour_of, ink_of, legend_beside, paper_of
from hinge.plot.subjects import Subject, codes_of

_HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++", "oo")

# Free support vectors lie on the margin, but for the tolerance of the fit.
_ON_THE_MARGIN = 2e-3

# Few values that are far from all others do not squeeze these: a range has this share of them and some room.
_MOST_OF_THEM = 0.005
_ROOM = 0.5

# Classes beyond which their shares of a bar cannot be told apart.
_MOST_CLASSES = 7


@dataclass(eq=False)
class Margins(Display):
    """A histogram of margins: how far samples are on their right side, where 1 is the margin.

    Of a regression it shows errors, of one class decisions.

    Attributes
    ----------
    values : array
        The margin of every sample.
    groups : dict of arrays
        The values to stack, by name of the class.
    marks : dict of float
        Lines that mean something, by name.
    label : str
        What the horizontal axis is.
    title : str
        What is said above.
    """

    values: Vector
    groups: dict[str, Vector]
    marks: dict[str, list[float]]
    label: str
    title: str

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, bins: int = 40, ax: Any = None) -> Self:
        """Draw the margins of samples.

        Parameters
        ----------
        estimator : estimator
            A fitted machine, Hinge's or scikit-learn's, a pipeline or a search.
        X, y : array-like
            Samples, and their classes or targets; one class needs none.
        bins : int
            Number of bars.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        %(drawn)s

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from hinge import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> bool((Margins.from_estimator(SVC().fit(X, y), X, y).values < 0).mean() < 0.05)
        True
        """
        subject = Subject.of(estimator)
        if subject.is_one_class:
            values = np.asarray(subject.estimator.decision_function(X), dtype=np.float64)
            said = f"{np.mean(values < 0):.1%} are outliers"
            display = cls(values, {"": values}, {"boundary": [0.0]}, "decision value", said)
        elif y is None:
            raise ValueError("margins are those of samples whose class or target is known: pass y")
        elif subject.is_classifier:
            display = cls._of_classes(subject, subject.margins(X, y), y)
        else:
            display = cls._of_errors(subject, np.asarray(y) - np.asarray(subject.estimator.predict(X)))
        display.title = f"{subject.title}\n{display.title}"
        return display.plot(bins=bins, ax=ax)

    @classmethod
    def _of_classes(cls, subject: Subject, values: Vector, y: Any) -> Self:
        classes = subject.machine.classes_
        codes = codes_of(y, classes)
        groups = {str(name): values[codes == k] for k, name in enumerate(classes)}
        wrong, within = float(np.mean(values < 0)), float(np.mean((values >= 0) & (values < 1 - _ON_THE_MARGIN)))
        label = "margin of the own class" if len(classes) == 2 else "margin against the nearest other class"
        said = f"{wrong:.1%} on the wrong side, {within:.1%} within the margin"
        shown = groups if len(classes) <= _MOST_CLASSES else {"": values}
        return cls(values, shown, {"boundary": [0.0], "margin": [1.0]}, label, said)

    @classmethod
    def _of_errors(cls, subject: Subject, values: Vector) -> Self:
        marks, said = {}, f"median of |error| {np.median(np.abs(values)):.3g}"
        if not hasattr(subject.machine, "nu") and subject.machine.epsilon is not None:
            width = float(subject.machine.epsilon)
            marks, outside = {f"tube, ±{width:g}": [-width, width]}, float(np.mean(np.abs(values) > width))
            said = f"{said}, {outside:.1%} outside of the tube"
        return cls(values, {"": values}, marks, "error (observed − predicted)", said)

    def plot(self, *, bins: int = 40, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        bins : int
            Number of bars.
        ax : matplotlib axes, optional
            Where to; by default a new figure.
        """
        ax = self._begin(ax)
        low, high = _range(self.values)
        edges = np.linspace(low, high, bins + 1)
        beyond = int(np.count_nonzero((self.values < low) | (self.values > high)))
        names, shown = list(self.groups), [np.clip(values, low, high) for values in self.groups.values()]
        drawn = ax.hist(
            shown, bins=edges, stacked=True, label=names if any(names) else None,
            color=[colour_of(k) for k in range(len(names))], edgecolor=paper_of(ax), linewidth=0.3,
        )[2]  # fmt: skip
        for k, bars in enumerate(drawn if len(names) > 1 else []):
            for bar in bars:
                bar.set_hatch(_HATCHES[k % len(_HATCHES)])
        for line, (name, places) in zip(("-", "--"), self.marks.items(), strict=False):
            for k, place in enumerate(places):
                ax.axvline(place, color=ink_of(ax), linestyle=line, linewidth=1.1, label=None if k else name)
        lost = f"; {beyond} beyond the axis are in its last bars" if beyond else ""
        ax.set(xlabel=self.label + lost, ylabel="samples")
        ax.set_title(self.title, fontsize=10, loc="left")
        legend_beside(ax)
        return self


def _range(values: Vector) -> tuple[float, float]:
    """Return what the axis spans: all values, unless a few are far from the others."""
    low, high = float(values.min()), float(values.max())
    first, last = np.quantile(values, [_MOST_OF_THEM, 1 - _MOST_OF_THEM])
    room = _ROOM * float(last - first)
    if room > 0:
        low, high = max(low, float(first) - room), min(high, float(last) + room)
    return (low, high) if low < high else (low - 0.5, high + 0.5)
