"""What methods decide: few numbers, each with its unit and reason.

A run carries them (`Run.policy`), so that a test may set others. They change how fast an answer is found, never
which answer. How large a problem must be to be divided is the caller's (`Settings.sizes`), and what an operation
costs on a computer is measured (`hinge.runtime.prices`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Proximal:
    """How long proximal steps are, and how exactly each is solved."""

    first: float = 0.1
    """σ of the first step, in widths of the box for a residual of the size of the violation."""
    most_first: float = 1e6
    """The same at most, in units of 1 / k(x, x) of most samples."""
    growth: float = 4.0
    """How σ grows from step to step; by its square where Newton's method had no trouble."""
    few: int = 3
    """Newton steps up to which it had none."""
    retreats: int = 8
    """Steps that led nowhere because σ was too large by far, in all."""
    huge: float = 1e3
    """A sample is huge if its k(x, x) is this many times that of most: three decades. σ falls by as much where
    it was too large."""
    usual: float = 0.9
    """Share of the samples, the smaller ones, that "most samples" are."""
    share: float = 0.5
    """What is solved before something else changes is solved to this share: a step, to what its σ leaves of the
    violation; a line search, to the slope at its beginning; all samples, before those near the margin."""
    steps: int = 40
    """Beyond this many steps, of each kind, something is wrong: most take about ten."""


@dataclass(frozen=True)
class Descent:
    """How variables are moved one by one, and when that crawls."""

    penalty: float = 0.1
    """ρ of the augmented Lagrangian as a share of the mean diagonal value: larger ones slow the variables down,
    smaller ones the sums."""
    settled: float = 0.5
    """The multiplier is changed once the variables have settled to this share of what its change will move."""
    sweeps: int = 5
    """The same after this many sweeps in any case."""
    patience: float = 10.0
    """A descent that takes the work of this many sweeps over all samples to halve its violation crawls."""
    patience_alone: float = 30.0
    """The same of variables without sums to keep: they may have a slow start, and blocks of them would take
    longer still."""
    finer: float = 0.5
    """How much finer the aim becomes where the feasible point misses the tolerance."""
    finest: float = 0.01
    """The finest aim, as a share of the tolerance."""
    looks: int = 20
    """How often the settled variables of several classes are looked at as a whole before rounding is believed to
    rule."""


@dataclass(frozen=True)
class Bursts:
    """How pair steps and free sets take turns within a working set; what each costs is in the list of prices."""

    turns: int = 4
    """Bursts of pair steps in a working set; between two of them the free variables are moved together."""
    most: float = 5.0
    """Pair steps per variable of a burst: the first of a run, and no later one has more."""
    least: float = 0.5
    """The same where free sets helped, so that bursts became shorter."""
    credit: float = 2.0
    """A free set may cost this many times what the pair steps cost that did not suffice: at worst both are
    vain."""
    grant: float = 8e6
    """Nanoseconds that a free set may cost in any case: nobody misses a few milliseconds, and small problems
    need no more. Halved where it did not suffice."""


@dataclass(frozen=True)
class Neighbours:
    """How long pair steps and an active set are tried on a problem whose neighbour in C has been solved."""

    growth: float = 4.0
    """A problem may cost this many times what the one before it did, or is expected to cost, before the other
    method has its turn; each turn may cost this many times the one before it."""
    least: float = 15.0
    """Nanoseconds for each pair of variables that a turn has in any case."""
    turns: int = 3
    """Turns before the general solver takes over."""
    trial: float = 0.25
    """Pair steps are tried for this share of what an active set is expected to cost, and for half of it where
    they were in vain."""
    changes: int = 300
    """Changes of an active set that a problem is expected to take."""
    flips: int = 10
    """The same for each variable that was at its upper bound: they go to and fro between bounds."""
    drift: float = 1e-4
    """How far, in tolerances, rounding may take a residual before it is computed anew."""


@dataclass(frozen=True)
class Touch:
    """How a run goes on that begins near its end, because a sample has come or gone."""

    size: int = 128
    """Variables that a working set has at least, even of a problem that would be one: a sample that has come or
    gone moves some dozens of others."""
    rounds: int = 20
    """Working sets before the usual method goes on."""
    further: float = 1e-3
    """A working set is solved to this share of the violation of the whole: nearly to the end, because all that
    will move is in it, and every set costs the rows of whatever has moved."""
    reach: float = 0.3
    """Samples whose distance from the margin is more than this share of the violation wait until the others have
    settled: most residuals move by much less than that of the sample's nearest neighbours."""


@dataclass(frozen=True)
class Turns:
    """Working sets of a small problem: how many before something else has its turn."""

    first: int = 6
    """Working sets in the first turn; proximal steps have their turn then. Each turn has twice as many. Pair
    steps settle nearly everything in this many, and where they crawl, turns should be short."""
    most: int = 4
    """Turns after which it will not get there in useful time: a second or two at most."""
    handled: int = 20_000
    """Variables that the working sets of a turn may have together where these turns are over: those of tiny
    problems are quick, and so they have some more."""
    sets: int = 300
    """Working sets that a turn may have in any case: no problem was seen that needs more and gets there."""

    def last(self, n_variables: int) -> int:
        """Return the most working sets that the last turn may have."""
        return max(self.first << (self.most - 1), min(self.handled // n_variables, self.sets))


@dataclass(frozen=True)
class SetAside:
    """Which samples are set aside, and how exactly the others are solved meanwhile."""

    subset: float = 0.25
    """Share of the samples that are solved first: a random quarter shows which will be support vectors."""
    near: float = 0.3
    """Samples stay active within this share of the residuals' mean distance from the multiplier. Fewer of them
    would have to be looked at again; more cost as much as all."""
    worthwhile: float = 0.8
    """Share of the samples above which it does not pay to set the others aside."""
    settled: float = 0.01
    """The active ones are solved to this share of the violation of the whole where they are probably the right
    ones, because they are few or because the last look at the others found nothing among them: nearly to the
    end. Elsewhere to `Policy.further`."""


@dataclass(frozen=True)
class Policy:
    """How long to try, how far to go, what to set aside."""

    patience: int = 3
    """Attempts in a row that lead nowhere before a method gives way: rounds of refinement, working sets,
    turns."""
    further: float = 0.1
    """A part of the variables is solved to this share of the violation of the whole: a decade beyond it. More
    would be lost, because the others move next."""
    per_free: float = 1.3
    """Variables of a working set for each that is free: with some more, one inner solve settles all of them."""
    kept: float = 0.5
    """Share of a working set that stays for the next: variables that just moved are likely to move again, and a
    newcomer of an expensive kernel costs a whole row."""
    turns: Turns = Turns()
    """Working sets of a small problem."""
    aside: SetAside = SetAside()
    """Samples that are not worked on for now."""
    touch: Touch = Touch()
    """Runs that begin near their end."""
    proximal: Proximal = Proximal()
    """Proximal steps, of kernels with a weight vector."""
    descent: Descent = Descent()
    """Variables one by one, of kernels with a weight vector."""
    bursts: Bursts = Bursts()
    """Pair steps and free sets within a working set."""
    neighbours: Neighbours = Neighbours()
    """The same of problems that start from a neighbour's solution."""


#: What a run does unless somebody says otherwise.
USUAL = Policy()
