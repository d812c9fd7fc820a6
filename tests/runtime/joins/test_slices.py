"""Which bucket a row lies in, and when the bucket goes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._runtime.joins.slices import Slices
from headrace.watermarks import END_OF_TIME


@given(
    st.lists(st.integers(-(10**17), 10**17), min_size=1, max_size=40),
    st.integers(0, 10**14),
    st.integers(0, 500),
)
def test_every_row_lies_in_the_span_of_its_bucket_and_goes_with_it(
    times: list[int], interval_us: int, live: int
) -> None:
    slices, ordered = Slices(interval_us), np.sort(np.array(times, np.int64))
    buckets = []
    for bucket, part in slices.parts(ordered, live):
        first, last = slices.span(bucket)
        assert first <= ordered[part][0] <= ordered[part][-1] <= last
        assert bucket >= slices.horizon(last - 1)
        assert bucket < slices.horizon(last)
        buckets += [bucket] * (part.stop - part.start)
    assert len(buckets) == len(ordered)
    assert len(set(buckets)) <= 16


def test_slices_are_a_quarter_of_the_interval() -> None:
    slices = Slices(4_000_000)
    parts = dict(slices.parts(np.array([0, 999_999, 1_000_000, 2_500_000]), 0))
    assert [slices.span(bucket) for bucket in parts] == [
        (0, 999_999), (1_000_000, 1_999_999), (2_000_000, 2_999_999),
    ]  # fmt: skip


@pytest.mark.parametrize(("live", "longer"), [(0, 1), (15, 1), (16, 2), (47, 4), (160, 1024)])
def test_the_more_buckets_there_are_the_longer_are_new_ones(live: int, longer: int) -> None:
    slices = Slices(4_000_000)
    ((bucket, _),) = slices.parts(np.array([5_000_000_000]), live)
    first, last = slices.span(bucket)
    assert last - first + 1 == longer * 1_000_000


def test_nothing_lies_behind_the_end_of_time() -> None:
    assert Slices(1).horizon(END_OF_TIME) == END_OF_TIME
