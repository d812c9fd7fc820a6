"""Windows by a class of the user: shifts of eight hours, and every row before noon also in a window of the morning.

[00, 08) [08, 16) and [00, 12): a row at 07:59 is in two of them, one at 12:00 in one.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import headrace as hr
from headrace.windows import WindowAssigner
from tests.cases.harness.case import Case

HOUR = timedelta(hours=1)


class Shifts(WindowAssigner):
    def assign(self, row: Any, timestamp: datetime) -> Iterator[tuple[datetime, datetime]]:
        midnight = timestamp.replace(hour=0, minute=0, second=0, microsecond=0)
        start = midnight + timestamp.hour // 8 * 8 * HOUR
        yield start, start + 8 * HOUR
        if timestamp.hour < 12:
            yield midnight, midnight + 12 * HOUR


def pipeline(rows: hr.Stream) -> dict[str, hr.Stream]:
    sums = rows.key_by("key").window(Shifts()).aggregate(total=hr.sum("value"))
    return {"main": sums, "late": sums.late}


CASE = Case(
    inputs={
        "rows": """
            at: time | key: str | value: int
            07:59    | x        | 1
            08:00    | x        | 2
            12:00    | x        | 4
            watermark 08:00
            ---
            07:58    | x        | 8
        """,
    },
    pipeline=pipeline,
    expected={
        "main": """
            window_start | window_end | pane    | firing | total
            00:00        | 08:00      | on_time | 0      | 1
            00:00        | 12:00      | on_time | 0      | 11
            08:00        | 16:00      | on_time | 0      | 6
        """,
        "late": "value",
    },
)
