"""Combinations of rows come in portions, all of them, each once."""

from __future__ import annotations

import tracemalloc
from itertools import product
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace._runtime.joins.regular.product import NOTHING, Shown, combine

_SEEN = st.lists(st.integers(-1, 4), min_size=1, max_size=7)


def shown(seen: list[int], *, first: int) -> Shown:
    """So many slots for each row, one behind the other from a number on; -1: something stands in."""
    counts = np.array([max(n, 0) for n in seen])
    stands = np.array([n == -1 for n in seen])
    slots = np.arange(counts.sum()) + first
    return Shown(slots, np.cumsum(counts) - counts, counts, stands)


def slots_of(one: Shown, row: int) -> list[int]:
    assert one.stands is not None
    start, many = int(one.starts[row]), int(one.counts[row])
    return [NOTHING] if one.stands[row] else one.slots[start : start + many].tolist()


@given(st.lists(_SEEN, min_size=0, max_size=3), st.integers(1, 5))
def test_every_combination_comes_once_in_the_order_of_rows(drawn: Any, at_once: int) -> None:
    rows = min(map(len, drawn), default=3)
    others = {n + 1: shown(seen[:rows], first=100 * n) for n, seen in enumerate(drawn)}
    found = []
    for places, met in combine(others, rows, at_once):
        assert 0 < len(places) <= at_once
        assert all(len(slots) == len(places) for slots in met.values())
        found += list(zip(places.tolist(), *(met[side].tolist() for side in others), strict=True))
    expected = [
        (row, *slots)
        for row in range(rows)
        for slots in product(*(slots_of(one, row) for one in others.values()))
    ]
    assert [row for row, *_ in found] == [row for row, *_ in expected]
    assert sorted(found) == sorted(expected)


def test_memory_does_not_grow_with_the_partners_of_a_row() -> None:
    def peak(partners: int) -> int:
        one = Shown(
            np.arange(partners), np.zeros(3, np.int64), np.full(3, partners), np.zeros(3, np.bool_)
        )
        tracemalloc.start()
        made = sum(len(places) for places, _ in combine({1: one}, 3, 1_000))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert made == 3 * partners
        return most - one.slots.nbytes

    assert peak(200_000) < peak(2_000) + 10_000
