"""Flink's OVER (PARTITION BY item ORDER BY at RANGE BETWEEN INTERVAL '4' MINUTE PRECEDING AND CURRENT ROW).

price     4     2     5     3     1           6
minute    05    07    09    11    13          17
sees      05    05-07 05-09 07-11 09-13       13-17
sum       4     6     11    10    9           7

PEERS: rows of one time see each other; a row at or before the watermark is late and no row sees it.
"""

from datetime import timedelta

import headrace as hr
from headrace.windows import LookBack
from tests.cases.harness.case import Case

MINUTE = timedelta(minutes=1)

RANGE = Case(
    inputs={
        "bids": """
            at: time | item: str | price: int
            08:05    | x         | 4
            08:07    | x         | 2
            08:09    | x         | 5
            08:11    | x         | 3
            08:13    | x         | 1
            08:17    | x         | 6
        """,
    },
    pipeline=lambda bids: (
        bids.key_by("item").window(LookBack(4 * MINUTE)).aggregate(total=hr.sum("price"))
    ),
    expected="""
        at    | price | total
        08:05 | 4     | 4
        08:07 | 2     | 6
        08:09 | 5     | 11
        08:11 | 3     | 10
        08:13 | 1     | 9
        08:17 | 6     | 7
    """,
    any_order=True,
)


def two_minutes(rows: hr.Stream) -> dict[str, hr.Stream]:
    sums = rows.key_by("key").window(LookBack(2 * MINUTE)).aggregate(total=hr.sum("value"))
    return {"main": sums, "late": sums.late}


PEERS = Case(
    inputs={
        "rows": """
            at: time | key: str | value: int
            08:00    | x        | 1
            08:02    | x        | 2
            watermark 08:02
            ---
            08:02    | x        | 4
            watermark 08:03
            ---
            08:02    | x        | 32
            08:03    | x        | 8
            08:06    | x        | 16
        """,
    },
    pipeline=two_minutes,
    expected={
        "main": """
            value | total
            1     | 1
            2     | 7
            4     | 7
            8     | 14
            16    | 16
        """,
        "late": """
            value
            32
        """,
    },
)
