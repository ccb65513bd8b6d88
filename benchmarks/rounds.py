"""What rounds on a cluster cost: recorded questions of real fits, unit prices, and what these make together.

A fit is a sequence of questions. Each costs its latency, its bytes through the client's one line, and its kernel
values on the slowest worker; between questions the client computes: working sets, their small problems, residuals.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from hinge.dask.shards import DaskShards, size_of

# Rows of the data that prices are measured on, and turns of each measurement.
_ROWS, _TURNS = 20_000, 15

# Bytes of a large message, and samples of a panel.
_LARGE, _PANEL = 4_000_000, 500

# Bytes that a worker keeps of each sample besides features: norms, sums, and what a question is answered with.
_A_SAMPLE = 48


@dataclass(frozen=True)
class Question:
    """One question of a fit.

    Attributes
    ----------
    thought : float
        Seconds that the client computed before it.
    common, own, received : int
        Bytes that go to every worker, to one of them each, and back from all of them.
    values : int
        Kernel values that all workers compute together.
    waited : float
        Seconds until the last answer.
    """

    thought: float
    common: int
    own: int
    received: int
    values: int
    waited: float


@dataclass(frozen=True)
class Course:
    """The recorded questions of a fit.

    Attributes
    ----------
    n, d : int
        Samples and features.
    workers : int
        Workers that it was recorded with.
    seconds : float
        Time of the whole fit.
    questions : list of Question
        The questions.
    setup : float
        Seconds before the first question and after the last: starting on workers, dealing rows out, the model.
    repeats : float
        How often each of the questions is asked.
    """

    n: int
    d: int
    workers: int
    seconds: float
    questions: list[Question]
    setup: float = 0.0
    repeats: float = 1.0

    @classmethod
    def of(cls, n: int, d: int, workers: int, seconds: float, questions: list[Question]) -> Course:
        """Return the course of a fit, the time of which that is no question's being its setup."""
        first = replace(questions[0], thought=0.0)
        rest = [first, *questions[1:]]
        return cls(n, d, workers, seconds, rest, seconds - sum(one.thought + one.waited for one in rest))

    @property
    def values(self) -> int:
        """Kernel values of the whole fit."""
        return round(self.repeats * sum(question.values for question in self.questions))


@contextmanager
def recorded() -> Iterator[list[Question]]:
    """Note every question of the fits of this thread."""
    found: list[Question] = []
    ask, ended = DaskShards.ask, [time.perf_counter()]

    def noting(self: Any, question: str, common: tuple[Any, ...], own: Any, cancelled: Any) -> Any:
        begun = time.perf_counter()
        answers = ask(self, question, common, own, cancelled)
        done = time.perf_counter()
        given = [answer for answer in answers if isinstance(answer, np.ndarray)]
        samples = sum(len(answer) for answer in given) if question == "image" else 0
        found.append(Question(
            begun - ended[0], size_of(common), size_of(list(own)), size_of(answers),
            common[3].n * samples if samples else 0, done - begun,
        ))  # fmt: skip
        ended[0] = time.perf_counter()
        return answers

    DaskShards.ask = noting  # type: ignore[method-assign]
    try:
        yield found
    finally:
        DaskShards.ask = ask  # type: ignore[method-assign]


@dataclass(frozen=True)
class Prices:
    """What things cost.

    Attributes
    ----------
    question, worker : float
        Seconds of a question without content, and of each worker that it goes to.
    byte : float
        Seconds of a byte from or to the client.
    value : float
        Seconds of a kernel value on one worker.
    """

    question: float
    worker: float
    byte: float
    value: float

    def on_network(self, round_trip: float, bytes_a_second: float) -> Prices:
        """Return the prices where a network lies between: a round trip, and the client's line."""
        return replace(self, question=self.question + round_trip, byte=max(self.byte, 1 / bytes_a_second))


def measured(clients: dict[int, Any], X: Any, gamma: float) -> Prices:
    """Measure prices with one and two workers, on rows of the data that they will be used for.

    Parameters
    ----------
    clients : dict
        Clients of clusters by their number of workers, 1 and 2.
    X : array
        The data.
    gamma : float
        Of the kernel.
    """
    from hinge.dask.adapter import Cluster
    from hinge.dask.inputs import shards_of_rows
    from hinge.data.sharded import ShardedRows
    from hinge.kernel.gram import Gram
    from hinge.kernel.kernels import Kernel

    empty, large = {}, {}
    seconds_a_value = 0.0
    for n_workers, client in clients.items():
        cluster = Cluster(client)
        shards = shards_of_rows(cluster, X[:_ROWS])
        for content, found in ((np.empty(0), empty), (np.zeros(_LARGE // 8), large)):
            told = {host: ("", (content,), {}) for host in cluster.hosts}
            found[n_workers] = _typical(lambda told=told, one=cluster: one.call("answer", told, _never))
        if n_workers == 1:
            gram = Gram(ShardedRows(shards), Kernel("rbf", gamma=gamma))
            values = np.zeros(gram.n)
            values[:_PANEL] = 1.0
            with recorded() as questions:
                _typical(lambda: gram.product(values, dtype=gram.dtype))  # noqa: B023
            sent_and_back = 1 / _LARGE * (large[1] - empty[1])
            costs = [
                (one.waited - empty[1] - (one.common + one.own + one.received) * sent_and_back) / one.values
                for one in questions
                if one.values
            ]
            seconds_a_value = median(costs)
        shards.close()
    per_worker = max(empty[2] - empty[1], 0.0)
    byte = max((large[1] - empty[1]) / _LARGE, 0.0)
    return Prices(max(empty[1] - per_worker, 0.0), per_worker, byte, seconds_a_value)


def _never() -> bool:
    return False


def _typical(action: Any) -> float:
    times = []
    for _ in range(_TURNS + 1):
        begun = time.perf_counter()
        action()
        times.append(time.perf_counter() - begun)
    return median(times[1:])  # the first one connects, or compiles


@dataclass(frozen=True)
class Forecast:
    """What a fit would take.

    Attributes
    ----------
    seconds : float
        In all.
    computing, sending, thinking, asking : float
        Of these: kernel values on workers, bytes, the client's own work, latency.
    """

    computing: float
    sending: float
    thinking: float
    asking: float

    @property
    def seconds(self) -> float:
        return self.computing + self.sending + self.thinking + self.asking

    def as_dict(self) -> dict[str, float]:
        """Return all of it."""
        return {"seconds": self.seconds, **asdict(self)}


def replayed(course: Course, prices: Prices, workers: int) -> Forecast:
    """Replay the questions of a fit with a number of workers."""
    computing = sending = asking = thinking = 0.0
    for one in course.questions:
        thinking += one.thought
        asking += prices.question + prices.worker * workers
        sending += prices.byte * (one.common * workers + one.own + one.received)
        computing += prices.value * one.values / workers
    computing, sending, thinking, asking = (course.repeats * one for one in (computing, sending, thinking, asking))
    return Forecast(computing, sending, thinking + course.setup, asking)


def grown(small: Course, large: Course, n: int) -> Course:
    """Return the course that a fit to n samples would have, by how two fits to fewer differ.

    The number of questions grows by the power of n that lies between the two. A question is that of the larger fit
    with more samples; what the client computes before it is divided into a part for each question and one for each
    sample.
    """
    times = n / large.n
    power = np.log(len(large.questions) / len(small.questions)) / np.log(large.n / small.n)
    less, more = (float(np.mean([one.thought for one in course.questions])) for course in (small, large))
    slope = max((more - less) / (large.n - small.n), 0.0)
    thought = max(more - slope * large.n, 0.0) + slope * n
    questions = [
        replace(
            one, thought=thought, own=int(one.own * times), received=int(one.received * times),
            values=int(one.values * times),
        )
        for one in large.questions
    ]  # fmt: skip
    return replace(large, n=n, questions=questions, repeats=times ** float(power))


def bytes_a_worker(course: Course, workers: int) -> float:
    """Return the memory of a worker: rows as they came and as they are stored, copies of active ones (`Shard`)."""
    own = course.n / workers
    return own * (4 * course.d * 4 + _A_SAMPLE)
