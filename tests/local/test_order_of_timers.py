"""Timers of one instant fire in one order, whatever restarts did to where they lie."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import cut, run_local

START = datetime(2025, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
FIRED = {"k": str, "at": datetime}


class RowByRow(hr.KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        if value.n % 3 == 0:
            ctx.timers.delete_event_time(START + 100 * SECOND)
        ctx.timers.register_event_time(START + 100 * SECOND)
        ctx.timers.register_event_time(START + (50 + value.n % 60) * SECOND)

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[Any]:
        yield {"k": ctx.key, "at": timestamp}


class OnColumns(hr.KeyedBatchFunction):
    def process_batch(self, batch: Any, ctx: Any) -> None:
        start = round(START.timestamp() * 1e6)
        numbers = batch["n"].to_numpy()
        all_at = np.full(len(numbers), start + 100_000_000)
        ctx.timers.delete_event_time(ctx.slots[numbers % 3 == 0], all_at[numbers % 3 == 0])
        ctx.timers.register_event_time(ctx.slots, all_at)
        ctx.timers.register_event_time(ctx.slots, start + (50 + numbers % 60) * 1_000_000)

    def on_timers(self, timers: Any, ctx: Any) -> Any:
        return timers.rename_columns(["k", "at"])


def fired(function: Any, crashes: list[Any]) -> list[Any]:
    chance, rows = random.Random(3), []
    for n in range(400):
        key, number = f"k{chance.randrange(60)}", chance.randrange(100)
        rows += [{"k": key, "n": number, "at": START + n // 4 * SECOND}]
        rows += [cut()] if n % 20 == 19 else []
    for second in (99, 101, 130):
        rows += [{"k": "z", "n": second, "at": START + second * SECOND}, cut()]
    env, sink = hr.Environment("timers", epochs=hr.Epochs(rows=1000)), MemorySink()
    watermarks = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    source = MemorySource(rows, {"k": str, "n": int, "at": datetime})
    stream = env.from_source(source, watermarks=watermarks, uid="rows")
    stream.key_by("k").process(function, schema=FIRED, uid="step").sink_to(sink, uid="out")
    run_local(env, shards=2, crashes=crashes)
    return [(row["k"], row["at"]) for row in sink.to_pylist()]


@pytest.mark.parametrize("function", [RowByRow(), OnColumns()])
def test_timers_of_one_instant_fire_in_the_same_order_after_a_restart(function: Any) -> None:
    right = fired(function, [])
    assert len(right) > 400
    for crashes in ([(3, "task"), (22, "staged")], [(n, "durable") for n in range(1, 23)]):
        assert fired(function, crashes) == right
