"""With `ordered=True` results do not depend on where epochs were cut, on shards or on crashes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import run_local
from tests.examples import examples

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
EVENT = {"key": int, "at": datetime, "number": int}
SEEN = {"key": int, "what": str, "number": int, "watermark": datetime}
BOUND = 4


class Story(hr.KeyedProcessFunction):
    """Tells of every row and every timer what it has seen before."""

    last: hr.state.Value[int] = hr.state.TTL(3 * SECOND)
    count: hr.state.Value[int] = hr.state.FOREVER

    def process_element(self, value: Any, ctx: Any) -> Iterator[dict[str, Any]]:
        """A timer that lies in the past now and then."""
        seen = (self.count.value() or 0) + 1
        self.count.update(seen)
        yield self._told(ctx, f"row {value.number} behind {self.last.value()}", seen)
        self.last.update(value.number)
        ctx.timers.register_event_time(ctx.timestamp + (value.number % 5 - 1) * SECOND)

    def on_timer(self, timestamp: Any, ctx: Any) -> Iterator[dict[str, Any]]:
        """Sets another one."""
        yield self._told(ctx, f"timer behind {self.last.value()}", self.count.value() or 0)
        if timestamp.second % 3 == 0:
            ctx.timers.register_event_time(timestamp + SECOND)

    def _told(self, ctx: Any, what: str, number: int) -> dict[str, Any]:
        return {"key": ctx.key, "what": what, "number": number, "watermark": ctx.watermark}


def told(rows: Sequence[tuple[int, int]], epoch: int, **options: Any) -> dict[int, list[Any]]:
    """By key what was told, in order."""
    env, out = hr.Environment("ordered"), MemorySink()
    events = [
        {"key": key, "at": START + at * SECOND, "number": n} for n, (key, at) in enumerate(rows)
    ]
    times = hr.WatermarkStrategy.bounded_out_of_orderness(BOUND * SECOND).with_timestamps("at")
    stream = env.from_source(MemorySource(events, schema=EVENT), watermarks=times, uid="events")
    story = stream.key_by("key").process(Story(), schema=SEEN, ordered=True, uid="story")
    story.sink_to(out, uid="out")
    late = MemorySink()
    story.late.sink_to(late, uid="late")
    run_local(env, epochs=hr.Epochs(rows=epoch), **{"shards": 2, **options})
    assert not late.to_pylist()
    by_key: dict[int, list[Any]] = {}
    for row in out.to_pylist():
        by_key.setdefault(row["key"], []).append(row)
    return by_key


@st.composite
def disorder(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Rows that are out of order, but none so much that it is late."""
    steps = draw(st.lists(st.integers(0, 4), min_size=1, max_size=25))
    rows, now = [], 0
    for step in steps:
        now += step
        rows.append((draw(st.integers(0, 2)), max(0, now - draw(st.integers(0, BOUND)))))
    return rows


@given(rows=disorder(), cuts=st.integers(1, 9), shards=st.integers(1, 3))
@examples(15)
def test_cuts_and_shards_do_not_show(rows: list[tuple[int, int]], cuts: int, shards: int) -> None:
    assert told(rows, 1) == told(rows, cuts, shards=shards) == told(rows, 1_000)


def test_crashes_and_rescaling_do_not_show() -> None:
    rows = [(number % 3, number - number * 7 % BOUND) for number in range(BOUND, 40)]
    crashes = [(2, "staged"), (4, "task"), (5, "durable")]
    found = told(rows, 5, rescale={3: 3, 5: 1}, crashes=crashes)
    assert found == told(rows, 1_000)


def test_rows_come_in_the_order_of_their_time_with_timers_between() -> None:
    # By arrival the times are 5, 3, 4. Row 1 sets a timer for 3, which sets one for 4; row 2 one for 5; row 0, at 5,
    # one for 4, which has passed by then and fires at once.
    found = told([(0, 5), (0, 3), (0, 4)], 1_000)[0]
    assert [row["what"].split(" behind")[0] for row in found] == [
        "row 1", "timer", "row 2", "timer", "row 0", "timer", "timer",
    ]  # fmt: skip
