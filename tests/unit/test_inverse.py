import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hinge.solvers.active_set.inverse import add, copy_row, remove, times


@given(seed=st.integers(0, 2**32 - 1), changes=st.lists(st.integers(-20, 20), min_size=1, max_size=30))
def test_an_inverse_follows_its_matrix(seed, changes):
    """Positive numbers add a variable, others take the one at that place out, while any is left."""
    room = len(changes) + 1
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(room, room))
    whole = factor @ factor.T + np.eye(room)
    inverse, work = np.full((room, room), np.nan), np.zeros(room)
    inverse[0, 0] = 1 / whole[0, 0]
    members, unused = [0], list(range(1, room))
    for change in changes:
        size = len(members)
        if change > 0:
            newcomer = unused.pop()
            border = whole[newcomer, members]
            times(inverse, size, border, work)
            add(inverse, size, work, whole[newcomer, newcomer] - border @ work[:size])
            members.append(newcomer)
        elif size > 1:
            place = -change % size
            remove(inverse, size, place, work)
            members[place] = members[-1]
            members.pop()
    size = len(members)
    expected = np.linalg.inv(whole[np.ix_(members, members)])
    rows = np.empty((size, room))
    for place in range(size):
        copy_row(inverse, size, place, rows[place])
    np.testing.assert_allclose(rows[:, :size], expected, rtol=1e-6, atol=1e-8)
    vector = rng.normal(size=room)
    times(inverse, size, vector, work)
    np.testing.assert_allclose(work[:size], expected @ vector[:size], rtol=1e-6, atol=1e-8)
