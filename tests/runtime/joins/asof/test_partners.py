"""The last right row before each left row, against a loop over all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._runtime.joins.asof import partners
from headrace._runtime.joins.asof.partners import (
    Moments,
    distinct,
    last_before,
    last_of_each,
    latest_of_each,
)

Pairs = list[tuple[int, int]]

#: (number of a key, time)
rows = st.lists(st.tuples(st.integers(0, 3), st.integers(-4, 4)), max_size=30)
stretches = st.sampled_from([1, 10**9, 2**60])


def moments(pairs: Pairs, by: int = 1) -> Moments:
    return Moments(
        *(np.array([pair[i] for pair in pairs], np.int64) * f for i, f in enumerate((1, by)))
    )


def by_loop(left: Pairs, right: Pairs, *, exact: bool) -> list[int]:
    found = []
    for key, at in left:
        before = [
            (time, place)
            for place, (its, time) in enumerate(right)
            if its == key and (time < at or (exact and time == at))
        ]
        found.append(max(before)[1] if before else -1)
    return found


@given(rows, rows, st.booleans(), stretches)
def test_last_before(left: Pairs, right: Pairs, exact: bool, by: int) -> None:
    found = last_before(moments(left, by), moments(right, by), exact=exact)
    assert found.tolist() == by_loop(left, right, exact=exact)


@given(rows, rows, st.booleans())
def test_the_first_behind_is_the_last_before_in_a_mirror(
    left: Pairs, right: Pairs, exact: bool
) -> None:
    found = last_before(moments(left).mirrored(), moments(right).mirrored(), exact=exact)
    mirrored = [[(key, -at) for key, at in side] for side in (left, right)]
    assert found.tolist() == by_loop(*mirrored, exact=exact)


@given(rows.filter(bool), stretches)
def test_what_counts_of_each_key_and_time(pairs: Pairs, by: int) -> None:
    latest = {
        key: max((at, n) for n, (its, at) in enumerate(pairs) if its == key)[1] for key, _ in pairs
    }
    assert sorted(latest_of_each(moments(pairs, by)).tolist()) == sorted(latest.values())
    last = {pair: place for place, pair in enumerate(pairs)}
    assert sorted(last_of_each(moments(pairs, by)).tolist()) == sorted(last.values())


@given(st.lists(st.integers(0, 9), min_size=1))
def test_each_number_once(numbers: list[int]) -> None:
    once, places = distinct(np.array(numbers))
    assert once.tolist() == sorted(set(numbers))
    assert once[places].tolist() == numbers


def test_many_keys_far_apart_in_time() -> None:
    # Key and time do not fit into one word.
    rng = np.random.default_rng(2)
    sides: list[Any] = [
        Moments(rng.integers(0, 50_000, n), rng.integers(-(2**61), 2**61, n))
        for n in (2_000, 100_000)
    ]
    left, right = sides
    found = last_before(left, right)
    for place in range(0, 2_000, 100):
        mine = np.flatnonzero(
            (right.codes == left.codes[place]) & (right.times <= left.times[place])
        )
        expected = mine[np.argmax(right.times[mine])] if len(mine) else -1
        assert found[place] == expected


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (0, 0)])
def test_nobody_there(sizes: tuple[int, int]) -> None:
    left, right = (moments([(1, 5)] * size) for size in sizes)
    assert last_before(left, right).tolist() == [-1] * sizes[0]


def test_a_partner_that_is_not_there_is_null() -> None:
    import pyarrow as pa

    parts = [{"a": pa.array([1, 2])}, {"a": pa.array([3])}]
    found = partners.Partners.of(["a"], parts, np.array([2, -1, 0]))
    assert found.take(found.places)["a"].to_pylist() == [3, None, 1]
