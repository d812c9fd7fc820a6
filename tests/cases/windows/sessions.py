"""Sessions of Flink's page on window functions: five minutes without a bid end one.

A    06 07 08 |-- 5 min --) 13      B    09 |-- 5 min --) 14    17 |-- 5 min --) 22
all  06 07 08 09 |-- 5 min --) 14                               17 |-- 5 min --) 22
"""

from datetime import timedelta

import headrace as hr
from headrace.windows import Session
from tests.cases.harness.case import Case

GAP = timedelta(minutes=5)
BIDS = """
    at: time | item: str | price: int
    08:07    | A         | 4
    08:06    | A         | 2
    08:09    | B         | 5
    08:08    | A         | 3
    08:17    | B         | 1
"""

BY_ITEM = Case(
    inputs={"bids": BIDS},
    pipeline=lambda bids: bids.key_by("item").window(Session(GAP)).aggregate(total=hr.sum("price")),
    expected="""
        item | window_start | window_end | pane    | firing | total
        A    | 08:06        | 08:13      | on_time | 0      | 9
        B    | 08:09        | 08:14      | on_time | 0      | 5
        B    | 08:17        | 08:22      | on_time | 0      | 1
    """,
    any_order=True,
)

OF_ALL_ITEMS = Case(
    inputs={"bids": BIDS},
    pipeline=lambda bids: bids.window_all(Session(GAP)).aggregate(total=hr.sum("price")),
    expected="""
        window_start | window_end | total
        08:06        | 08:14      | 14
        08:17        | 08:22      | 1
    """,
    any_order=True,
)
