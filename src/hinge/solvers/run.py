"""One run of a solver: its clock, its limits, and the ways it can be told to stop."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Self

from hinge.arrays import Vector
from hinge.dual.optimality import gap_of, multipliers_of, objective_of
from hinge.dual.problem import DualProblem
from hinge.report import Status
from hinge.runtime import clock, interrupt
from hinge.runtime.threads import Team
from hinge.settings import Progress, Settings
from hinge.solvers.policies import USUAL, Policy
from hinge.solvers.recording import Part, Place, Recorder
from hinge.solvers.state import State

# The default limit on pair steps is LIBSVM's: far beyond any healthy run, and still finite.
_MIN_DEFAULT_STEPS = 10_000_000
_DEFAULT_STEPS_PER_VARIABLE = 100

# A product that is under way when the run must stop may take this much longer, because its step would be lost
# otherwise; so may the residual of samples that were waiting then.
GRACE_SECONDS = 0.3


class Stop(Exception):  # noqa: N818 - an event, not an error
    """The run must end now, with this status."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


@dataclass
class Effort:
    """What the inner problems of a run have taught about the two ways to solve them.

    Attributes
    ----------
    burst : float
        Pair steps per variable that are tried before the free variables are moved together.
    grant : float
        Nanoseconds that they have each time in any case.
    credit : float
        Nanoseconds that free sets have earned because pair steps did not suffice.
    is_alone : bool
        Whether pair steps go alone, because rounding has spoiled what free sets did.
    """

    burst: float
    grant: float
    credit: float = 0.0
    is_alone: bool = False


class Run:
    """Counts, clock and limits of one call of `solve`.

    As a context it lets the team drop what it does when the run must stop.
    """

    def __init__(self, settings: Settings, problem: DualProblem, team: Team, policy: Policy = USUAL) -> None:
        self.settings = settings
        self.policy = policy
        self.problem = problem
        self.started = clock.now()
        self._compiled_before = clock.compiled_seconds()
        self.iterations = 0
        self.outer_steps = 0
        self.objective = 0.0
        self.largest_set = 0
        self.fewest_active = problem.n_samples
        self.most_lagging = 0
        self.effort = Effort(policy.bursts.most, policy.bursts.grant)
        self.whole: State | None = None
        self.nest: list[Part] = []
        self.known = float("nan")
        self.phase = ""
        self.recorder = Recorder(settings.trace) if settings.trace is not None else None
        self._interrupt = interrupt.current()
        default = max(_MIN_DEFAULT_STEPS, _DEFAULT_STEPS_PER_VARIABLE * problem.n_variables)
        self.max_iter = settings.max_iter or default
        limit = float("inf") if settings.time_limit is None else settings.time_limit
        soonest = min(self.started + limit, self._interrupt.deadline)
        self.deadline = max(soonest, self.started)  # a run that is begun late has its grace to say where it stands
        self._team = team

    @property
    def interrupted(self) -> bool:
        """Whether somebody asked to stop, as by Ctrl-C."""
        return self._interrupt.pressed_at < float("inf")

    @property
    def seconds(self) -> float:
        """Time since the start, without that of the compiler."""
        return clock.now() - self.started

    @property
    def compile_seconds(self) -> float:
        """Time that compiling has taken since the start."""
        return clock.compiled_seconds() - self._compiled_before

    @property
    def steps_left(self) -> int:
        """Pair steps that the limit still allows."""
        return self.max_iter - self.iterations

    def count(self, steps: int, objective_change: float) -> None:
        """Add the work of one outer step."""
        self.iterations += steps
        self.outer_steps += 1
        self.objective += objective_change

    def note_set(self, size: int) -> None:
        """Remember the size of the largest working set."""
        self.largest_set = max(self.largest_set, size)

    def note_violation(self, state: State, violation: float | None = None) -> None:
        """Remember the violation where the state is that of all samples."""
        if not self.nest:
            self.known = state.violation() if violation is None else violation

    def note_lagging(self, n_lagging: int) -> None:
        """Remember the most samples that lagged behind at one time."""
        self.most_lagging = max(self.most_lagging, n_lagging)

    @property
    def stride(self) -> int:
        """Most pair steps between two calls of `check`."""
        tracing = self.settings.trace
        return 1 if tracing is not None and tracing.every_step else self.max_iter

    def check(
        self, state: State, violation: float, beta: Vector | None = None, n_active: int | None = None
    ) -> None:
        """Raise `Stop` where a limit is reached or somebody asked to stop; let those who listen know.

        Parameters
        ----------
        state : State
            What is being worked on.
        violation : float
            How far it is from its goal.
        beta : array, optional
            Its variables, where the method has others than the state.
        n_active : int, optional
            How many samples are worked on, where it is not all of the state's.
        """
        n_active = state.gram.n if n_active is None else n_active
        self.fewest_active = min(self.fewest_active, n_active)
        place = Place(state, beta, n_active, self.nest, self.iterations)
        if self.recorder is not None and self.whole is not None:
            self.recorder.observe(self.whole, place)
        if self.settings.keep is not None:
            self.settings.keep(lambda: place.point(self.problem))
        if not self.nest:
            self.known = violation
        if self.settings.callback is not None:
            figures = (self.iterations, self.outer_steps, violation, self.objective, self.seconds, n_active)
            phase = self.phase or ("samples near the margin" if self.nest else "all samples")
            if self.settings.callback(Progress(*figures, self.known, self.settings.tol, phase)):
                raise Stop(Status.INTERRUPTED)
        if self.must_stop():
            raise Stop(self.why_stopped())
        if self.steps_left <= 0:
            raise Stop(Status.ITERATION_LIMIT)

    def gap_is_reached(self, state: State) -> bool:
        """Whether the duality gap of a whole problem meets the caller's own tolerance, if there is one."""
        limit = self.settings.gap_tol
        if limit is None or state.problem is not self.problem:
            return False
        multipliers = multipliers_of(state.problem, state.beta, state.residual)
        gap = gap_of(state.problem, state.beta, state.residual, multipliers)
        return gap <= limit * max(1.0, abs(objective_of(state.problem, state.beta, state.residual)))

    def must_stop(self) -> bool:
        """Whether Ctrl-C was pressed or the time is up."""
        return self.interrupted or clock.now() > self.deadline

    def must_drop_everything(self) -> bool:
        """Whether the step under way may not even be finished: its grace has run out too."""
        return clock.now() > min(self.deadline, self._interrupt.pressed_at) + GRACE_SECONDS

    def why_stopped(self) -> Status:
        """Return the status that goes with `must_stop`."""
        return Status.INTERRUPTED if self.interrupted else Status.TIME_LIMIT

    def __enter__(self) -> Self:
        self._team.cancelled = self.must_drop_everything
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._team.cancelled = interrupt.requested
