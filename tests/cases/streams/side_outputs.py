"""One step, several outputs: usual payments, large ones, odd ones, and those on which the code fails."""

from collections.abc import Iterator
from typing import Any

import headrace as hr
from tests.cases.harness.case import Case

PAID = {"card": str, "amount": int}


class Sort(hr.ProcessFunction):
    large = hr.OutputTag("large", PAID)
    odd = hr.OutputTag("odd", {"card": str, "why": str})

    def process_element(self, payment: Any, ctx: Any) -> Iterator[Any]:
        paid = {"card": payment.card, "amount": payment.amount}
        if payment.amount > 1_000:
            yield self.large, paid
        elif 100 // payment.amount < 0:
            ctx.output(self.odd, {"card": payment.card, "why": "negative"})
        else:
            yield paid


def pipeline(payments: hr.Stream) -> dict[str, hr.Stream]:
    usual = payments.process(Sort(), schema=PAID, on_error="dead_letter")
    return {
        "usual": usual,
        "large": usual.side_output(Sort.large),
        "odd": usual.side_output(Sort.odd),
        "errors": usual.errors,
    }


CASE = Case(
    inputs={
        "payments": """
            card: str | amount: int
            a         | 5
            a         | 5000
            b         | -1
            c         | 0
            b         | 70
        """,
    },
    pipeline=pipeline,
    expected={
        "usual": """
            card | amount
            a    | 5
            b    | 70
        """,
        "large": """
            card | amount
            a    | 5000
        """,
        "odd": """
            card | why
            b    | negative
        """,
        "errors": """
            source   | offset
            payments | 3
        """,
    },
)
