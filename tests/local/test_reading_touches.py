"""State that lives on by being read does not die sooner because a row from before has read it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import cut, run_local

START = datetime(2025, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = hr.state.TTL(60 * SECOND, update="read_and_write")
FOUND = {"n": int, "found": bool}


class OfValue(hr.KeyedProcessFunction):
    kept: hr.state.Value[int] = MINUTE

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        if value.n == 0:
            self.kept.update(7)
        yield {"n": value.n, "found": self.kept.value() is not None}


class OfMap(hr.KeyedProcessFunction):
    kept: hr.state.Map[str, int] = MINUTE

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        if value.n == 0:
            self.kept["it"] = 7
        yield {"n": value.n, "found": self.kept.get("it") is not None}


class OfList(hr.KeyedProcessFunction):
    kept: hr.state.List[int] = MINUTE

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        if value.n == 0:
            self.kept.add(7)
        yield {"n": value.n, "found": self.kept.get() != []}


class OfColumns(hr.KeyedBatchFunction):
    kept: hr.state.Value[int] = MINUTE

    def process_batch(self, batch: Any, ctx: Any) -> Any:
        numbers = batch["n"].to_numpy()
        first = ctx.slots[numbers == 0]
        self.kept.put(first, numbers[numbers == 0] + 7)
        found = self.kept.get(ctx.slots).is_valid()
        return pa.record_batch({"n": batch["n"], "found": found})


@pytest.mark.parametrize("function", [OfValue(), OfMap(), OfList(), OfColumns()])
def test_a_row_from_before_that_reads_a_state_does_not_end_it(function: Any) -> None:
    def row(key: str, n: int, second: int) -> dict[str, Any]:
        return {"k": key, "n": n, "at": START + second * SECOND}

    # Written at 100; read by a row of 45; the watermark comes to 155, which is before 160.
    rows = [row("a", 0, 100), cut(), row("a", 1, 45), cut(), row("z", 9, 200), cut()]
    rows += [row("z", 9, 255), cut(), row("a", 2, 156), cut(), row("z", 9, 256)]
    env, sink = hr.Environment("reading"), MemorySink()
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(100 * SECOND).with_timestamps("at")
    source = MemorySource(rows, {"k": str, "n": int, "at": datetime})
    stream = env.from_source(source, watermarks=strategy, uid="rows")
    stream.key_by("k").process(function, schema=FOUND, uid="step").sink_to(sink, uid="out")
    run_local(env)
    found = {row["n"]: row["found"] for row in sink.to_pylist()}
    assert found == {0: True, 1: True, 2: True, 9: False}
