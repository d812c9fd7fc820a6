"""State with a time to live of five minutes of event time: a row exactly that much later still sees it, a microsecond later not.

a   08:00   08:05                      sees 08:00
b   08:00   08:05:00.000001            sees nothing
c   08:00   08:04   08:08              each row is a touch, so the second one is seen four minutes later
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import headrace as hr
from tests.cases.harness.case import Case


class Remembers(hr.KeyedProcessFunction):
    last: hr.state.Value[datetime] = hr.state.TTL(timedelta(minutes=5))

    def process_element(self, row: Any, ctx: Any) -> Iterator[dict[str, Any]]:
        yield {"key": ctx.key, "at": ctx.timestamp, "saw": self.last.value()}
        self.last.update(ctx.timestamp)


CASE = Case(
    inputs={
        "rows": """
            at: time        | key: str
            08:00           | a
            08:00           | b
            08:00           | c
            08:04           | c
            08:05           | a
            08:05:00.000001 | b
            08:08           | c
            08:30           | d
        """,
    },
    pipeline=lambda rows: rows.key_by("key").process(
        Remembers(), schema={"key": str, "at": datetime, "saw": datetime}, ordered=True
    ),
    expected="""
        key | at              | saw
        a   | 08:00           | null
        a   | 08:05           | 08:00
        b   | 08:00           | null
        b   | 08:05:00.000001 | null
        c   | 08:00           | null
        c   | 08:04           | 08:00
        c   | 08:08           | 08:04
        d   | 08:30           | null
    """,
    ordered_per=("key",),
    any_order=True,
)
