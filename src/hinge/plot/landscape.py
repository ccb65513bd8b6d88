"""Pictures of a search: contours of the score over two parameters, in the manner of LIBSVM (section 7, figure 2).

Matplotlib is imported when a picture is drawn; the extra ``plot`` installs it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np

from hinge.arrays import Vector
from hinge.io import atomic_write
from hinge.plot.style import Display, blank_figure, ink_of

FORMATS = ("png", "svg", "pdf")

_GREEK = {"gamma": "γ", "nu": "ν", "epsilon": "ε"}

# At most this many lines close together below the best score, and about as many levels of colour from there to the
# worst. "Close" is measured by what the better part of the points spans: the rest is far from any sensible choice.
_N_LEVELS = 6
_BETTER_PART = 0.7

# Contours lie on the colours of a map, which are the same on every page.
_INK = "#1a1a1a"

_STAR = {"marker": "*", "markersize": 17, "color": "#d55e00", "markeredgecolor": "white", "linestyle": "none"}
_DOTS = {
    "s": 10,
    "facecolor": "white",
    "edgecolor": _INK,
    "linewidths": 0.6,
    "alpha": 0.8,
    "zorder": 3,
    "clip_on": False,
}
_INCHES = (7.2, 5.4)
_DOTS_PER_INCH = 150


@dataclass(eq=False)
class Landscape(Display):
    """Scores of a search over one or two parameters, on scales of powers of two.

    Lines of equal score are close together below the best one; from there to the worst only the colours change,
    in wide steps. The colours (cividis) read the same to the colour-blind and in grey. Dots are the points that
    were tried, the star is the best of them. Over one parameter the scores are a curve.

    Parameters
    ----------
    points : sequence of sequences of float
        The parameters at every point, one or two positive numbers. The points need not form a grid.
    scores : sequence of float
        The score of each; NaN where there is none.
    names : sequence of str
        Names of the parameters: horizontal axis, vertical axis.
    title : str
        First words of the title, such as the name of the data.
    score_name, unit : str
        What the scores are.
    best : int, optional
        Which point gets the star; by default the first that has the best score.
    smaller_is_better : bool
        Whether scores are errors.

    Examples
    --------
    >>> points = [(2.0**c, 2.0**g) for c in (0, 2, 4) for g in (-6, -4, -2)]
    >>> display = Landscape(points, [70, 75, 72, 74, 80, 78, 75, 79, 76], title="an example").plot()
    >>> display.ax_.get_xlabel()
    'log₂ C'
    """

    points: Sequence[Sequence[float]]
    scores: Sequence[float]
    names: Sequence[str] = ("C", "γ")
    title: str = ""
    score_name: str = "cross-validation accuracy"
    unit: str = "%"
    best: int | None = None
    smaller_is_better: bool = False

    @classmethod
    def from_estimator(
        cls, search: Any, *, title: str = "", score_name: str = "mean test score", ax: Any = None
    ) -> Self:
        """Draw a fitted search over one or two positive parameters, such as C and γ.

        Parameters
        ----------
        search : GridSearch, or any search with scikit-learn's ``cv_results_``
            The search; with a single scoring.
        title : str
            First words of the title, such as the name of the data.
        score_name : str
            What the scores are.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        %(drawn)s
        """
        results = search.cv_results_
        columns = {key.removeprefix("param_"): list(results[key]) for key in results if key.startswith("param_")}
        varied = sorted((name for name, column in columns.items() if len(set(map(repr, column))) > 1), key=_axis)
        if not 1 <= len(varied) <= 2:
            raise ValueError(f"a plot shows a search over one or two parameters, not over {varied or 'none'}")
        for name in varied:
            strange = [value for value in columns[name] if not (isinstance(value, Real) and float(value) > 0)]
            if strange:
                raise ValueError(f"a plot needs positive numbers; {name} was also {strange[0]!r}")
        # Successive halving scores a candidate in several rounds; the last one saw the most samples.
        rows = {tuple(float(columns[name][i]) for name in varied): i for i in range(len(columns[varied[0]]))}
        best = tuple(float(columns[name][search.best_index_]) for name in varied)
        scores = [float(results["mean_test_score"][i]) for i in rows.values()]
        names = [_GREEK.get(name, name) for name in varied]
        return cls(list(rows), scores, names, title, score_name, "", list(rows).index(best)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to; by default a new figure.
        """
        values = np.asarray(self.scores, np.float64)
        places = np.log2(np.asarray(self.points, np.float64).reshape(len(values), -1))
        if places.shape[1] not in (1, 2):
            raise ValueError(f"a plot has one or two parameters, got {places.shape[1]}")
        known = np.isfinite(values)
        if not known.any():
            raise ValueError("there is no score to draw")
        best = self.best
        if best is None:
            best = int(np.argmax(np.where(known, -values if self.smaller_is_better else values, -np.inf)))
        ax = self._begin(ax)
        mark, top = places[best], float(values[best])
        places, values = places[known], values[known]
        quantity = f"{self.score_name} ({self.unit})" if self.unit else self.score_name
        if places.shape[1] == 1:
            order = np.argsort(places[:, 0])
            ax.plot(places[order, 0], values[order], "o-", color=ink_of(ax), markersize=4, linewidth=1.2)
            ax.plot([mark[0]], [top], **_STAR)
            ax.grid(alpha=0.3)
            ax.set_ylabel(quantity)
        else:
            _draw_contours(ax, places, values, quantity, self.smaller_is_better)
            ax.scatter(places[:, 0], places[:, 1], **_DOTS)
            ax.plot([mark[0]], [mark[1]], zorder=4, clip_on=False, **_STAR)
            ax.set_ylabel(f"log₂ {self.names[1]}")
            ax.yaxis.set_major_locator(_whole_numbers())
        ax.xaxis.set_major_locator(_whole_numbers())
        ax.set_xlabel(f"log₂ {self.names[0]}")
        title = _title(self.title, mark, top, self.names, self.score_name, self.unit)
        ax.set_title(title, fontsize=10, loc="left")
        return self

    def write(self, path: str | os.PathLike[str]) -> None:
        """Draw into a file, without a window and all or nothing.

        Parameters
        ----------
        path : path
            Where to; the ending, ``.png``, ``.svg`` or ``.pdf``, is the format.
        """
        suffix = picture_format(path)
        figure = blank_figure(_INCHES)
        self.plot(ax=figure.add_subplot())
        with atomic_write(path, "wb") as file:
            figure.savefig(file, format=suffix, dpi=_DOTS_PER_INCH)


def _axis(name: str) -> tuple[bool, str]:
    """C lies on the horizontal axis, as in LIBSVM's plots."""
    return (name.rpartition("__")[2] != "C", name)


def contour_levels(values: Vector, smaller_is_better: bool = False) -> tuple[Vector, Vector]:
    """Return the scores to draw lines at, and the bounds of the colours, both ascending.

    Examples
    --------
    >>> lines, bounds = contour_levels(np.array([50.0, 60.0, 80.0, 82.0, 83.0, 84.0]))
    >>> lines.tolist()
    [78.0, 79.0, 80.0, 81.0, 82.0, 83.0]
    >>> bounds.tolist()
    [50.0, 55.0, 60.0, 65.0, 70.0, 75.0, 78.0, 79.0, 80.0, 81.0, 82.0, 83.0, 84.0]
    """
    if smaller_is_better:
        lines, bounds = contour_levels(-values)
        return -lines[::-1], -bounds[::-1]
    best, worst = float(values.max()), float(values.min())
    # Lines closer than two scores can be, such as those of one sample more or less, would only draw noise.
    resolution = float(np.diff(np.unique(values.round(9))).min(initial=best - worst))
    fine = _nice_step(max((best - float(np.quantile(values, _BETTER_PART))) / _N_LEVELS, resolution))
    lines = _multiples(fine, worst, best)[-_N_LEVELS:]
    lowest = float(lines[0]) if len(lines) else best
    coarse = _multiples(_nice_step((lowest - worst) / _N_LEVELS), worst, lowest)
    return lines, np.unique(np.concatenate([[worst], coarse, lines, [best]]))


def _nice_step(length: float) -> float:
    """Return 1, 2 or 5 times a power of ten, near a length from above."""
    if length <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(length))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= length * (1 - 1e-9))


def _multiples(step: float, low: float, high: float) -> Vector:
    """Return the multiples of a step strictly between two numbers."""
    if step == 0.0:
        return np.empty(0)
    first, last = math.floor(low / step) + 1, math.ceil(high / step) - 1
    return np.round(np.arange(first, last + 1) * step, 12)


def _draw_contours(axes: Any, places: Vector, values: Vector, quantity: str, smaller_is_better: bool) -> None:
    from matplotlib.colors import BoundaryNorm

    lines, bounds = contour_levels(values, smaller_is_better)
    if len(bounds) < 2 or any(np.ptp(column) == 0 for column in places.T):
        return  # all scores are equal, or all points lie on a line: the points alone are drawn
    surface = _grid(places, values)
    kind = "tricontour" if surface is None else "contour"
    data = (*places.T, values) if surface is None else surface
    colours = "cividis_r" if smaller_is_better else "cividis"
    filled = getattr(axes, kind + "f")(*data, levels=bounds, cmap=colours, norm=BoundaryNorm(bounds, 256))
    if len(lines):
        drawn = getattr(axes, kind)(*data, levels=lines, colors=_INK, linewidths=1.0)
        axes.clabel(drawn, fontsize=8, fmt="%g")
    axes.figure.colorbar(filled, ax=axes, label=quantity, ticks=bounds, format="%g", spacing="uniform")


def _grid(places: Vector, values: Vector) -> tuple[Vector, Vector, Vector] | None:
    """Return the points as a grid, if they form one."""
    x, column = np.unique(places[:, 0], return_inverse=True)
    y, row = np.unique(places[:, 1], return_inverse=True)
    surface = np.full((len(y), len(x)), np.nan)
    surface[row, column] = values
    return None if np.isnan(surface).any() else (x, y, surface)


def _title(title: str, mark: Vector, top: float, names: Sequence[str], score_name: str, unit: str) -> str:
    powers = ", ".join(f"log₂ {name} = {place:g}" for name, place in zip(names, mark, strict=False))
    plain = ", ".join(f"{name} = {2.0**place:.6g}" for name, place in zip(names, mark, strict=False))
    first = f"{title}: best {score_name}" if title else f"Best {score_name}"
    return f"{first} {top:.6g}{unit and ' '}{unit}\nat {powers}  ({plain})".replace(" -", " −")


def _whole_numbers() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=12, integer=True)


def picture_format(path: str | os.PathLike[str]) -> str:
    """Return the format that the ending of a file's name means."""
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise ValueError(f"a plot is written as {', '.join(FORMATS)} by the ending of its name, not as {path}")
    return suffix
