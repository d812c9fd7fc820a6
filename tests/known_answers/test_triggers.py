"""When each trigger fires, by hand. Rows are worth 1, 2, 4, 8, ..., so a sum says which of them are in it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import headrace as hr
from headrace import triggers
from headrace.testing.epochs import StepEpoch
from headrace.windows import Global, Session, Tumbling
from tests.known_answers.timeline import at, end, row, story

MINUTE = timedelta(minutes=1)
TEN = Tumbling(10 * MINUTE)
Firing = tuple[str, int, int]


def fired(
    run: Any,
    trigger: Any,
    epochs: list[StepEpoch],
    window: Any = TEN,
    lateness: int = 0,
    how: str = "accumulating",
) -> list[Firing]:
    """(pane, firing, sum) of all firings, in order."""

    def build(s: Any) -> Any:
        made = s.key_by("key").window(window)
        made = made.allowed_lateness(lateness * MINUTE) if window.timed else made
        return getattr(made.trigger(trigger), how)().aggregate(t=hr.sum("value"))

    return sorted(
        ((r["pane"], r["firing"], r["t"]) for r in run(build, epochs)["main"]), key=lambda r: r[1]
    )


def rows(*numbers: int) -> list[Any]:
    """The n-th row is worth 2 ** n and has minute n."""
    return [row(f"08:0{n}", 2**n) for n in numbers]


#: Seven rows before the end, one by one within an epoch, then the end.
SEVEN = story(
    at(None, None, *rows(0, 1, 2)), at(None, "08:03", *rows(3, 4, 5, 6)), at(None, "08:10"), end()
)


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        # 1 2 4 | 8 16 32 | 64: at every third row over all so far; the end is no reason
        (triggers.count(3), [("early", 0, 7), ("early", 1, 63)]),
        (triggers.purging(triggers.count(3)), [("early", 0, 7), ("early", 1, 56)]),
        (triggers.never(), []),
        (triggers.event_time(), [("on_time", 0, 127)]),
        (triggers.purging(triggers.event_time()), [("on_time", 0, 127)]),
        # the end too, and then everything starts anew
        (
            triggers.any_of(triggers.count(3), triggers.event_time()),
            [("early", 0, 7), ("early", 1, 63), ("on_time", 2, 127)],
        ),
        # whichever comes first: a firing of one makes the other count from the start
        (
            triggers.any_of(triggers.count(2), triggers.count(3)),
            [("early", 0, 3), ("early", 1, 15), ("early", 2, 63)],
        ),
        (triggers.all_of(triggers.count(3), triggers.event_time()), [("on_time", 0, 127)]),
        (triggers.all_of(triggers.count(9), triggers.event_time()), []),
        # at row 3 both have fired (2 at row 2); again at row 6
        (
            triggers.all_of(triggers.count(2), triggers.count(3)),
            [("early", 0, 7), ("early", 1, 63)],
        ),
        # row 1, then two more, then never again
        (
            triggers.after_each(triggers.count(1), triggers.count(2)),
            [("early", 0, 1), ("early", 1, 7)],
        ),
        (
            triggers.after_each(triggers.count(2), triggers.event_time()),
            [("early", 0, 3), ("on_time", 1, 127)],
        ),
        # 2, 4, and 5 for the last time, which ends the first part
        (
            triggers.after_each(
                triggers.count(2).or_finally(triggers.count(5)), triggers.event_time()
            ),
            [("early", 0, 3), ("early", 1, 15), ("early", 2, 31), ("on_time", 3, 127)],
        ),
        # 1, 2 more, 1, 2 more, 1
        (
            triggers.repeatedly(triggers.after_each(triggers.count(1), triggers.count(2))),
            [
                ("early", 0, 1),
                ("early", 1, 7),
                ("early", 2, 15),
                ("early", 3, 63),
                ("early", 4, 127),
            ],
        ),
        # 2, 4, and 5 for the last time
        (
            triggers.count(2).or_finally(triggers.count(5)),
            [("early", 0, 3), ("early", 1, 15), ("early", 2, 31)],
        ),
        (
            triggers.repeatedly(triggers.count(2).or_finally(triggers.count(3))),
            [("early", 0, 3), ("early", 1, 7), ("early", 2, 31), ("early", 3, 63)],
        ),
        (
            triggers.count(4).or_finally(triggers.event_time()),
            [("early", 0, 15), ("on_time", 1, 127)],
        ),
        # only the count of three empties the window
        (
            triggers.any_of(triggers.purging(triggers.count(3)), triggers.event_time()),
            [("early", 0, 7), ("early", 1, 56), ("on_time", 2, 64)],
        ),
        (triggers.early(count=3), [("early", 0, 7), ("early", 1, 63), ("on_time", 2, 127)]),
    ],
    ids=lambda value: value.name if isinstance(value, triggers.Trigger) else "",
)
def test_before_the_end(run: Any, trigger: Any, expected: list[Firing]) -> None:
    assert fired(run, trigger, SEVEN) == expected


#: One row in time; W passes the end at 08:10; then late rows in three epochs; over at 08:15.
LATE = story(
    at("09:00", None, *rows(0)),
    at("09:01", "08:10", *rows(1, 2, 3)),
    at("09:02", "08:11", *rows(4, 5)),
    at("09:03", "08:14", *rows(6)),
    at("09:04", "08:15", *rows(7)),
    end(),
)


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        (
            triggers.event_time(),
            [("on_time", 0, 1), ("late", 1, 15), ("late", 2, 63), ("late", 3, 127)],
        ),
        (
            triggers.event_time().late(each=True),
            [("on_time", 0, 1), ("late", 1, 15), ("late", 2, 63), ("late", 3, 127)],
        ),
        # 2 4 | 8 16 | 32 64: at every second late row
        (
            triggers.event_time().late(count=2),
            [("on_time", 0, 1), ("late", 1, 7), ("late", 2, 31), ("late", 3, 127)],
        ),
        # 2 4 8 16 | 32 64 wait for two more, and are shown when the window closes
        (
            triggers.event_time().late(count=4),
            [("on_time", 0, 1), ("late", 1, 31), ("late", 2, 127)],
        ),
        # the clock passes 09:02 before the rows 16 and 32 come, 09:04 when the window closes
        (
            triggers.event_time().late(every=2 * MINUTE),
            [("on_time", 0, 1), ("late", 1, 15), ("late", 2, 127)],
        ),
        (triggers.count(3), [("late", 1, 7), ("late", 2, 63)]),
        # the purge at the end is no end of the lateness
        (
            triggers.purging(triggers.event_time()),
            [("on_time", 0, 1), ("late", 1, 14), ("late", 2, 48), ("late", 3, 64)],
        ),
        # the third row comes late; then the count must be full again in an epoch with late rows
        (
            triggers.all_of(triggers.count(3), triggers.event_time()),
            [("late", 1, 7), ("late", 2, 63)],
        ),
        (
            triggers.after_each(triggers.event_time(), triggers.count(2)),
            [("on_time", 0, 1), ("late", 1, 7)],
        ),
        # Beam's early and late firings, spelled out: every row up to the end, then every second
        (
            triggers.after_each(
                triggers.repeatedly(triggers.count(1)).or_finally(triggers.event_time()),
                triggers.repeatedly(triggers.count(2)),
            ),
            [("early", 0, 1), ("on_time", 1, 1), ("late", 2, 7), ("late", 3, 31), ("late", 4, 127)],
        ),
    ],
    ids=lambda value: value.name if isinstance(value, triggers.Trigger) else "",
)
def test_behind_the_end(run: Any, trigger: Any, expected: list[Firing]) -> None:
    assert fired(run, trigger, LATE, lateness=5) == expected


def test_early_by_event_time(run: Any) -> None:
    """Multiples of three minutes: 08:03 with 1 2, nothing new at 08:06, 08:09 with 4.

    W      08:02   08:04   08:07   08:09:30   08:10
    rows   1 2     -       4       8
    fires          03      -       09         end
    """
    epochs = story(
        at(None, "08:02", *rows(3, 4)),
        at(None, "08:04"),
        at(None, "08:07", *rows(8)),
        at(None, "08:09:30", *rows(9)),
        at(None, "08:10"),
        end(),
    )
    trigger = triggers.early(every=3 * MINUTE, time="event")
    assert fired(run, trigger, epochs) == [
        ("early", 0, 24),
        ("early", 1, 280),
        ("on_time", 2, 792),
    ]


def test_early_by_event_time_when_there_was_no_watermark(run: Any) -> None:
    # Rows that came before the first watermark are shown at the first multiple that it passes.
    epochs = story(at(None, None, *rows(0, 1)), at(None, "08:04"), at(None, "08:10"), end())
    trigger = triggers.early(every=3 * MINUTE, time="event")
    assert fired(run, trigger, epochs) == [("early", 0, 3), ("on_time", 1, 3)]


CLOCKS = story(
    at("08:00", None, *rows(0)),
    at("08:04", None, *rows(1)),
    at("08:06", None),
    at("08:09:59", None, *rows(2)),
    at("08:12", "08:05"),
    at("08:23", "08:10"),
    end(),
)


def test_by_the_clock_at_the_end_of_the_window(run: Any) -> None:
    # The clock shows 08:10 in the epoch of 08:12, while W is at 08:05: early, by event time.
    assert fired(run, triggers.processing_time(), CLOCKS) == [("early", 0, 7)]


def test_again_and_again_by_the_clock(run: Any) -> None:
    """Every five minutes: 05 is passed at 08:06, 10 at 08:12, 15 and 20 at 08:23, when the window's end passes too."""
    trigger = triggers.continuous_processing_time(5 * MINUTE)
    assert fired(run, trigger, CLOCKS) == [("early", 0, 3), ("early", 1, 7), ("on_time", 2, 7)]


def test_again_and_again_in_a_global_window(run: Any) -> None:
    # W passes 08:05 in the last epoch but one; at the end of input it fires once more, not once for every multiple.
    trigger = triggers.continuous_event_time(5 * MINUTE)
    expected = [("early", 0, 7), ("on_time", 1, 7)]
    assert fired(run, trigger, CLOCKS, Global()) == expected


def test_global_by_number(run: Any) -> None:
    expected = [("early", 0, 3), ("early", 1, 12), ("early", 2, 48)]
    assert fired(run, triggers.purging(triggers.count(2)), SEVEN, Global()) == expected


def test_global_at_the_end_of_input(run: Any) -> None:
    assert fired(run, triggers.end_of_input(), SEVEN, Global()) == [("on_time", 0, 127)]


def test_discarding_by_number(run: Any) -> None:
    trigger = triggers.any_of(triggers.count(3), triggers.event_time())
    expected = [("early", 0, 7), ("early", 1, 56), ("on_time", 2, 64)]
    assert fired(run, trigger, SEVEN, how="discarding") == expected


def test_counters_of_sessions_are_added_when_they_merge(run: Any) -> None:
    """Gap of one minute: 08:00 and 08:02 are two sessions with one row each; 08:01 joins them and is the third."""
    epochs = story(at(None, None, *rows(0, 2)), at(None, None, *rows(1)), end())
    assert fired(run, triggers.count(3), epochs, Session(MINUTE)) == [("early", 0, 7)]
