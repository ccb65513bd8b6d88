"""``Team``: every block is done once, by as many threads as there are."""

import threading

import pytest

from hinge.runtime.interrupt import Cancelled
from hinge.runtime.threads import Team


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(("length", "block"), [(0, 5), (1, 5), (40, 1), (384, 384), (2783, 1024), (9154, 1024)])
def test_blocks_cover_the_range_once_and_are_not_too_long(size, length, block):
    done, lock = [], threading.Lock()

    def work(start, stop):
        with lock:
            done.append((start, stop))

    Team(size).share(length, block, work)
    done.sort()
    assert [k for start, stop in done for k in range(start, stop)] == list(range(length))
    assert all(0 < stop - start <= block for start, stop in done)
    if len(done) > 1 and block > 16:
        assert len(done) % 8 == 0
    alone = []
    Team(1).share(length, block, lambda start, stop: alone.append((start, stop)))
    assert done == alone


def test_little_work_is_done_by_the_caller_alone():
    workers = set()
    Team(2).share(100, 10, lambda start, stop: workers.add(threading.get_ident()), seconds=1e-6)
    assert workers == {threading.get_ident()}


def test_what_a_block_raises_is_raised_and_a_cancelled_team_stops():
    team = Team(2)

    def fail(start, stop):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        team.share(100, 10, fail)
    team.cancelled = lambda: True
    with pytest.raises(Cancelled):
        team.share(100, 10, lambda start, stop: None)
