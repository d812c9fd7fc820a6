"""What a window join does with keys, skew, state and time that random streams seldom or never have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import nan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace._graph.nodes import ERRORS, LATE, LATE_RIGHT, MAIN
from headrace._runtime import registry
from headrace._runtime.joins.window import operator
from headrace._runtime.metrics import Metrics
from headrace._runtime.rows import Rows
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import StepHarness, moment
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Cumulating, Tumbling, Window
from tests.runtime.contract import kept_rows
from tests.runtime.joins.window.cases import HOWS, LEFT, compare, join_node, left, right

NEVER = NO_WATERMARK


def said(harness: StepHarness, *epochs: StepEpoch) -> list[tuple[Any, ...]]:
    """(change, value of the left, value of the right) of all results, in order."""
    rows = harness.run(epochs)[MAIN]
    return sorted(((r.get("change", "+I"), r["a"], r.get("a_right")) for r in rows), key=repr)


def test_a_late_partner_withdraws_the_lonely_row() -> None:
    """left 1 at 2, W passes the window [0, 10), then right 1 at 3."""
    harness = StepHarness(join_node(Window(10, 10), "full", 20))
    assert said(harness, StepEpoch(NEVER, NEVER, [left(2, 1, 5)]), StepEpoch(NEVER, 9)) == [
        ("+I", 5, None)
    ]
    assert said(harness, StepEpoch(9, 12, [right(3, 1, 6)])) == [("+I", 5, 6), ("-D", 5, None)]
    # The next one makes a pair, and there is nothing left to withdraw.
    assert said(harness, StepEpoch(12, 13, [right(4, 1, 7)])) == [("+I", 5, 7)]
    assert said(harness, StepEpoch(13, 14, [left(4, 1, 8)])) == [("+I", 8, 6), ("+I", 8, 7)]


def test_late_partners_that_come_together_were_never_alone() -> None:
    harness = StepHarness(join_node(Window(10, 10), "full", 20))
    late = [left(2, 1, 5), right(3, 1, 6)]
    assert said(harness, StepEpoch(NEVER, 12, late)) == [("+I", 5, 6)]


def test_a_late_row_on_the_right_ends_an_anti_join_once() -> None:
    harness = StepHarness(join_node(Window(10, 10), "anti", 20))
    assert said(harness, StepEpoch(NEVER, 9, (), [left(2, 1, 5), left(2, 1, 6)])) == [
        ("+I", 5, None),
        ("+I", 6, None),
    ]
    assert said(harness, StepEpoch(9, 10, [right(2, 1)])) == [("-D", 5, None), ("-D", 6, None)]
    assert said(harness, StepEpoch(10, 11, [right(2, 1), left(3, 1, 7)])) == []


def test_a_window_with_rows_of_one_side_alone_fires_for_outer_joins_only() -> None:
    epochs = [StepEpoch(NEVER, NEVER, [right(2, 1, 5)]), StepEpoch(NEVER, 9)]
    results = {how: said(StepHarness(join_node(Window(10, 10), how)), *epochs) for how in HOWS}
    assert {how for how, rows in results.items() if rows} == {"right", "full"}


@pytest.mark.parametrize("how", HOWS)
def test_a_row_in_many_windows_meets_in_each(how: str) -> None:
    rows = [left(5, 1, 1), right(6, 1, 2), right(2, 1, 3), left(9, 2, 4)]
    compare(join_node(Window(6, 2), how), [StepEpoch(NEVER, 3, rows), StepEpoch(3, END_OF_TIME)])


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("lateness_us", [0, 15])
def test_half_of_all_rows_have_one_key(how: str, lateness_us: int) -> None:
    rows = [
        (right if n % 3 == 0 else left)(n % 30, 1.0 if n % 2 else float(n % 7), n)
        for n in range(120)
    ]
    epochs = [
        StepEpoch(NEVER, 4, rows[:60]),
        StepEpoch(4, 20, rows[60:]),
        StepEpoch(20, END_OF_TIME),
    ]
    compare(join_node(Window(10, 10), how, lateness_us), epochs, shards=2)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("lateness_us", [0, 15])
def test_a_stream_meets_itself(how: str, lateness_us: int) -> None:
    node = join_node(Window(10, 10), how, lateness_us, (("k",), ("k",)), (LEFT, LEFT))
    rows = [left(at, key, at) for at in (1, 2, 8, 12) for key in (1.0, nan, None)]
    both = [SidedRow(r.at, r.fields, side) for r in rows for side in (0, 1)]
    epochs = [StepEpoch(NEVER, 4, both), StepEpoch(4, 13, both), StepEpoch(13, END_OF_TIME)]
    compare(node, epochs, shards=2)


def test_keys_with_other_names_stand_beside_each_other() -> None:
    schema = pa.schema([("id", pa.float64()), ("a", pa.int64())])
    node = join_node(Window(10, 10), "full", 5, (("k",), ("id",)), (LEFT, schema))
    rows = [
        left(1, 1),
        left(2, 2),
        SidedRow(3, {"id": 1.0, "a": 1}, 1),
        SidedRow(3, {"id": 3.0, "a": 2}, 1),
    ]
    compare(node, [StepEpoch(NEVER, NEVER, rows), StepEpoch(NEVER, 9), StepEpoch(9, END_OF_TIME)])


@pytest.mark.parametrize(
    "values",
    [
        [True, False, None],
        [1, 2**62, None],
        [b"", b"\x00", None],
        [datetime(2025, 1, 1, tzinfo=UTC), None],
    ],
    ids=["bool", "int", "bytes", "instant"],
)
@pytest.mark.parametrize("how", ["inner", "full", "anti"])
def test_keys_of_other_types(values: list[Any], how: str) -> None:
    kind = (
        pa.timestamp("us", "UTC") if isinstance(values[0], datetime) else pa.scalar(values[0]).type
    )
    schemas = (
        pa.schema([("k", kind), ("a", pa.int64())]),
        pa.schema([("k", kind), ("c", pa.int64())]),
    )
    node = join_node(Window(10, 10), how, 10, (("k",), ("k",)), schemas)
    rows = [SidedRow(1, {"k": value, "a": 1}) for value in values]
    rows += [SidedRow(2, {"k": value, "c": 2}, 1) for value in values[1:]]
    if how == "full":
        compare(node, [StepEpoch(NEVER, 3, rows), StepEpoch(3, END_OF_TIME)], shards=2)
    else:
        kept = [row for row in rows if row.fields["k"] is not None]
        compare(node, [StepEpoch(NEVER, 3, kept), StepEpoch(3, END_OF_TIME)], shards=2)


def test_dictionaries_of_text_are_keys() -> None:
    kind = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([("k", kind), ("a", kind)])
    node = join_node(Window(10, 10), "full", 10, (("k",), ("k",)), (schema, schema))
    rows = [SidedRow(1, {"k": key, "a": "v"}, side) for key in ("", "x", None) for side in (0, 1)]
    compare(
        node,
        [
            StepEpoch(NEVER, 3, rows[:3]),
            StepEpoch(3, 12, rows[3:]),
            StepEpoch(12, END_OF_TIME),
        ],
    )


def test_null_keys_of_a_preserved_side_come_out_at_once_and_are_counted() -> None:
    node = join_node(Window(6, 2), "left")
    state = ShardState(registry.tables(node), MemoryChunkStore(), MemoryArrays(), range(128))
    state.open()
    join, metrics = registry.keyed(node, state), Metrics("join")
    join.equip(metrics, 0)
    feeder = registry.feeder(node, 0)
    rows = pa.RecordBatch.from_pylist([{"k": None, "t": "", "a": 1}], schema=LEFT)
    assert not list(feeder.feed(Rows(rows, np.array([5])), 4))
    epoch = StepEpoch(NEVER, 4)
    assert not list(join.tick(moment(epoch)))
    for batch in feeder.flush():
        join.merge(batch)
    outputs = [(output, r.batch.num_rows) for output, r in join.settle()]
    # The windows [0, 6), [2, 8) and [4, 10).
    assert outputs == [(MAIN, 1)] * 3
    assert metrics.counter("null_keys").value == 1
    assert not state.buckets("side 0")


def test_null_keys_of_a_side_that_needs_a_partner_are_dead_letters() -> None:
    found = StepHarness(join_node(Window(10, 10), "left")).run(
        [StepEpoch(NEVER, NEVER, [left(1, None), right(1, None)])]
    )
    assert [len(found[output]) for output in (MAIN, ERRORS)] == [1, 1]


def test_late_rows_come_out_as_they_came() -> None:
    found = StepHarness(join_node(Window(10, 10))).run(
        [StepEpoch(NEVER, 12, [left(1, -0.0, 3), right(9, None), right(2, nan, 4, b=False)])]
    )
    assert found[LATE] == [{"k": -0.0, "t": "", "a": 3}]
    assert repr(found[LATE][0]["k"]) == "-0.0"
    assert [r["a"] for r in found[LATE_RIGHT]] == [4]
    assert len(found[ERRORS]) == 1


def test_state_goes_with_the_window() -> None:
    node = join_node(Window(10, 10), lateness_us=5)
    harness = StepHarness(node)
    harness.run([StepEpoch(NEVER, 3, [left(4, 1), right(5, 1), left(14, 1)])])
    before = kept_rows(harness)
    harness.run([StepEpoch(3, 13)])
    assert kept_rows(harness) == before
    harness.run([StepEpoch(13, 14)])
    assert 0 < kept_rows(harness) < before
    harness.run([StepEpoch(14, 24)])
    assert kept_rows(harness) == 0


def test_of_the_right_of_a_semi_join_each_key_is_kept_once() -> None:
    harness = StepHarness(join_node(Window(10, 10), "semi"), batch_rows=1)
    epochs = [StepEpoch(NEVER, NEVER, [right(n % 10, n % 3, n) for n in range(50)])] * 3
    harness.run(epochs)
    assert kept_rows(harness) == 3


def test_the_outlook_is_the_next_window_with_rows() -> None:
    node = join_node(Window(6, 2))
    state = ShardState(registry.tables(node), MemoryChunkStore(), MemoryArrays(), range(128))
    state.open()
    join = registry.keyed(node, state)
    assert join.outlook().fires_at is None
    list(join.tick(moment(StepEpoch(NEVER, 4))))
    feeder = registry.feeder(node, 1)
    batch = pa.RecordBatch.from_pylist([right(0, 1.0).fields] * 3, schema=node.input_schemas[1])
    list(feeder.feed(Rows(batch, np.array([5, 5, 9])), 4))
    for fed in feeder.flush():
        join.merge(fed, 1)
    list(join.settle())
    assert (join.outlook().fires_at, join.outlook().keys) == (5, 2)


@pytest.mark.parametrize("how", HOWS)
def test_key_groups_meet_some_at_a_time(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "_AT_ONCE", 3)
    rows = [(right if n % 2 else left)(n % 10, float(n % 5), n) for n in range(40)]
    compare(join_node(Window(10, 10), how), [StepEpoch(NEVER, 3, rows), StepEpoch(3, END_OF_TIME)])


@pytest.mark.parametrize(
    "window",
    [
        Tumbling(timedelta(days=1), zone="Europe/Berlin"),
        Cumulating(timedelta(days=1), timedelta(hours=6), zone="Europe/Berlin"),
    ],
    ids=["days", "growing days"],
)
def test_days_where_the_clocks_change(window: Window) -> None:
    hour, back = 3_600_000_000, 1_761_440_400_000_000
    times = [back + n * 5 * hour for n in range(-5, 6)]
    rows = [(right if n % 2 else left)(at, float(n % 3), n) for n, at in enumerate(times)]
    epochs = [
        StepEpoch(NEVER, back - 20 * hour, rows[:7]),
        StepEpoch(back - 20 * hour, back + 2 * hour, rows[7:], rows[:2]),
        StepEpoch(back + 2 * hour, END_OF_TIME),
    ]
    compare(join_node(window, "full", 4 * hour), epochs, shards=2)


def test_timestamps_at_the_ends_of_time_have_windows() -> None:
    far = 253_402_300_799_000_000
    rows = [left(far, 1.0), right(far, 1.0), left(-62_135_596_800_000_000, 2.0)]
    found = StepHarness(join_node(Window(10**15, 10**15), "full")).run(
        [StepEpoch(NEVER, NEVER, rows), StepEpoch(NEVER, END_OF_TIME)]
    )
    assert len(found[MAIN]) == 2
