"""Days and weeks of the calendar: clocks that are moved make them shorter or longer.

A_DAY_OF_23_HOURS   Berlin, 30 March 2025: midnight is 23:00 UTC, the next one 22:00 UTC
A_DAY_OF_25_HOURS   Berlin, 26 October 2025: from 22:00 UTC to 23:00 UTC a day later
A_WEEK_IN_MARCH     seven days, every day, in New York; clocks go forward on 9 March 2025, so some of them have 167 hours
DAY_CHANGE          a total every six hours: the last window of a day ends where the first of the next begins
"""

from datetime import timedelta

import headrace as hr
from headrace.windows import Cumulating, Hopping, Tumbling
from tests.cases.harness.case import Case

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def berlin(rows: hr.Stream) -> hr.Stream:
    return rows.window_all(Tumbling(DAY, zone="Europe/Berlin")).aggregate(total=hr.sum("value"))


A_DAY_OF_23_HOURS = Case(
    inputs={
        "rows": """
            at: time            | value: int
            2025-03-29 22:59:59 | 1
            2025-03-29 23:00    | 2
            2025-03-30 21:59:59 | 4
            2025-03-30 22:00    | 8
        """,
    },
    pipeline=berlin,
    expected="""
        window_start     | window_end       | total
        2025-03-28 23:00 | 2025-03-29 23:00 | 1
        2025-03-29 23:00 | 2025-03-30 22:00 | 6
        2025-03-30 22:00 | 2025-03-31 22:00 | 8
    """,
    any_order=True,
)

A_DAY_OF_25_HOURS = Case(
    inputs={
        "rows": """
            at: time            | value: int
            2025-10-25 21:59:59 | 1
            2025-10-25 22:00    | 2
            2025-10-26 22:59:59 | 4
            2025-10-26 23:00    | 8
        """,
    },
    pipeline=berlin,
    expected="""
        window_start     | window_end       | total
        2025-10-24 22:00 | 2025-10-25 22:00 | 1
        2025-10-25 22:00 | 2025-10-26 23:00 | 6
        2025-10-26 23:00 | 2025-10-27 23:00 | 8
    """,
    any_order=True,
)

A_WEEK_IN_MARCH = Case(
    inputs={
        "rows": """
            at: time         | value: int
            2025-03-11 05:00 | 1
        """,
    },
    pipeline=lambda rows: rows.window_all(Hopping(7 * DAY, DAY, zone="America/New_York")).aggregate(
        total=hr.sum("value")
    ),
    expected="""
        window_start     | window_end       | total
        2025-03-05 05:00 | 2025-03-12 04:00 | 1
        2025-03-06 05:00 | 2025-03-13 04:00 | 1
        2025-03-07 05:00 | 2025-03-14 04:00 | 1
        2025-03-08 05:00 | 2025-03-15 04:00 | 1
        2025-03-09 05:00 | 2025-03-16 04:00 | 1
        2025-03-10 04:00 | 2025-03-17 04:00 | 1
        2025-03-11 04:00 | 2025-03-18 04:00 | 1
    """,
)

DAY_CHANGE = Case(
    inputs={
        "rows": """
            at: time         | value: int
            13:00            | 1
            23:59            | 2
            2020-04-16 00:00 | 4
            watermark 2020-04-16 00:00
            ---
            2020-04-16 01:00 | 8
            23:58            | 16
        """,
    },
    pipeline=lambda rows: rows.window_all(Cumulating(DAY, 6 * HOUR)).aggregate(
        total=hr.sum("value")
    ),
    expected="""
        window_start     | window_end       | total
        00:00            | 18:00            | 1
        00:00            | 2020-04-16 00:00 | 3
        2020-04-16 00:00 | 2020-04-16 06:00 | 12
        2020-04-16 00:00 | 2020-04-16 12:00 | 12
        2020-04-16 00:00 | 2020-04-16 18:00 | 12
        2020-04-16 00:00 | 2020-04-17 00:00 | 12
    """,
)
