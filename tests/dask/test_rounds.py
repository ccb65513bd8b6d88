"""What the benchmark of clusters records of a fit is what the fit reports."""

import time

import pytest
from benchmarks import rounds
from workers import two_classes

from hinge.dask import DaskSVC


def test_recorded_questions_are_those_of_the_report(client):
    X, y = two_classes(2600)
    begun = time.perf_counter()
    with rounds.recorded() as questions:
        machine = DaskSVC(C=5.0, client=client).fit(X, y)
    taken = time.perf_counter() - begun
    work = machine.report_.cluster
    assert (
        len(questions) <= work.questions <= len(questions) + 5
    )  # some are put twice, to those who do not know yet
    assert sum(one.received for one in questions) == work.bytes_received
    assert work.bytes_sent > sum(one.common + one.own for one in questions)
    assert sum(one.waited for one in questions) >= work.seconds_waited
    assert machine.report_.kernel_evaluations / 3 < sum(one.values for one in questions)
    course = rounds.Course.of(2600, 6, 2, taken, questions)
    free = rounds.Prices(0.0, 0.0, 0.0, 0.0)
    spent = rounds.replayed(course, free, 2).seconds
    assert spent == pytest.approx(taken - sum(one.waited for one in questions))
    assert course.setup > 0
