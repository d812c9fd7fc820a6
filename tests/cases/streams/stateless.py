"""Steps without state: select, filter, map, flat_map and split; the rest of a split goes its own way."""

import headrace as hr
from tests.cases.harness.case import Case


def pipeline(orders: hr.Stream) -> dict[str, hr.Stream]:
    priced = orders.select("id", "country", total=hr.col("price") * hr.col("pieces"))
    parts = priced.filter(hr.col("total") > 0).split(
        home=hr.col("country") == "GB", large=hr.col("total") > 1_000
    )
    items = orders.flat_map(
        lambda row: ({"id": row.id, "piece": n} for n in range(row.pieces)),
        schema={"id": int, "piece": int},
    )
    return {"home": parts.home, "large": parts.large, "rest": parts.rest, "pieces": items}


CASE = Case(
    inputs={
        "orders": """
            id: int | country: str | price: int | pieces: int
            1       | GB           | 10         | 2
            2       | FR           | 2000       | 1
            3       | FR           | 5          | 1
            4       | GB           | 0          | 1
        """,
    },
    pipeline=pipeline,
    expected={
        "home": """
            id | total
            1  | 20
        """,
        "large": """
            id | total
            2  | 2000
        """,
        "rest": """
            id | total
            3  | 5
        """,
        "pieces": """
            id | piece
            1  | 0
            1  | 1
            2  | 0
            3  | 0
            4  | 0
        """,
    },
    any_order=True,
)
