"""What all pictures share: colours, markers, axes, and the one place that imports matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.arrays import Vector

# Okabe and Ito's palette without its yellow, which is too pale on white; violet, grey and olive come last.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#7F7F7F", "#B8A800")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
LINES = ("-", "--", "-.", ":")

#: Size of a picture of its own, in inches.
INCHES = (7.2, 4.8)

# Areas of the smallest and the largest ring around a support vector, in points².
_RINGS = (40.0, 220.0)
_FEW_RINGS = 40

# Area of a mark in a legend, in points².
_IN_LEGEND = 34.0

# Beyond this many entries a legend takes more room than the data.
MOST_IN_LEGEND = 14


def pyplot() -> Any:
    """Import matplotlib's pyplot, or say how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise missing_matplotlib() from error
    return plt


def blank_figure(inches: tuple[float, float] = INCHES) -> Any:
    """Return a figure that belongs to no window: for files."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise missing_matplotlib() from error
    return Figure(figsize=inches, layout="constrained")


def missing_matplotlib() -> ModuleNotFoundError:
    """Return the error of a picture without matplotlib."""
    return ModuleNotFoundError("plots need matplotlib: pip install 'hinge-svm[plot]'", name="matplotlib")


# What is said of everything that draws a picture from what a user has.
_DRAWN = """Returns
        -------
        {}
            The picture, drawn."""


class Display:
    """Base of the pictures.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Where it was drawn.
    figure_ : matplotlib.figure.Figure
        The figure of the axes.
    """

    ax_: Any
    figure_: Any

    def __init_subclass__(cls) -> None:
        for method in vars(cls).values():
            if isinstance(method, classmethod) and method.__doc__:
                method.__func__.__doc__ = method.__doc__.replace("%(drawn)s", _DRAWN.format(cls.__name__))

    def _begin(self, ax: Any) -> Any:
        """Take the axes given, or make a figure with new ones."""
        if ax is None:
            _, ax = pyplot().subplots(figsize=INCHES, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


def ink_of(ax: Any) -> Any:
    """Return the colour of the labels: lines in it are seen on a dark page, too."""
    return ax.xaxis.label.get_color()


def paper_of(ax: Any) -> Any:
    """Return the colour behind the data: thin edges in it part marks that overlap."""
    return ax.get_facecolor()


def colour_of(k: int) -> str:
    """Return the colour of the k-th class or curve."""
    return COLOURS[k % len(COLOURS)]


def marker_of(k: int) -> str:
    """Return the marker of the k-th class: no two of the first 81 have colour and marker in common."""
    return MARKERS[(k + k // len(COLOURS)) % len(MARKERS)]


def line_of(k: int) -> str:
    """Return the line style of the k-th curve."""
    return LINES[(k + k // len(COLOURS)) % len(LINES)]


def legend_beside(ax: Any) -> None:
    """Put the legend to the right of the data, never on it."""
    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return
    if len(labels) > MOST_IN_LEGEND:
        n_left = len(labels) - MOST_IN_LEGEND + 1
        handles, labels = handles[: MOST_IN_LEGEND - 1], labels[: MOST_IN_LEGEND - 1]
        labels[-1] = f"{labels[-1]}   (and {n_left} more)"
    drawn = ax.legend(
        handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9, borderaxespad=0.0
    )
    for handle in drawn.legend_handles:
        if hasattr(handle, "set_sizes"):  # samples may be drawn too small for a legend
            handle.set_sizes([_IN_LEGEND])


def ring_areas(strengths: Vector) -> Vector:
    """Return areas of rings around support vectors: they grow with α, and shrink where there are many."""
    largest = float(strengths.max(initial=0.0))
    share = strengths / largest if largest > 0 else strengths
    smaller = np.sqrt(_FEW_RINGS / max(len(strengths), _FEW_RINGS))  # of many rings one would see nothing else
    return np.asarray(smaller * (_RINGS[0] + (_RINGS[1] - _RINGS[0]) * share))


def draw_rings(ax: Any, x: Vector, y: Vector, strengths: Vector) -> None:
    """Draw rings around support vectors, as large as their α."""
    label = "support vector (size: α)"
    look = {"facecolors": "none", "edgecolors": ink_of(ax), "linewidths": 0.8, "alpha": 0.75, "zorder": 4}
    ax.scatter(x, y, s=ring_areas(strengths), label=label, **look)
