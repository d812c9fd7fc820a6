"""Every aggregate over the columns of `cases.SCHEMA`, for engines that go by rows."""

from __future__ import annotations

from typing import Any

from headrace import AggregateFunction
from headrace import aggregates as agg


class Joined(AggregateFunction):
    """The numbers as text, in the order in which they are added."""

    def create_accumulator(self) -> str:
        return ""

    def add(self, row: Any, accumulator: str) -> str:
        return f"{accumulator}{row.key}{row.number};"

    def merge(self, a: str, b: str) -> str:
        return a + b

    def get_result(self, accumulator: str) -> str:
        return accumulator


EACH = {
    "rows": agg.count(),
    "count": agg.count("number"),
    "sum": agg.sum("number"),
    "sum_float": agg.sum("amount"),
    "min": agg.min("amount"),
    "max": agg.max("amount"),
    "min_text": agg.min("text"),
    "max_at": agg.max("at"),
    "avg": agg.avg("number"),
    "first": agg.first("text"),
    "last": agg.last("number"),
    "min_by": agg.min_by("text", "amount"),
    "max_by": agg.max_by("number", "text"),
    "max_by_itself": agg.max_by("number", "number"),
    "max_by_float": agg.max_by("at", "amount"),
    "distinct": agg.count_distinct("amount"),
    "distinct_text": agg.count_distinct("text"),
    "variance": agg.variance("number"),
    "stddev": agg.stddev("number", ddof=0),
    "collect": agg.collect("text"),
    "function": agg.as_aggregate(Joined, "function"),
}
