"""A union goes by the slower of its streams: rows of the other are not late while the slow one stands still.

The fast stream has reached 08:30 and the slow one 08:05 when 4 arrives: nothing has fired, and it is in time. When 16 arrives
the slow one has reached 08:20: it is late.
"""

from datetime import timedelta

import headrace as hr
from headrace.windows import Tumbling
from tests.cases.harness.case import Case


def pipeline(fast: hr.Stream, slow: hr.Stream) -> dict[str, hr.Stream]:
    both = fast.union(slow).window_all(Tumbling(timedelta(minutes=10)))
    totals = both.aggregate(rows=hr.count(), total=hr.sum("value"))
    return {"main": totals, "late": totals.late}


CASE = Case(
    inputs={
        "fast": """
            at: time | value: int
            08:01    | 1
            08:31    | 2
            watermark 08:30
            ---
            08:09    | 4
            ---
            ---
            08:08    | 16
            ---
            08:40    | 64
        """,
        "slow": """
            at: time | value: int
            08:06    | 8
            watermark 08:05
            ---
            ---
            08:21    | 32
            watermark 08:20
            ---
            08:22    | 128
        """,
    },
    pipeline=pipeline,
    expected={
        "main": """
            window_start | window_end | rows | total
            08:00        | 08:10      | 3    | 13
            08:20        | 08:30      | 2    | 160
            08:30        | 08:40      | 1    | 2
            08:40        | 08:50      | 1    | 64
        """,
        "late": """
            value
            16
        """,
    },
)
