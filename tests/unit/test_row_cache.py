"""The row cache alone: who leaves, who is pinned, what it admits to holding."""

import numpy as np
import pytest

from hinge.kernel.cache import RowCache


def keys(*numbers):
    return np.array(numbers, dtype=np.int64)


def cache_of(rows, n_keys=10, width=4):
    return RowCache(n_keys, width, np.float32, budget=rows * width * 4)


def use(cache, *numbers):
    """Ask for rows one after the other, as a pairwise solver does."""
    for key in numbers:
        if cache.find(keys(key))[0] < 0:
            cache.admit(keys(key))


def test_least_recently_used_row_leaves_first():
    cache = cache_of(3)
    use(cache, 0, 1, 2)
    use(cache, 0)  # 1 is now the oldest
    use(cache, 7)
    np.testing.assert_array_equal(cache.slot_of[[0, 1, 2, 7]] >= 0, [True, False, True, True])
    use(cache, 8)
    np.testing.assert_array_equal(cache.keys(), [0, 7, 8])


def test_keys_are_listed_oldest_first():
    cache = cache_of(4)
    use(cache, 3, 1, 4, 5, 3)
    np.testing.assert_array_equal(cache.keys(), [1, 4, 5, 3])


def test_rows_of_the_same_request_are_pinned():
    cache = cache_of(3)
    use(cache, 0, 1, 2)
    np.testing.assert_array_equal(cache.find(keys(1, 2)) >= 0, True)
    slots = cache.admit(keys(8, 9))
    assert slots[0] >= 0
    assert slots[1] == -1  # 1 and 2 are in use: only the slot of 0 was free
    np.testing.assert_array_equal(cache.slot_of[[0, 1, 2, 8, 9]] >= 0, [False, True, True, True, False])


def test_slots_are_distinct_and_keep_their_rows():
    cache = cache_of(4)
    slots = cache.admit(keys(2, 4, 6, 8))
    assert sorted(slots) == [0, 1, 2, 3]
    cache.rows[slots] = keys(2, 4, 6, 8)[:, None]
    use(cache, 4, 9)
    for key in (4, 6, 8):
        np.testing.assert_array_equal(cache.rows[cache.slot_of[key]], key)
    assert cache.slot_of[2] == -1


def test_discarded_rows_are_forgotten_and_their_slots_reused_first():
    cache = cache_of(3)
    use(cache, 0, 1, 2)
    slot = cache.slot_of[2]
    cache.discard(keys(2))
    assert cache.find(keys(2))[0] == -1
    np.testing.assert_array_equal(cache.keys(), [0, 1])
    assert cache.admit(keys(5))[0] == slot


@pytest.mark.parametrize("budget", [1, 16, 47])
def test_three_rows_always_fit(budget):
    """Maximum gain needs the two rows of the last pair and a third one for the next."""
    assert RowCache(10, 4, np.float32, budget).capacity == 3


@pytest.mark.parametrize(("dtype", "capacity"), [(np.float32, 6), (np.float64, 3)])
def test_budget_is_in_bytes(dtype, capacity):
    cache = RowCache(10, 4, dtype, budget=100)
    assert cache.capacity == capacity
    assert cache.bytes_used == 0
    cache.admit(keys(0, 1))
    assert cache.bytes_used == 2 * 4 * np.dtype(dtype).itemsize <= 100


def test_never_more_slots_than_keys():
    assert cache_of(1000, n_keys=5).capacity == 5
    assert RowCache(1, 4, np.float64, budget=1 << 20).capacity == 1


def test_a_long_random_history_agrees_with_a_list():
    rng = np.random.default_rng(0)
    cache, expected = cache_of(5, n_keys=20), []
    for key in rng.integers(0, 20, size=500):
        use(cache, key)
        expected = [*[k for k in expected if k != key][-4:], key]
        np.testing.assert_array_equal(cache.keys(), expected)
