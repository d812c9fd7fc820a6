"""Cases that are easy to get wrong, one test each, by name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import headrace as hr
from headrace.testing.epochs import StepEpoch
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Cumulating, Hopping, Session, Tumbling
from tests.known_answers.timeline import at, clock_time, end, row, story, us

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def shown(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """(start, end, pane, firing, sum), in order."""
    return sorted(
        (clock_time(r["window_start"]), clock_time(r["window_end"]), r["pane"], r["firing"], r["t"])
        for r in rows
    )


def summed(window: Any, lateness: timedelta = timedelta(0)) -> Any:
    return lambda s: (
        s.key_by("key").window(window).allowed_lateness(lateness).aggregate(t=hr.sum("value"))
    )


def test_a_window_that_ends_exactly_at_the_watermark(run: Any) -> None:
    # W promises that nothing <= W comes: [08:00, 08:10) fires at W = 08:10 - 1 us, not 1 us earlier.
    last = us("08:10") - 1
    rows = [row("08:00", 1), row("08:09:59", 2)]
    build = summed(Tumbling(10 * MINUTE))
    soon = [
        StepEpoch(NO_WATERMARK, NO_WATERMARK, rows),
        StepEpoch(NO_WATERMARK, last - 1),
    ]
    assert run(build, soon)["main"] == []
    on_time = [("08:00", "08:10", "on_time", 0, 3)]
    now = StepEpoch(last - 1, last, [row("08:09:59", 4), row("08:10", 8)])
    outputs = run(build, [*soon, now])
    assert shown(outputs["main"]) == on_time
    assert [r["value"] for r in outputs["late"]] == [4]


def test_the_total_of_a_day_of_25_hours_by_the_hour(run: Any) -> None:
    """Berlin, 26 October 2025: 02:00 to 03:00 is shown twice, so [00:00, 03:00) has four hours.

    UTC    22    23    00    01    02    03
    wall   00    01    02    02    03    04
    ends         01    02    --    03    04        a total at each full hour of the wall, 24 in all
    """
    start = datetime(2025, 10, 25, 22, tzinfo=UTC)
    rows = [row(start + hour * HOUR, 1) for hour in range(25)]
    window = Cumulating(DAY, HOUR, zone="Europe/Berlin")
    results = run(summed(window), story(at(None, None, *rows), end()))["main"]
    assert {r["window_start"] for r in results} == {start}
    hours = sorted((r["window_end"] - start) // HOUR for r in results)
    assert hours == [1, 2, *range(4, 26)]
    assert all(r["t"] == (r["window_end"] - start) // HOUR for r in results)


def test_a_timestamp_of_year_9999(run: Any) -> None:
    # Without the guard against the future it is a row like any other: nothing overflows.
    far = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    epochs = story(at(None, None, row("08:01", 1)), at(None, None, row(far - HOUR, 2)), end())
    results = run(summed(Tumbling(10 * MINUTE)), epochs)["main"]
    assert sorted((r["window_start"].year, r["pane"], r["t"]) for r in results) == [
        (2020, "on_time", 1),
        (9999, "on_time", 2),
    ]


def test_a_continuous_trigger_with_no_data(run: Any) -> None:
    """Every five minutes of event time, also when nothing came; a jump over several multiples fires once.

    W       08:06   08:11   08:12   08:24   08:30
    fires   05      10      -       20      end
    """

    def build(s: Any) -> Any:
        window = s.key_by("key").window(Tumbling(30 * MINUTE))
        every = hr.triggers.continuous_event_time(5 * MINUTE)
        return window.trigger(every).aggregate(t=hr.sum("value"))

    epochs = story(
        at(None, None, row("08:01", 1)),
        *(at(None, f"08:{minute}") for minute in ("06", "11", "12", "24", "30")),
        end(),
    )
    results = run(build, epochs)["main"]
    assert sorted((r["firing"], r["pane"], r["t"]) for r in results) == [
        (0, "early", 1),
        (1, "early", 1),
        (2, "early", 1),
        (3, "on_time", 1),
    ]


def test_a_continuous_trigger_without_any_row_says_nothing(run: Any) -> None:
    def build(s: Any) -> Any:
        window = s.key_by("key").window(Tumbling(30 * MINUTE))
        every = hr.triggers.continuous_processing_time(5 * MINUTE)
        return window.trigger(every).aggregate(t=hr.sum("value"))

    epochs = story(*(at(f"08:{minute}", f"08:{minute}") for minute in ("06", "11", "24")), end())
    assert run(build, epochs)["main"] == []


def test_time_stops_at_its_end(run: Any) -> None:
    # An epoch at the end of time fires all; a row behind it is late, whatever its timestamp.
    epochs = story(
        at(None, None, row("08:01", 1)), end(), StepEpoch(0, END_OF_TIME, [row("09:00", 2)])
    )
    outputs = run(summed(Tumbling(10 * MINUTE), HOUR), epochs)
    assert shown(outputs["main"]) == [("08:00", "08:10", "on_time", 0, 1)]
    assert [r["value"] for r in outputs["late"]] == [2]


def test_late_rows_in_separate_windows(run: Any) -> None:
    """Ten minutes every five, lateness five. At W = 08:20 the rows of 08:01 and 08:06 are too late for all windows.

    [07:55 -- 08:05)  [08:00 -- 08:10)      8 (08:01) twice
                      [08:00 -- 08:10)  [08:05 -- 08:15)      16 (08:06) twice
    """

    def build(s: Any) -> Any:
        window = s.key_by("key").window(Hopping(10 * MINUTE, 5 * MINUTE))
        window = window.allowed_lateness(5 * MINUTE).on_late("own_window")
        return window.aggregate(t=hr.sum("value"))

    epochs = story(
        at(None, None, row("08:01", 1)),
        at(None, "08:20", row("08:01", 8), row("08:06", 16)),
        at(None, None, row("08:06", 32)),
        end(),
    )
    outputs = run(build, epochs)
    assert shown(outputs["main"]) == [
        ("07:55", "08:05", "on_time", 0, 1),
        ("07:55", "08:05", "own", 0, 8),
        ("08:00", "08:10", "on_time", 0, 1),
        ("08:00", "08:10", "own", 0, 24),
        ("08:00", "08:10", "own", 0, 32),
        ("08:05", "08:15", "own", 0, 16),
        ("08:05", "08:15", "own", 0, 32),
    ]
    assert outputs["late"] == []


def test_late_rows_in_separate_sessions(run: Any) -> None:
    # W = 08:20, gap one minute: 1 and 2 touch and are a separate session, 4 is another; 8 is in time.
    def build(s: Any) -> Any:
        window = s.key_by("key").window(Session(MINUTE)).on_late("own_window")
        return window.aggregate(t=hr.sum("value"))

    late = [row("08:02", 2), row("08:01", 1), row("08:05", 4), row("08:19:30", 8)]
    outputs = run(build, story(at(None, "08:20", *late), end()))
    assert shown(outputs["main"]) == [
        ("08:01", "08:03", "own", 0, 3),
        ("08:05", "08:06", "own", 0, 4),
        ("08:19:30", "08:20:30", "on_time", 0, 8),
    ]
