"""The window of everything fires when the input ends, by key and for all rows."""

import headrace as hr
from headrace.windows import Global
from tests.cases.harness.case import Case

ROWS = """
    at: time | key: str | value: int
    08:01    | a        | 1
    08:02    | b        | 2
    08:03    | a        | 4
"""

BY_KEY = Case(
    inputs={"rows": ROWS},
    pipeline=lambda rows: rows.key_by("key").window(Global()).aggregate(total=hr.sum("value")),
    expected="""
        key | pane    | firing | total
        a   | on_time | 0      | 5
        b   | on_time | 0      | 2
    """,
    any_order=True,
)

OF_ALL = Case(
    inputs={"rows": ROWS},
    pipeline=lambda rows: rows.window_all(Global()).aggregate(total=hr.sum("value")),
    expected="""
        pane    | firing | total
        on_time | 0      | 7
    """,
    any_order=True,
)
