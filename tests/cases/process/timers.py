"""Timers of event time, most with rows in the order of their time: each fires once, in the order of time, before later rows.

SET_AND_DELETED   timers of one key and instant are one; a deleted one does not fire; one that was set again does
BY_ARRIVAL        the same with rows in order of arrival
CHAIN             a timer sets the next one, also past the last row of its key
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import headrace as hr
from tests.cases.harness.case import Case

MINUTE = timedelta(minutes=1)
FIRED = {"key": str, "at": datetime, "what": str}


class Obeys(hr.KeyedProcessFunction):
    """Sets and deletes timers `by` minutes from the time of the row."""

    def process_element(self, row: Any, ctx: Any) -> Iterator[dict[str, Any]]:
        time = ctx.timestamp + row.by * MINUTE
        if row.do == "set":
            ctx.timers.register_event_time(time)
        elif row.do == "delete":
            ctx.timers.delete_event_time(time)
        else:
            yield {"key": ctx.key, "at": ctx.timestamp, "what": "row"}

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[dict[str, Any]]:
        yield {"key": ctx.key, "at": timestamp, "what": "timer"}
        if ctx.key == "chain" and timestamp.minute < 12:
            ctx.timers.register_event_time(timestamp + MINUTE)


def obeyed(rows: hr.Stream) -> hr.Stream:
    return rows.key_by("key").process(Obeys(), schema=FIRED, ordered=True)


SET_AND_DELETED = Case(
    inputs={
        "rows": """
            at: time | key: str | do: str | by: int
            08:00    | a        | set     | 9
            08:00    | a        | set     | 5
            08:00    | b        | set     | 5
            08:01    | a        | set     | 4
            08:01    | b        | delete  | 4
            08:02    | b        | set     | 3
            08:02    | c        | set     | 60
            08:03    | c        | delete  | 59
            08:07    | a        | show    | 0
            08:05    | a        | show    | 0
            08:30    | b        | show    | 0
        """,
    },
    pipeline=obeyed,
    # A timer of the instant of a row fires after it.
    expected="""
        key | at    | what
        a   | 08:05 | row
        a   | 08:05 | timer
        a   | 08:07 | row
        a   | 08:09 | timer
        b   | 08:05 | timer
        b   | 08:30 | row
    """,
    ordered_per=("key",),
    any_order=True,
)

#: Rows in order of arrival: timers an hour and a few seconds ahead, with time that passes in small steps.
BY_ARRIVAL = Case(
    inputs={
        "rows": """
            at: time | key: str | do: str | by: int
            08:00    | a        | set     | 60
            08:00    | a        | set     | 61
            08:00    | b        | set     | 61
            08:58    | c        | set     | 2
            08:59    | b        | delete  | 2
            08:59    | a        | set     | 1
            09:00:01 | d        | nothing | 0
            09:00:02 | d        | nothing | 0
            09:00:30 | c        | set     | 1
            09:01:01 | d        | nothing | 0
            09:01:02 | d        | nothing | 0
            09:30    | d        | nothing | 0
        """,
    },
    pipeline=lambda rows: (
        rows.key_by("key").process(Obeys(), schema=FIRED).filter(hr.col("what") == "timer")
    ),
    expected="""
        key | at       | what
        a   | 09:00    | timer
        a   | 09:01    | timer
        c   | 09:00    | timer
        c   | 09:01:30 | timer
    """,
    ordered_per=("key",),
)

CHAIN = Case(
    inputs={
        "rows": """
            at: time | key: str | do: str | by: int
            08:00    | chain    | set     | 9
            08:10    | chain    | show    | 0
            08:11    | other    | show    | 0
        """,
    },
    pipeline=obeyed,
    expected="""
        key   | at    | what
        chain | 08:09 | timer
        chain | 08:10 | row
        chain | 08:10 | timer
        chain | 08:11 | timer
        chain | 08:12 | timer
        other | 08:11 | row
    """,
    ordered_per=("key",),
    any_order=True,
)
