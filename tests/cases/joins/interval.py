"""Flink's pages on interval joins: the streams of their picture, and orders that are shipped within four hours.

between(-2 ms, +1 ms)         green    0 1         6 7
                              orange   0   2 3 4 5   7          4 sees 2 ... 5, where nothing is
                                       |   |-|-|---- sees 0, 1, 2, 3: (2, 0), (2, 1)
"""

from datetime import datetime, timedelta
from typing import Any

import headrace as hr
from tests.cases.harness.case import Case

MS, HOUR = timedelta(milliseconds=1), timedelta(hours=1)
COLOURS = {
    "orange": """
        at: time     | key: str | ms: int
        08:00:00.000 | x        | 0
        08:00:00.002 | x        | 2
        08:00:00.003 | x        | 3
        08:00:00.004 | x        | 4
        08:00:00.005 | x        | 5
        08:00:00.007 | x        | 7
    """,
    "green": """
        at: time     | key: str | ms: int
        08:00:00.000 | x        | 0
        08:00:00.001 | x        | 1
        08:00:00.006 | x        | 6
        08:00:00.007 | x        | 7
    """,
}


def near(orange: hr.Stream, green: hr.Stream, **how: Any) -> hr.Stream:
    pair = orange.key_by("key").interval_join(green.key_by("key"))
    return pair.between(-2 * MS, MS, **how)


PICTURE = Case(
    inputs=COLOURS,
    pipeline=near,
    expected="""
        ms | ms_right
        0  | 0
        0  | 1
        2  | 0
        2  | 1
        3  | 1
        5  | 6
        7  | 6
        7  | 7
    """,
    any_order=True,
)


def with_times(joined: hr.Stream) -> hr.Stream:
    """The timestamps of the results as a column."""
    return joined.process(
        lambda row, ctx: [{"ms": row.ms, "ms_right": row.ms_right, "time": ctx.timestamp}],
        schema={"ms": int, "ms_right": int, "time": datetime},
    )


#: A pair has the later time of the two. That 4 sees nothing is certain a millisecond later, when no green one can follow.
TIMES = Case(
    inputs=COLOURS,
    pipeline=lambda orange, green: with_times(near(orange, green, how="left")),
    expected="""
        ms | ms_right | time
        0  | 0        | 08:00
        0  | 1        | 08:00:00.001
        2  | 0        | 08:00:00.002
        2  | 1        | 08:00:00.002
        3  | 1        | 08:00:00.003
        4  | null     | 08:00:00.005
        5  | 6        | 08:00:00.006
        7  | 6        | 08:00:00.007
        7  | 7        | 08:00:00.007
    """,
    any_order=True,
)

#: .lowerBoundExclusive().upperBoundExclusive(): one millisecond before, and the same one.
WITHOUT_ENDS = Case(
    inputs=COLOURS,
    pipeline=lambda orange, green: near(
        orange, green, lower_inclusive=False, upper_inclusive=False
    ),
    expected="""
        ms | ms_right
        0  | 0
        2  | 1
        7  | 6
        7  | 7
    """,
    any_order=True,
)


def shipped(orders: hr.Stream, shipments: hr.Stream, how: Any) -> hr.Stream:
    """WHERE o.id = s.order_id AND o.order_time BETWEEN s.ship_time - INTERVAL '4' HOUR AND s.ship_time."""
    return orders.interval_join(shipments, on="id").between(timedelta(0), 4 * HOUR, how=how)


SHOP = {
    "orders": """
        at: time | id: int
        10:00    | 1
        10:02    | 2
        10:03    | 3
        10:05    | 4
    """,
    "shipments": """
        at: time | id: int
        11:00    | 1
        11:30    | 4
        12:00    | 3
        17:00    | 2
    """,
}
SHIPPED = """
    id | at    | at_right
    1  | 10:00 | 11:00
    3  | 10:03 | 12:00
    4  | 10:05 | 11:30
"""
ORDER_ALONE, SHIPMENT_ALONE = "2 | 10:02 | null\n", "2 | null | 17:00\n"

INNER = Case(
    inputs=SHOP,
    pipeline=lambda orders, shipments: shipped(orders, shipments, "inner"),
    expected=SHIPPED,
    any_order=True,
)
LEFT = Case(
    inputs=SHOP,
    pipeline=lambda orders, shipments: shipped(orders, shipments, "left"),
    expected=SHIPPED + ORDER_ALONE,
    any_order=True,
)
RIGHT = Case(
    inputs=SHOP,
    pipeline=lambda orders, shipments: shipped(orders, shipments, "right"),
    expected=SHIPPED + SHIPMENT_ALONE,
    any_order=True,
)
#: Order 2 is certain to be alone four hours after it, shipment 2 at once.
WHEN_ALONE = Case(
    inputs=SHOP,
    pipeline=lambda orders, shipments: shipped(orders, shipments, "full").process(
        lambda row, ctx: [{"at": row.at, "time": ctx.timestamp}],
        schema={"at": datetime, "time": datetime},
    ),
    expected="""
        at    | time
        10:00 | 11:00
        10:02 | 14:02
        10:03 | 12:00
        10:05 | 11:30
        null  | 17:00
    """,
    any_order=True,
)
FULL = Case(
    inputs=SHOP,
    pipeline=lambda orders, shipments: shipped(orders, shipments, "full"),
    expected=SHIPPED + ORDER_ALONE + SHIPMENT_ALONE,
    any_order=True,
)
