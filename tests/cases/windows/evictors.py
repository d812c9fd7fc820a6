"""Evictors leave out rows when a window fires; what they left out does not return with the next firing.

LAST_TWO   the last two by arrival, at every third row
YOUNG      younger than two minutes before the latest (08:05): 08:03 is not, 08:03:01 is
"""

from datetime import timedelta

import headrace as hr
from headrace import evictors, triggers
from headrace.windows import Tumbling
from tests.cases.harness.case import Case

MINUTE = timedelta(minutes=1)

LAST_TWO = Case(
    inputs={
        "rows": """
            at: time | key: str | value: int
            08:05    | x        | 1
            08:04    | x        | 2
            08:03    | x        | 4
            08:02    | x        | 8
            08:01    | x        | 16
            08:06    | x        | 32
        """,
    },
    pipeline=lambda rows: (
        rows.key_by("key")
        .window(Tumbling(10 * MINUTE))
        .trigger(triggers.count(3))
        .evictor(evictors.count(2))
        .aggregate(total=hr.sum("value"))
    ),
    expected="""
        firing | total
        0      | 6
        1      | 48
    """,
)

YOUNG = Case(
    inputs={
        "rows": """
            at: time | key: str | value: int
            08:05    | x        | 1
            08:03    | x        | 2
            08:03:01 | x        | 4
        """,
    },
    pipeline=lambda rows: (
        rows.key_by("key")
        .window(Tumbling(10 * MINUTE))
        .evictor(evictors.time(2 * MINUTE))
        .aggregate(total=hr.sum("value"))
    ),
    expected="""
        firing | total
        0      | 5
    """,
    any_order=True,
)
