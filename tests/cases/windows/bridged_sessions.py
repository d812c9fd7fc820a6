"""Sessions that a row from between them makes one, before and after they have fired.

OPEN    gap of five minutes         00 [-----) 05         08 [-----) 13     and then     04 [-----) 09    touches both
FIRED   lateness of ten             the first fired at W = 08:06, and is open again until W = 08:13
OLD     no lateness, W = 08:06      04 [-----) 09   is open: the row of 08:00 overlaps and is not late, that of 07:54 is
TOUCHING  gap of five minutes       00 [-----) 05 [-----) 10     one session, if the watermark lets the second row come in time
"""

from datetime import timedelta

import headrace as hr
from headrace.windows import Session
from tests.cases.harness.case import Case

MINUTE = timedelta(minutes=1)


def sessions(rows: hr.Stream, lateness: timedelta = timedelta(0)) -> dict[str, hr.Stream]:
    window = rows.key_by("key").window(Session(5 * MINUTE)).allowed_lateness(lateness)
    sums = window.aggregate(total=hr.sum("value"))
    return {"main": sums, "late": sums.late}


#: A row at 08:05 is no surprise for a watermark before 08:05, but the session that it touches has fired at that watermark.
TOUCHING = Case(
    inputs={
        "rows": """
            at: time | key: str | value: int
            08:00    | x        | 1
            08:05    | x        | 2
        """,
    },
    pipeline=lambda rows: sessions(rows)["main"],
    expected="""
        window_start | window_end | total
        08:00        | 08:10      | 3
    """,
    xfail="never: as in Flink, a session fires at the watermark just before its end, and a row at its end can still come",
)

OPEN = Case(
    inputs={
        "rows": """
            at: time | key: str | value: int
            08:00    | x        | 1
            08:08    | x        | 2
            08:04    | x        | 4
        """,
    },
    pipeline=sessions,
    expected={
        "main": """
            window_start | window_end | pane    | firing | total
            08:00        | 08:13      | on_time | 0      | 7
        """,
        "late": "value",
    },
    any_order=True,
)

FIRED = Case(
    inputs={
        "rows": """
            at: time | key: str | value: int
            08:00    | x        | 1
            08:08    | x        | 2
            watermark 08:06
            ---
            08:04    | x        | 4
        """,
    },
    pipeline=lambda rows: sessions(rows, 10 * MINUTE),
    expected={
        "main": """
            window_start | window_end | pane    | firing | total
            08:00        | 08:05      | on_time | 0      | 1
            08:00        | 08:13      | late    | 1      | 7
        """,
        "late": "value",
    },
)

OLD = Case(
    inputs={
        "rows": """
            at: time | key: str | value: int
            08:04    | x        | 1
            watermark 08:06
            ---
            08:00    | x        | 2
            07:54    | x        | 4
        """,
    },
    pipeline=sessions,
    expected={
        "main": """
            window_start | window_end | pane    | firing | total
            08:00        | 08:09      | on_time | 0      | 3
        """,
        "late": """
            value
            4
        """,
    },
)
