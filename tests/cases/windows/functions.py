"""A function over the rows of a window, with state of the window and of the key.

The first window is corrected once: its own state says 2, that of the key 2, and 3 after the second window.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import headrace as hr
from headrace.windows import Count, Tumbling
from tests.cases.harness.case import Case

MINUTE = timedelta(minutes=1)
SPREAD = {"key": str, "spread": int, "here": int, "ever": int, "pane": str}


class Spread(hr.ProcessWindowFunction):
    """How far apart the values are, how often the window has fired, and for how many windows of the key."""

    seen: hr.state.Value[int]

    def process(self, key: Any, context: Any, rows: Any) -> Iterator[Any]:
        mine, all_windows = context.window_state.seen, context.global_state.seen
        mine.update((mine.value() or 0) + 1)
        all_windows.update((all_windows.value() or 0) + 1)
        values = [row.value for row in rows]
        yield {
            "key": key,
            "spread": max(values) - min(values),
            "here": mine.value(),
            "ever": all_windows.value(),
            "pane": context.pane,
        }


OF_TIME = Case(
    inputs={
        "rows": """
            at: time | key: str | value: int
            08:01    | x        | 1
            08:02    | x        | 8
            watermark 08:10
            ---
            08:03    | x        | 64
            ---
            08:11    | x        | 5
        """,
    },
    pipeline=lambda rows: (
        rows.key_by("key")
        .window(Tumbling(10 * MINUTE))
        .allowed_lateness(5 * MINUTE)
        .process(Spread(), schema=SPREAD)
    ),
    expected="""
        ever | here | spread | pane
        1    | 1    | 7      | on_time
        2    | 2    | 63     | late
        3    | 1    | 0      | on_time
    """,
)

BY_NUMBER = Case(
    inputs={
        "rows": """
            key: str | value: int
            x        | 1
            x        | 2
            x        | 4
            x        | 8
            x        | 16
        """,
    },
    pipeline=lambda rows: rows.key_by("key").window(Count(2)).process(Spread(), schema=SPREAD),
    expected="""
        ever | spread
        1    | 1
        2    | 4
    """,
)
