"""Bottou & Lin's claims (*Support Vector Machine Solvers*), each an experiment that could refute it.

They are told by counts: steps, kernel values, support vectors, errors. No verdict rests on a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from hinge.lab import figures
from hinge.lab.experiments.cells import Cell, Outcome, Outcomes, Stage, Staged
from hinge.lab.experiments.scales import Scale
from hinge.lab.experiments.verdicts import LEVEL, interval_of_share, word_of
from hinge.lab.report import NOTHING, Section, Table, count, fit_exponent

SECOND, FIRST = "smo-second-order", "smo-mvp"

NOISES = (0, 5, 10, 20)
TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5)
COSTS = (1.0, 10.0, 100.0, 300.0, 1000.0, 10000.0)
SIZES = (2, 4, 10, 30, 100, 300)
SHARES = (0.02, 0.05, 0.2, 1.0)  # of the kernel matrix that the cache holds

_GAMMA = 50.0  # of the waves: bumps of a tenth of the square, beside half waves of a sixth
_HELD_OUT = 5000
_LARGE_COST = 1e4  # where hardly a variable of clean data is at its bound any more
_WIDEST = 0.6  # half an interval of an exponent that can tell 2 from 3
_QUANTILE = 1.96  # of the normal distribution, for 95 % of it

#: Real sets with C and γ, as the other experiments have them.
REAL = {"a5a": (1.0, 0.05), "w5a": (5.0, 0.05), "spambase": (50.0, 0.005), "connect-4": (4.5, 0.2)}


@dataclass(frozen=True)
class Claim:
    """A claim and how it is tried.

    Attributes
    ----------
    key : str
        Name of its picture.
    title : str
        What it is about, with its section.
    says : str
        What the chapter says.
    cells : callable
        From a scale to what is run.
    tell : callable
        Adds table, picture and verdict to a section, from what the runs have shown.
    """

    key: str
    title: str
    says: str
    cells: Callable[[Scale], list[Cell]]
    tell: Callable[[Section, Scale, Outcomes, Path], None]


def cells(scale: Scale) -> Iterator[Staged]:
    """Return everything that is to be run, with its stage."""
    return ((Stage.BOTTOU, cell) for claim in CLAIMS for cell in claim.cells(scale))


def sections(scale: Scale, outcomes: Outcomes, folder: Path) -> list[Section]:
    """Return one section a claim and draw their pictures into ``folder``."""
    found = []
    for claim in CLAIMS:
        section = Section(f"Bottou & Lin: {claim.title}")
        section.say(f"*The chapter:* {claim.says}")
        if all(outcomes[cell].converged for cell in claim.cells(scale)):
            claim.tell(section, scale, outcomes, folder / f"claim-{claim.key}.png")
            section.picture(f"claim-{claim.key}.png", claim.title)
        else:
            missing = sorted(
                {f"{c.data}: {outcomes[c].status}" for c in claim.cells(scale) if not outcomes[c].converged}
            )
            section.say(f"Not decided here, because some runs did not come to their end ({', '.join(missing)}).")
        found.append(section)
    return found


def _waves(percent: int, n: int, scale: Scale, **choice: object) -> Cell:
    figures_of = {"algorithm": SECOND, "C": 10.0, "cache_mb": 2000.0, "limit": scale.claims_limit, **choice}
    return Cell(f"flipped-{percent}:{n}", kernel="rbf", gamma=_GAMMA, **figures_of)  # type: ignore[arg-type]


def _real(name: str, scale: Scale, **choice: object) -> Cell:
    C, gamma = REAL[name]
    figures_of = {"algorithm": SECOND, "C": C, "cache_mb": 2000.0, "limit": scale.claims_limit, **choice}
    return Cell(f"{name}:{scale.claims[-2]}", kernel="rbf", gamma=gamma, **figures_of)  # type: ignore[arg-type]


def _verdict(section: Section, holds: bool | None, because: str) -> None:
    section.say(f"**{word_of(holds)}:** {because}")


# ---------------------------------------------------------------------- 1.1.1: accuracy


def _accuracy_cells(scale: Scale) -> list[Cell]:
    return [cell for of in _accuracy_sets(scale).values() for cell in of]


def _accuracy_sets(scale: Scale) -> dict[str, list[Cell]]:
    trials = [{"tol": tol, "held_out": _HELD_OUT} for tol in TOLERANCES]
    return {
        "waves, 10 % flipped": [_waves(10, scale.claims[-1], scale, **trial) for trial in trials],
        "a5a": [_real("a5a", scale, **trial) for trial in trials],
        "connect-4": [_real("connect-4", scale, **trial) for trial in trials],
    }


def _tell_accuracy(section: Section, scale: Scale, outcomes: Outcomes, path: Path) -> None:
    table, curves, enough = Table(("set", *(f"{tol:g}" for tol in TOLERANCES))), {}, []
    for name, of in _accuracy_sets(scale).items():
        runs = [outcomes[cell] for cell in of]
        errors = [_error(run) for run in runs]
        spread = _QUANTILE * float(np.sqrt(errors[-1] * (1 - errors[-1]) / _HELD_OUT))
        table.rows.append([f"{name}: error %", *(f"{100 * error:.2f}" for error in errors)])
        table.rows.append([f"{name}: steps", *(count(run.iterations) for run in runs)])
        curves[name] = (TOLERANCES, [100 * error for error in errors])
        within = [abs(error - errors[-1]) <= spread for error in errors]
        first = next(k for k in range(len(within)) if all(within[k:]))
        share = runs[first].iterations / max(runs[-1].iterations, 1)
        enough.append((TOLERANCES[first], f"{name} from {TOLERANCES[first]:g} on ({share:.0%} of the steps)"))
    section.show(table)
    figures.draw_curves({"": curves}, ("tolerance", "error on held-out rows, %"), path, logarithmic=(True, False))
    _verdict(
        section, min(tol for tol, _ in enough) >= 1e-2,
        f"the error differs from that of the sharpest tolerance, {TOLERANCES[-1]:g}, by less than the 95 % "
        f"interval of an error on {_HELD_OUT:,} rows: {'; '.join(text for _, text in enough)}. The claim would "
        "fall if a set needed less than 0.01.",
    )  # fmt: skip


def _error(run: Outcome) -> float:
    assert run.error is not None  # these cells ask for it
    return run.error


# ---------------------------------------------------------------------- 1.4.1: support vectors


def _support_cells(scale: Scale) -> list[Cell]:
    return [_waves(noise, n, scale) for noise in NOISES for n in scale.claims]


def _tell_support(section: Section, scale: Scale, outcomes: Outcomes, path: Path) -> None:
    table = Table(("flipped", *(f"n = {n:,}" for n in scale.claims), "exponent of n", "÷ 2Bn, first to last size"))
    curves, are_bounded, fall = {}, True, True
    for noise in NOISES:
        runs = [outcomes[_waves(noise, n, scale)] for n in scale.claims]
        support = [run.n_free + run.n_bounded for run in runs]
        ratios = (
            [value / (0.02 * noise * run.n) for value, run in zip(support, runs, strict=True)] if noise else []
        )
        course = " ".join(f"{ratio:.2f}" for ratio in ratios) or NOTHING
        table.rows.append([f"{noise} %", *map(count, support), str(fit_exponent(scale.claims, support)), course])
        curves[f"{noise} % flipped"] = (scale.claims, support)
        are_bounded &= all(run.n_bounded >= 0.01 * noise * run.n for run in runs)
        fall &= ratios == sorted(ratios, reverse=True) and all(ratio >= 1 for ratio in ratios)
    section.show(table)
    figures.draw_curves({"": curves}, ("samples", "support vectors"), path)
    _verdict(
        section, are_bounded and fall,
        f"at least Bn samples are at their bound at every size: {_yes(are_bounded)}; with growing n the ratio "
        f"of support vectors to 2Bn falls towards 1 and is not below it: {_yes(fall)}. The claim would fall "
        "with either.",
    )  # fmt: skip


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"


# ---------------------------------------------------------------------- 1.4.2: cost


def _cost_cells(scale: Scale) -> list[Cell]:
    return [_waves(10, n, scale, C=C, shrinking=False) for C in (0.1, _LARGE_COST) for n in _cost_sizes(scale)]


def _cost_sizes(scale: Scale) -> tuple[int, ...]:
    """A quarter of each size, because large costs take very many steps, and one between each two of them."""
    return tuple(int(n * between / 4) for n in scale.claims for between in (1.0, 2**0.5))


def _tell_cost(section: Section, scale: Scale, outcomes: Outcomes, path: Path) -> None:
    sizes = _cost_sizes(scale)
    table = Table(("C", *(f"n = {n:,}" for n in sizes), "exponent of n", "exponent of n × support vectors"))
    curves, fits = {}, []
    for C in (0.1, _LARGE_COST):
        runs = [outcomes[_waves(10, n, scale, C=C, shrinking=False)] for n in sizes]
        work = [float(run.iterations) * run.n for run in runs]
        least = fit_exponent(sizes, [float(run.n_free + run.n_bounded) * run.n for run in runs])
        fits.append(fit_exponent(sizes, work))
        table.rows.append([f"{C:g}", *map(count, work), str(fits[-1]), str(least)])
        curves[f"C = {C:g}"] = (sizes, work)
    section.say("Work is steps times samples: each step of SMO touches every residual.")
    section.show(table)
    figures.draw_curves({"": curves}, ("samples", "steps × samples"), path)
    small, large = fits
    if small is None or large is None:
        section.say("Too few sizes for exponents.")
        return
    holds = small.value + small.half_width >= 2 and large.value + large.half_width >= 3
    _verdict(
        section, holds if max(small.half_width, large.half_width) <= _WIDEST else None,
        f"the exponent is {small} for the small C, where the chapter expects at least 2, and {large} for the "
        "large one, where it expects at least 3. The claim would fall if one of the intervals ended below "
        f"that; with intervals wider than ± {_WIDEST:g} nothing is decided. The chapter argues from the number "
        "of support vectors, which it takes to grow like n; where that is not so yet, the last column shows "
        "what follows from their true number.",
    )  # fmt: skip


# ---------------------------------------------------------------------- 1.4.3: kernel values


def _value_cells(scale: Scale) -> list[Cell]:
    return [_real(name, scale, shrinking=False) for name in REAL]


def _tell_values(section: Section, scale: Scale, outcomes: Outcomes, path: Path) -> None:
    table = Table(("set", "n", "support vectors", "needed, of n²", "computed, of n²", "additional"))
    bars, additional, share = {}, [], []
    for name in REAL:
        run = outcomes[_real(name, scale, shrinking=False)]
        support, whole = run.n_free + run.n_bounded, float(run.n) ** 2
        needed, computed = support / run.n, run.kernel_evaluations / whole
        additional.append(computed / needed - 1)
        share.append(computed)
        figures_of = (f"{needed:.0%}", f"{computed:.0%}", f"{additional[-1]:.0%}")
        table.rows.append([name, count(run.n), count(support), *figures_of])
        bars[name] = {"needed: rows of support vectors": 100 * needed, "computed": 100 * computed}
    section.show(table)
    figures.draw_bars(bars, "% of the kernel matrix", path)
    _verdict(
        section, max(share) < 1 and max(additional) <= 0.5,
        f"additional values between {min(additional):.0%} and {max(additional):.0%} of those needed, with a "
        "cache for all rows and no shrinking, so that no row is computed twice. The claim would fall if a set "
        "took more than 50 %, or the whole matrix.",
    )  # fmt: skip


# ---------------------------------------------------------------------- 1.6.2: size of the working set


def _size_cells(scale: Scale) -> list[Cell]:
    return [_sized(name, size, scale) for name in REAL for size in SIZES]


def _sized(name: str, size: int, scale: Scale) -> Cell:
    megabytes = 0.1 * 8 * scale.claims[-2] ** 2 / 2**20
    return _real(name, scale, algorithm=f"svm-light:{size}", cache_mb=megabytes)


def _tell_size(section: Section, scale: Scale, outcomes: Outcomes, path: Path) -> None:
    table = Table(("set", *(f"q = {size}" for size in SIZES)))
    curves, best = {}, {}
    for name in REAL:
        runs = [outcomes[_sized(name, size, scale)] for size in SIZES]
        values = [run.kernel_evaluations for run in runs]
        table.rows.append([f"{name}: kernel values, millions", *(f"{value / 1e6:.1f}" for value in values)])
        table.rows.append([f"{name}: working sets", *(count(run.outer_steps) for run in runs)])
        curves[name] = (SIZES, [value / 1e6 for value in values])
        best[name] = SIZES[int(np.argmin(values))]
    section.say("The cache holds a tenth of the matrix.")
    section.show(table)
    figures.draw_curves({"": curves}, ("variables of a working set", "kernel values, millions"), path)
    texts = ", ".join(f"{name} q = {size}" for name, size in best.items())
    small = sum(size <= 10 for size in best.values())
    low, high = interval_of_share(small, len(best))
    _verdict(
        section, True if low > 0.5 else False if high < 0.5 else None,
        f"fewest kernel values at {texts}: {small} of {len(best)} sets want at most ten variables, a share "
        f"whose 95 % interval is {low:.0%} to {high:.0%}. The claim would be confirmed or fall if that were "
        "above or below a half.",
    )  # fmt: skip


# ---------------------------------------------------------------------- 1.6.3: large C


def _large_cells(scale: Scale) -> list[Cell]:
    return [_costly(C, rule, scale) for C in COSTS for rule in (FIRST, SECOND)]


def _costly(C: float, rule: str, scale: Scale) -> Cell:
    return _waves(5, scale.claims[0], scale, C=C, algorithm=rule, held_out=_HELD_OUT)


def _tell_large(section: Section, scale: Scale, outcomes: Outcomes, path: Path) -> None:
    table = Table(("C", "steps, maximal violating pair", "steps, second order", "ratio", "error %"))
    steps: dict[str, list[int]] = {FIRST: [], SECOND: []}
    for C in COSTS:
        first, second = (outcomes[_costly(C, rule, scale)] for rule in (FIRST, SECOND))
        steps[FIRST].append(first.iterations)
        steps[SECOND].append(second.iterations)
        ratio = first.iterations / max(second.iterations, 1)
        figures_of = (count(first.iterations), count(second.iterations), f"{ratio:.2f}")
        table.rows.append([f"{C:g}", *figures_of, f"{100 * _error(second):.2f}"])
    section.show(table)
    curves = {"maximal violating pair": (COSTS, steps[FIRST]), "second order": (COSTS, steps[SECOND])}
    figures.draw_curves({"": curves}, ("C", "steps"), path)
    growth = fit_exponent(COSTS, [float(value) for value in steps[SECOND]])
    fewer = sum(first > second for first, second in zip(steps[FIRST], steps[SECOND], strict=True))
    low, high = interval_of_share(fewer, len(COSTS))
    assert growth is not None  # there are more costs than it takes
    grows = growth.value > growth.half_width
    falls = high < 0.5 or growth.value < -growth.half_width
    _verdict(
        section, True if grows and low > 0.5 else False if falls else None,
        f"steps of second-order selection grow like C^{growth}, and it takes fewer than first-order selection "
        f"at {fewer} of {len(COSTS)} costs, a share whose 95 % interval is {low:.0%} to {high:.0%}. Confirmed "
        "means that the exponent is above 0 and the share above a half, each with its whole interval.",
    )  # fmt: skip


# ---------------------------------------------------------------------- 1.7.3 and 1.7.4: shrinking and caches


def _shrinking_cells(scale: Scale) -> list[Cell]:
    return [_cached(name, share, on, scale) for name in REAL for share in SHARES for on in (True, False)]


def _cached(name: str, share: float, shrinking: bool, scale: Scale) -> Cell:
    megabytes = share * 8 * scale.claims[-2] ** 2 / 2**20 + 0.1
    return _real(name, scale, shrinking=shrinking, cache_mb=megabytes)


def _tell_shrinking(section: Section, scale: Scale, outcomes: Outcomes, path: Path) -> None:
    table = Table(("kernel values, millions", *(f"cache {share:.0%}" for share in SHARES)))
    panels, ratios = {}, []
    for name in REAL:
        panel = {}
        for on, label in ((True, "with shrinking"), (False, "without")):
            values = [outcomes[_cached(name, share, on, scale)].kernel_evaluations / 1e6 for share in SHARES]
            table.rows.append([f"{name}, {label}", *(f"{value:,.1f}" for value in values)])
            panel[label] = ([100 * share for share in SHARES], values)
        panels[name] = panel
        ratios += [a / b for a, b in zip(panel["with shrinking"][1], panel["without"][1], strict=True)]
    section.show(table)
    figures.draw_curves(panels, ("cache, % of the matrix", "kernel values, millions"), path)
    middle, p = float(np.median(ratios)), float(stats.wilcoxon(np.log(ratios)).pvalue)
    ends = [float(np.median(ratios[k :: len(SHARES)])) for k in (0, len(SHARES) - 1)]
    _verdict(
        section, None if p > LEVEL else middle < 1,
        f"with shrinking a run computes {middle:.2f} times as many kernel values in the median of the cases, "
        f"between {min(ratios):.2f} and {max(ratios):.2f} (Wilcoxon p = {p:.2g}, {len(ratios)} cases); "
        f"{ends[0]:.2f} times with the smallest cache and {ends[1]:.2f} times with room for all rows. The "
        "claim would fall with a median of 1 or more. A problem of fewer samples has rows of its own here, "
        "computed again for each active set, where LIBSVM permutes samples and keeps the beginning of every "
        "row.",
    )  # fmt: skip


CLAIMS = (
    Claim(
        "accuracy", "test error against accuracy of the optimum (1.1.1)",
        "an optimisation error far below the estimation error is wasted: a coarse optimum predicts as well.",
        _accuracy_cells, _tell_accuracy,
    ),
    Claim(
        "support", "support vectors against samples and noise (1.4.1)",
        "with best error B, at least Bn samples are at their bound, and about 2Bn are support vectors: their "
        "number grows linearly with n.",
        _support_cells, _tell_support,
    ),
    Claim(
        "cost", "cost between n² and n³ (1.4.2)",
        "the cost grows at least like n² when C is small and n³ when C gets large.",
        _cost_cells, _tell_cost,
    ),
    Claim(
        "values", "the share of kernel values ever needed (1.4.3)",
        "only rows of support vectors are needed; efficient solvers compute no more than 15 % to 50 % "
        "additional values, and fewer than the whole matrix.",
        _value_cells, _tell_values,
    ),
    Claim(
        "size", "the size of the working set (1.6.2)",
        "the best learning times were often achieved using working sets containing very few examples.",
        _size_cells, _tell_size,
    ),
    Claim(
        "large-c", "large C and second-order selection (1.6.3)",
        "a large C penalises SMO; second-order selection of working sets helps.",
        _large_cells, _tell_large,
    ),
    Claim(
        "shrinking", "shrinking and caches (1.7.3, 1.7.4)",
        "shrinking reduces the number of kernel values, and so improves the hit rate of the cache.",
        _shrinking_cells, _tell_shrinking,
    ),
)  # fmt: skip
