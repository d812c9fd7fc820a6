"""The regular joins of Flink's page on joins: orders and products, inner, left, right and full, as tables that change.

    SELECT * FROM Orders [LEFT | RIGHT | FULL OUTER] JOIN Product ON Orders.product_id = Product.id

The page gives the queries; rows and answers are worked out by hand. Every row arrives in an epoch of its own.
"""

from __future__ import annotations

from typing import Any

import pytest

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import cut, run_local

ROWS = {"order_id": int, "product_id": int, "id": int, "name": str, "change": str}
#: (kind of change, order, name of the product)
Change = tuple[str, int | None, str | None]


class Changes(MemorySource):
    """Rows that may withdraw others."""

    carries_changes = True


def order(order_id: int, product_id: int | None, change: str = "+I") -> dict[str, Any]:
    return dict.fromkeys(ROWS) | {"order_id": order_id, "product_id": product_id, "change": change}


def product(id: int, name: str, change: str = "+I") -> dict[str, Any]:
    return dict.fromkeys(ROWS) | {"id": id, "name": name, "change": change}


def joined(arrivals: list[Any], how: str, **options: Any) -> list[list[Change]]:
    """What came out, epoch by epoch."""
    told: list[list[Change]] = []
    before: list[Change] = []
    for count in range(1, len(arrivals) + 1):
        now = _run(arrivals[:count], how, **options)
        assert now[: len(before)] == before
        told.append(now[len(before) :])
        before = now
    return told


def _run(arrivals: list[Any], how: str, *, changing: bool = False) -> list[Change]:
    env = hr.Environment("orders-and-products")
    source = (Changes if changing else MemorySource)(
        [entry for arrival in arrivals for entry in (*_listed(arrival), cut())], schema=ROWS
    )
    rows = env.from_source(source, uid="rows")
    kinds = ["change"] if changing else []
    orders = rows.filter(hr.col("order_id").is_not_null()).select("order_id", "product_id", *kinds)
    products = rows.filter(hr.col("id").is_not_null()).select("id", "name", *kinds)
    found = MemorySink()
    orders.join(
        products, left_on="product_id", right_on="id", how=how, forever=True, uid="join"
    ).sink_to(found, uid="found")
    run_local(env, shards=2)
    return [(row.get("change", "+I"), row["order_id"], row["name"]) for row in found.to_pylist()]


def _listed(arrival: Any) -> list[Any]:
    return arrival if isinstance(arrival, list) else [arrival]


#: Orders before and behind their product, two of one product, and products that nobody orders.
SHOP = [
    order(1, 10),
    product(10, "tea"),
    product(20, "cup"),
    order(2, 20),
    order(3, 10),
    product(30, "jam"),
    order(4, 40),
]
ANSWERS: dict[str, list[list[Change]]] = {
    "inner": [
        [],
        [("+I", 1, "tea")],
        [],
        [("+I", 2, "cup")],
        [("+I", 3, "tea")],
        [],
        [],
    ],
    "left": [
        [("+I", 1, None)],
        [("-D", 1, None), ("+I", 1, "tea")],
        [],
        [("+I", 2, "cup")],
        [("+I", 3, "tea")],
        [],
        [("+I", 4, None)],
    ],
    "right": [
        [],
        [("+I", 1, "tea")],
        [("+I", None, "cup")],
        [("-D", None, "cup"), ("+I", 2, "cup")],
        [("+I", 3, "tea")],
        [("+I", None, "jam")],
        [],
    ],
    "full": [
        [("+I", 1, None)],
        [("-D", 1, None), ("+I", 1, "tea")],
        [("+I", None, "cup")],
        [("-D", None, "cup"), ("+I", 2, "cup")],
        [("+I", 3, "tea")],
        [("+I", None, "jam")],
        [("+I", 4, None)],
    ],
}


@pytest.mark.parametrize("how", ANSWERS)
def test_orders_and_products(how: str) -> None:
    assert joined(SHOP, how) == ANSWERS[how]


#: A product is renamed, then taken off the shelves, then an order is cancelled.
EDITED = [
    order(1, 10),
    product(10, "tea"),
    product(10, "tea", "-U"),
    product(10, "green tea", "+U"),
    order(2, 10),
    product(10, "green tea", "-D"),
    order(1, 10, "-D"),
]
EDITED_ANSWERS: dict[str, list[list[Change]]] = {
    "inner": [
        [],
        [("+I", 1, "tea")],
        [("-U", 1, "tea")],
        [("+U", 1, "green tea")],
        [("+I", 2, "green tea")],
        [("-D", 1, "green tea"), ("-D", 2, "green tea")],
        [],
    ],
    "left": [
        [("+I", 1, None)],
        [("-D", 1, None), ("+I", 1, "tea")],
        [("-U", 1, "tea"), ("+I", 1, None)],
        [("-D", 1, None), ("+U", 1, "green tea")],
        [("+I", 2, "green tea")],
        [("-D", 1, "green tea"), ("-D", 2, "green tea"), ("+I", 1, None), ("+I", 2, None)],
        [("-D", 1, None)],
    ],
    "right": [
        [],
        [("+I", 1, "tea")],
        [("-U", 1, "tea")],
        [("+U", 1, "green tea")],
        [("+I", 2, "green tea")],
        [("-D", 1, "green tea"), ("-D", 2, "green tea")],
        [],
    ],
    "full": [
        [("+I", 1, None)],
        [("-D", 1, None), ("+I", 1, "tea")],
        [("-U", 1, "tea"), ("+I", 1, None)],
        [("-D", 1, None), ("+U", 1, "green tea")],
        [("+I", 2, "green tea")],
        [("-D", 1, "green tea"), ("-D", 2, "green tea"), ("+I", 1, None), ("+I", 2, None)],
        [("-D", 1, None)],
    ],
}


@pytest.mark.parametrize("how", EDITED_ANSWERS)
def test_tables_that_change(how: str) -> None:
    assert joined(EDITED, how, changing=True) == EDITED_ANSWERS[how]


def test_an_order_without_a_product_number_meets_none() -> None:
    rows = [order(1, None), product(10, "tea")]
    assert joined(rows, "inner") == [[], []]
    assert joined(rows, "full") == [[("+I", 1, None)], [("+I", None, "tea")]]


@pytest.mark.parametrize("how", ANSWERS)
def test_a_row_and_its_partner_of_one_epoch_are_a_pair_at_once(how: str) -> None:
    # Not alone, then withdrawn, then a pair.
    assert _run([[order(1, 10), product(10, "tea")]], how) == [("+I", 1, "tea")]
