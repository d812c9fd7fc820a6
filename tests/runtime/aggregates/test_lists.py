"""Lists are taken apart and put together row by row."""

import numpy as np
import pyarrow as pa

from headrace._runtime.aggregates.lists import concat_lists, distinct_lists, keep_items, owners

LISTS = pa.array([[1, 2], None, [], [3, 1, 1]], pa.list_(pa.int64()))


def test_owners_skip_null_and_empty_lists() -> None:
    assert owners(LISTS).tolist() == [0, 0, 3, 3, 3]
    assert owners(LISTS.slice(3)).tolist() == [0, 0, 0]


def test_kept_items_stay_in_their_list() -> None:
    kept = keep_items(LISTS, np.array([False, True, True, False, True]))
    assert kept.to_pylist() == [[2], [], [], [3, 1]]


def test_lists_are_appended_row_by_row() -> None:
    more = pa.array([[9], [8, 7], None, [6]], pa.list_(pa.int64()))
    assert concat_lists(LISTS, more).to_pylist() == [[1, 2, 9], [8, 7], [], [3, 1, 1, 6]]
    assert concat_lists(LISTS.slice(2), more.slice(2)).to_pylist() == [[], [3, 1, 1, 6]]


def test_repeated_items_stay_where_they_stood_first() -> None:
    assert distinct_lists(LISTS).to_pylist() == [[1, 2], [], [], [3, 1]]
