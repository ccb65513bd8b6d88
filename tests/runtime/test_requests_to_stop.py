"""`hinge.runtime.interrupt`: who catches Ctrl-C, who hears of it, and what the caller is told."""

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from hinge.runtime import interrupt
from hinge.runtime.interrupt import Cancelled, catching, check, pressed, requested, submit, together, within
from hinge.runtime.threads import Team


def ctrl_c():
    signal.raise_signal(signal.SIGINT)


def press(seen, times=1):
    """Press Ctrl-C inside of a call that catches it, and note what is heard of it."""
    with catching():
        for _ in range(times):
            ctrl_c()
            seen.append(pressed())


def test_ctrl_c_is_a_request_first_and_raises_in_the_end():
    seen = []
    with pytest.raises(KeyboardInterrupt):
        press(seen)
    assert seen == [True]
    assert not pressed()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_raises_at_once():
    seen = []
    with pytest.raises(KeyboardInterrupt):
        press(seen, times=2)
    assert seen == [True]


def test_an_answered_request_does_not_raise():
    with catching() as scope:
        ctrl_c()
        scope.is_answered = True


def test_only_the_outermost_call_answers():
    seen = []

    def outer():
        with catching():
            with catching() as inner:
                ctrl_c()
                inner.is_answered = True
            seen.append(pressed())

    with pytest.raises(KeyboardInterrupt):
        outer()
    assert seen == [True]


def test_dropped_work_becomes_keyboard_interrupt():
    def work():
        with catching():
            ctrl_c()
            check()

    with pytest.raises(KeyboardInterrupt):
        work()


def test_ctrl_c_that_somebody_ignores_stays_ignored():
    old = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with catching():
            ctrl_c()
            assert not pressed()
    finally:
        signal.signal(signal.SIGINT, old)


def test_nobodys_except_clause_swallows_a_request():
    with within(0.0), pytest.raises(Cancelled), suppress(Exception):
        check()


def test_deadlines_nest():
    with within(1000.0):
        assert not requested()
        with within(0.0):
            assert requested()
            assert not pressed()
            with within(1000.0):
                assert requested()
        assert not requested()
    with catching(), within(None):
        assert interrupt.current().deadline == float("inf")


def test_threads_hear_what_concerns_whoever_started_them():
    with ThreadPoolExecutor(1) as pool, within(0.0):
        assert submit(pool, requested).result()
        assert not pool.submit(requested).result()


def test_a_failure_stops_what_was_begun_together():
    waiting = []

    def begin_and_fail(pool):
        with together():
            waiting.append(submit(pool, wait_until_pressed))
            raise ZeroDivisionError

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ZeroDivisionError):
            begin_and_fail(pool)
        assert waiting[0].result()


def wait_until_pressed():
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if pressed():
            return True
    return False


@pytest.mark.parametrize("size", [1, 3])
def test_a_team_stops_between_blocks(size):
    done = []

    def work(start, stop):
        done.append(start)
        if start == 2:
            ctrl_c()
        if start >= 2:
            wait_until_pressed()  # the main thread hears of a signal when it comes to it

    with pytest.raises(KeyboardInterrupt), catching():
        Team(size).share(10_000, 1, work)
    assert 3 <= len(done) <= 3 + size


def test_a_failure_on_one_thread_of_a_team_ends_the_others():
    done, has_failed = [], threading.Event()

    def work(start, stop):
        done.append(start)
        if start == 2:
            has_failed.set()
            raise ZeroDivisionError
        if start > 2:
            has_failed.wait(60)

    with pytest.raises(ZeroDivisionError):
        Team(2).share(1_000_000, 1, work)
    assert len(done) < 1_000_000
