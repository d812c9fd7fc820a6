"""Sessions whose rows each say how long they keep their session open; a row without a gap is a dead letter.

1   00 [-- 10 min -------) 10
2        02 [-1-) 03                 inside: the end stays at 10
4                        10 [-2-) 12    touches
8                                     13 [-1-) 14
"""

import headrace as hr
from headrace.windows import Session
from tests.cases.harness.case import Case


def pipeline(rows: hr.Stream) -> dict[str, hr.Stream]:
    sums = rows.key_by("key").window(Session.dynamic("gap")).aggregate(total=hr.sum("value"))
    return {"main": sums, "errors": sums.errors}


CASE = Case(
    inputs={
        "rows": """
            at: time | key: str | value: int | gap: duration
            08:10    | x        | 4          | 2m
            08:13    | x        | 8          | 1m
            08:00    | x        | 1          | 10m
            08:02    | x        | 2          | 1m
            08:04    | y        | 16         | null
            08:05    | y        | 32         | 0s
        """,
    },
    pipeline=pipeline,
    expected={
        "main": """
            key | window_start | window_end | pane    | firing | total
            x   | 08:00        | 08:12      | on_time | 0      | 7
            x   | 08:13        | 08:14      | on_time | 0      | 8
        """,
        "errors": """
            source | offset
            rows   | 4
            rows   | 5
        """,
    },
)
