"""Keys: a row with a null in any of its key columns is a dead letter; "" is a value, and -0.0 is the key 0.0."""

import headrace as hr
from headrace.windows import Global
from tests.cases.harness.case import Case


def by_both(rows: hr.Stream) -> dict[str, hr.Stream]:
    counts = rows.key_by("shop", "item").window(Global()).aggregate(rows=hr.count())
    return {"main": counts, "errors": counts.errors}


TWO_COLUMNS = Case(
    inputs={
        "rows": """
            shop: str | item: str
            north     | tea
            north     | null
            null      | tea
            null      | null
            north     | tea
                      | tea
        """,
    },
    pipeline=by_both,
    expected={
        "main": """
            shop  | item | rows
            north | tea  | 2
                  | tea  | 1
        """,
        "errors": """
            source | offset
            rows   | 1
            rows   | 2
            rows   | 3
        """,
    },
)

#: With a second column there are keys of every shard.
ZEROS = Case(
    inputs={
        "rows": """
            price: float | n: int
            0.0          | 1
            -0.0         | 1
            -0.0         | 2
            0.0          | 2
            0.0          | 3
            -0.0         | 3
            0.0          | 4
            -0.0         | 4
            nan          | 5
            nan          | 5
        """,
    },
    pipeline=lambda rows: (
        rows.key_by("price", "n").window(Global()).aggregate(rows=hr.count()).select("n", "rows")
    ),
    expected="""
        n | rows
        1 | 2
        2 | 2
        3 | 2
        4 | 2
        5 | 2
    """,
    any_order=True,
)
