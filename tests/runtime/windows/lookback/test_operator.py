"""When rows go out, what they see and what is kept, one fact a test.

look-back of 5      rows of key a     1     4     6 6       11
                    6 sees                [1 ... 6]          1, 4, 6, 6
                    11 sees                     [6 ... 11]   6, 6, 11
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace import aggregates as agg
from headrace._graph.nodes import LookBackAggregate
from headrace._runtime import registry
from headrace._runtime.operator import Moment, Outlook
from headrace._runtime.rows import Rows
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace._runtime.windows.lookback.layout import HISTORY, PENDING
from headrace.errors import EngineError, InputError
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness, timed_rows
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import LookBack
from tests.runtime.contract import assert_same, kept_rows
from tests.runtime.windows.cases import SCHEMA, answer, row, step_node

COUNT = {"rows": agg.count()}
ROWS = [(1, row("a", 1)), (4, row("a", 2)), (6, row("a", 3)), (6, row("a", 4)), (11, row("a", 5))]
FIRST = StepEpoch(NO_WATERMARK, NO_WATERMARK, ROWS)


def node(
    size_us: int = 5, aggregates: Any = COUNT, time: Any = "event", **more: Any
) -> LookBackAggregate:
    window = LookBack(timedelta(microseconds=size_us), time=time)
    return step_node(LookBackAggregate, window, aggregates, **more)


def seen(rows: list[dict[str, Any]], column: str = "rows") -> list[tuple[int, Any]]:
    return [(row["number"], row[column]) for row in rows]


def test_a_row_goes_out_when_the_watermark_reaches_it() -> None:
    harness = StepHarness(node())
    assert not harness.run([FIRST, StepEpoch(NO_WATERMARK, 0)])["main"]
    assert seen(harness.run([StepEpoch(0, 1)])["main"]) == [(1, 1)]
    assert not harness.run([StepEpoch(1, 3)])["main"]
    assert seen(harness.run([StepEpoch(3, 6)])["main"]) == [(2, 2), (3, 4), (4, 4)]
    assert seen(harness.run([StepEpoch(6, END_OF_TIME)])["main"]) == [(5, 3)]


def test_rows_go_out_in_order_of_time() -> None:
    rows = [(ts, row(key, ts)) for ts, key in [(9, "a"), (3, "b"), (7, "c"), (1, "a"), (5, "b")]]
    epochs = [StepEpoch(NO_WATERMARK, NO_WATERMARK, rows), StepEpoch(NO_WATERMARK, 9)]
    assert [row["number"] for row in StepHarness(node()).run(epochs)["main"]] == [1, 3, 5, 7, 9]


def test_the_row_exactly_at_the_far_end_is_seen_across_epochs() -> None:
    harness = StepHarness(node())
    harness.run([StepEpoch(NO_WATERMARK, NO_WATERMARK, [(1, row("a"))])])
    harness.run([StepEpoch(NO_WATERMARK, 5, [(6, row("a", 6)), (7, row("a", 7))])])
    harness.restore()
    assert seen(harness.run([StepEpoch(5, 7)])["main"]) == [(6, 2), (7, 2)]


def test_a_late_row_is_seen_by_nobody() -> None:
    harness = StepHarness(node())
    outputs = harness.run(
        [
            StepEpoch(NO_WATERMARK, 3, [(3, row("a", 3)), (4, row("a", 4))]),
            StepEpoch(3, 4),
        ]
    )
    assert seen(outputs["main"]) == [(4, 1)]
    assert [row["number"] for row in outputs["late"]] == [3]


def test_a_row_from_before_the_tick_goes_out_with_it() -> None:
    harness = StepHarness(node())
    early = [(2, row("a", 2)), (9, row("a", 9))]
    assert seen(harness.run([StepEpoch(1, 5, (), early)])["main"]) == [(2, 1)]
    assert seen(harness.run([StepEpoch(5, 9)])["main"]) == [(9, 1)]


def test_history_is_kept_as_long_as_somebody_can_see_it() -> None:
    harness = StepHarness(node(80))
    harness.run([StepEpoch(NO_WATERMARK, NO_WATERMARK, [(0, row("a")), (1, row("b"))])])
    harness.run([StepEpoch(NO_WATERMARK, 79)])
    assert kept_rows(harness) > 0
    # The next row may come at 90; ten microseconds are a slice.
    harness.run([StepEpoch(79, 89)])
    assert kept_rows(harness) == 0


def test_state_has_few_buckets_however_long_the_look_back() -> None:
    store, step = MemoryChunkStore(), node(1_000_000)
    state = ShardState(registry.tables(step), store, MemoryArrays(), range(128))
    state.open()
    for start in range(0, 3_000_000, 50_000):
        feeder = registry.feeder(step)
        list(feeder.feed(timed_rows(SCHEMA, [(start + 1, row("a"))]), start))
        operator = registry.keyed(step, state)
        list(operator.tick(Moment(start - 50_000, start, 0, 0)))
        for batch in feeder.flush():
            operator.merge(batch)
        list(operator.settle())
        assert len(state.buckets(HISTORY)) <= 10
        assert len(state.buckets(PENDING)) <= 1


@pytest.mark.parametrize("time", ["event", "processing"])
def test_the_outlook_is_the_first_row_that_waits(time: Any) -> None:
    step = node(time=time)
    state = ShardState(registry.tables(step), MemoryChunkStore(), MemoryArrays(), range(128))
    state.open()
    operator = registry.keyed(step, state)
    assert operator.outlook() == Outlook()
    feeder = registry.feeder(step)
    list(feeder.feed(timed_rows(SCHEMA, ROWS), NO_WATERMARK))
    list(operator.tick(Moment(NO_WATERMARK, NO_WATERMARK, 0, 0)))
    for batch in feeder.flush():
        operator.merge(batch)
    list(operator.settle())
    assert operator.outlook() == Outlook(1, 5, 2 if time == "processing" else None)
    list(operator.tick(Moment(NO_WATERMARK, 6, 0, 0)))
    list(operator.settle())
    assert operator.outlook() == Outlook(11, 1, 12 if time == "processing" else None)


def test_sums_of_floats_are_not_spoilt_by_what_is_not_seen() -> None:
    amounts = [0.1, 1e17, 0.2, float("inf"), 0.3, float("nan"), 0.4]
    rows = [(10 * n, row("a", n, amount=amount)) for n, amount in enumerate(amounts)]
    aggregates = {"sum": agg.sum("amount"), "avg": agg.avg("amount"), "var": agg.variance("amount")}
    epochs = [StepEpoch(NO_WATERMARK, NO_WATERMARK, rows), StepEpoch(NO_WATERMARK, 99)]
    results = StepHarness(node(5, aggregates)).run(epochs)["main"]
    assert [r["sum"] for r in results if r["number"] % 2 == 0] == [0.1, 0.2, 0.3, 0.4]
    assert [r["avg"] for r in results if r["number"] % 2 == 0] == [0.1, 0.2, 0.3, 0.4]
    assert [r["var"] for r in results] == [None] * 7


def test_the_variance_of_numbers_far_from_zero() -> None:
    rows = [(n, row("a", n, amount=1e9 + n % 2)) for n in range(8)]
    rows += [(n, row("a", n, amount=n % 2 / 4)) for n in range(8, 16)]
    epochs = [StepEpoch(NO_WATERMARK, NO_WATERMARK, rows), StepEpoch(NO_WATERMARK, 99)]
    step = node(3, {"var": agg.variance("amount", ddof=0)})
    results = seen(StepHarness(step).run(epochs)["main"], "var")
    assert dict(results)[7] == 0.25
    assert dict(results)[15] == 0.25 / 16


def test_a_sum_that_does_not_fit_is_an_error_and_a_large_one_is_not() -> None:
    step = node(5, {"sum": agg.sum("number")})
    fits = [(1, row("a", 2**62)), (2, row("a", 2**62 - 1)), (3, row("a", -1))]
    end = StepEpoch(NO_WATERMARK, 9)
    epochs = [StepEpoch(NO_WATERMARK, NO_WATERMARK, fits), end]
    assert_same(StepHarness(step).run(epochs), answer(step, epochs))
    too_large = StepEpoch(NO_WATERMARK, NO_WATERMARK, [*fits[:2], (3, row("a", 1))])
    with pytest.raises(InputError, match="sum"):
        StepHarness(step).run([too_large, end])


def test_other_types() -> None:
    schema = pa.schema(
        [
            ("key", pa.dictionary(pa.int8(), pa.string())),
            ("number", pa.uint64()),
            ("price", pa.decimal128(9, 2)),
            ("flag", pa.bool_()),
            ("tags", pa.list_(pa.string())),
            ("word", pa.dictionary(pa.int32(), pa.string())),
        ]
    )
    aggregates = {
        "sum": agg.sum("price"),
        "avg": agg.avg("price"),
        "most": agg.max("price"),
        "any": agg.max("flag"),
        "least": agg.min("number"),
        "newest": agg.last("tags"),
        "tagged": agg.max_by("tags", "price"),
        "word": agg.collect("flag"),
    }
    names = {name: f"{name}_" for name in schema.names}
    aggregates = {names.get(name, name): a for name, a in aggregates.items()}
    rows = [
        (
            n,
            {
                "key": "ab"[n % 2],
                "number": 2**64 - 1 - n,
                "price": None if n == 3 else Decimal(n).scaleb(-2),
                "flag": n % 3 == 0,
                "tags": None if n == 4 else [str(n)] * (n % 3),
                "word": "xyz"[n % 3],
            },
        )
        for n in range(12)
    ]
    step = node(6, aggregates, schema=schema)
    epochs = [
        StepEpoch(NO_WATERMARK, NO_WATERMARK, rows[:6]),
        StepEpoch(NO_WATERMARK, 4, rows[6:]),
        StepEpoch(4, END_OF_TIME),
    ]
    found = StepHarness(step, 2).run(epochs, restores={2: 3})
    assert_same(found, answer(step, epochs))


def test_rows_without_timestamps_are_refused() -> None:
    batch = timed_rows(SCHEMA, [(1, row("a"))]).batch
    with pytest.raises(EngineError, match="per-key"):
        list(registry.feeder(node()).feed(Rows(batch, None), NO_WATERMARK))


def test_a_hot_key_among_others() -> None:
    chance = np.random.default_rng(4)
    rows = [
        (int(ts), row("hot" if n % 3 else f"cold {n % 50}", int(chance.integers(-9, 9))))
        for n, ts in enumerate(chance.integers(0, 400, 3_000))
    ]
    aggregates = {"rows": agg.count(), "sum": agg.sum("number"), "max": agg.max("number")}
    step = node(60, aggregates)
    epochs = [
        StepEpoch(NO_WATERMARK, NO_WATERMARK, rows[:1_500]),
        StepEpoch(NO_WATERMARK, 100, rows[1_500:]),
        StepEpoch(100, 300),
        StepEpoch(300, END_OF_TIME),
    ]
    assert_same(StepHarness(step, 2).run(epochs, restores={2: 1}), answer(step, epochs))
