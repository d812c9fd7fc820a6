"""For each row what all rows of its key so far make together, in order of arrival; a row without a key is a dead letter."""

import headrace as hr
from tests.cases.harness.case import Case


def pipeline(payments: hr.Stream) -> dict[str, hr.Stream]:
    totals = payments.key_by("card").reduce(
        lambda a, b: b._replace(amount=a.amount + b.amount), forever=True
    )
    return {"main": totals, "errors": totals.errors}


CASE = Case(
    inputs={
        "payments": """
            card: str | amount: int | shop: str
            a         | 5           | tea
            b         | 7           | cup
            a         | 10          | jam
            null      | 1           | tea
            a         | 20          | tea
            b         | 1           | tea
        """,
    },
    pipeline=pipeline,
    expected={
        "main": """
            card | amount | shop
            a    | 5      | tea
            a    | 15     | jam
            a    | 35     | tea
            b    | 7      | cup
            b    | 8      | tea
        """,
        "errors": """
            source   | offset
            payments | 3
        """,
    },
    ordered_per=("card",),
)
