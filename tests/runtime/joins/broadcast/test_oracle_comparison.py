"""Any rows, any table, any disturbance: each row stands beside what a list of the table's rows has for it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.watermarks import NO_WATERMARK
from tests.examples import examples
from tests.oracle.joins.broadcast import BroadcastOracle
from tests.runtime.joins.broadcast.cases import broadcast_node, entry, row
from tests.runtime.joins.interval.test_oracle_comparison import KEYS
from tests.runtime.joins.stamped import compare
from tests.runtime.windows.cases import disturbances

COUNTRIES = st.sampled_from(["a", "b", "", None])
ZONES = st.sampled_from([1.0, 0.0, -0.0, float("nan"), None])
LEFTS = st.builds(row, COUNTRIES, ZONES, st.integers(0, 9), st.integers(-5, 30))
hows = st.sampled_from(["inner", "left"])


@st.composite
def streams(draw: st.DrawFn, changes: st.SearchStrategy[Any]) -> list[StepEpoch]:
    """Epochs with rows and entries in both phases; every entry has a place of its own."""
    offsets = iter(draw(st.permutations(range(200))))
    entries = st.builds(
        lambda country, zone, name, change: entry(country, zone, name, next(offsets), change),
        COUNTRIES, ZONES, st.sampled_from("xyz"), changes,
    )  # fmt: skip
    rows = st.lists(LEFTS | entries, max_size=10)
    marks = sorted(draw(st.lists(st.integers(-5, 20), min_size=1, max_size=5)))
    befores = [NO_WATERMARK, *marks]
    return [
        StepEpoch(before, mark, draw(rows), draw(rows))
        for before, mark in zip(befores, marks, strict=False)
    ]


@examples(30)
@given(streams(st.none()), hows, disturbances())
def test_any_table(epochs: list[StepEpoch], how: str, disturbed: Any) -> None:
    compare(BroadcastOracle(broadcast_node(how)), epochs, **disturbed)


@examples(30)
@given(streams(st.sampled_from(["+I", "-U", "+U", "-D"])), hows, disturbances())
def test_any_table_that_carries_changes(epochs: list[StepEpoch], how: str, disturbed: Any) -> None:
    compare(BroadcastOracle(broadcast_node(how, changing=True)), epochs, **disturbed)


@pytest.mark.parametrize("kind", KEYS)
@examples(15)
@given(st.data())
def test_any_key(kind: str, data: st.DataObject) -> None:
    types, pools = KEYS[kind]
    names = [f"k{place}" for place in range(len(types))]
    fields = dict(zip(names, types, strict=True))
    others = {f"o{name}": kind for name, kind in fields.items()}
    schemas = [pa.schema(fields | {"n": pa.int64()}), pa.schema(others | {"m": pa.int64()})]
    node = broadcast_node(data.draw(hows), schemas=schemas, left_on=names, right_on=list(others))
    keys = st.tuples(*map(st.sampled_from, pools))
    drawn = st.tuples(keys, st.integers(0, 1), st.integers(0, 9))
    offsets = iter(range(1000))

    def sided(key: tuple[Any, ...], side: int, n: int) -> SidedRow:
        named = dict(zip(others if side else names, key, strict=True))
        return SidedRow(n, named | {"nm"[side]: n}, side, ("source", "0", next(offsets)))

    rows = st.lists(drawn.map(lambda parts: sided(*parts)), max_size=10)
    epochs = [StepEpoch(before, before + 4, data.draw(rows)) for before in (-4, 0, 4, 8)]
    compare(BroadcastOracle(node), epochs, **data.draw(disturbances()))
