"""Nexmark's query 5, hot items: the auction with the most bids of the last ten minutes, every five minutes.

    SELECT auction, num FROM (SELECT auction, window_end, COUNT(*) AS num, ... FROM HOP(...) GROUP BY ...) WHERE num = max_num

auction 1    01 02       06 07
auction 2          04 05 08 09         12
           [00 ------------ 10)                  4 : 4 would be a draw, so auction 2 has one more at 09:30
                [05 ------------ 15)
                         [10 ------------ 20)
"""

from datetime import timedelta

import headrace as hr
from headrace.windows import Hopping
from tests.cases.harness.case import Case

MINUTE = timedelta(minutes=1)


def pipeline(bids: hr.Stream) -> hr.Stream:
    counts = (
        bids.key_by("auction").window(Hopping(10 * MINUTE, 5 * MINUTE)).aggregate(num=hr.count())
    )
    return counts.key_by("window_end").top("num", forever=True)


CASE = Case(
    inputs={
        "bids": """
            at: time | auction: int
            08:01    | 1
            08:02    | 1
            08:04    | 2
            08:05    | 2
            08:06    | 1
            08:07    | 1
            08:08    | 2
            08:09    | 2
            08:09:30 | 2
            08:12    | 2
        """,
    },
    pipeline=pipeline,
    expected="""
        auction | window_end | num
        1       | 08:05      | 2
        2       | 08:10      | 5
        2       | 08:15      | 5
        2       | 08:20      | 1
    """,
    any_order=True,
)
