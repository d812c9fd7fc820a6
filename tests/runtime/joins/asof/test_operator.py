"""When rows go out, what stands beside them and what is kept, one fact a test.

versions of a       1           5     5'          9
left rows              3        5           7
backward               1        5'          5'
forward, within 2      5'       5'          9
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace._graph.join_nodes import AsOfJoin
from headrace._graph.nodes import ERRORS, LATE_RIGHT, MAIN
from headrace._runtime import registry
from headrace._runtime.joins import slices
from headrace._runtime.joins.asof import operator, rights
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import Moment, Outlook
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import TIME, StepHarness, timed_rows
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from tests.runtime.contract import assert_same, kept_rows
from tests.runtime.joins.asof.cases import LEFT, answer, compare, left, right, shown, step

FIRST = StepEpoch(
    NO_WATERMARK,
    NO_WATERMARK,
    [right(1, n=1), right(5, n=5), right(5, n=55), right(9, n=9)]
    + [left(at, n=at) for at in (3, 5, 7)],
)


def pairs(rows: list[dict[str, Any]]) -> list[tuple[int, int | None]]:
    """(n of the left, n of the right), in the order of the left's."""
    return sorted(((row["n"], row["n_right"]) for row in rows), key=lambda pair: pair[0])


def run(node: AsOfJoin, *epochs: StepEpoch) -> list[tuple[int, int | None]]:
    return pairs(StepHarness(node).run(epochs)[MAIN])


def test_a_row_goes_out_when_the_watermark_reaches_it() -> None:
    harness = StepHarness(step(), stamped=True)
    assert not harness.run([FIRST, StepEpoch(NO_WATERMARK, 2)])[MAIN]
    out = harness.run([StepEpoch(2, 5)])[MAIN]
    assert pairs(out) == [(3, 1), (5, 55)]
    assert sorted(row[TIME] for row in out) == [3, 5]
    assert pairs(harness.run([StepEpoch(5, 8)])[MAIN]) == [(7, 55)]


def test_a_row_that_looks_forward_waits_as_long_as_it_looks() -> None:
    harness = StepHarness(step("left", direction="forward", tolerance_us=2), stamped=True)
    assert not harness.run([FIRST, StepEpoch(NO_WATERMARK, 4)])[MAIN]
    out = harness.run([StepEpoch(4, 7)])[MAIN]
    assert pairs(out) == [(3, 55), (5, 55)]
    assert sorted(row[TIME] for row in out) == [5, 7]
    assert pairs(harness.run([StepEpoch(7, 9)])[MAIN]) == [(7, 9)]


def test_rows_go_out_in_order_of_time() -> None:
    rows = [left(at, key, at) for at, key in [(9, "a"), (3, "b"), (7, "c"), (1, "a"), (5, "b")]]
    epochs = [StepEpoch(NO_WATERMARK, 0, rows), StepEpoch(0, 9, (), [left(4, "c", 4)])]
    found = StepHarness(step("left")).run(epochs)[MAIN]
    assert [row["n"] for row in found] == [1, 3, 4, 5, 7, 9]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [(3, 1), (5, 55), (7, 55)]),
        ({"exact": False}, [(3, 1), (5, 1), (7, 55)]),
        ({"tolerance_us": 1}, [(3, None), (5, 55), (7, None)]),
        ({"tolerance_us": 2}, [(3, 1), (5, 55), (7, 55)]),
        ({"direction": "forward", "tolerance_us": 1}, [(3, None), (5, 55), (7, None)]),
        ({"direction": "forward", "tolerance_us": 4, "exact": False}, [(3, 55), (5, 9), (7, 9)]),
        ({"direction": "nearest", "tolerance_us": 2}, [(3, 1), (5, 55), (7, 55)]),
        ({"direction": "nearest", "tolerance_us": 9, "exact": False}, [(3, 1), (5, 1), (7, 55)]),
    ],
)
def test_what_stands_beside_a_row(fields: Any, expected: Any) -> None:
    assert run(step("left", **fields), FIRST, StepEpoch(NO_WATERMARK, END_OF_TIME)) == expected


def test_an_inner_join_leaves_out_what_has_no_partner() -> None:
    ending = StepEpoch(NO_WATERMARK, END_OF_TIME)
    assert run(step("inner", tolerance_us=1), FIRST, ending) == [(5, 55)]
    unmatched = StepEpoch(NO_WATERMARK, NO_WATERMARK, [left(1)])
    assert run(step("inner"), unmatched, ending) == []
    assert run(step("left"), unmatched, ending) == [(0, None)]


def test_versions_of_the_same_epoch_before_and_behind_a_row() -> None:
    rows = [right(2, n=2), left(4, n=4), right(3, n=3), right(6, n=6), left(6, n=7), left(2, n=1)]
    epoch = StepEpoch(NO_WATERMARK, NO_WATERMARK, rows)
    assert run(step(), epoch, StepEpoch(NO_WATERMARK, 9)) == [(1, 2), (4, 3), (7, 6)]
    assert run(step(), StepEpoch(0, 9, (), rows)) == [(1, 2), (4, 3), (7, 6)]


def test_of_versions_of_one_time_the_last_that_came_counts_across_epochs() -> None:
    epochs = [
        StepEpoch(NO_WATERMARK, NO_WATERMARK, [right(5, n=1), left(6, n=0)]),
        StepEpoch(NO_WATERMARK, 2, [right(5, n=2)]),
        StepEpoch(2, 7, (), [right(5, n=3), right(5, n=4)]),
        StepEpoch(7, 9),
    ]
    for fields in ({}, {"direction": "nearest", "tolerance_us": 2}):
        assert run(step(**fields), *epochs) == [(0, 4)]


def test_what_is_withdrawn_behind_its_successor_was_the_one_before() -> None:
    old = StepEpoch(NO_WATERMARK, NO_WATERMARK, [right(1, n=9, change="+I")])
    change = [right(5, n=1, change="+U"), right(5, n=9, change="-U")]
    epochs = [old, StepEpoch(NO_WATERMARK, 3, [*change, left(6, n=6)]), StepEpoch(3, 30)]
    assert run(step("left", changes=True), *epochs) == [(6, 1)]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ("-D +I", 2),
        ("+I -D", None),
        ("-D", None),
        ("-U +U", 2),
        ("-U", None),
        ("+I -D +I", 3),
    ],
)
@pytest.mark.parametrize("tolerance_us", [None, 50])
def test_what_becomes_of_a_version(changes: str, expected: Any, tolerance_us: Any) -> None:
    old = StepEpoch(NO_WATERMARK, NO_WATERMARK, [right(1, n=9, change="+I")])
    change = [right(5, n=n, change=change) for n, change in enumerate(changes.split(), 1)]
    node = step("left", changes=True, tolerance_us=tolerance_us)
    seen = [left(4, n=4), left(5, n=5), left(20, n=20)]
    epochs = [old, StepEpoch(NO_WATERMARK, 3, [*change, *seen]), StepEpoch(3, 30)]
    assert run(node, *epochs) == [(4, 9), (5, expected), (20, expected)]
    # The same when the old version is kept before the others come, and when each comes in an epoch of its own.
    epochs = [old, StepEpoch(NO_WATERMARK, 3), *(StepEpoch(3, 3, [row]) for row in change)]
    assert run(node, *epochs, StepEpoch(3, 30, (), seen)) == [
        (4, 9),
        (5, expected),
        (20, expected),
    ]


def test_a_key_that_has_ended_is_not_kept() -> None:
    harness = StepHarness(step(changes=True))
    harness.run([StepEpoch(NO_WATERMARK, NO_WATERMARK, [right(1, change="+I")])])
    harness.run([StepEpoch(NO_WATERMARK, 4, [right(5, change="-D")])])
    assert kept_rows(harness) > 0
    harness.run([StepEpoch(4, 5)])
    assert kept_rows(harness) == 0


def test_a_late_version_changes_nothing() -> None:
    epochs = [
        StepEpoch(NO_WATERMARK, 4, [right(5, n=5), right(4, n=4), left(6, n=6)]),
        StepEpoch(4, 6, [right(6, n=66)]),
    ]
    outputs = StepHarness(step()).run(epochs)
    assert pairs(outputs[MAIN]) == [(6, 5)]
    assert [row["n"] for row in outputs[LATE_RIGHT]] == [4, 66]


def test_rows_without_a_key() -> None:
    epochs = [
        StepEpoch(NO_WATERMARK, 1, [left(3, None, 3), left(3, "a", 4), right(2, None, 5)]),
        StepEpoch(1, 3, (), [left(2, None, 6)]),
    ]
    for how in ("left", "inner"):
        for fields in ({}, {"direction": "forward", "tolerance_us": 1}):
            compare(step(how, **fields), epochs)
    # At once, and at the time at which they would have come out.
    harness = StepHarness(step("left", direction="forward", tolerance_us=5), stamped=True)
    assert [row[TIME] for row in harness.run(epochs[:1])[MAIN]] == [8]


def test_rows_without_a_key_are_counted() -> None:
    node, metrics = step("left"), Metrics("join")
    state = ShardState(registry.tables(node), MemoryChunkStore(), MemoryArrays(), range(128))
    state.open()
    join = registry.keyed(node, state)
    join.equip(metrics, 0)
    feeder = registry.feeder(node, 0)
    list(feeder.feed(timed_rows(LEFT, [left(1, None), left(2, None), left(3, "a")]), 0))
    for batch in feeder.flush():
        join.merge(batch, 0)
    assert sum(len(rows) for _, rows in join.settle()) == 2
    assert metrics.readings() == {"null_keys": 2}


@pytest.mark.parametrize("key", [float("nan"), -0.0, 0.0, float("-inf")])
def test_floats_as_keys(key: float) -> None:
    alike = 0.0 if key == 0 else key
    rows = [right(1, n=1, share=alike), left(2, n=2, part=key), right(1, n=9, share=7.0)]
    epochs = [StepEpoch(NO_WATERMARK, NO_WATERMARK, rows), StepEpoch(NO_WATERMARK, 5)]
    found = StepHarness(step(on="floats")).run(epochs)[MAIN]
    assert pairs(found) == [(2, 1)]


def test_the_outlook_is_the_first_row_that_waits() -> None:
    for fields, first in (({}, 3), ({"direction": "nearest", "tolerance_us": 4}, 7)):
        node = step(**fields)
        state = ShardState(registry.tables(node), MemoryChunkStore(), MemoryArrays(), range(128))
        state.open()
        join = registry.keyed(node, state)
        assert join.outlook() == Outlook()
        for side in (0, 1):
            feeder = registry.feeder(node, side)
            mine = [row for row in FIRST.rows if row.side == side]
            list(feeder.feed(timed_rows(node.input_schemas[side], mine), NO_WATERMARK))
            for batch in feeder.flush():
                join.merge(batch, side)
        list(join.settle())
        assert join.outlook() == Outlook(first, 3)
        list(join.tick(Moment(NO_WATERMARK, first, 0, 0)))
        assert join.outlook().fires_at == first + 2


def test_other_types_and_a_right_side_of_keys_alone() -> None:
    schema = pa.schema(
        [
            ("key", pa.dictionary(pa.int8(), pa.string())),
            ("n", pa.uint64()),
            ("price", pa.decimal128(9, 2)),
            ("tags", pa.list_(pa.string())),
            ("inner", pa.struct([("x", pa.int8()), ("y", pa.string())])),
            ("flag", pa.bool_()),
        ]
    )

    def row(at: int, side: int) -> SidedRow:
        fields = {"key": "ab"[at % 2], "n": 2**64 - 1 - at, "flag": at % 3 == 0}
        fields |= {"price": Decimal(at).scaleb(-2), "tags": None if at == 3 else ["x"] * (at % 3)}
        return SidedRow(at, fields | {"inner": {"x": at, "y": None}}, side)

    epochs = [
        StepEpoch(NO_WATERMARK, NO_WATERMARK, [row(at, at % 3 == 0) for at in range(12)]),
        StepEpoch(NO_WATERMARK, 5, [row(at, at % 3 == 1) for at in range(6, 20)]),
        StepEpoch(5, END_OF_TIME),
    ]
    alone = pa.schema([schema.field("key")])
    for fields in ({}, {"tolerance_us": 4}, {"direction": "nearest", "tolerance_us": 4}):
        for right_schema in (schema, alone):
            node = step("left", (("key",), ("key",)), schemas=(schema, right_schema), **fields)
            given = [
                epoch._replace(rows=[_only(r, right_schema) if r.side else r for r in epoch.rows])
                for epoch in epochs
            ]
            found = StepHarness(node, 2, stamped=True).run(given, restores={2: 3})
            assert_same(shown(found), answer(node, given))


def _only(row: SidedRow, schema: pa.Schema) -> SidedRow:
    return row._replace(fields={name: row.fields[name] for name in schema.names})


def test_a_join_of_a_stream_with_itself() -> None:
    rows = [(at, "ab"[n % 2], n) for n, at in enumerate([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5])]
    both = [row for at, key, n in rows for row in (left(at, key, n), right(at, key, n))]
    epochs = [
        StepEpoch(NO_WATERMARK, NO_WATERMARK, both[:12]),
        StepEpoch(NO_WATERMARK, 2, both[12:]),
        StepEpoch(2, END_OF_TIME),
    ]
    for fields in (
        {},
        {"exact": False},
        {"direction": "forward", "tolerance_us": 3, "exact": False},
    ):
        compare(step("left", **fields), epochs, shards=2)


@pytest.mark.parametrize(
    "fields",
    [{}, {"tolerance_us": 30}, {"direction": "nearest", "tolerance_us": 20}],
    ids=["versioned", "tolerance", "nearest"],
)
def test_half_of_all_rows_have_one_key(fields: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights, "_LEAST_SLICE_US", 1)
    monkeypatch.setattr(slices, "_LEAST_US", 1)
    chance = np.random.default_rng(4)
    rows: list[SidedRow] = []
    for n, at in enumerate(chance.integers(0, 400, 1_600).tolist()):
        key = "hot" if n % 2 else f"cold {n % 50}"
        rows.append(left(at, key, n) if n % 5 < 3 else right(at, key, n))
    epochs = [
        StepEpoch(NO_WATERMARK, NO_WATERMARK, rows[:700]),
        StepEpoch(NO_WATERMARK, 100, rows[700:]),
        StepEpoch(100, 300),
        StepEpoch(300, END_OF_TIME),
    ]
    compare(step("left", **fields), epochs, shards=2, restores={2: 1})


@pytest.mark.parametrize(
    ("fields", "most"),
    [
        ({}, 5),
        # A version in each slice that is still of use, and one that waits.
        ({"tolerance_us": 80}, 5 * 6),
        # All rows of the last 80 microseconds, and of a slice of 20.
        ({"direction": "forward", "tolerance_us": 80}, 100),
        ({"direction": "nearest", "tolerance_us": 40}, 100),
    ],
    ids=["versioned", "tolerance", "forward", "nearest"],
)
def test_no_more_is_kept_after_many_epochs(
    fields: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "_LEAST_SLICE_US", 1)
    monkeypatch.setattr(slices, "_LEAST_US", 1)
    harness = StepHarness(step(**fields))
    before = NO_WATERMARK
    for start in range(0, 2_000, 10):
        rows = [right(start + n, "abcde"[n % 5], n) for n in range(10)]
        harness.run([StepEpoch(before, start - 1, rows)])
        before = start - 1
        # Ten versions and a counter for each of five key groups wait.
        waiting = 10 + 5 if fields.get("direction", "backward") == "backward" else 10
        if start % 270 == 0:
            assert kept_rows(harness) <= most + waiting
    harness.run([StepEpoch(before, END_OF_TIME)])
    assert kept_rows(harness) == 0


def test_keys_with_one_old_version_keep_it() -> None:
    harness = StepHarness(step())
    harness.run([StepEpoch(NO_WATERMARK, NO_WATERMARK, [right(1, "old", 1)])])
    for at in range(10, 500, 10):
        harness.run([StepEpoch(at - 10, at, [right(at + 1, "new", at)])])
    harness.restore()
    harness.run([StepEpoch(490, 490, [left(495, "old", 5)])])
    assert pairs(harness.run([StepEpoch(490, 495)])[MAIN]) == [(5, 1)]


def test_state_has_few_buckets_however_long_the_tolerance() -> None:
    for fields in ({"direction": "backward"}, {"direction": "nearest"}):
        node = step(tolerance_us=4_000_000_000, **fields)
        state = ShardState(registry.tables(node), MemoryChunkStore(), MemoryArrays(), range(128))
        state.open()
        for start in range(0, 40_000_000_000, 400_000_000):
            join = registry.keyed(node, state)
            list(join.tick(Moment(start - 400_000_000, start, 0, 0)))
            feeder = registry.feeder(node, 1)
            list(feeder.feed(timed_rows(node.input_schemas[1], [right(start + 1)]), start))
            for batch in feeder.flush():
                join.merge(batch, 1)
            list(join.settle())
            assert sum(len(state.buckets(spec.name)) for spec in registry.tables(node)) <= 8


def test_a_large_version_beside_many_rows_is_no_large_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operator, "EMIT_BYTES", 100_000)
    for fields in ({}, {"direction": "nearest", "tolerance_us": 5}):
        node = step(**fields)
        state = ShardState(registry.tables(node), MemoryChunkStore(), MemoryArrays(), range(128))
        state.open()
        join = registry.keyed(node, state)
        rows = [[left(at, n=at) for at in range(100)], [right(0, label="x" * 10_000), right(50)]]
        for side in (0, 1):
            feeder = registry.feeder(node, side)
            list(feeder.feed(timed_rows(node.input_schemas[side], rows[side]), NO_WATERMARK))
            for batch in feeder.flush():
                join.merge(batch, side)
        sizes = [len(found) for _, found in join.tick(Moment(NO_WATERMARK, END_OF_TIME, 0, 0))]
        assert sum(sizes) == (100 if not fields else 6 + 11)
        assert max(sizes) <= 20


def test_dead_letters_of_the_right_name_the_join() -> None:
    found = StepHarness(step()).run([StepEpoch(NO_WATERMARK, 1, [right(2, None)])])
    assert [letter["uid"] for letter in found[ERRORS]] == ["join"]


@pytest.mark.parametrize("direction", ["forward", "nearest"])
def test_an_epoch_over_much_time_lies_in_few_tables(direction: Any) -> None:
    second = 1_000_000
    rows = [right(n * second, "ab"[n % 2], n) for n in range(3_000)]
    node = step(direction=direction, tolerance_us=second)
    harness = StepHarness(node)
    harness.run([StepEpoch(NO_WATERMARK, NO_WATERMARK, rows)])
    state = ShardState(registry.tables(node), harness.stores[0], MemoryArrays(), range(128))
    state.open()
    assert len(state.buckets("near")) < 40
    seen = [left(n * second + 1, "ab"[n % 2], n) for n in range(0, 3_000, 7)]
    compare(node, [StepEpoch(NO_WATERMARK, NO_WATERMARK, rows[:400] + seen[:40])])
