"""The scores of one team from the Beam model's walk-through, without its early firings; windows of two minutes.

Event time goes to the right, arrival downwards. `W` is where the watermark has come to.

    12:00       12:02       12:04       12:06       12:08
     5 |           |           |           |
       |     7     |           |           |
       W           |           |           |          [12:00, 12:02) is on time: 5
       |         3 |           |           |
       |           |   4       |           |
       |       8   |           |           |
       |           |           |    3      |
       |           |           W           |          7 + 3 + 8, and 4
     9   |         |           |           |          late: the first window is 5 + 9 in truth
       |           |           |        8  |
       |           |           |         1 |          3 + 8 + 1
"""

from datetime import timedelta

import headrace as hr
from headrace import triggers
from headrace.windows import Global, Session, Tumbling
from tests.cases.harness.case import Case

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
TWO = Tumbling(2 * MINUTE)
SCORES = """
    at: time | team: str | score: int
    12:00:26 | red       | 5
    12:02:25 | red       | 7
    watermark 12:02
    ---
    12:03:39 | red       | 3
    12:04:19 | red       | 4
    12:03:06 | red       | 8
    12:06:39 | red       | 3
    watermark 12:06
    ---
    12:01:26 | red       | 9
    12:07:26 | red       | 8
    12:07:46 | red       | 1
"""

ALL = Case(
    inputs={"scores": SCORES},
    pipeline=lambda scores: scores.key_by("team").window(Global()).aggregate(total=hr.sum("score")),
    expected="""
        pane    | firing | total
        on_time | 0      | 48
    """,
)


def strict(scores: hr.Stream) -> dict[str, hr.Stream]:
    totals = scores.key_by("team").window(TWO).aggregate(total=hr.sum("score"))
    return {"main": totals, "late": totals.late}


THE_NINE_IS_LATE = Case(
    inputs={"scores": SCORES},
    pipeline=strict,
    expected={
        "main": """
            window_end | pane    | firing | total
            12:02      | on_time | 0      | 5
            12:04      | on_time | 0      | 18
            12:06      | on_time | 0      | 4
            12:08      | on_time | 0      | 12
        """,
        "late": """
            score
            9
        """,
    },
)

THE_NINE_CORRECTS = Case(
    inputs={"scores": SCORES},
    pipeline=lambda scores: (
        scores.key_by("team").window(TWO).allowed_lateness(DAY).aggregate(total=hr.sum("score"))
    ),
    expected="""
        window_end | pane    | firing | total
        12:02      | on_time | 0      | 5
        12:02      | late    | 1      | 14
        12:04      | on_time | 0      | 18
        12:06      | on_time | 0      | 4
        12:08      | on_time | 0      | 12
    """,
)

EVERY_RECORD = Case(
    inputs={"scores": SCORES},
    pipeline=lambda scores: (
        scores.key_by("team")
        .window(TWO)
        .allowed_lateness(DAY)
        .trigger(triggers.count(1))
        .aggregate(total=hr.sum("score"))
    ),
    expected="""
        window_end | pane  | firing | total
        12:02      | early | 0      | 5
        12:02      | late  | 1      | 14
        12:04      | early | 0      | 7
        12:04      | early | 1      | 10
        12:04      | early | 2      | 18
        12:06      | early | 0      | 4
        12:08      | early | 0      | 3
        12:08      | early | 1      | 11
        12:08      | early | 2      | 12
    """,
)

#: 5 [00:26 .. 01:26)  and  7, 8, 3, 4 [02:25 .. 05:19)  have fired when 9 [01:26 .. 02:26) touches both.
SESSIONS = Case(
    inputs={"scores": SCORES},
    pipeline=lambda scores: (
        scores.key_by("team")
        .window(Session(MINUTE))
        .allowed_lateness(DAY)
        .aggregate(total=hr.sum("score"))
    ),
    expected="""
        window_start | window_end | pane    | firing | total
        12:00:26     | 12:01:26   | on_time | 0      | 5
        12:02:25     | 12:05:19   | on_time | 0      | 22
        12:00:26     | 12:05:19   | late    | 1      | 36
        12:06:39     | 12:08:46   | on_time | 0      | 12
    """,
)

SESSIONS_THAT_RETRACT = Case(
    inputs={"scores": SCORES},
    pipeline=lambda scores: (
        scores.key_by("team")
        .window(Session(MINUTE))
        .allowed_lateness(DAY)
        .retracting()
        .aggregate(total=hr.sum("score"))
    ),
    expected="""
        change | window_start | window_end | total
        +I     | 12:00:26     | 12:01:26   | 5
        +I     | 12:02:25     | 12:05:19   | 22
        -U     | 12:00:26     | 12:01:26   | 5
        -U     | 12:02:25     | 12:05:19   | 22
        +U     | 12:00:26     | 12:05:19   | 36
        +I     | 12:06:39     | 12:08:46   | 12
    """,
)
