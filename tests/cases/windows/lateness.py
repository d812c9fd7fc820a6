"""Rows after the watermark has passed their window: sent to `late`, added as a correction, or put into separate windows.

HOPPING       ten minutes every five, W = 08:10: 2 (08:07) is late for [08:00, 08:10) but counts in [08:05, 08:15); 4 (08:04) is late
CORRECTED     lateness of five minutes, W = 08:10, then 08:15: 4 and 8 correct the window, 16 is late
LAST_MOMENT   lateness of five minutes: one microsecond before 08:15 a row still counts, at 08:15 it is late
PURGED        the window was emptied when it fired: the corrections begin with nothing
OWN_WINDOWS   lateness of five minutes, W = 08:20: 8 (08:01) and 32 (08:06) are too late for all windows
"""

from datetime import timedelta

import headrace as hr
from headrace import triggers
from headrace.windows import Hopping, Tumbling
from tests.cases.harness.case import Case

MINUTE = timedelta(minutes=1)
TEN = Tumbling(10 * MINUTE)
EVERY_FIVE = Hopping(10 * MINUTE, 5 * MINUTE)


def with_late(window: hr.windowed.WindowedStream) -> dict[str, hr.Stream]:
    sums = window.aggregate(total=hr.sum("value"))
    return {"main": sums, "late": sums.late}


HOPPING = Case(
    inputs={
        "rows": """
            at: time | key: str | value: int
            08:06    | x        | 1
            watermark 08:10
            ---
            08:07    | x        | 2
            08:04    | x        | 4
        """,
    },
    pipeline=lambda rows: with_late(rows.key_by("key").window(EVERY_FIVE)),
    expected={
        "main": """
            window_start | window_end | pane    | firing | total
            08:00        | 08:10      | on_time | 0      | 1
            08:05        | 08:15      | on_time | 0      | 3
        """,
        "late": """
            value
            4
        """,
    },
)

CORRECTIONS = """
    at: time | key: str | value: int
    08:01    | x        | 1
    08:02    | x        | 2
    watermark 08:10
    ---
    08:03    | x        | 4
    watermark 08:11
    ---
    08:04    | x        | 8
    watermark 08:15
    ---
    08:05    | x        | 16
"""

CORRECTED = Case(
    inputs={"rows": CORRECTIONS},
    pipeline=lambda rows: with_late(rows.key_by("key").window(TEN).allowed_lateness(5 * MINUTE)),
    expected={
        "main": """
            window_start | window_end | pane    | firing | total
            08:00        | 08:10      | on_time | 0      | 3
            08:00        | 08:10      | late    | 1      | 7
            08:00        | 08:10      | late    | 2      | 15
        """,
        "late": """
            value
            16
        """,
    },
)

LAST_MOMENT = Case(
    inputs={
        "rows": """
            at: time | key: str | value: int
            08:01    | x        | 1
            watermark 08:14:59.999999
            ---
            08:03    | x        | 2
            watermark 08:15
            ---
            08:04    | x        | 4
        """,
    },
    pipeline=lambda rows: with_late(rows.key_by("key").window(TEN).allowed_lateness(5 * MINUTE)),
    expected={
        "main": """
            window_end | pane    | firing | total
            08:10      | on_time | 0      | 1
            08:10      | late    | 1      | 3
        """,
        "late": """
            value
            4
        """,
    },
)

PURGED = Case(
    inputs={"rows": CORRECTIONS},
    pipeline=lambda rows: with_late(
        rows.key_by("key")
        .window(TEN)
        .allowed_lateness(5 * MINUTE)
        .trigger(triggers.purging(triggers.event_time()))
    ),
    expected={
        "main": """
            window_start | window_end | pane    | firing | total
            08:00        | 08:10      | on_time | 0      | 3
            08:00        | 08:10      | late    | 1      | 4
            08:00        | 08:10      | late    | 2      | 8
        """,
        "late": """
            value
            16
        """,
    },
)

#: The late rows of one epoch get separate windows, so their number depends on the cuts.
OWN_WINDOWS = Case(
    inputs={
        "rows": """
            at: time | key: str | value: int
            08:01    | x        | 1
            watermark 08:20
            ---
            08:01    | x        | 8
            ---
            08:06    | x        | 32
        """,
    },
    pipeline=lambda rows: (
        rows.key_by("key")
        .window(EVERY_FIVE)
        .allowed_lateness(5 * MINUTE)
        .on_late("own_window")
        .aggregate(total=hr.sum("value"))
    ),
    expected="""
        window_start | window_end | pane    | firing | total
        07:55        | 08:05      | on_time | 0      | 1
        08:00        | 08:10      | on_time | 0      | 1
        07:55        | 08:05      | own     | 0      | 8
        08:00        | 08:10      | own     | 0      | 8
        08:00        | 08:10      | own     | 0      | 32
        08:05        | 08:15      | own     | 0      | 32
    """,
)
