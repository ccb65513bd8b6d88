"""Pictures of races and experiments. Colours are Okabe and Ito's; markers and lines tell curves apart as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hinge.lab.race import Race
from hinge.lab.report import Exponent

# Okabe and Ito's palette without its yellow, which is too pale for lines on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_LINES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DPI = 150
_LOGARITHMIC_FROM = 20.0  # ratio of the largest bar to the smallest
_LEAST_GAP = 1e-12  # a logarithmic axis has no place for zero

_AXES = (
    ("seconds", "seconds"),
    ("iterations", "iterations"),
    ("kernel_evaluations", "kernel evaluations"),
)


class ExponentPoint(NamedTuple):
    """An exponent of the paper and ours."""

    experiment: str
    algorithm: str
    paper: float
    ours: Exponent | None


class Duel(NamedTuple):
    """One point of a winner map: the logarithm (base 2) of rival / champion, NaN where neither came to its end."""

    log_ratio: Any
    title: str


def style(k: int) -> dict[str, Any]:
    """Return colour, line and marker of the k-th curve; no two of the first 28 are alike."""
    return {
        "color": _COLOURS[k % len(_COLOURS)],
        "linestyle": _LINES[(k + 2 * (k // len(_COLOURS))) % len(_LINES)],
        "marker": _MARKERS[k % len(_MARKERS)],
    }


def pyplot() -> Any:
    """Return matplotlib's pyplot, which draws into files only."""
    try:
        import matplotlib
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'hinge-svm[plot]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _save(plt: Any, figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=_DPI, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)


def draw_race(race: Race, path: Path) -> None:
    """Draw the objective's gap against time, iterations and kernel evaluations.

    Parameters
    ----------
    race : Race
        What to draw.
    path : Path
        The PNG file to write.
    """
    plt = pyplot()
    figure, axes = plt.subplots(1, 3, figsize=(14, 4.2), sharey=True, layout="constrained")
    for axis, (name, label) in zip(axes, _AXES, strict=True):
        for k, algorithm in enumerate(race.runs):
            work = np.asarray(getattr(race.trace(algorithm), name), dtype=np.float64)
            gap = np.maximum(race.gap(algorithm), _LEAST_GAP)
            shown = work > 0
            every = max(int(shown.sum()) // 8, 1)
            axis.plot(work[shown], gap[shown], label=algorithm, markevery=every, markersize=5, **style(k))
        axis.set(xscale="log", yscale="log", xlabel=label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("(objective − optimum) / |optimum|")
    figure.suptitle(str(race.track))
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6), frameon=False)
    _save(plt, figure, path)


def draw_exponents(points: Sequence[ExponentPoint], path: Path) -> None:
    """Draw exponents of N, the paper's beside ours with confidence intervals.

    Parameters
    ----------
    points : sequence of ExponentPoint
        What to draw; one row of the picture each.
    path : Path
        The PNG file to write.
    """
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(8.5, 0.42 * len(points) + 1.4), layout="constrained")
    for place, point in enumerate(points):
        height = -place
        axis.plot(point.paper, height, "s", color="#000000", label="paper" if not place else None)
        if point.ours is not None:
            axis.errorbar(
                point.ours.value,
                height,
                xerr=point.ours.half_width,
                fmt="o",
                color=_COLOURS[0] if point.algorithm == points[0].algorithm else _COLOURS[1],
                capsize=4,
            )
    for algorithm, colour in zip(dict.fromkeys(point.algorithm for point in points), _COLOURS, strict=False):
        axis.plot([], [], "o-", color=colour, label=f"{algorithm}, here")
    axis.set_yticks(
        [-k for k in range(len(points))], [f"{point.experiment}: {point.algorithm}" for point in points]
    )
    axis.set_xlabel("exponent of N")
    axis.set_xlim(0, 4.5)
    axis.grid(axis="x", alpha=0.3)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    _save(plt, figure, path)


Curve = tuple[Sequence[float], Sequence[float]]


def draw_scaling(panels: Mapping[str, Mapping[str, Curve]], path: Path) -> None:
    """Draw time over size, one panel per experiment, one curve per method; the paper's are hollow and grey.

    Parameters
    ----------
    panels : mapping
        Sizes and times by method, by experiment. Methods whose name holds a comma are the paper's.
    path : Path
        The PNG file to write.
    """
    plt = pyplot()
    n_columns = min(len(panels), 4)
    n_rows = -(-len(panels) // n_columns)
    size = (3.6 * n_columns, 3.3 * n_rows + 0.6)
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, (title, curves) in zip(axes.flat, panels.items(), strict=False):
        for k, (name, (sizes, times)) in enumerate(curves.items()):
            look = (
                style(k - 2) if "," not in name else {"color": "#777777", "linestyle": "--", "marker": _MARKERS[k]}
            )
            axis.plot(sizes, times, label=name, markersize=5, fillstyle="none" if "," in name else "full", **look)
        axis.set(xscale="log", yscale="log", xlabel="samples")
        _plain_ticks(plt, axis.xaxis)
        axis.set_title(title, fontsize=9)
        axis.grid(alpha=0.3)
    for axis in axes[:, 0]:
        axis.set_ylabel("processor seconds")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    _save(plt, figure, path)


def _plain_ticks(plt: Any, side: Any) -> None:
    """Write the numbers of a logarithmic axis out, few or many of them by how far it reaches."""
    low, high = side.get_view_interval()
    subs = (1.0,) if high > 3000 * low else (1.0, 3.0) if high > 30 * low else (1.0, 2.0, 3.0, 5.0, 7.0)
    side.set_major_locator(plt.LogLocator(subs=subs))
    side.set_major_formatter(plt.FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    side.set_minor_formatter(plt.NullFormatter())


def draw_curves(
    panels: Mapping[str, Mapping[str, Curve]], labels: tuple[str, str], path: Path,
    logarithmic: tuple[bool, bool] = (True, True),
) -> None:  # fmt: skip
    """Draw curves, one panel beside the other, with one legend.

    Parameters
    ----------
    panels : mapping
        Values across and up by curve, by panel.
    labels : pair of str
        What is across and what is up.
    path : Path
        The PNG file to write.
    logarithmic : pair of bool
        Which of the two axes are.
    """
    plt = pyplot()
    size = (6.2 if len(panels) == 1 else 3.4 * len(panels), 4.0)
    figure, axes = plt.subplots(1, len(panels), figsize=size, layout="constrained", squeeze=False)
    for axis, (title, curves) in zip(axes.flat, panels.items(), strict=True):
        for k, (name, (across, up)) in enumerate(curves.items()):
            axis.plot(across, up, label=name, markersize=5, **style(k))
        scales = {
            f"{axis_name}scale": "log" for axis_name, is_log in zip("xy", logarithmic, strict=True) if is_log
        }
        axis.set(title=title, xlabel=labels[0], **scales)
        for side, is_log in zip((axis.xaxis, axis.yaxis), logarithmic, strict=True):
            if is_log:
                _plain_ticks(plt, side)
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel(labels[1])
    handles, names = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 4), frameon=False)
    _save(plt, figure, path)


def draw_map(
    costs: Sequence[float], gammas: Sequence[float], duels: Sequence[Duel], marks: Any, champion: str, path: Path
) -> None:
    """Draw who wins over the plane of C and γ (Glasmachers & Igel, figure 6).

    Parameters
    ----------
    costs, gammas : sequences of float
        The grid.
    duels : sequence of Duel
        One panel each; ``log_ratio[i, j]`` belongs to ``gammas[i]`` and ``costs[j]``.
    marks : array of str
        "•" where the solution is degenerate because nearly all samples are support vectors, "×" because
        nearly all of those are at their bound, else "".
    champion : str
        The method that positive values speak for.
    path : Path
        The PNG file to write.
    """
    plt = pyplot()
    n_columns = 2 if len(duels) > 1 else 1
    n_rows = -(-len(duels) // n_columns)
    size = (5.4 * n_columns + 1, 4.2 * n_rows + 0.5)
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False)
    image = None
    for axis, duel in zip(axes.flat, duels, strict=True):
        image = axis.imshow(duel.log_ratio, cmap="PuOr", vmin=-2, vmax=2, origin="lower", aspect="auto")
        for i in range(len(gammas)):
            for j in range(len(costs)):
                value = duel.log_ratio[i, j]
                text = "?" if np.isnan(value) else f"{2.0**value:.2f}{marks[i, j]}"
                colour = "white" if abs(value) > 1.3 else "black"
                axis.text(j, i, text, ha="center", va="center", color=colour, fontsize=9)
        axis.set_xticks(range(len(costs)), [f"{cost:g}" for cost in costs])
        axis.set_yticks(range(len(gammas)), [f"{gamma:.2g}" for gamma in gammas])
        axis.set(xlabel="C", ylabel="γ")
        axis.set_title(duel.title, fontsize=10)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, ticks=[-2, -1, 0, 1, 2])
    bar.ax.set_yticklabels(["≤ ¼", "½", "1", "2", "≥ 4"])
    bar.set_label(f"rival ÷ {champion}: above 1 (violet) {champion} wins, below (orange) the rival")
    _save(plt, figure, path)


def draw_bars(groups: Mapping[str, Mapping[str, float | None]], label: str, path: Path) -> None:
    """Draw one group of bars per row of a table, one bar per method.

    Parameters
    ----------
    groups : mapping
        Values by method, by group; None leaves a gap.
    label : str
        What is measured.
    path : Path
        The PNG file to write.
    """
    plt = pyplot()
    methods = list(dict.fromkeys(method for values in groups.values() for method in values))
    width = 0.8 / max(len(methods), 1)
    figure, axis = plt.subplots(figsize=(1.8 + 1.9 * len(groups), 4.0), layout="constrained")
    hatches = ("", "//", "..", "xx", "\\\\", "++", "oo")
    for k, method in enumerate(methods):
        values = [groups[group].get(method) or np.nan for group in groups]
        places = np.arange(len(groups)) + (k - (len(methods) - 1) / 2) * width
        colour = _COLOURS[k % len(_COLOURS)]
        axis.bar(places, values, width * 0.92, label=method, color=colour, hatch=hatches[k % 7], edgecolor="white")
    axis.set_xticks(range(len(groups)), list(groups))
    axis.set_xlim(-0.6, len(groups) - 0.4)
    known = [value for values in groups.values() for value in values.values() if value]
    axis.set_ylabel(label)
    if known and max(known) > _LOGARITHMIC_FROM * min(known):
        axis.set_yscale("log")
    axis.grid(axis="y", alpha=0.3)
    axis.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=min(len(methods), 4), frameon=False)
    _save(plt, figure, path)
