"""A window whose rows were all retracted has no result: how many users have how many clicks.

ada clicks three times: counts of 1 and 2 are retracted, so one user has three clicks, and no user has one or two.
"""

from datetime import timedelta

import headrace as hr
from headrace import triggers
from headrace.windows import Tumbling
from tests.cases.harness.case import Case

TEN = Tumbling(timedelta(minutes=10))


def pipeline(clicks: hr.Stream) -> hr.Stream:
    counts = (
        clicks.key_by("user")
        .window(TEN)
        .trigger(triggers.count(1))
        .retracting()
        .aggregate(clicks=hr.count())
    )
    return counts.key_by("clicks").window(TEN).aggregate(users=hr.count())


CASE = Case(
    inputs={
        "clicks": """
            at: time | user: str
            08:01    | ada
            08:02    | ada
            08:03    | ada
        """,
    },
    pipeline=pipeline,
    expected="""
        clicks | users
        3      | 1
    """,
    xfail="ours: a window whose rows were all retracted fires with a count of 0",
)
