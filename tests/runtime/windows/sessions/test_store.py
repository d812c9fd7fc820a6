"""Which numbers new sessions get."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace._runtime.windows.sessions.store import free_numbers

#: Of a key: the numbers in use, and how many new sessions come.
keys = st.lists(st.tuples(st.sets(st.integers(0, 6)), st.integers(1, 5)), max_size=6)


def least_free(used: set[int], count: int) -> list[int]:
    return [number for number in range(len(used) + count + 7) if number not in used][:count]


@given(keys)
def test_new_sessions_get_the_least_numbers_that_are_free(
    of_keys: list[tuple[set[int], int]],
) -> None:
    owners, used, free_owners, free, expected = [], [], [], [], []
    for owner, (taken, count) in enumerate(of_keys):
        beyond = max(taken, default=-1) + 1
        owners += [owner] * count
        used += [beyond] * count
        below = sorted(set(range(beyond)) - taken)
        free_owners += [owner] * len(below)
        free += below
        expected += least_free(taken, count)
    arrays = [np.array(column, np.int64) for column in (owners, used, free_owners, free)]
    assert free_numbers(*arrays).tolist() == expected
