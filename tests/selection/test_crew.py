import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from hinge.selection.engines.crew import Crew


def test_whoever_is_free_makes_calls():
    crew, both_there = Crew(), threading.Barrier(2, timeout=60)

    def meet(number):
        both_there.wait()
        return number, threading.current_thread().name

    with ThreadPoolExecutor(1, thread_name_prefix="helper") as pool:
        pool.submit(crew.help)
        for _ in range(3):
            made = crew.spread(meet, range(6))
            assert [number for number, _ in made] == list(range(6))
            assert len({name for _, name in made}) == 2
        crew.dismiss()


def test_calls_are_made_without_help():
    crew = Crew()
    crew.dismiss()
    assert crew.spread(abs, [-2, 1]) == [2, 1]


@pytest.mark.parametrize("helpers", [0, 1])
def test_what_a_call_raises_reaches_whoever_spread_it(helpers):
    crew = Crew()
    with ThreadPoolExecutor(1) as pool:
        for _ in range(helpers):
            pool.submit(crew.help)
        with pytest.raises(ZeroDivisionError):
            crew.spread(lambda number: 1 / number, [1, 0, 2])
        assert crew.spread(abs, [-1]) == [1]  # a helper has survived
        crew.dismiss()
