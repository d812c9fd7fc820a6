"""Any stream, any interval, any disturbance: the engine says what all pairs say, at the right time."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._runtime.joins.interval import nearness
from headrace.testing.epochs import SidedRow, StepEpoch
from tests.runtime.joins.interval.interval_cases import (
    HOWS,
    INTERVALS,
    RANDOM,
    compare,
    interval_node,
    streams,
)
from tests.runtime.windows.cases import disturbances

intervals = st.sampled_from(list(INTERVALS.values())) | st.tuples(
    st.integers(-12, 12), st.integers(-12, 12)
).map(lambda ends: (min(ends), max(ends)))
hows = st.sampled_from(HOWS)


@RANDOM
@given(streams(), intervals, hows, st.sampled_from([1, 1000, 1_000_000]), disturbances())
def test_any_stream(
    epochs: list[StepEpoch], interval: Any, how: str, unit: int, disturbed: Any
) -> None:
    # In longer units rows lie in many slices of time, in shorter ones in few.
    node = interval_node(interval[0] * unit, interval[1] * unit, how)
    compare(node, [_longer(epoch, unit) for epoch in epochs], **disturbed)


@RANDOM
@given(streams(st.just("a"), most=20), intervals, hows, st.integers(1, 4), disturbances())
def test_many_rows_of_one_key(
    epochs: list[StepEpoch], interval: Any, how: str, portion: int, disturbed: Any
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearness, "_MANY", 0)
        patch.setattr(nearness, "PAIRS", portion)
        compare(interval_node(*interval, how), epochs, **disturbed)


NAN, DAY = float("nan"), datetime(2025, 1, 1, tzinfo=UTC)
#: Column types and values that are hard to tell apart, or to tell from nothing.
KEYS: dict[str, tuple[list[pa.DataType], list[list[Any]]]] = {
    "floats": ([pa.float64()], [[NAN, -NAN, 0.0, -0.0, 1.5, None]]),
    "short floats": ([pa.float32()], [[NAN, 0.0, -0.0, None]]),
    "texts": ([pa.string()], [["", "\0", "a", "ä", None]]),
    "bytes": ([pa.binary()], [[b"", b"\0", None]]),
    "truth": ([pa.bool_()], [[True, False, None]]),
    "instants": ([pa.timestamp("ms", "UTC")], [[DAY, DAY.replace(year=1960), None]]),
    "decimals": ([pa.decimal128(9, 2)], [[Decimal("0.00"), Decimal("-1.50"), None]]),
    "a dictionary": ([pa.dictionary(pa.int32(), pa.string())], [["", "a", None]]),
    "two": ([pa.float64(), pa.string()], [[NAN, 0.0, -0.0, None], ["", "a", None]]),
    "three": ([pa.int64(), pa.int64(), pa.string()], [[0, None], [0, 1], ["", None]]),
}


@pytest.mark.parametrize("kind", KEYS)
@given(st.data())
def test_any_key(kind: str, data: st.DataObject) -> None:
    types, pools = KEYS[kind]
    names = [f"k{place}" for place in range(len(types))]
    fields = dict(zip(names, types, strict=True))
    schemas = [pa.schema(fields | {"n": pa.int64()}), pa.schema(fields | {"m": pa.int64()})]
    node = interval_node(-3, 3, data.draw(hows), schemas=schemas, on=names)
    keys = st.tuples(*map(st.sampled_from, pools))
    row = st.tuples(st.integers(0, 9), keys, st.integers(0, 1), st.integers(0, 9))

    def sided(at: int, key: tuple[Any, ...], side: int, n: int) -> SidedRow:
        return SidedRow(at, dict(zip(names, key, strict=True)) | {"nm"[side]: n}, side)

    rows = st.lists(row.map(lambda drawn: sided(*drawn)), max_size=10)
    epochs = [StepEpoch(before, before + 4, data.draw(rows)) for before in (-4, 0, 4, 8)]
    compare(node, epochs, **data.draw(disturbances()))


def _longer(epoch: StepEpoch, unit: int) -> StepEpoch:
    def at(time: int) -> int:
        return time * unit if abs(time) < 2**40 else time

    def rows(some: Any) -> list[SidedRow]:
        return [row._replace(at=row.at * unit) for row in some]

    return StepEpoch(at(epoch.before), at(epoch.watermark), rows(epoch.rows), rows(epoch.early))
