"""Early firings by event time, and corrections: their number depends on where epochs are cut, the last result does not.

ACCUMULATING   shows all rows again      RETRACTING   retracts the result before it; the changes add up to the last results
DISCARDING     shows the new rows only, so its firings add up; `total` sums them
"""

from datetime import timedelta

import headrace as hr
from headrace import triggers
from headrace.windows import Global, Tumbling
from tests.cases.harness.case import Case

MINUTE = timedelta(minutes=1)
TEN = Tumbling(10 * MINUTE)
ROWS = """
    at: time | key: str | value: int
    08:01    | x        | 1
    08:05    | x        | 2
    08:03    | y        | 4
    08:09    | x        | 8
    08:14    | y        | 16
    watermark 08:12
    ---
    08:04    | x        | 32
    08:07    | y        | 64
    08:13    | x        | 128
"""


def windowed(rows: hr.Stream) -> hr.windowed.WindowedStream:
    return (
        rows.key_by("key")
        .window(TEN)
        .allowed_lateness(10 * MINUTE)
        .trigger(triggers.early(every=3 * MINUTE, time="event").late(each=True))
    )


ACCUMULATING = Case(
    inputs={"rows": ROWS},
    pipeline=lambda rows: windowed(rows).aggregate(total=hr.sum("value")),
    # With as few epochs as possible W is at 08:12 at once: the end of the first window, a multiple of three for the second.
    expected="""
        key | window_end | pane    | firing | total
        x   | 08:10      | on_time | 0      | 11
        x   | 08:10      | late    | 1      | 43
        y   | 08:10      | on_time | 0      | 4
        y   | 08:10      | late    | 1      | 68
        x   | 08:20      | on_time | 0      | 128
        y   | 08:20      | early   | 0      | 16
        y   | 08:20      | on_time | 1      | 16
    """,
    may_differ={"firings"},
    last_per=("key", "window_end"),
)

RETRACTING = Case(
    inputs={"rows": ROWS},
    pipeline=lambda rows: windowed(rows).retracting().aggregate(total=hr.sum("value")),
    expected="""
        key | window_end | total
        x   | 08:10      | 43
        y   | 08:10      | 68
        x   | 08:20      | 128
        y   | 08:20      | 16
    """,
)


def summed_up(rows: hr.Stream) -> hr.Stream:
    firings = windowed(rows).discarding().aggregate(part=hr.sum("value"))
    return firings.key_by("key", "window_end").window(Global()).aggregate(total=hr.sum("part"))


DISCARDING = Case(
    inputs={"rows": ROWS},
    pipeline=summed_up,
    expected="""
        key | window_end | total
        x   | 08:10      | 43
        y   | 08:10      | 68
        x   | 08:20      | 128
        y   | 08:20      | 16
    """,
)
