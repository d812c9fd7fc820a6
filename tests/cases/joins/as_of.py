"""Each trade with the quote that is nearest in time, at most five minutes away.

quotes        03        07    10        13 14                   30
trades   00        05    08        12         16   20 21
"""

from datetime import timedelta
from typing import Any

import headrace as hr
from tests.cases.harness.case import Case

STREAMS = {
    "trades": """
        at: time | symbol: str | lots: int
        09:00    | A           | 1
        09:05    | A           | 2
        09:08    | A           | 3
        09:12    | A           | 4
        09:16    | A           | 5
        09:20    | A           | 6
        09:13    | B           | 7
        09:21    | A           | 8
    """,
    "quotes": """
        at: time | symbol: str | price: int
        09:03    | A           | 103
        09:07    | A           | 107
        09:10    | A           | 110
        09:13    | A           | 113
        09:14    | A           | 114
        09:30    | A           | 130
    """,
}


def quoted(direction: Any, *rows: str, **how: Any) -> Case:
    def pipeline(trades: hr.Stream, quotes: hr.Stream) -> hr.Stream:
        return trades.join_asof(
            quotes, on="symbol", direction=direction, tolerance=timedelta(minutes=5), **how
        )

    return Case(
        inputs=STREAMS,
        pipeline=pipeline,
        expected="\n".join(["lots | price", *rows]),
        any_order=True,
    )


BACKWARD = quoted(
    "backward",
    "1 | null",
    "2 | 103",
    "3 | 107",
    "4 | 110",
    "5 | 114",
    "6 | null",
    "7 | null",
    "8 | null",
)
FORWARD = quoted("forward", "1 | 103", "2 | 107", "3 | 110", "4 | 113", how="inner")
# 09:05 is as near to 09:03 as to 09:07, and the earlier one wins.
NEAREST = quoted("nearest", "1 | 103", "2 | 103", "3 | 107", "4 | 113", "5 | 114", how="inner")
