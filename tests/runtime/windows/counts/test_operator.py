"""What fills a count window, one fact a test.

count(3)        rows of key a     1 2 3 4 5 6 7      windows  1-3, 4-6; 7 waits
count(4, 2)     at 2: 1 2    at 4: 1 2 3 4    at 6: 3 4 5 6
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace import aggregates as agg
from headrace._graph.nodes import ERRORS, CountAggregate
from headrace._runtime import registry
from headrace._runtime.operator import Moment
from headrace._runtime.rows import Rows
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace._runtime.windows.counts.layout import BUCKET, PANES
from headrace.errors import InputError
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness, timed_rows
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Count
from tests.runtime.contract import assert_same
from tests.runtime.windows.cases import SCHEMA, answer, row, step_node

SUM = {"sum": agg.sum("number")}


def node(window: Count, aggregates: Any = SUM, **more: Any) -> CountAggregate:
    return step_node(CountAggregate, window, aggregates, **more)


def numbers(start: int, end: int, key: str = "a") -> list[tuple[int, dict[str, Any]]]:
    return [(n, row(key, n)) for n in range(start, end)]


def epoch(rows: Any, early: Any = ()) -> StepEpoch:
    return StepEpoch(NO_WATERMARK, NO_WATERMARK, rows, early)


def fired(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted((row["firing"], row["sum"]) for row in rows)


def test_a_window_is_filled_over_epochs_and_a_restart_at_more_shards() -> None:
    harness = StepHarness(node(Count(5)))
    assert not harness.run([epoch(numbers(1, 4))])["main"]
    harness.restore(3)
    assert fired(harness.run([epoch(numbers(4, 7))])["main"]) == [(0, 15)]
    harness.restore(1)
    assert fired(harness.run([epoch(numbers(7, 11))])["main"]) == [(1, 40)]


def test_sliding_windows_are_shorter_at_the_beginning() -> None:
    results = StepHarness(node(Count(4, 2))).run([epoch(numbers(1, 8))])["main"]
    assert fired(results) == [(0, 3), (1, 10), (2, 18)]


@pytest.mark.parametrize("window", [Count(7), Count(6, 4), Count(3, 1)], ids=str)
def test_one_batch_may_fill_many_windows_of_one_key(window: Count) -> None:
    epochs = [epoch(numbers(0, 200) + numbers(0, 3, "b")), epoch(numbers(200, 333))]
    assert_same(StepHarness(node(window)).run(epochs), answer(node(window), epochs))


def test_rows_from_before_the_tick_count_first_and_go_out_with_it() -> None:
    step = node(Count(2))
    state = ShardState(registry.tables(step), MemoryChunkStore(), MemoryArrays(), range(128))
    state.open()
    operator = registry.keyed(step, state)
    _merge(step, operator, timed_rows(SCHEMA, numbers(1, 4)))
    ticked = [r for _, rows in operator.tick(Moment(0, 1, 0, 0)) for r in rows.batch.to_pylist()]
    _merge(step, operator, timed_rows(SCHEMA, numbers(4, 5)))
    settled = [r for _, rows in operator.settle() for r in rows.batch.to_pylist()]
    assert (fired(ticked), fired(settled)) == ([(0, 3)], [(1, 7)])


@pytest.mark.parametrize("window", [Count(3), Count(3, 2)], ids=str)
def test_results_have_the_greatest_timestamp_of_their_rows(window: Count) -> None:
    rows = timed_rows(SCHEMA, [(9, row("a")), (30, row("a")), (2, row("a"))])
    assert [r.timestamps.tolist() for r in _once(node(window), rows)] == [[30]]


@pytest.mark.parametrize("window", [Count(3), Count(3, 2)], ids=str)
def test_rows_without_timestamps_are_counted_and_results_have_the_clock(window: Count) -> None:
    batch = timed_rows(SCHEMA, numbers(1, 4)).batch
    step = node(window, SUM | {"first": agg.first("number"), "last": agg.last("number")})
    (result,) = _once(step, Rows(batch, None))
    assert result.timestamps.tolist() == [77]
    (only,) = result.batch.to_pylist()
    last = 3 if window.slide is None else 2
    assert (only["first"], only["last"]) == (1, last)


def test_first_and_last_go_by_time_and_lists_by_arrival() -> None:
    rows = [(5, row("a", 1)), (9, row("a", 2)), (3, row("a", 3)), (9, row("a", 4))]
    aggregates = {f.__name__: f("number") for f in (agg.first, agg.last, agg.collect)}
    (result,) = StepHarness(node(Count(4), aggregates)).run([epoch(rows[:2]), epoch(rows[2:])])[
        "main"
    ]
    assert (result["first"], result["last"], result["collect"]) == (3, 4, [1, 2, 3, 4])


def test_nothing_fires_at_the_end_and_no_row_is_late() -> None:
    harness = StepHarness(node(Count(3)))
    outputs = harness.run([StepEpoch(NO_WATERMARK, END_OF_TIME, numbers(1, 3))])
    assert not any(outputs.values())
    assert fired(harness.run([StepEpoch(END_OF_TIME, END_OF_TIME, numbers(3, 4))])["main"]) == [
        (0, 6)
    ]


def test_a_null_key_is_a_dead_letter() -> None:
    feeder = registry.feeder(node(Count(1)))
    ((output, dead),) = feeder.feed(timed_rows(SCHEMA, [(1, row(None, 5))]), NO_WATERMARK)
    assert output == ERRORS
    assert json.loads(dead.batch.to_pylist()[0]["payload"])["number"] == 5
    assert not list(feeder.flush())


def test_panes_are_kept_for_one_window_only() -> None:
    step = node(Count(12, 4))
    state = ShardState(registry.tables(step), MemoryChunkStore(), MemoryArrays(), range(128))
    state.open()
    for start in range(0, 100, 5):
        operator = registry.keyed(step, state)
        list(operator.tick(Moment(0, 1, 0, 0)))
        _merge(step, operator, timed_rows(SCHEMA, numbers(start, start + 5)))
        list(operator.settle())
        assert state.table(PANES, BUCKET).size <= 3
    assert len(state.buckets(PANES)) == 1


def test_a_sum_that_does_not_fit_is_an_error() -> None:
    rows = [(n, row("a", 2**62)) for n in range(2)]
    with pytest.raises(InputError, match="sum"):
        StepHarness(node(Count(2))).run([epoch(rows[:1]), epoch(rows[1:])])


def test_keys_of_other_types() -> None:
    schema = pa.schema([("key", pa.dictionary(pa.int8(), pa.string())), ("at", pa.float64())])
    rows = [(n, {"key": "ab"[n % 2], "at": [0.0, -0.0, float("nan")][n % 3]}) for n in range(24)]
    step = node(Count(2), {"rows": agg.count()}, schema=schema, keys=("key", "at"))
    results = StepHarness(step, 2).run([epoch(rows[:11]), epoch(rows[11:])])["main"]
    assert len(results) == 12
    assert {row["key"] for row in results} == {"a", "b"}


def test_half_a_million_rows_of_one_key_in_one_batch() -> None:
    schema = pa.schema([("key", pa.int64()), ("number", pa.int64())])
    count = 524_288
    batch = pa.record_batch([np.zeros(count, np.int64), np.arange(count)], schema=schema)
    step = node(Count(1_000), {"sum": agg.sum("number")}, schema=schema)
    results = [rows.batch for rows in _once(step, Rows(batch, np.arange(count)))]
    sums = pa.Table.from_batches(results).sort_by("firing").column("sum").to_numpy()
    starts = 1_000 * np.arange(count // 1_000)
    assert (sums == starts * 1_000 + 499_500).all()


def _once(step: CountAggregate, rows: Rows) -> list[Rows]:
    state = ShardState(registry.tables(step), MemoryChunkStore(), MemoryArrays(), range(128))
    state.open()
    operator = registry.keyed(step, state)
    list(operator.tick(Moment(0, 1, 70, 77)))
    _merge(step, operator, rows)
    return [rows for _, rows in operator.settle()]


def _merge(step: CountAggregate, operator: Any, rows: Rows) -> None:
    feeder = registry.feeder(step)
    assert not list(feeder.feed(rows, NO_WATERMARK))
    for batch in feeder.flush():
        operator.merge(batch)
