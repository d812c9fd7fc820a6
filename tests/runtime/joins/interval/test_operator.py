"""When pairs are made, when rows stay alone and when they are forgotten, one fact a test.

between(-2, +5)         left    ------l=10-------------->
                        right   ----[8 ... 15]---------->      l is of use until the watermark is 15
                        left    ----[5 ... 12]---------->
                        right   ---------r=10----------->      r is of use until the watermark is 12
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headrace._graph.nodes import LATE, LATE_RIGHT, MAIN
from headrace._runtime import registry
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import Moment, Outlook
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace.errors import EngineError
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import TIME, Outputs, StepHarness, timed_rows
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from tests.runtime.contract import kept_rows
from tests.runtime.joins.interval.interval_cases import (
    compare,
    interval_node,
    left,
    right,
)


def run(node: Any, *epochs: StepEpoch) -> Outputs:
    return StepHarness(node, stamped=True).run(epochs)


def told(rows: list[dict[str, Any]]) -> list[tuple[Any, Any, int]]:
    return sorted(((row["n"], row["m"], row[TIME]) for row in rows), key=repr)


@pytest.mark.parametrize(("watermark", "matches"), [(14, True), (15, False), (16, False)])
def test_the_last_partner_of_a_left_row_comes_before_its_time_is_up(
    watermark: int, matches: bool
) -> None:
    outputs = run(
        interval_node(-2, 5),
        StepEpoch(NO_WATERMARK, 0, [left(10, "a")]),
        StepEpoch(0, watermark, [right(15, "a")]),
    )
    assert told(outputs[MAIN]) == ([(10, 15, 15)] if matches else [])
    assert len(outputs[LATE_RIGHT]) == (not matches)


@pytest.mark.parametrize(("watermark", "matches"), [(11, True), (12, False), (13, False)])
def test_the_last_partner_of_a_right_row_comes_before_its_time_is_up(
    watermark: int, matches: bool
) -> None:
    outputs = run(
        interval_node(-2, 5),
        StepEpoch(NO_WATERMARK, 0, [right(10, "a")]),
        StepEpoch(0, watermark, [left(12, "a")]),
    )
    assert told(outputs[MAIN]) == ([(12, 10, 12)] if matches else [])
    assert len(outputs[LATE]) == (not matches)


def test_both_ends_belong_to_the_interval() -> None:
    rows = [left(10, "a"), *(right(at, "a") for at in (7, 8, 15, 16))]
    outputs = run(interval_node(-2, 5), StepEpoch(NO_WATERMARK, 0, rows))
    assert told(outputs[MAIN]) == [(10, 15, 15), (10, 8, 10)]


def test_ends_can_be_left_out() -> None:
    rows = [left(10, "a"), *(right(at, "a") for at in (8, 9, 14, 15))]
    node = interval_node(-2, 5, lower_inclusive=False, upper_inclusive=False)
    outputs = run(node, StepEpoch(NO_WATERMARK, 0, rows))
    assert told(outputs[MAIN]) == [(10, 14, 14), (10, 9, 10)]


def test_duplicates_on_both_sides_make_all_pairs() -> None:
    rows = [left(1, "a", n) for n in range(3)] + [right(1, "a", m) for m in range(4)]
    outputs = run(interval_node(0, 0), StepEpoch(NO_WATERMARK, 0, rows))
    assert told(outputs[MAIN]) == [(n, m, 1) for n in range(3) for m in range(4)]


@pytest.mark.parametrize(
    ("how", "row", "until", "stamp"),
    [
        ("left", left(10, "a"), 15, 15),
        ("right", right(10, "a"), 12, 12),
        ("full", left(10, "a"), 15, 15),
        ("full", right(10, "a"), 12, 12),
    ],
)
def test_a_row_comes_out_alone_in_the_tick_that_ends_its_hope(
    how: str, row: SidedRow, until: int, stamp: int
) -> None:
    harness = StepHarness(interval_node(-2, 5, how), stamped=True)
    harness.run([StepEpoch(NO_WATERMARK, 0, [row]), StepEpoch(0, until - 1)])
    assert not harness.run([StepEpoch(until - 1, until - 1)])[MAIN]
    (alone,) = harness.run([StepEpoch(until - 1, until)])[MAIN]
    # Behind the watermark before, by which the next step judges it.
    assert alone[TIME] == stamp > until - 1
    assert not harness.run([StepEpoch(until, END_OF_TIME)])[MAIN]


@pytest.mark.parametrize(
    ("interval", "how", "row"),
    [((-7, -2), "left", left(10, "a")), ((2, 7), "right", right(10, "a"))],
)
def test_where_partners_lie_before_a_row_it_keeps_its_own_time(
    interval: Any, how: str, row: SidedRow
) -> None:
    # Its last possible partner is at 8.
    waits = run(interval_node(*interval, how), StepEpoch(NO_WATERMARK, 7, [row]))
    assert not waits[MAIN]
    tick = StepEpoch(7, 8)
    waits = run(interval_node(*interval, how), StepEpoch(NO_WATERMARK, 7, [row]), tick)
    assert [row[TIME] for row in waits[MAIN]] == [10]
    at_once = run(interval_node(*interval, how), StepEpoch(NO_WATERMARK, 9, [row]))
    assert [row[TIME] for row in at_once[MAIN]] == [10]


def test_a_row_that_had_a_partner_never_comes_out_alone() -> None:
    node = interval_node(-2, 5, "full")
    first = StepEpoch(NO_WATERMARK, 0, [left(10, "a"), right(11, "a")])
    harness = StepHarness(node, stamped=True)
    assert len(harness.run([first])[MAIN]) == 1
    harness.restore(3)
    assert not harness.run([StepEpoch(0, END_OF_TIME)])[MAIN]


def test_rows_from_before_the_tick_meet_those_that_it_ends() -> None:
    node = interval_node(-2, 5, "full")
    outputs = run(
        node,
        StepEpoch(NO_WATERMARK, 9, [left(10, "a")]),
        StepEpoch(9, 40, (), [right(15, "a"), right(16, "a")]),
    )
    assert told(outputs[MAIN]) == [(10, 15, 15), (None, 16, 18)]


def test_null_keys_of_a_preserved_side_are_counted() -> None:
    node = interval_node(-2, 5, "left")
    state = ShardState(registry.tables(node), MemoryChunkStore(), MemoryArrays(), range(128))
    state.open()
    operator, metrics = registry.keyed(node, state), Metrics("near")
    operator.equip(metrics, 0)
    feeder = registry.feeder(node, 0)
    rows = [left(1, None), left(2, "a"), left(3, None)]
    assert not list(feeder.feed(timed_rows(node.input_schemas[0], rows), 0))
    list(operator.tick(Moment(0, 0, 0, 0)))
    for batch in feeder.flush():
        operator.merge(batch)
    assert sum(len(rows) for _, rows in operator.settle()) == 2
    assert metrics.counter("null_keys").value == 2
    assert operator.outlook() == Outlook(7, 1)


def test_the_outlook_is_the_first_row_that_has_no_partner() -> None:
    found = []
    for how in ("inner", "left", "right", "full"):
        node = interval_node(-2, 5, how)
        store = MemoryChunkStore()
        state = ShardState(registry.tables(node), store, MemoryArrays(), range(128))
        state.open()
        operator = registry.keyed(node, state)
        assert operator.outlook() == Outlook()
        list(operator.tick(Moment(0, 0, 0, 0)))
        sides = [[left(9, "a"), left(10, "b"), left(70, "b")], [right(11, "a"), right(12, "c")]]
        for side, rows in enumerate(sides):
            feeder = registry.feeder(node, side)
            list(feeder.feed(timed_rows(node.input_schemas[side], rows), 0))
            for batch in feeder.flush():
                operator.merge(batch, side)
        list(operator.settle())
        found.append(operator.outlook().fires_at)
    assert found == [None, 15, 14, 14]


def test_state_goes_as_soon_as_it_is_of_no_use() -> None:
    # The slices of an interval of four seconds are one second long.
    second = 1_000_000
    harness = StepHarness(interval_node(-2 * second, 2 * second, "full"))
    rows = [row(at * second, "a") for at in range(12) for row in (left, right)]
    harness.run([StepEpoch(NO_WATERMARK, -1, rows)])
    for watermark in range(0, 14 * second, second // 2):
        harness.run([StepEpoch(watermark - 1, watermark)])
        useful = 2 * sum((at + 2) * second > watermark for at in range(12))
        # And the number of arrivals, and the rows of one slice at most.
        assert useful <= kept_rows(harness) - 1 <= useful + 2
    harness.run([StepEpoch(14 * second, 15 * second)])
    assert kept_rows(harness) == 0


@pytest.mark.parametrize(
    ("interval", "row", "until"),
    [((0, 3600), left, 3600), ((-3600, 0), left, 0), ((0, 3600), right, 0), ((-9, -5), left, -5)],
)
def test_a_side_is_kept_no_longer_than_the_other_can_reach_it(
    interval: tuple[int, int], row: Any, until: int
) -> None:
    second = 1_000_000
    node = interval_node(interval[0] * second, interval[1] * second)
    harness = StepHarness(node)
    slice_us = max(interval[1] - interval[0], 1) * second // 4
    first = StepEpoch(NO_WATERMARK, -100 * second, [row(0, "a")])
    harness.run([first, StepEpoch(-100 * second, until * second - 1)])
    assert kept_rows(harness) > 0
    harness.run([StepEpoch(until * second - 1, until * second + slice_us)])
    assert kept_rows(harness) == 0


def test_state_has_few_buckets_however_much_time_it_covers() -> None:
    node = interval_node(-1_000_000, 1_000_000, "full")
    second, day = 1_000_000, 86_400 * 1_000_000
    state = ShardState(registry.tables(node), MemoryChunkStore(), MemoryArrays(), range(128))
    state.open()
    rows = [row(at, "a") for at in range(0, day, 600 * second) for row in (left, right)]
    future = 80 * 365 * day
    for number, part in enumerate(
        [rows, [left(future, "a"), *rows]] + [[right(9 * second, "b")]] * 9
    ):
        operator = registry.keyed(node, state)
        list(operator.tick(Moment(number, number, 0, 0)))
        for side in (0, 1):
            feeder = registry.feeder(node, side)
            mine = [row for row in part if row.side == side]
            list(feeder.feed(timed_rows(node.input_schemas[side], mine), number))
            for batch in feeder.flush():
                operator.merge(batch, side)
        list(operator.settle())
        assert all(len(state.buckets(f"side {side}")) <= 33 for side in (0, 1))


def test_a_row_far_in_the_future_does_not_keep_the_others() -> None:
    second, year = 1_000_000, 365 * 86_400 * 1_000_000
    harness = StepHarness(interval_node(-second, second))
    rows = [left(at * second, "a") for at in range(60)]
    harness.run([StepEpoch(NO_WATERMARK, -1, [left(70 * year, "a"), *rows])])
    harness.run([StepEpoch(-1, 70 * second)])
    assert kept_rows(harness) == 2, "the one, and the number of its arrival"


def test_what_rows_carry_comes_back_as_it_was() -> None:
    carried = pa.schema(
        {
            "key": pa.string(),
            "list": pa.list_(pa.int64()),
            "struct": pa.struct({"x": pa.float64(), "y": pa.string()}),
            "map": pa.map_(pa.string(), pa.int64()),
            "word": pa.dictionary(pa.int8(), pa.string()),
            "truth": pa.bool_(),
        }
    )
    values: list[dict[str, Any]] = [
        {"list": [1, None], "struct": {"x": 0.5, "y": None}, "map": [("a", 1)], "word": "w", "truth": True},
        {"list": [], "struct": None, "map": [], "word": "", "truth": False},
        {"list": None, "struct": {"x": None, "y": ""}, "map": None, "word": None, "truth": None},
    ]  # fmt: skip
    rows = [
        SidedRow(at, {"key": "a"} | value, side)
        for at, value in enumerate(values)
        for side in (0, 1)
    ]
    for how in ("inner", "full"):
        node = interval_node(0, 1, how, schemas=[carried, carried])
        epochs = [StepEpoch(before, before + 1, [rows[n] for n in some]) for before, some in
                  ((-3, [4, 1]), (-2, [0, 3]), (-1, [2, 5]))]  # fmt: skip
        compare(node, [*epochs, StepEpoch(0, END_OF_TIME)], restores={1: 2, 2: 3})


def test_rows_may_be_keys_and_nothing_else() -> None:
    schemas = [pa.schema({"key": pa.string()})] * 2
    rows = [SidedRow(at, {"key": key}, side) for at in range(3) for key in "ab" for side in (0, 1)]
    node = interval_node(0, 1, "full", schemas=schemas)
    compare(node, [StepEpoch(-1, 0, rows), StepEpoch(0, END_OF_TIME)], restores={1: 2})


def test_rows_need_timestamps() -> None:
    node = interval_node()
    rows = timed_rows(node.input_schemas[0], [left(1, "a")])
    timeless = type(rows)(rows.batch, None)
    with pytest.raises(EngineError, match="'near'"):
        list(registry.feeder(node, 0).feed(timeless, 0))
