"""When each trigger fires, by hand. Rows are worth 1, 2, 4, 8, ..., so a sum says which of them are in it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import headrace as hr
from headrace import triggers
from headrace.testing.epochs import StepEpoch
from headrace.windows import Global, Tumbling
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
