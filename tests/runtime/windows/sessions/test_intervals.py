"""Intervals of keys put together, against trying every pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._runtime.windows.sessions import intervals
from headrace._runtime.windows.sessions.intervals import distinct, merge_intervals

YEAR_1 = -62_135_596_800_000_000
YEAR_9999 = 253_402_300_799_999_999

near = st.integers(-20, 20)
far = st.sampled_from([YEAR_1, YEAR_1 + 3, YEAR_9999 - 3, YEAR_9999]) | near
few = st.lists(st.tuples(st.integers(0, 3), near, st.integers(1, 8)), max_size=30)
wide = st.lists(st.tuples(st.sampled_from([0, 7, 2**31]), far, st.integers(1, 8)), max_size=20)


def by_hand(items: list[tuple[int, int, int]]) -> list[tuple[int, int, int, frozenset[int]]]:
    """(key, start, end, which items) of every span."""
    spans = [(key, start, start + gap, {i}) for i, (key, start, gap) in enumerate(items)]
    while True:
        pair = next(
            (
                (a, b)
                for a in spans
                for b in spans
                if a is not b and a[0] == b[0] and a[1] <= b[2] and b[1] <= a[2]
            ),
            None,
        )
        if pair is None:
            return sorted((key, start, end, frozenset(own)) for key, start, end, own in spans)
        a, b = pair
        spans = [span for span in spans if span is not a and span is not b]
        spans.append((a[0], min(a[1], b[1]), max(a[2], b[2]), a[3] | b[3]))


@given(few | wide)
def test_spans_are_what_overlaps_or_touches(items: list[tuple[int, int, int]]) -> None:
    keys, starts, gaps = np.array(items, np.int64).reshape(-1, 3).T
    spans = merge_intervals(keys, starts, starts + gaps)
    found = [
        (
            int(keys[first]),
            int(spans.starts[number]),
            int(spans.ends[number]),
            frozenset(np.flatnonzero(spans.of == number).tolist()),
        )
        for number, first in enumerate(spans.firsts)
    ]
    assert found == by_hand(items)
    assert [int(starts[first]) for first in spans.firsts] == spans.starts.tolist()


@given(few)
def test_ranks_of_times_do_as_well(items: list[tuple[int, int, int]]) -> None:
    keys, starts, gaps = np.array(items, np.int64).reshape(-1, 3).T
    packed = merge_intervals(keys, starts, starts + gaps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "_ROOM", 0)
        ranked = merge_intervals(keys, starts, starts + gaps)
    for name in ("of", "starts", "ends"):
        assert getattr(packed, name).tolist() == getattr(ranked, name).tolist()


def test_intervals_that_touch_are_one_and_those_a_microsecond_apart_are_two() -> None:
    zeros = np.zeros(2, np.int64)
    assert merge_intervals(zeros, np.array([0, 5]), np.array([5, 9])).ends.tolist() == [9]
    assert merge_intervals(zeros, np.array([0, 6]), np.array([5, 9])).ends.tolist() == [5, 9]


@given(st.lists(st.integers(-5, 5)))
def test_distinct_is_each_value_once_in_order(values: list[int]) -> None:
    assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))
