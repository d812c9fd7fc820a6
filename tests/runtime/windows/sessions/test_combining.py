"""Parts folded by pairs are what they are one after the other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace import aggregates as agg
from headrace._runtime.aggregates.kinds import Setting, make_fold
from headrace._runtime.windows.scratch import Scratch
from headrace._runtime.windows.sessions.combining import combine

SCHEMA = pa.schema([("key", pa.string()), ("number", pa.int64())])
SETTING = Setting("step", SCHEMA, SCHEMA, overlapping=True, weighted=False)
FOLDS = [
    make_fold("total", agg.sum("number"), SETTING),
    make_fold("all", agg.collect("number"), SETTING),
    make_fold("last", agg.last("number"), SETTING),
]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9), st.integers(0, 2)), min_size=1))
def test_pairs_give_what_a_sequence_gives(items: list[tuple[int, int, int]]) -> None:
    groups = np.array([group for group, _, _ in items], np.int64)
    lists = pa.list_(pa.int64())
    parts = [
        [pa.array([value for _, value, _ in items])],
        [
            pa.array([[value] for _, value, _ in items], lists),
            pa.array([[place] for place in range(len(items))], lists),
        ],
        [pa.array([time for _, _, time in items]), pa.array([value for _, value, _ in items])],
    ]
    whole = combine(FOLDS, parts, groups)
    assert whole.groups.tolist() == sorted(set(groups.tolist()))
    sequence = Scratch(FOLDS, 5)
    for place, group in enumerate(groups):
        for fold, own in zip(FOLDS, parts, strict=True):
            fold.merge(sequence, np.array([group]), [part.slice(place, 1) for part in own])
    for fold in FOLDS:
        expected = fold.result(sequence, whole.groups)
        assert fold.result(whole.columns, whole.slots).to_pylist() == expected.to_pylist()
