"""Flink's page on lookup joins: orders and the customers of a table outside; customer 3 is unknown, and one order has none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import headrace as hr
from headrace.lookups import LookupFunction
from tests.cases.harness.case import Case


@dataclass
class Customer:
    name: str
    country: str


class Customers(LookupFunction[int, Customer]):
    schema = Customer

    async def fetch(self, keys: Sequence[int]) -> Mapping[int, Customer]:
        table = {1: Customer("Ada", "GB"), 2: Customer("Blaise", "FR")}
        return {key: table[key] for key in keys if key in table}


ORDERS = """
    order: int | customer: int
    10         | 1
    11         | 2
    12         | 3
    13         | 1
    14         | null
"""


def looked_up(how: Any, *rows: str) -> Case:
    def pipeline(orders: hr.Stream) -> hr.Stream:
        return orders.join_lookup(Customers(), on="customer", how=how)

    return Case(
        inputs={"orders": ORDERS},
        pipeline=pipeline,
        expected="\n".join(["order | name | country", *rows]),
        any_order=True,
    )


FOUND = ("10 | Ada | GB", "11 | Blaise | FR", "13 | Ada | GB")
INNER = looked_up("inner", *FOUND)
LEFT = looked_up("left", *FOUND, "12 | null | null", "14 | null | null")
