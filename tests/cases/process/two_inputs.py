"""Two streams in one function: orders and their payments meet in either order; after an hour an order is unpaid."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import headrace as hr
from tests.cases.harness.case import Case

HOUR = timedelta(hours=1)


class Matches(hr.KeyedCoProcessFunction):
    item: hr.state.Value[str]
    paid: hr.state.Value[int]

    def process_element1(self, order: Any, ctx: Any) -> Iterator[dict[str, Any]]:
        self.item.update(order.item)
        yield from self._match(ctx)
        ctx.timers.register_event_time(ctx.timestamp + HOUR)

    def process_element2(self, payment: Any, ctx: Any) -> Iterator[dict[str, Any]]:
        self.paid.update(payment.amount)
        yield from self._match(ctx)

    def on_timer(self, timestamp: datetime, ctx: Any) -> Iterator[dict[str, Any]]:
        if self.paid.value() is None:
            yield {"id": ctx.key, "item": self.item.value(), "amount": None}
        self.item.clear()
        self.paid.clear()

    def _match(self, ctx: Any) -> Iterator[dict[str, Any]]:
        item, amount = self.item.value(), self.paid.value()
        if item is not None and amount is not None:
            yield {"id": ctx.key, "item": item, "amount": amount}


CASE = Case(
    inputs={
        "orders": """
            at: time | id: int | item: str
            08:00    | 1       | tea
            08:01    | 2       | cup
            08:02    | 3       | jam
        """,
        "payments": """
            at: time | order: int | amount: int
            07:59    | 2          | 500
            08:30    | 1          | 300
            09:30    | 3          | 200
        """,
    },
    pipeline=lambda orders, payments: (
        orders.connect(payments)
        .key_by("id", "order")
        .process(Matches(), schema={"id": int, "item": str, "amount": int}, ordered=True)
    ),
    expected="""
        id | item | amount
        1  | tea  | 300
        2  | cup  | 500
        3  | jam  | null
    """,
    any_order=True,
)
