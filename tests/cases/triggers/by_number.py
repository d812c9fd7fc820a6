"""Triggers that count rows, alone and composed: seven rows worth 1, 2, 4 ... 64, so a sum says which are in it.

    row     1     2     4     8     16    32    64      end of the window
    at      00    01    02    03    04    05    06      10

Where epochs are cut makes no difference: a trigger counts row by row within an epoch too.
"""

from datetime import timedelta

import headrace as hr
from headrace.triggers import (
    Trigger,
    after_each,
    all_of,
    any_of,
    count,
    early,
    end_of_input,
    event_time,
    never,
    purging,
    repeatedly,
)
from headrace.windows import Global, Session, Tumbling, WindowAssigner
from tests.cases.harness.case import Case

MINUTE = timedelta(minutes=1)
TEN = Tumbling(10 * MINUTE)
SEVEN = """
    at: time | key: str | value: int
    08:00    | x        | 1
    08:01    | x        | 2
    08:02    | x        | 4
    08:03    | x        | 8
    08:04    | x        | 16
    08:05    | x        | 32
    08:06    | x        | 64
"""


def fires(
    trigger: Trigger,
    *firings: str,
    window: WindowAssigner = TEN,
    rows: str = SEVEN,
    how: str = "accumulating",
) -> Case:
    """Each firing is "pane | number | sum"."""

    def pipeline(rows: hr.Stream) -> hr.Stream:
        windowed = rows.key_by("key").window(window).trigger(trigger)
        return getattr(windowed, how)().aggregate(total=hr.sum("value"))

    return Case(
        inputs={"rows": rows},
        pipeline=pipeline,
        expected="\n".join(["pane | firing | total", *firings]),
    )


# At every third row over all so far; the end is no reason.
COUNT = fires(count(3), "early | 0 | 7", "early | 1 | 63")
PURGING_COUNT = fires(purging(count(3)), "early | 0 | 7", "early | 1 | 56")
NEVER = fires(never())
EVENT_TIME = fires(event_time(), "on_time | 0 | 127")
PURGING_EVENT_TIME = fires(purging(event_time()), "on_time | 0 | 127")

# The end too, and then everything starts anew.
COUNT_OR_END = fires(
    any_of(count(3), event_time()), "early | 0 | 7", "early | 1 | 63", "on_time | 2 | 127"
)
DISCARDING = fires(
    any_of(count(3), event_time()),
    "early | 0 | 7",
    "early | 1 | 56",
    "on_time | 2 | 64",
    how="discarding",
)
# Only the count of three empties the window.
COUNT_PURGES_END_DOES_NOT = fires(
    any_of(purging(count(3)), event_time()),
    "early | 0 | 7",
    "early | 1 | 56",
    "on_time | 2 | 64",
)
# Whichever is first: a firing of one makes the other count from the start.
TWO_OR_THREE = fires(
    any_of(count(2), count(3)), "early | 0 | 3", "early | 1 | 15", "early | 2 | 63"
)
COUNT_AND_END = fires(all_of(count(3), event_time()), "on_time | 0 | 127")
TOO_MANY_AND_END = fires(all_of(count(9), event_time()))
# At row 4 both have fired (two at row 2); again at row 32.
TWO_AND_THREE = fires(all_of(count(2), count(3)), "early | 0 | 7", "early | 1 | 63")

# Row 1, then two more, then never again.
ONE_THEN_TWO = fires(after_each(count(1), count(2)), "early | 0 | 1", "early | 1 | 7")
TWO_THEN_END = fires(after_each(count(2), event_time()), "early | 0 | 3", "on_time | 1 | 127")
# 2, 4, and 5 for the last time, which ends the first part.
UNTIL_FIVE_THEN_END = fires(
    after_each(count(2).or_finally(count(5)), event_time()),
    "early | 0 | 3",
    "early | 1 | 15",
    "early | 2 | 31",
    "on_time | 3 | 127",
)
ONE_AND_TWO_REPEATEDLY = fires(
    repeatedly(after_each(count(1), count(2))),
    "early | 0 | 1",
    "early | 1 | 7",
    "early | 2 | 15",
    "early | 3 | 63",
    "early | 4 | 127",
)
UNTIL_FIVE = fires(
    count(2).or_finally(count(5)), "early | 0 | 3", "early | 1 | 15", "early | 2 | 31"
)
UNTIL_THREE_REPEATEDLY = fires(
    repeatedly(count(2).or_finally(count(3))),
    "early | 0 | 3",
    "early | 1 | 7",
    "early | 2 | 31",
    "early | 3 | 63",
)
UNTIL_THE_END = fires(count(4).or_finally(event_time()), "early | 0 | 15", "on_time | 1 | 127")
EARLY = fires(early(count=3), "early | 0 | 7", "early | 1 | 63", "on_time | 2 | 127")

GLOBAL_COUNT = fires(
    purging(count(2)), "early | 0 | 3", "early | 1 | 12", "early | 2 | 48", window=Global()
)
END_OF_INPUT = fires(end_of_input(), "on_time | 0 | 127", window=Global())
# 08:00:00 and 08:01:30 are two sessions of one row each; 08:00:50 joins them and is the third.
MERGED_SESSIONS = fires(
    count(3),
    "early | 0 | 7",
    window=Session(MINUTE),
    rows="""
        at: time | key: str | value: int
        08:00    | x        | 1
        08:01:30 | x        | 4
        08:00:50 | x        | 2
    """,
)
