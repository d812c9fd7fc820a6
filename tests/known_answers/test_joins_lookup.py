"""Flink's page on lookup joins: orders beside the customers of a table outside, as they are when the order comes.

customers       1 Ada GB N1        2 Blaise FR 75001        then 1 moves to        1 Ada CH 8001
orders                 10 of 1     11 of 2     12 of 3   |   13 of 1     14 of 2
                       GB          FR          nobody        CH          FR

What came before the change is not told again: the join looks once, when the row comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.lookups import Cache, LookupFunction
from headrace.testing import run_local


@dataclass
class Customer:
    name: str
    country: str
    zip: str


ORDERS = [(10, 50, 1), (11, 20, 2), (12, 10, 3), (13, 70, 1), (14, 30, 2)]
BEFORE = {1: Customer("Ada", "GB", "N1"), 2: Customer("Blaise", "FR", "75001")}
AFTER = {1: Customer("Ada", "CH", "8001")}


class Customers(LookupFunction[int, Customer]):
    """The table of a database, which is another one from order 13 on."""

    schema = Customer

    def __init__(self, cache: Cache | None) -> None:
        self.cache = cache
        self.table = dict(BEFORE)

    async def fetch(self, keys: Sequence[int]) -> Mapping[int, Customer]:
        return {key: self.table[key] for key in keys if key in self.table}


def answers(how: str, cache: Cache | None = None) -> list[tuple[Any, ...]]:
    """SELECT o.order_id, o.total, c.country, c.zip FROM Orders o JOIN Customers FOR SYSTEM_TIME AS OF o.proc_time c."""
    table = Customers(cache)

    def moves(order: Any) -> Any:
        if order.order_id == 13:
            table.table.update(AFTER)
        return order

    rows = [dict(zip(("order_id", "total", "customer_id"), order, strict=True)) for order in ORDERS]
    env = hr.Environment("orders", epochs=hr.Epochs(rows=1))
    orders = env.from_source(MemorySource(rows), uid="orders")
    told, sink = orders.map(moves, schema=orders.schema), MemorySink()
    joined = told.join_lookup(table, on="customer_id", how=how, uid="customers")
    joined.select("order_id", "total", "country", "zip").sink_to(sink, uid="out")
    run_local(env)
    return [tuple(row.values()) for row in sink.to_pylist()]


@pytest.mark.parametrize("how", ["inner", "left"])
def test_orders_beside_customers_as_they_are_then(how: str) -> None:
    unknown = [] if how == "inner" else [(12, 10, None, None)]
    assert answers(how) == [
        (10, 50, "GB", "N1"),
        (11, 20, "FR", "75001"),
        *unknown,
        (13, 70, "CH", "8001"),
        (14, 30, "FR", "75001"),
    ]


def test_what_is_in_the_cache_is_as_it_was() -> None:
    found = answers("inner", Cache(size=10))
    assert found[2] == (13, 70, "GB", "N1")
