"""SQL's aggregates over bids in windows of ten minutes: nulls do not count, a group of nulls has none.

Flink, GROUP BY with a tumbling window: COUNT(*), COUNT(price), SUM, MIN, MAX, AVG, COUNT(DISTINCT price).
"""

from datetime import timedelta
from typing import Any

import headrace as hr
from headrace.windows import Tumbling
from tests.cases.harness.case import Case

BIDS = """
    at: time | item: str | price: int | bidder: str
    08:01    | tea       | 4          | ada
    08:02    | tea       | null       | bob
    08:03    | tea       | 9          | cyd
    08:04    | cup       | null       | dan
    08:05    | tea       | 4          | erwin
    08:09:59 | tea       | 7          | fay
    08:10    | tea       | 100        | gustave
"""
TEN = Tumbling(timedelta(minutes=10))

NUMBERS = Case(
    inputs={"bids": BIDS},
    pipeline=lambda bids: (
        bids.key_by("item")
        .window(TEN)
        .aggregate(
            rows=hr.count(),
            prices=hr.count("price"),
            total=hr.sum("price"),
            least=hr.min("price"),
            most=hr.max("price"),
            mean=hr.avg("price"),
            kinds=hr.count_distinct("price"),
        )
    ),
    expected="""
        item | window_start | rows | prices | total | least | most | mean  | kinds
        tea  | 08:00        | 5    | 4      | 24    | 4     | 9    | 6.0   | 3
        cup  | 08:00        | 1    | 0      | null  | null  | null | null  | 0
        tea  | 08:10        | 1    | 1      | 100   | 100   | 100  | 100.0 | 1
    """,
    any_order=True,
)

#: Which row it was: of the greatest price, and the first and last by arrival.
ROWS = Case(
    inputs={"bids": BIDS},
    pipeline=lambda bids: (
        bids.key_by("item")
        .window(TEN)
        .aggregate(
            winner=hr.max_by("bidder", "price"),
            cheapest=hr.min_by("price", "at"),
            first=hr.first("bidder"),
            last=hr.last("bidder"),
        )
    ),
    expected="""
        item | window_start | winner | cheapest | first | last
        tea  | 08:00        | cyd    | 4        | ada   | fay
        cup  | 08:00        | null   | null     | dan   | dan
        tea  | 08:10        | gustave | 100     | gustave | gustave
    """,
)


class Longest(hr.AggregateFunction):
    """The length of the longest name."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, row: Any, longest: int) -> int:
        return max(longest, len(row.bidder))

    def merge(self, a: int, b: int) -> int:
        return max(a, b)

    def get_result(self, longest: int) -> int:
        return longest


OF_YOUR_OWN = Case(
    inputs={"bids": BIDS},
    pipeline=lambda bids: bids.key_by("item").window(TEN).aggregate(longest=Longest()),
    expected="""
        item | window_start | longest
        tea  | 08:00        | 5
        cup  | 08:00        | 3
        tea  | 08:10        | 7
    """,
    any_order=True,
)
