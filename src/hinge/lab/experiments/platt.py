"""Platt's experiments (Sequential Minimal Optimization, section 3): SMO against chunking as the set grows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hinge.lab import figures
from hinge.lab.experiments.cells import Cell, Outcome, Outcomes, Stage, Staged
from hinge.lab.experiments.platt_numbers import GAMMA, SERIES, Series
from hinge.lab.experiments.scales import Scale
from hinge.lab.experiments.verdicts import interval_of_share, prediction_interval, word_of
from hinge.lab.report import (
    NOTHING,
    Exponent,
    Section,
    Table,
    count,
    figure_of,
    fit_exponent,
    objective_text,
    seconds,
    time_of,
)

SMO, CHUNKING, PAIRS, OURS = "platt", "chunking", "smo-second-order", "auto"

_ALGORITHMS = (SMO, CHUNKING, PAIRS, OURS)
_STORED = (SMO, CHUNKING)
_NEAR = 0.02  # numbers of support vectors that differ by less are the paper's

_WIDEST = 0.6  # half an interval of an exponent that still says something

_CACHE_MB = 128.0  # the memory of Platt's computer

#: Platt's samples may be off their value by 1e-3 on either side (section 3): a violation of twice that.
TOLERANCE = 2e-3


def _cell(series: Series, name: str, algorithm: str, scale: Scale, storage: str = "", trial: int = 0) -> Cell:
    return Cell(
        f"{name}:{storage}" if storage else name,
        algorithm,
        series.kernel,
        series.C,
        GAMMA,
        cache_mb=_CACHE_MB,
        trial=trial,
        tol=TOLERANCE,
        limit=scale.own_limit if algorithm == SMO else scale.limit,
        family=f"{series.key} {storage}",
    )


def _orders(series: Series, name: str, scale: Scale) -> list[Cell]:
    """Runs of Platt's SMO on one set, its samples in different orders: as they are, then shuffled."""
    return [_cell(series, name, SMO, scale, trial=trial) for trial in range(scale.orders)]


def cells(scale: Scale) -> Iterator[Staged]:
    """Return everything that is to be run, smaller sets first, with its stage."""
    for series in SERIES:
        for name in series.sets(scale):
            plain = [_cell(series, name, algorithm, scale) for algorithm in _ALGORITHMS]
            orders = _orders(series, name, scale) if _is_adult(series) else []
            stored = [
                _cell(series, name, algorithm, scale, storage)
                for storage in (("sparse", "dense") if series.dense else ())
                for algorithm in _STORED
            ]
            yield from ((Stage.PLATT, cell) for cell in (*plain, *orders, *stored))


def _is_adult(series: Series) -> bool:
    return series.key.startswith("adult")


def sections(scale: Scale, outcomes: Outcomes, folder: Path) -> list[Section]:
    """Return the report's sections on Platt's tables and draw their pictures into ``folder``."""
    exponents = _exponents(scale, outcomes, folder)
    return [
        _who_is_faster(scale, outcomes),
        exponents,
        *(_series_section(series, scale, outcomes) for series in SERIES),
    ]


def _of(series: Series, name: str, algorithm: str, scale: Scale, outcomes: Outcomes, storage: str = "") -> Outcome:
    return outcomes[_cell(series, name, algorithm, scale, storage)]


def _series_section(series: Series, scale: Scale, outcomes: Outcomes) -> Section:
    section = Section(f"Platt: {series.title}")
    section.say("Processor seconds. Platt's were measured on a Pentium II of 266 MHz.")
    section.show(_times_table(series, scale, outcomes))
    section.say(_who_was_faster(series, scale, outcomes))
    section.say("Support vectors, objectives and steps:")
    section.show(_answers_table(series, scale, outcomes))
    section.say(_how_far_from_platts(series, scale, outcomes))
    if _is_adult(series) and scale.orders > 1:
        section.say(
            f"The tolerance leaves these numbers open. The same sets with their samples in {scale.orders} "
            "orders, by Platt's SMO: from the least to the most support vectors; whether his number is within "
            "the interval in which 95 % of such runs would be; and how far the objectives are apart:"
        )
        section.show(_orders_table(series, scale, outcomes))
    if series.dense:
        section.say("The data is random and ours is another draw than Platt's.")
        section.say(
            "Sparse against dense dot products, processor seconds (the features are stored as numbers here, not "
            "as packed bits, so that both storages do what Platt's did):"
        )
        section.show(_storage_table(series, scale, outcomes))
    return section


def _times_table(series: Series, scale: Scale, outcomes: Outcomes) -> Table:
    table = Table(
        (
            "set", "N", "SMO, Platt", "Platt's SMO, here", "chunking, Platt", "chunking, here", "second-order SMO",
            "auto",
        )
    )  # fmt: skip
    for name in series.sets(scale):
        smo, chunking, pairs, ours = (_of(series, name, algorithm, scale, outcomes) for algorithm in _ALGORITHMS)
        his = series.paper.get(name, (None, None, None, None))
        row = [seconds(his[0]), time_of(smo), seconds(his[1]), time_of(chunking), time_of(pairs), time_of(ours)]
        table.rows.append([name.split(":")[0], count(ours.n), *row])
    return table


def _answers_table(series: Series, scale: Scale, outcomes: Outcomes) -> Table:
    table = Table(
        (
            "set", "free SV, Platt", "free SV, SMO here", "free SV, auto", "bounded SV, Platt",
            "bounded SV, SMO here", "bounded SV, auto", "objective, SMO here", "objective, auto",
            "steps, SMO here", "steps, chunking here",
        )
    )  # fmt: skip
    for name in series.sets(scale):
        smo, chunking, _, ours = (_of(series, name, algorithm, scale, outcomes) for algorithm in _ALGORITHMS)
        his = series.paper.get(name, (None, None, None, None))
        row = [name.replace(":", " "), count(his[2])]
        row += [figure_of(run, lambda o: o.n_free) for run in (smo, ours)]
        row += [count(his[3]), *(figure_of(run, lambda o: o.n_bounded) for run in (smo, ours))]
        row += [objective_text(smo), objective_text(ours)]
        row += [figure_of(run, lambda o: o.iterations) for run in (smo, chunking)]
        table.rows.append(row)
    return table


def _duels(series: Series, scale: Scale, outcomes: Outcomes) -> tuple[int, int]:
    """On how many sets SMO beat chunking here, and of how many that is known."""
    known, won = 0, 0
    for name in series.sets(scale):
        smo, chunking = (_of(series, name, algorithm, scale, outcomes) for algorithm in (SMO, CHUNKING))
        if smo.converged and (chunking.converged or chunking.ran_out):
            known += 1
            won += chunking.ran_out or smo.cpu_seconds < chunking.cpu_seconds
        elif smo.ran_out and chunking.converged:
            known += 1
    return won, known


def _who_was_faster(series: Series, scale: Scale, outcomes: Outcomes) -> str:
    """Say on how many sets SMO beat chunking, in the paper and here."""
    his = [row for row in series.paper.values() if row[1] is not None]
    won_then = sum(row[1] is None or row[0] < row[1] for row in his)
    won, known = _duels(series, scale, outcomes)
    return (
        f"SMO was faster than chunking on {won_then} of {len(his)} sets in the paper and on {won} of the {known} "
        f"here on which at least one of them came to its end."
    )


def _who_is_faster(scale: Scale, outcomes: Outcomes) -> Section:
    """The claim about all sets: a share of them, with its interval."""
    section = Section("Platt: is SMO faster than chunking?")
    table = Table(("sets", "SMO was faster", "of", "95 % interval of the share", "SMO is the faster one"))
    kinds = {"Adult": "adult", "web pages": "web", "separable": "separable", "noise": "noise"}
    pairs = {
        label: [_duels(series, scale, outcomes) for series in SERIES if series.key.startswith(key)]
        for label, key in kinds.items()
    }
    pairs["all"] = [pair for found in pairs.values() for pair in found]
    for label, found in pairs.items():
        won, known = (sum(column) for column in zip(*found, strict=True))
        low, high = interval_of_share(won, known) if known else (0.0, 1.0)
        holds = True if low > 0.5 else False if high < 0.5 else None
        table.rows.append([label, count(won), count(known), f"{low:.0%} to {high:.0%}", f"**{word_of(holds)}**"])
    section.say(
        "By processor time, over the sets on which at least one of the two came to its end (Platt, section 3):"
    )
    section.show(table)
    section.say(
        "Confirmed where the whole interval (Clopper and Pearson) is above a half, not confirmed where it is "
        "below. Both are compiled here, but chunking spends its time in matrix products, which today's "
        "processors are good at, and Platt's SMO in many short steps."
    )
    return section


def _how_far_from_platts(series: Series, scale: Scale, outcomes: Outcomes) -> str:
    """Say by how much the numbers of support vectors differ from the paper's, and where by more than 2 %."""
    texts, beyond = [], []
    for algorithm, label in ((SMO, "Platt's SMO"), (OURS, "auto")):
        found = []
        for name in series.sets(scale):
            run = _of(series, name, algorithm, scale, outcomes)
            if name in series.paper and run.converged:
                free, bounded = series.paper[name][2:]
                pairs = (run.n_free + run.n_bounded, free + bounded), (run.n_bounded, bounded), (run.n_free, free)
                found.append([abs(here - then) / max(then, 1) for here, then in pairs])
                if algorithm == SMO:
                    beyond += [
                        f"{name.replace(':', ' ')} has {here:,} {kind} instead of {then:,}"
                        for kind, (here, then) in zip(("bounded", "free"), pairs[1:], strict=True)
                        if abs(here - then) > _NEAR * then
                    ]
        if found:
            worst = [f"{max(column):.1%}" for column in zip(*found, strict=True)]
            texts.append(f"{label} {worst[0]} of all, {worst[1]} of the bounded, {worst[2]} of the free ones")
    if not texts:
        return "None of these sets is in the paper."
    text = (
        f"Furthest off the paper's numbers of support vectors, over the sets that were solved: {'; '.join(texts)}."
    )
    if beyond:
        return f"{text} With Platt's SMO {'; '.join(beyond)}; all other numbers are within {_NEAR:.0%}."
    return f"{text} With Platt's SMO all are within {_NEAR:.0%}."


def _orders_table(series: Series, scale: Scale, outcomes: Outcomes) -> Table:
    header = ("set", "free SV, Platt", "free SV, here", "his is one of ours", "bounded SV, Platt",
              "bounded SV, here", "his is one of ours", "objectives apart")  # fmt: skip
    table = Table(header)
    for name in series.sets(scale):
        runs = [run for run in (outcomes[cell] for cell in _orders(series, name, scale)) if run.converged]
        free, bounded = series.paper.get(name, (None, None, None, None))[2:]
        row = [name.replace(":", " ")]
        for his, ours in ((free, [run.n_free for run in runs]), (bounded, [run.n_bounded for run in runs])):
            span = f"{count(min(ours))} to {count(max(ours))}" if ours else NOTHING
            row += [count(his), span, _is_one_of(his, ours)]
        objectives = [run.objective for run in runs]
        table.rows.append([*row, f"{max(objectives) - min(objectives):.1g}" if runs else NOTHING])
    return table


def _is_one_of(his: int | None, ours: list[int]) -> str:
    """Whether the paper's number could be that of one more run of ours."""
    if his is None or len(ours) < 2:
        return NOTHING
    low, high = prediction_interval(ours)
    return f"**{word_of(low <= his <= high)}** ({low:,.0f} to {high:,.0f})"


def _storage_table(series: Series, scale: Scale, outcomes: Outcomes) -> Table:
    table = Table(
        (
            "set", "SMO sparse, Platt", "SMO sparse, here", "SMO dense, Platt", "SMO dense, here",
            "chunking sparse, Platt", "chunking sparse, here", "chunking dense, Platt", "chunking dense, here",
        )
    )  # fmt: skip
    for name in series.sets(scale):
        row = [name.replace(":", " ")]
        sparse_then, dense_then = series.paper.get(name, (None, None)), series.dense.get(name, (None, None))
        for k, algorithm in enumerate(_STORED):
            for storage, then in (("sparse", sparse_then), ("dense", dense_then)):
                row += [seconds(then[k]), time_of(_of(series, name, algorithm, scale, outcomes, storage))]
        table.rows.append(row)
    return table


def _exponents(scale: Scale, outcomes: Outcomes, folder: Path) -> Section:
    section = Section("Platt: exponents of N")
    section.say(
        "Processor time taken as proportional to a power of the number of samples: a line fitted to the "
        "logarithms, with its 95 % confidence interval and, in brackets, the number of sets that came to "
        "their end. Sets that met the limit are left out, so that ours speak for smaller sets than Platt's "
        "where there were any."
    )
    header = (
        "experiment", "SMO, paper says", "SMO, fit to the paper's table", "Platt's SMO, here",
        "chunking, paper says", "chunking, fit to the paper's table", "chunking, here",
        "second-order SMO", "auto",
    )  # fmt: skip
    table = Table(header)
    agreement = Table(("experiment", "algorithm", "the paper's exponent", "ours", "the paper's is within"))
    points: list[figures.ExponentPoint] = []
    curves: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for series in SERIES:
        row = [series.title.split(" (")[0]]
        measured = {algorithm: _curve(series, algorithm, scale, outcomes) for algorithm in _ALGORITHMS}
        papers = {f"{name}, 1998": _paper_curve(series, k) for k, name in enumerate(_STORED)}
        curves[series.title.split(" (")[0]] = {**papers, **measured}
        for k, algorithm in enumerate(_STORED):
            then = fit_exponent(*_paper_curve(series, k))
            now = fit_exponent(*measured[algorithm])
            row += [f"{series.exponents[k]:.1f}", _text(then), _text(now)]
            points.append(figures.ExponentPoint(row[0], algorithm, series.exponents[k], now))
            answer = f"**{word_of(_agrees(series.exponents[k], now))}**"
            agreement.rows.append([row[0], algorithm, f"{series.exponents[k]:.1f}", _text(now), answer])
        row += [_text(fit_exponent(*measured[algorithm])) for algorithm in (PAIRS, OURS)]
        table.rows.append(row)
    section.show(table)
    section.say(
        "An exponent of the paper is confirmed where ours has an interval that contains it and is at most ± "
        f"{_WIDEST:g} wide, not confirmed where the interval does not contain it. Fewer than four sets give "
        "none."
    )
    section.show(agreement)
    figures.draw_exponents(points, folder / "exponents.png")
    section.picture("exponents.png", "Exponents of N with 95 % confidence intervals")
    figures.draw_scaling(curves, folder / "scaling.png")
    section.picture("scaling.png", "Processor time over the number of samples")
    return section


def _agrees(paper: float, ours: Exponent | None) -> bool | None:
    if ours is None:
        return None
    if abs(paper - ours.value) > ours.half_width:
        return False
    return True if ours.half_width <= _WIDEST else None


def _text(exponent: Exponent | None) -> str:
    return NOTHING if exponent is None else str(exponent)


def _curve(series: Series, algorithm: str, scale: Scale, outcomes: Outcomes) -> tuple[list[float], list[float]]:
    """Sizes and processor times of the runs that came to their end."""
    runs = [_of(series, name, algorithm, scale, outcomes) for name in series.sets(scale)]
    done = [run for run in runs if run.converged]
    return [float(run.n) for run in done], [run.cpu_seconds for run in done]


def _paper_curve(series: Series, which: int) -> tuple[list[float], list[float]]:
    rows = [(size, row[which]) for size, row in zip(series.sizes, series.paper.values(), strict=True)]
    known = [(float(size), time) for size, time in rows if time is not None]
    return [size for size, _ in known], [time for _, time in known]
