"""What was aimed at, what was reached: one line each, wins and losses alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.cases import TABLE, TOL
from benchmarks.summary import Figures, geometric_mean, speedup

Groups = dict[str, dict[str, Figures]]


@dataclass(frozen=True)
class Goal:
    """A figure and its bound: a lower one, or (``at_most``) an upper one."""

    text: str
    value: float | None
    bound: float
    at_most: bool = False

    @property
    def line(self) -> str:
        """Return the goal with its outcome."""
        if self.value is None:
            return f"- {self.text}: **not measured**"
        is_met = self.value <= self.bound if self.at_most else self.value >= self.bound
        sign = "≤" if self.at_most else "≥"
        verdict = "met" if is_met else "**missed**"
        return f"- {self.text}: {self.value:.3g} (goal {sign} {self.bound:g}): {verdict}"


def _violation(groups: Groups) -> Goal:
    known = [of["hinge"].violation for of in groups.values() if "hinge" in of]
    worst = max((v for v in known if v is not None), default=None)
    return Goal("Hinge's largest true violation", worst, TOL, at_most=True)


def table_goals(groups: Groups) -> list[Goal]:
    """The seven cases."""
    complete = set(TABLE) <= set(groups)
    ratios = {name: speedup(of) for name, of in groups.items()}
    known = [value for value in ratios.values() if value is not None]
    large = [_over(of, "sklearn") for of in groups.values() if _rows(of) > 20_000]
    scope = "all seven cases" if complete else "the cases run"
    return [
        Goal(f"Speed-up over the fastest correct peer, geometric mean of {scope}", geometric_mean(known), 4),
        Goal("Smallest speed-up of a case", min(known, default=None), 1.5),
        Goal("Speed-up over scikit-learn above 20,000 rows, geometric mean", geometric_mean(large), 25),
        _violation(groups),
    ]


def _rows(of_case: dict[str, Figures]) -> int:
    return int(next(iter(of_case.values())).runs[0]["n"])


def scale_goals(groups: Groups) -> list[Goal]:
    """MNIST and covtype."""
    goals = [_violation(groups)]
    if of := groups.get("mnist-60000"):
        goals.append(
            Goal("MNIST 60,000: speed-up over scikit-learn-intelex, correct or not", _any_sklearnex(of), 2)
        )
        goals.append(Goal("MNIST 60,000: speed-up over the fastest correct peer", speedup(of), 2))
    if of := groups.get("covtype-50000"):
        goals.append(Goal("covtype 50,000: speed-up over the fastest correct peer", speedup(of), 2.5))
    return goals


def _any_sklearnex(of_case: dict[str, Figures]) -> float | None:
    hinge = of_case.get("hinge")
    times = [f.seconds for f in of_case.values() if f.library == "sklearnex" and f.seconds]
    return min(times) / hinge.seconds if times and hinge and hinge.seconds else None


def linear_goals(groups: Groups) -> list[Goal]:
    """LIBLINEAR from above, LIBSVM from below."""
    pairs = [(of.get("hinge-linear"), of.get("liblinear")) for of in groups.values()]
    ratios = [
        ours.seconds / theirs.seconds
        for ours, theirs in pairs
        if ours and theirs and ours.seconds and theirs.seconds
    ]
    goals = [
        _violation(groups),
        Goal(
            "LinearSVC: time as a multiple of LIBLINEAR's, geometric mean", geometric_mean(ratios), 1, at_most=True
        ),
    ]
    for name in ("w8a-linear", "reuters-linear"):
        of = groups.get(name, {})
        hinge, liblinear = of.get("hinge"), of.get("liblinear")
        if hinge and hinge.seconds and liblinear and liblinear.seconds:
            goals.append(
                Goal(f"{name}: time as a multiple of LIBLINEAR's", hinge.seconds / liblinear.seconds, 2, True)
            )
        if hinge:
            goals.append(Goal(f"{name}: speed-up over LIBSVM", _over(of, "libsvm"), 20))
    return goals


def _over(of_case: dict[str, Figures], name: str) -> float | None:
    hinge, peer = of_case.get("hinge"), of_case.get(name)
    return peer.seconds / hinge.seconds if hinge and peer and hinge.seconds and peer.seconds else None


def plain_goals(groups: Groups) -> list[Goal]:
    """Only correctness."""
    return [_violation(groups)]


FIT_GOALS: dict[str, Callable[[Groups], list[Goal]]] = {
    "table": table_goals,
    "scale": scale_goals,
    "linear": linear_goals,
    "more": plain_goals,
    "multiclass": plain_goals,
    "intel": plain_goals,
}
