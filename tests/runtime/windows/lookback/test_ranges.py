"""Aggregates over many ranges at once, against a loop over them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._runtime.windows.lookback.ranges import Ranges


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]]]:
    """Numbers, and ranges of their places."""
    numbers = draw(st.lists(st.integers(-5, 5), min_size=1, max_size=40))
    start = st.integers(0, len(numbers) - 1)
    pairs = draw(st.lists(st.tuples(start, start).map(sorted), max_size=20))
    return numbers, [(low, high + 1) for low, high in pairs]


def ranges_of(pairs: list[tuple[int, int]]) -> Ranges:
    return Ranges(*(np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1)))


@given(cases())
def test_values_of_a_range_are_combined_in_their_order(case: Any) -> None:
    numbers, pairs = case
    # Text does not commute, so a piece out of place shows.
    letters = np.array([f"{number}," for number in numbers], object)
    (found,) = ranges_of(pairs).reduce((letters,), lambda a, b: (a[0] + b[0],))
    assert found.tolist() == ["".join(letters[low:high]) for low, high in pairs]


@given(cases())
def test_counts_sums_first_and_last(case: Any) -> None:
    numbers, pairs = case
    ranges, flags = ranges_of(pairs), np.array(numbers) > 1
    places = [[p for p in range(low, high) if flags[p]] for low, high in pairs]
    assert ranges.add(np.array(numbers)).tolist() == [sum(numbers[a:b]) for a, b in pairs]
    assert ranges.count(flags).tolist() == [len(found) for found in places]
    for found, first, last, (low, high) in zip(
        places, ranges.first(flags), ranges.last(flags), pairs, strict=True
    ):
        assert (first, last) == (found[0], found[-1]) if found else (first >= high and last < low)


def test_what_lies_outside_of_a_range_leaves_no_trace() -> None:
    numbers = np.array([1e300, 0.1, 0.2, np.inf, 0.3, np.nan, 0.4])
    (sums,) = ranges_of([(1, 3), (4, 5), (6, 7)]).reduce((numbers,), lambda a, b: (a[0] + b[0],))
    assert sums.tolist() == [0.1 + 0.2, 0.3, 0.4]


def test_sums_that_wrap_on_the_way_wrap_back() -> None:
    numbers = np.full(8, 2**61)
    assert ranges_of([(5, 8)]).add(numbers).tolist() == [3 * 2**61]


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 1_000])
def test_every_length(size: int) -> None:
    numbers = np.arange(2_000)
    (found,) = ranges_of([(7, 7 + size)]).reduce((numbers,), lambda a, b: (np.maximum(a[0], b[0]),))
    assert found.tolist() == [6 + size]
