"""Regular joins: orders and products as tables that change. What is shown adds up to the join of the tables.

    SELECT * FROM orders [LEFT | RIGHT | FULL OUTER] JOIN products ON orders.product = products.id

Orders arrive before and after their product, there are two of one product, and products without an order.
"""

from typing import Any

from tests.cases.harness.case import Case

SHOP = {
    "orders": """
        number: int | product: int
        1           | 10
        2           | 20
        3           | 10
        4           | 40
        5           | null
    """,
    "products": """
        id: int | name: str
        10      | tea
        20      | cup
        30      | jam
    """,
}
#: A product is renamed, then taken off the shelves, then an order is cancelled.
EDITED = {
    "orders": """
        number: int | product: int | change: str
        1           | 10           | +I
        2           | 10           | +I
        3           | 20           | +I
        1           | 10           | -D
    """,
    "products": """
        id: int | name: str | change: str
        10      | tea       | +I
        20      | cup       | +I
        10      | tea       | -U
        10      | green tea | +U
        20      | cup       | -D
    """,
}


def joined(inputs: dict[str, str], how: Any, *rows: str) -> Case:
    columns = "number" if how in ("semi", "anti") else "number | name"
    return Case(
        inputs=inputs,
        pipeline=lambda orders, products: orders.join(
            products, left_on="product", right_on="id", how=how, forever=True
        ),
        expected="\n".join([columns, *rows]),
        any_order="change" not in inputs["orders"],
    )


PAIRS = ("1 | tea", "2 | cup", "3 | tea")
ORDERS_ALONE = ("4 | null", "5 | null")
INNER = joined(SHOP, "inner", *PAIRS)
LEFT = joined(SHOP, "left", *PAIRS, *ORDERS_ALONE)
RIGHT = joined(SHOP, "right", *PAIRS, "null | jam")
FULL = joined(SHOP, "full", *PAIRS, *ORDERS_ALONE, "null | jam")
SEMI = joined(SHOP, "semi", "1", "2", "3")
ANTI = joined(SHOP, "anti", "4", "5")

EDITED_INNER = joined(EDITED, "inner", "2 | green tea")
EDITED_LEFT = joined(EDITED, "left", "2 | green tea", "3 | null")
EDITED_RIGHT = joined(EDITED, "right", "2 | green tea")
EDITED_FULL = joined(EDITED, "full", "2 | green tea", "3 | null")
EDITED_ANTI = joined(EDITED, "anti", "3")
