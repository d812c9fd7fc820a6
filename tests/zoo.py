"""Every kind of window in one job: what runs on Spark and is killed there.

All of it follows from event time and the cuts of epochs, so two runs with the same cuts have the same results,
whatever happened in between; only `by-clock` does not, of which the sums must be right.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import headrace as hr
from headrace import triggers, windows
from headrace.endpoints import Sink

SECOND = timedelta(seconds=1)

Taken = Callable[[str], Sink]


class Alternate(windows.WindowAssigner):
    """Windows of 7 and of 3 seconds in turn."""

    def assign(self, row: Any, timestamp: Any) -> Iterator[tuple[Any, Any]]:
        start = timestamp.replace(second=timestamp.second // 10 * 10, microsecond=0)
        middle = start + 7 * SECOND
        yield (start, middle) if timestamp < middle else (middle, start + 10 * SECOND)


class EveryThird(triggers.Trigger):
    """A trigger of a user's own, with state."""

    seen: hr.state.Value[int]

    def on_element(self, row: Any, timestamp: Any, window: Any, context: Any) -> Any:
        seen = (context.state.seen.value() or 0) + 1
        context.state.seen.update(seen)
        return triggers.TriggerResult.CONTINUE if seen % 3 else triggers.TriggerResult.FIRE


class Numbered(hr.ProcessWindowFunction):
    """Numbers the windows of a key, in global state; odd sizes go to a side output."""

    windows: hr.state.Value[int]

    def process(self, key: Any, context: Any, rows: Any) -> Iterator[Any]:
        number = context.global_state.windows.value() or 0
        context.global_state.windows.update(number + 1)
        row = {
            "key": key,
            "number": number,
            "rows": len(rows),
            "total": sum(r.sequence for r in rows),
        }
        yield (ODD, row) if len(rows) % 2 else row


COLUMNS = {"key": int, "number": int, "rows": int, "total": int}
ODD = hr.OutputTag("odd", COLUMNS)


def add_windows(rows: hr.Stream, sink: Taken) -> None:
    """All kinds on rows with `key`, `sequence` and event time; `sink(name)` takes what comes out."""
    keyed = rows.key_by("key")
    bursts = rows.filter(hr.col("sequence") // 30 % 2 == 0).key_by("key")
    kinds: dict[str, Any] = {
        "days": keyed.window(windows.Tumbling(timedelta(days=1), zone="Europe/Berlin")),
        "hopping": keyed.window(windows.Hopping(10 * SECOND, 4 * SECOND)).allowed_lateness(
            5 * SECOND
        ),
        "cumulating": keyed.window(windows.Cumulating(60 * SECOND, 10 * SECOND)),
        "sessions": bursts.window(windows.Session(3 * SECOND)).allowed_lateness(5 * SECOND),
        "look-back": keyed.window(windows.LookBack(5 * SECOND)),
        "counts": keyed.count_window(7),
        "sliding-counts": keyed.count_window(6, 4),
        "all": rows.window_all(windows.Tumbling(10 * SECOND)),
        "own-windows": keyed.window(windows.Tumbling(10 * SECOND)).on_late("own_window"),
        "own-assigner": keyed.window(Alternate()).trigger(EveryThird()),
        "retracting": keyed.window(windows.Tumbling(10 * SECOND))
        .trigger(triggers.count(4))
        .retracting(),
        "discarding": keyed.window(windows.Global()).trigger(triggers.count(5)).discarding(),
        "early": keyed.window(windows.Tumbling(20 * SECOND))
        .allowed_lateness(20 * SECOND)
        .trigger(triggers.early(every=5 * SECOND, time="event").late(each=True)),
        "by-clock": keyed.window(windows.Tumbling(SECOND, time="processing")),
    }
    for name, windowed in kinds.items():
        result = windowed.aggregate(rows=hr.count(), total=hr.sum("sequence"), uid=name)
        result.sink_to(sink(name), uid=f"{name}-out")
        if name in ("sessions", "look-back"):
            result.late.sink_to(sink(f"{name}-late"), uid=f"{name}-late-out")
    numbered = bursts.window(windows.Session(3 * SECOND)).process(
        Numbered(), schema=COLUMNS, side_outputs=[ODD], uid="numbered"
    )
    numbered.sink_to(sink("numbered"), uid="numbered-out")
    numbered.side_output(ODD).sink_to(sink("odd"), uid="odd-out")


NAMES = (
    "days hopping cumulating sessions sessions-late look-back look-back-late counts sliding-counts all own-windows"
    " own-assigner retracting discarding early by-clock numbered odd"
).split()
