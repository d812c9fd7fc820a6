"""State of rows from before 1970 expires as any other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import cut, run_local

SECOND = timedelta(seconds=1)


class Short(hr.KeyedProcessFunction):
    value: hr.state.Value[int] = hr.state.TTL(SECOND)
    entries: hr.state.Map[str, int] = hr.state.TTL(SECOND)
    items: hr.state.List[int] = hr.state.TTL(SECOND)

    def process_element(self, value: Any, ctx: Any) -> None:
        self.value.update(1)
        self.entries["it"] = 1
        self.items.add(1)


def test_state_from_before_1970_does_not_stay_for_ever() -> None:
    old, new = datetime(1960, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)
    rows: list[Any] = [{"k": "abc"[n % 3], "at": old + n * SECOND} for n in range(6)]
    for n in range(3):
        rows += [cut(), {"k": "z", "at": new + 9 * n * SECOND}]
    env, sink = hr.Environment("old"), MemorySink()
    watermarks = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    source = MemorySource(rows, {"k": str, "at": datetime})
    stream = env.from_source(source, watermarks=watermarks, uid="rows")
    stream.key_by("k").process(Short(), schema={"k": str}, uid="step").sink_to(sink, uid="out")
    result = run_local(env, shards=2)
    for name in ("value", "entries", "items"):
        assert result.read_state("step", name).num_rows == 0
