"""State of a key: the visits of each user, the pages seen, and the longest time between two of them; late rows go aside."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import headrace as hr
from tests.cases.harness.case import Case


class Visits(hr.KeyedProcessFunction):
    seen: hr.state.Value[int] = hr.state.FOREVER
    pages: hr.state.Map[str, int] = hr.state.FOREVER
    last: hr.state.Value[datetime] = hr.state.FOREVER
    longest: hr.state.Reducing[timedelta] = hr.state.keep(reduce=max, ttl=None)

    def process_element(self, click: Any, ctx: Any) -> Iterator[dict[str, Any]]:
        self.seen.update((self.seen.value() or 0) + 1)
        self.pages.put(click.page, self.pages.get(click.page, 0) + 1)
        before = self.last.value()
        if before is not None:
            self.longest.add(ctx.timestamp - before)
        self.last.update(ctx.timestamp)
        yield {
            "user": ctx.key,
            "visits": self.seen.value(),
            "pages": len(self.pages),
            "longest": self.longest.get(),
        }


SCHEMA = {"user": str, "visits": int, "pages": int, "longest": timedelta}


def pipeline(clicks: hr.Stream) -> dict[str, hr.Stream]:
    visits = clicks.key_by("user").process(Visits(), schema=SCHEMA, ordered=True)
    return {"main": visits, "late": visits.late}


CASE = Case(
    inputs={
        "clicks": """
            at: time | user: str | page: str
            08:02    | ada       | /tea
            08:00    | ada       | /
            08:01    | bob       | /
            watermark 08:03
            ---
            08:09    | ada       | /
            08:02    | bob       | /cup
            08:05    | bob       | /cup
        """,
    },
    pipeline=pipeline,
    expected={
        "main": """
            user | visits | pages | longest
            ada  | 1      | 1     | null
            ada  | 2      | 2     | 2m
            ada  | 3      | 2     | 7m
            bob  | 1      | 1     | null
            bob  | 2      | 2     | 4m
        """,
        "late": """
            at    | user
            08:02 | bob
        """,
    },
    ordered_per=("user",),
)
