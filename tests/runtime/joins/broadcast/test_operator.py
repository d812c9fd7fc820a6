"""What the table of a broadcast join has, in which order it changes and what a row sees of it, one fact a test."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headrace._graph.nodes import MAIN
from headrace._runtime import registry
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import Moment, Outlook
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import TIME, StepHarness, timed_rows
from headrace.watermarks import NO_WATERMARK
from tests.oracle.joins.broadcast import BroadcastOracle
from tests.runtime.contract import kept_rows
from tests.runtime.joins.broadcast.cases import broadcast_node, entry, row
from tests.runtime.joins.stamped import compare


def epochs(*rows: list[SidedRow]) -> list[StepEpoch]:
    return [StepEpoch(NO_WATERMARK, NO_WATERMARK, mine) for mine in rows]


def names(outputs: Any) -> list[Any]:
    return [row["name"] for row in sorted(outputs[MAIN], key=lambda row: row["n"])]


def test_entries_come_before_the_rows_of_their_epoch_and_not_before_those_of_earlier_ones() -> None:
    stream = epochs([row("a", 1, 1)], [row("a", 1, 2), entry("a", 1, "x", 1)], [row("a", 1, 3)])
    assert names(StepHarness(broadcast_node("left"), 2).run(stream)) == [None, "x", "x"]


@pytest.mark.parametrize("batch_rows", [1, 100])
def test_the_last_entry_of_a_key_is_that_of_its_source(batch_rows: int) -> None:
    # However tasks read them: by source, partition and offset.
    entries = [
        SidedRow(1, entry("a", 1, name, 0).fields, 1, place)
        for name, place in [
            ("fourth", ("b", "0", 1)), ("second", ("a", "0", 9)), ("last", ("b", "1", 0)),
            ("first", ("a", "0", 3)), ("third", ("a", "1", 2)),
        ]
    ]  # fmt: skip
    for some in (entries, entries[::-1], entries[2:] + entries[:2]):
        harness = StepHarness(broadcast_node("inner"), 3, batch_rows)
        rows = [row("a", 1, n) for n in range(1, 9)]
        assert names(harness.run(epochs([*rows, *some]))) == ["last"] * 8


def test_entries_of_a_shuffle_come_as_they_were_sent() -> None:
    entries = [SidedRow(1, entry("a", 1, name, 0).fields, 1) for name in "xyz"]
    found = StepHarness(broadcast_node("inner"), 2).run(epochs([row("a", 1, 1), *entries]))
    assert names(found) == ["z"]


def test_a_result_has_the_time_of_its_row() -> None:
    stream = epochs([entry("a", 1, "x", 900), row("a", 1, 1, at=-7), row("a", 1, 2, at=10**15)])
    found = StepHarness(broadcast_node("inner"), 2, stamped=True).run(stream)[MAIN]
    assert sorted(row[TIME] for row in found) == [-7, 10**15]


def test_every_shard_has_the_whole_table_and_nothing_of_the_rows() -> None:
    entries = [entry("a", float(n % 3), "x", n) for n in range(9)]
    harness = StepHarness(broadcast_node("inner"), 4)
    harness.run(epochs([*entries, *(row("a", 1.0, n) for n in range(50))]))
    assert kept_rows(harness) == 4 * 3
    harness.restore(2)
    assert kept_rows(harness) == 2 * 3
    assert names(harness.run(epochs([row("a", 2.0, n) for n in range(20)]))) == ["x"] * 20


def test_what_is_deleted_is_gone_everywhere() -> None:
    entries = [entry("a", float(n), "x", n, "+I") for n in range(5)]
    harness = StepHarness(broadcast_node("left", changing=True), 3)
    harness.run(epochs(entries))
    gone = [entry("a", float(n), "x", 10 + n, "-D") for n in range(4)]
    unknown = entry("b", 0.0, "x", 30, "-D")
    assert names(harness.run(epochs([*gone, unknown, row("a", 1, 1), row("a", 4, 2)]))) == [
        None,
        "x",
    ]
    assert kept_rows(harness) == 3
    harness.restore(2)
    assert kept_rows(harness) == 2


def test_an_update_is_one_row_and_what_nothing_replaces_is_gone() -> None:
    harness = StepHarness(broadcast_node("left", changing=True))
    stream = epochs(
        [entry("a", 1, "x", 1, "+I")],
        [entry("a", 1, "x", 2, "-U"), row("a", 1, 1)],
        [entry("a", 1, "x", 3, "-U"), entry("a", 1, "y", 4, "+U"), row("a", 1, 2)],
    )
    assert names(harness.run(stream)) == [None, "y"]


def test_null_keys_of_a_left_join_are_counted() -> None:
    node = broadcast_node("left")
    state = ShardState(registry.tables(node), MemoryChunkStore(), MemoryArrays(), range(128))
    state.open()
    operator, metrics = registry.keyed(node, state), Metrics("named")
    operator.equip(metrics, 0)
    feeder = registry.feeder(node, 0)
    rows = [row(None, 1, 1), row("a", None, 2), row("a", 1, 3)]
    assert not list(feeder.feed(timed_rows(node.input_schemas[0], rows), 0))
    list(operator.tick(Moment(0, 0, 0, 0)))
    for batch in feeder.flush():
        operator.merge(batch)
    assert sum(len(rows) for _, rows in operator.settle()) == 3
    assert metrics.counter("null_keys").value == 2
    assert operator.outlook() == Outlook()


def test_what_entries_carry_comes_back_as_it_was() -> None:
    carried = pa.schema(
        {
            "key": pa.string(),
            "list": pa.list_(pa.int64()),
            "struct": pa.struct({"x": pa.float64(), "y": pa.string()}),
            "word": pa.dictionary(pa.int8(), pa.string()),
            "truth": pa.bool_(),
        }
    )
    values: list[dict[str, Any]] = [
        {"list": [1, None], "struct": {"x": 0.5, "y": None}, "word": "w", "truth": True},
        {"list": [], "struct": None, "word": "", "truth": False},
        {"list": None, "struct": {"x": None, "y": ""}, "word": None, "truth": None},
    ]
    entries = [
        SidedRow(1, {"key": f"{n}"} | value, 1, ("table", "0", n)) for n, value in enumerate(values)
    ]
    rows = [SidedRow(1, {"key": f"{n}"} | values[0], 0, ("rows", "0", n)) for n in range(4)]
    node = broadcast_node("left", schemas=[carried, carried], on="key")
    compare(BroadcastOracle(node), epochs(entries, rows, rows), restores={1: 2, 2: 3})


def test_a_table_may_have_keys_and_nothing_else() -> None:
    schema = pa.schema({"key": pa.string()})
    node = broadcast_node("inner", schemas=[schema, schema], on="key")
    rows = [SidedRow(1, {"key": key}, side, ("s", str(side), n)) for n, key in enumerate("abca")
            for side in (0, 1) if side == 0 or key != "b"]  # fmt: skip
    compare(BroadcastOracle(node), epochs(rows, rows), restores={1: 3})
