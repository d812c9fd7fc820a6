"""Orders that keep arrival among equals."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace._runtime.ordering import places_within, ranges, stable_order, starts_of

words = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.integers(-4, 4) | words))
def test_the_order_is_that_of_a_stable_sort(numbers: list[int]) -> None:
    found = stable_order(np.array(numbers, np.int64))
    assert found.tolist() == sorted(range(len(numbers)), key=numbers.__getitem__)


@given(st.lists(st.integers(0, 5)))
def test_places_count_the_rows_of_a_group(groups: list[int]) -> None:
    found = places_within(np.array(groups, np.int64), np.bincount(groups, minlength=7))
    assert found.tolist() == [groups[:place].count(group) for place, group in enumerate(groups)]


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 3))))
def test_ranges_stand_one_behind_the_other(pairs: list[tuple[int, int]]) -> None:
    starts, sizes = (np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1))
    found = ranges(starts, sizes)
    assert found.tolist() == [n for start, size in pairs for n in range(start, start + size)]
    assert starts_of(sizes).tolist() == [sum(sizes[:place]) for place in range(len(sizes))]
