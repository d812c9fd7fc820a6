"""Flink's pages on temporal joins: each order is converted at the rate that was valid at its time.

CONVERTED    rates arrive before, between and after the orders that they are for; Pounds have no rate yet
WAITS        an order is joined once, when the watermark has passed it; a rate that arrives later is late
AT_ITS_TIME  a rate holds from its own time on
PRICES       the changelog of products: 00:01 +I, 12:00 -U and +U, 18:00 -D
"""

import headrace as hr
from tests.cases.harness.case import Case

STREAMS = {
    "orders": """
        at: time | currency: str | amount: int
        10:15    | Euro          | 2
        10:52    | Euro          | 3
        10:30    | US Dollar     | 1
        10:32    | Yen           | 50
        11:04    | US Dollar     | 5
        11:30    | Pounds        | 7
        watermark 11:15
        ---
        10:00    | Euro          | 1
    """,
    "rates": """
        at: time | currency: str | rate: int
        09:00    | US Dollar     | 102
        09:00    | Euro          | 114
        09:00    | Yen           | 1
        11:15    | Euro          | 119
        10:45    | Euro          | 116
        watermark 11:15
        ---
        11:49    | Pounds        | 108
    """,
}
CONVERTED_ROWS = """
    at    | currency  | amount | rate
    10:15 | Euro      | 2      | 114
    10:30 | US Dollar | 1      | 102
    10:32 | Yen       | 50     | 1
    10:52 | Euro      | 3      | 116
    11:04 | US Dollar | 5      | 102
"""


def convert(orders: hr.Stream, rates: hr.Stream) -> dict[str, hr.Stream]:
    converted = orders.join_versioned(rates, on="currency", at=orders.time)
    return {"main": converted, "late": converted.late_left, "late_rates": converted.late_right}


CONVERTED = Case(
    inputs=STREAMS,
    pipeline=convert,
    expected={"main": CONVERTED_ROWS, "late": "at | amount\n10:00 | 1", "late_rates": "rate"},
)

LEFT = Case(
    inputs=STREAMS,
    pipeline=lambda orders, rates: orders.join_versioned(rates, on="currency", how="left"),
    expected=CONVERTED_ROWS + "11:30 | Pounds | 7 | null",
)

AT_ITS_TIME = Case(
    inputs={
        "orders": """
            at: time | currency: str | price: float
            12:00    | EUR           | 11.11
            12:06    | EUR           | 12.51
        """,
        "rates": """
            at: time | currency: str | rate: float
            12:00    | EUR           | 1.14
            12:06    | EUR           | 1.1
        """,
    },
    pipeline=lambda orders, rates: orders.join_versioned(rates, on="currency", at=orders.time),
    expected="""
        at    | price | rate
        12:00 | 11.11 | 1.14
        12:06 | 12.51 | 1.1
    """,
    any_order=True,
)

#: The order waits until no rate of 10:15 can follow: of the two of that time the last one counts.
WAITS = Case(
    inputs={
        "orders": """
            at: time | currency: str | amount: int
            10:15    | Euro          | 2
        """,
        "rates": """
            at: time | currency: str | rate: int
            09:00    | Euro          | 114
            watermark 10:15
            ---
            10:15    | Euro          | 115
            watermark 10:16
            ---
            10:15    | Euro          | 999
        """,
    },
    pipeline=convert,
    expected={
        "main": "at | amount | rate\n10:15 | 2 | 115",
        "late": "amount",
        "late_rates": "rate\n999",
    },
)

PRICES = Case(
    inputs={
        "asked": """
            at: time | product: str
            00:01    | p_001
            00:01    | p_002
            10:00    | p_001
            10:00    | p_002
            12:00    | p_001
            12:00    | p_002
            13:00    | p_001
            13:00    | p_002
            17:59    | p_001
            17:59    | p_002
            18:00    | p_001
            18:00    | p_002
            20:00    | p_001
            20:00    | p_002
        """,
        "products": """
            at: time | product: str | price: float | change: str
            00:01    | p_001        | 11.11        | +I
            00:02    | p_002        | 23.11        | +I
            12:00    | p_001        | 11.11        | -U
            12:00    | p_001        | 12.99        | +U
            12:00    | p_002        | 23.11        | -U
            12:00    | p_002        | 19.99        | +U
            18:00    | p_001        | 12.99        | -D
        """,
    },
    pipeline=lambda asked, products: asked.join_versioned(products, on="product", how="left"),
    expected="""
        at    | product | price
        00:01 | p_001   | 11.11
        00:01 | p_002   | null
        10:00 | p_001   | 11.11
        10:00 | p_002   | 23.11
        12:00 | p_001   | 12.99
        12:00 | p_002   | 19.99
        13:00 | p_001   | 12.99
        13:00 | p_002   | 19.99
        17:59 | p_001   | 12.99
        17:59 | p_002   | 19.99
        18:00 | p_001   | null
        18:00 | p_002   | 19.99
        20:00 | p_001   | null
        20:00 | p_002   | 19.99
    """,
)
