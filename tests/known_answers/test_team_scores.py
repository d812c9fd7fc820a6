"""The walk-through of the Beam model: the scores of one team, shown early, on time and late.

Event time goes to the right, the clock downwards. Windows of two minutes; `W` is where the watermark has come to.

    clock       12:00       12:02       12:04       12:06       12:08   event time
    12:04:59     5 |           |           |           |
    12:05:39       |     7     |           |           |
    12:06:00       W           |           |           |          [12:00, 12:02) is on time: 5
    12:06:13       |         3 |           |           |
    12:06:39       |           |   4       |           |
    12:07:06       |       8   |           |           |
    12:07:19       |           |           |    3      |
    12:07:30       |           W           |           |          [12:02, 12:04) is on time: 7 + 3 + 8
    12:07:40       |           |           W           |          [12:04, 12:06) is on time: 4
    12:08:19   9   |           |           |           |          late: the first window is 5 + 9 in truth
    12:08:39       |           |           |        8  |
    12:09:00       |           |           |         1 |
    12:09:30       |           |           |           W          [12:06, 12:08) is on time: 3 + 8 + 1

Whoever waits for the watermark sees 5, 18, 4, 12; the truth is 14, 18, 4, 12, and 48 in all.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import headrace as hr
from headrace.testing.epochs import StepEpoch
from headrace.triggers import Trigger, TriggerResult
from headrace.windows import Tumbling
from tests.known_answers.timeline import at, clock_time, end, row, story

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
TWO = Tumbling(2 * MINUTE)


def scores(*, six: bool = False, idle: tuple[str, ...] = ()) -> list[StepEpoch]:
    """The story of the drawing; `six`: one more row at 12:00:53, read with the 4; `idle`: epochs without rows."""
    extra = [row("12:00:53", 6)] if six else []
    epochs = [
        at("12:04:59", None, row("12:00:26", 5)),
        at("12:05:39", None, row("12:02:26", 7)),
        at("12:06:00", "12:02:00"),
        at("12:06:13", None, row("12:03:39", 3)),
        at("12:06:39", None, row("12:04:19", 4), *extra),
        at("12:07:06", None, row("12:03:06", 8)),
        at("12:07:19", None, row("12:06:39", 3)),
        at("12:07:30", "12:04:00"),
        at("12:07:40", "12:06:00"),
        at("12:08:19", None, row("12:01:26", 9)),
        at("12:08:39", None, row("12:07:26", 8)),
        at("12:09:00", None, row("12:07:46", 1)),
        at("12:09:30", "12:08:00"),
        *(at(clock, None) for clock in idle),
    ]
    return story(*sorted(epochs, key=lambda epoch: epoch.clock), end())


def panes(rows: list[dict[str, Any]]) -> dict[str, list[tuple[Any, ...]]]:
    """The end of a window -> its firings in order: (pane, sum), with the change if there is one."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    order = {"-U": 0, "+U": 1, "+I": 1}
    for r in sorted(
        rows, key=lambda r: (r["firing"] + (r.get("change") == "-U"), order[r.get("change", "+I")])
    ):
        change = (r["change"],) if "change" in r else ()
        found.setdefault(clock_time(r["window_end"]), []).append((*change, r["pane"], r["t"]))
    return found


def summed(
    window: Any, trigger: Any = None, lateness: timedelta = DAY, how: str = "accumulating"
) -> Any:
    def build(s: Any) -> Any:
        made = s.key_by("key").window(window).allowed_lateness(lateness)
        made = made if trigger is None else made.trigger(trigger)
        return getattr(made, how)().aggregate(t=hr.sum("value"))

    return build


#: One minute of the clock, aligned: 12:05, 12:06, ... The clock passes 12:06 with the watermark of 12:02, 12:07 with
#: the 8, 12:08 with the 9 and 12:09 with the 1; only what changed is shown.
ALIGNED = {
    "12:02": [("early", 5), ("on_time", 5), ("late", 14)],
    "12:04": [("early", 7), ("early", 10), ("on_time", 18)],
    "12:06": [("early", 4), ("on_time", 4)],
    "12:08": [("early", 3), ("early", 11), ("on_time", 12)],
}


def aligned() -> Any:
    return hr.triggers.early(every=MINUTE).late(count=1)


def test_early_on_time_and_late(run: Any) -> None:
    assert panes(run(summed(TWO, aligned()), scores())["main"]) == ALIGNED


def test_late_once_an_epoch_is_the_same_here(run: Any) -> None:
    trigger = hr.triggers.early(every=MINUTE).late(each=True)
    assert panes(run(summed(TWO, trigger), scores())["main"]) == ALIGNED


def test_discarding_shows_what_is_new(run: Any) -> None:
    """On time the first and the third window have nothing new, so they say nothing."""
    outputs = run(summed(TWO, aligned(), how="discarding"), scores())
    assert panes(outputs["main"]) == {
        "12:02": [("early", 5), ("late", 9)],
        "12:04": [("early", 7), ("early", 3), ("on_time", 8)],
        "12:06": [("early", 4)],
        "12:08": [("early", 3), ("early", 8), ("on_time", 1)],
    }


def test_retracting_takes_back_what_was_shown(run: Any) -> None:
    outputs = run(summed(TWO, aligned(), how="retracting"), scores())
    assert panes(outputs["main"]) == {
        "12:02": [
            ("+I", "early", 5),
            ("-U", "early", 5),
            ("+U", "on_time", 5),
            ("-U", "on_time", 5),
            ("+U", "late", 14),
        ],
        "12:04": [
            ("+I", "early", 7),
            ("-U", "early", 7),
            ("+U", "early", 10),
            ("-U", "early", 10),
            ("+U", "on_time", 18),
        ],
        "12:06": [("+I", "early", 4), ("-U", "early", 4), ("+U", "on_time", 4)],
        "12:08": [
            ("+I", "early", 3),
            ("-U", "early", 3),
            ("+U", "early", 11),
            ("-U", "early", 11),
            ("+U", "on_time", 12),
        ],
    }
    signs = {"+I": 1, "+U": 1, "-U": -1}
    assert sum(signs[r["change"]] * r["t"] for r in outputs["main"]) == 48


def test_lateness_of_two_minutes_takes_the_six_and_not_the_nine(run: Any) -> None:
    # W is 12:02 when the 6 comes and 12:06 when the 9 does: [12:00, 12:02) is over at 12:04.
    outputs = run(summed(TWO, aligned(), 2 * MINUTE), scores(six=True))
    assert panes(outputs["main"])["12:02"] == [("early", 5), ("on_time", 5), ("late", 11)]
    assert [r["value"] for r in outputs["late"]] == [9]


class MinuteBehindFirst(Trigger):
    """Early firings one minute of the clock behind the first row that none has shown, as the book has it; then on
    time, then for every late row."""

    waits: hr.state.Value[int]

    def on_element(self, row: Any, timestamp: Any, window: Any, context: Any) -> TriggerResult:
        last = window.end - timedelta(microseconds=1)
        if context.watermark is not None and context.watermark >= last:
            return TriggerResult.FIRE
        context.register_event_time_timer(last)
        if not context.state.waits.value():
            context.state.waits.update(1)
            context.register_processing_time_timer(context.clock + MINUTE)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: Any, window: Any, context: Any) -> TriggerResult:
        context.state.waits.clear()
        return TriggerResult.FIRE

    def on_processing_time(self, time: Any, window: Any, context: Any) -> TriggerResult:
        waited = context.state.waits.value()
        context.state.waits.clear()
        return TriggerResult.FIRE if waited else TriggerResult.CONTINUE


#: When a minute behind a first row is over, the step asks for an epoch.
ALARMS = ("12:05:59", "12:07:39")


def test_the_figures_of_the_book(run: Any) -> None:
    """A trigger of the user's own, a minute behind the first row: 7 waits for 12:06:39 and takes the 3 along."""
    outputs = run(summed(TWO, MinuteBehindFirst()), scores(idle=ALARMS))
    assert panes(outputs["main"]) == {
        "12:02": [("early", 5), ("on_time", 5), ("late", 14)],
        "12:04": [("early", 10), ("on_time", 18)],
        "12:06": [("early", 4), ("on_time", 4)],
        "12:08": [("early", 3), ("on_time", 12)],
    }


def test_the_figures_of_the_book_when_discarding(run: Any) -> None:
    """Where the book shows a 0 on time, nothing is said: an empty window does not fire."""
    outputs = run(summed(TWO, MinuteBehindFirst(), how="discarding"), scores(idle=ALARMS))
    assert panes(outputs["main"]) == {
        "12:02": [("early", 5), ("late", 9)],
        "12:04": [("early", 10), ("on_time", 8)],
        "12:06": [("early", 4)],
        "12:08": [("early", 3), ("on_time", 9)],
    }
