"""The tables with which Flink's page on SQL explains window joins: five minutes, rows with the same number.

left         02 L1 (1)   03 L3 (3) | 06 L2 (2)
right  01 R2 (2)         04 R3 (3) | 05 R4 (4)        L2 and R2 have the same number but lie in separate windows
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import headrace as hr
from headrace.windows import Hopping, Session, Tumbling
from tests.cases.harness.case import Case

MINUTE, MS = timedelta(minutes=1), timedelta(milliseconds=1)
TABLES = {
    "left": """
        at: time | num: int | id: str
        12:02    | 1        | L1
        12:06    | 2        | L2
        12:03    | 3        | L3
    """,
    "right": """
        at: time | num: int | id: str
        12:01    | 2        | R2
        12:04    | 3        | R3
        12:05    | 4        | R4
    """,
}


def joined(how: Any, *rows: str) -> Case:
    columns = (
        "id | window_start | window_end"
        if how in ("semi", "anti")
        else "id | id_right | window_start | window_end"
    )
    return Case(
        inputs=TABLES,
        pipeline=lambda left, right: left.window_join(
            right, Tumbling(5 * MINUTE), on="num", how=how
        ),
        expected="\n".join([columns, *rows]),
        any_order=True,
    )


PAIR = "L3 | R3 | 12:00 | 12:05"
LEFT_ALONE = ("L1 | null | 12:00 | 12:05", "L2 | null | 12:05 | 12:10")
RIGHT_ALONE = ("null | R2 | 12:00 | 12:05", "null | R4 | 12:05 | 12:10")

INNER = joined("inner", PAIR)
LEFT = joined("left", PAIR, *LEFT_ALONE)
RIGHT = joined("right", PAIR, *RIGHT_ALONE)
FULL = joined("full", PAIR, *LEFT_ALONE, *RIGHT_ALONE)
SEMI = joined("semi", "L3 | 12:00 | 12:05")
ANTI = joined("anti", "L1 | 12:00 | 12:05", "L2 | 12:05 | 12:10")


def counted(left: hr.Stream, right: hr.Stream) -> hr.Stream:
    """A result has the last microsecond of its window, so a window downstream counts it where it belongs."""
    both = left.window_join(right, Tumbling(5 * MINUTE), on="num", how="full")
    return both.window_all(Tumbling(5 * MINUTE)).aggregate(rows=hr.count())


COUNTED = Case(
    inputs=TABLES,
    pipeline=counted,
    expected="""
        window_start | rows
        12:00        | 3
        12:05        | 2
    """,
    any_order=True,
)


def rows_of(*times: int) -> str:
    return "\n".join(f"12:00:00.00{ms} | 1 | {ms}" for ms in times)


def numbered(*times: int) -> str:
    return "at: time | key: int | ms: int\n" + rows_of(*times)


#: [0, 2) [2, 4) [4, 6): nothing is there for 6 and 7.
TUMBLING = Case(
    inputs={"orange": numbered(*range(8)), "green": numbered(0, 1, 3, 4)},
    pipeline=lambda orange, green: orange.window_join(green, Tumbling(2 * MS), on="key"),
    expected="""
        window_start | ms | ms_right
        12:00        | 0  | 0
        12:00        | 0  | 1
        12:00        | 1  | 0
        12:00        | 1  | 1
        12:00:00.002 | 2  | 3
        12:00:00.002 | 3  | 3
        12:00:00.004 | 4  | 4
        12:00:00.004 | 5  | 4
    """,
    any_order=True,
)

#: 2 meets 3 in [2, 4), and none in [1, 3).
SLIDING = Case(
    inputs={"orange": numbered(*range(5)), "green": numbered(0, 3, 4)},
    pipeline=lambda orange, green: orange.window_join(green, Hopping(2 * MS, MS), on="key"),
    expected="""
        window_start | ms | ms_right
        11:59:59.999 | 0  | 0
        12:00        | 0  | 0
        12:00        | 1  | 0
        12:00:00.002 | 2  | 3
        12:00:00.002 | 3  | 3
        12:00:00.003 | 3  | 3
        12:00:00.003 | 3  | 4
        12:00:00.003 | 4  | 3
        12:00:00.003 | 4  | 4
        12:00:00.004 | 4  | 4
    """,
    any_order=True,
)

SESSIONS = {
    "orange": numbered(1) + "\nwatermark 11:59\n" + rows_of(2, 5, 6, 8, 9),
    "green": numbered(0) + "\nwatermark 11:59\n" + rows_of(4, 5),
}

#: [0, 3) and [4, 7); 8 and 9 are alone. The watermark waits, because rows touch the sessions before them.
SESSION = Case(
    inputs=SESSIONS,
    pipeline=lambda orange, green: orange.window_join(green, Session(MS), on="key"),
    expected="""
        window_start | window_end   | ms | ms_right
        12:00        | 12:00:00.003 | 1  | 0
        12:00        | 12:00:00.003 | 2  | 0
        12:00:00.004 | 12:00:00.007 | 5  | 4
        12:00:00.004 | 12:00:00.007 | 5  | 5
        12:00:00.004 | 12:00:00.007 | 6  | 4
        12:00:00.004 | 12:00:00.007 | 6  | 5
    """,
)

ALONE = Case(
    inputs=SESSIONS,
    pipeline=lambda orange, green: orange.window_join(green, Session(MS), on="key", how="anti"),
    expected="""
        ms | window_start | window_end
        8  | 12:00:00.008 | 12:00:00.010
        9  | 12:00:00.008 | 12:00:00.010
    """,
)


def sizes(key: int, window: Any, left: Any, right: Any) -> Iterator[dict[str, Any]]:
    yield {
        "start": window.start,
        "orange": sorted(row.ms for row in left),
        "green": sorted(row.ms for row in right),
    }


#: A co-group sees what a join leaves out.
CO_GROUP = Case(
    inputs=SESSIONS,
    pipeline=lambda orange, green: orange.co_group(
        green,
        Session(MS),
        sizes,
        on="key",
        schema={"start": datetime, "orange": list[int], "green": list[int]},
    ),
    expected="""
        start        | orange | green
        12:00        | [1, 2] | [0]
        12:00:00.004 | [5, 6] | [4, 5]
        12:00:00.008 | [8, 9] | []
    """,
)
