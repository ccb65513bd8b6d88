"""Why figures differ from those of Glasmachers & Igel: experiments that could show a cause, and what they show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hinge.lab.experiments.cells import Outcome, Outcomes
from hinge.lab.experiments.glasmachers import ROUNDED, rows_of, trials
from hinge.lab.experiments.glasmachers_numbers import (
    CONNECT4,
    HMG,
    MNIST,
    ONE_ROW,
    ROWS,
    SECOND,
    SPAMBASE,
    TWO_ROWS,
    Problem,
)
from hinge.lab.experiments.scales import Scale
from hinge.lab.experiments.verdicts import contest, iterations, word_of
from hinge.lab.report import Section, Table, count
from hinge.report import Status

_PUBLISHED, _ONE_PUBLISHED = "hmg-two-rows-published", "hmg-one-row-published"
_HOW = {
    TWO_ROWS: "two rows, until the violation is at most ε",
    "hmg-two-rows-early": "the same, but the maximal violating pair steps in once the best pair violates by "
    "less than ε",
    _PUBLISHED: "two rows, until a step is shorter than ε (section 2.4)",
    "hmg-two-rows-shrinking": "two rows, with shrinking",
    ONE_ROW: "one row, until the violation is at most ε",
    _ONE_PUBLISHED: "one row, until a step is shorter than ε",
    "hmg-one-row-shrinking": "one row, with shrinking",
}
_FAR = 10.0  # times the paper's distance from the optimum: another kind of end


def causes(scale: Scale, outcomes: Outcomes) -> Section:
    """Return the section on what differs from the paper, and why."""
    section = Section("Glasmachers & Igel: what differs, looked into")
    _objective(section, scale, outcomes)
    _endings(section, scale, outcomes)
    return section


def _objective(section: Section, scale: Scale, outcomes: Outcomes) -> None:
    """The objective of MNIST."""
    paper = [row[2] for row in MNIST.shrinking.values()]
    run = outcomes.get(ROUNDED)
    section.say(f"**The objective of MNIST.** The paper has {min(paper):,.3f} to {max(paper):,.3f}.")
    if run is None or not run.converged or run.rounded is None:
        section.say("All of MNIST was not solved within this scale or its budget.")
        return
    section.say(
        f"All of MNIST, solved to a violation of {ROUNDED.tol:g}, has {-run.objective:,.3f} with kernel values "
        "in double precision. LIBSVM keeps its rows in single precision. With the kernel values rounded to "
        f"it, and nothing else changed, the same machine has {-run.rounded:,.3f}: rounding accounts for "
        f"{run.objective - run.rounded:+,.3f}, and the paper's values are {min(paper) + run.rounded:+,.3f} to "
        f"{max(paper) + run.rounded:+,.3f} from there."
    )


def _endings(section: Section, scale: Scale, outcomes: Outcomes) -> None:
    """HMG's iterations, and one row against two."""
    section.say(
        "**HMG's iterations, and one row against two.** The same trials with those parts of the method "
        "changed, one at a time, that the paper leaves open or has otherwise: how a run ends, what steps in, "
        "shrinking. “Missed” is by how much the objective ended below that of two rows, relative to it."
    )
    for problem in (SPAMBASE, CONNECT4):
        runs = {name: _ended(problem, name, scale, outcomes) for name in _HOW}
        if not any(run.converged for run in runs[TWO_ROWS]):
            section.say(f"{problem.name}: not run within the budget.")
            continue
        runs[SECOND] = _ended(problem, SECOND, scale, outcomes, shrinking=False)
        section.show(_table(problem, scale, runs))
        _say_what_is_explained(section, problem, runs)
        _say_rows(section, problem, runs)


def _ended(problem: Problem, name: str, scale: Scale, outcomes: Outcomes, **changes: bool) -> list[Outcome]:
    """The runs of a variant; one that ended as the paper has it counts as ended."""
    found = [outcomes[cell] for cell in trials(problem, name, scale, **changes)]
    as_planned = Status.ITERATION_LIMIT if name.endswith("-published") else Status.CONVERGED
    return [replace(run, status=str(Status.CONVERGED)) if run.status == as_planned else run for run in found]


def _table(problem: Problem, scale: Scale, runs: dict[str, list[Outcome]]) -> Table:
    header = ("iterations, median", "÷ two rows", "÷ LIBSVM 2.8", "violation at the end", "missed")
    table = Table((f"{problem.name}, {rows_of(problem, scale):,} rows", *header))
    for name, how in _HOW.items():
        done = [run for run in runs[name] if run.converged]
        if not done:
            table.rows.append([how, "not run within the budget", *["–"] * 4])
            continue
        table.rows.append([
            how, count(float(np.median([run.iterations for run in done]))),
            *(f"{contest(runs[name], runs[base], iterations).ratio:.2f}" for base in (TWO_ROWS, SECOND)),
            f"{np.median([run.violation for run in done]):.1e}", f"{_missed(runs[name], runs[TWO_ROWS]):.1e}",
        ])  # fmt: skip
    return table


def _missed(runs: list[Outcome], base: list[Outcome]) -> float:
    """Median of the distance to the other runs' objective, relative to it, trial by trial."""
    pairs = [(a, b) for a, b in zip(runs, base, strict=True) if a.converged and b.converged]
    return (
        float(np.median([(a.objective - b.objective) / abs(b.objective) for a, b in pairs])) if pairs else np.nan
    )


def _say_what_is_explained(section: Section, problem: Problem, runs: dict[str, list[Outcome]]) -> None:
    """How much of the distance to the paper's ratio of iterations the end of a run accounts for."""
    paper = problem.plain[HMG][0] / problem.plain[SECOND][0]
    ours, theirs = (contest(runs[name], runs[SECOND], iterations).ratio for name in (TWO_ROWS, _PUBLISHED))
    found = contest(runs[_PUBLISHED], runs[TWO_ROWS], iterations)
    then = {rule: problem.shrinking[rule][2] for rule in (HMG, SECOND)}
    section.say(
        f"**{word_of(found.first_is_less)}:** with the published test HMG ends after fewer iterations on "
        f"{problem.name} ({found}). The paper's HMG takes {paper:.2f} times the iterations of LIBSVM 2.8 there "
        f"without shrinking, ours {ours:.2f} times and with the published test {theirs:.2f} times: of the "
        f"factor {ours / paper:.2f} between us the end of a run accounts for {ours / theirs:.2f}, and "
        f"{theirs / paper:.2f} is left. Its objective then misses "
        f"{_missed(runs[_PUBLISHED], runs[TWO_ROWS]):.1e}, the paper's HMG misses "
        f"{(then[SECOND] - then[HMG]) / then[SECOND]:.1e} of LIBSVM 2.8's."
    )


def _say_rows(section: Section, problem: Problem, runs: dict[str, list[Outcome]]) -> None:
    """One row against two, and whether the paper's explanation holds here."""
    plain = contest(runs[TWO_ROWS], runs[ONE_ROW], iterations)
    shrunk = contest(runs["hmg-two-rows-shrinking"], runs["hmg-one-row-shrinking"], iterations)
    own = contest(runs["hmg-one-row-shrinking"], runs[ONE_ROW], iterations)
    here, paper = _missed(runs[_ONE_PUBLISHED], runs[TWO_ROWS]), problem.shrinking[HMG][2]
    then = abs(paper - ROWS[problem.name][ONE_ROW][2]) / paper
    text = (
        f"**{word_of(plain.first_is_less)}:** two rows take fewer iterations than one on {problem.name} "
        f"({plain}), and with shrinking ({shrunk}: {word_of(shrunk.first_is_less).lower()}). "
        f"**{word_of(_opposite(own.first_is_less))}:** shrinking makes one row take more iterations, which is "
        f"the paper's explanation ({own})."
    )
    if here > _FAR * then:
        text += (
            f" Under the published test one row ends {here:.1e} from the optimum, the paper's ended {then:.1e} "
            "from it: what was measured there is something else than the text says, or than we read in it."
        )
    section.say(text)


def _opposite(answer: bool | None) -> bool | None:
    return None if answer is None else not answer
