"""Cases that are easy to get wrong, one test each, by name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import headrace as hr
from headrace.testing.epochs import StepEpoch
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Count, Cumulating, Hopping, Session, Tumbling
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


def test_a_session_that_bridges_two_others_from_different_epochs(run: Any) -> None:
    """Gap of five minutes.

    epoch 1   00 [-----) 05
    epoch 2                   08 [-----) 13
    epoch 3        04 [-----) 09                  touches both: one session
    all       00 [-------------------) 13
    """
    epochs = story(
        at(None, None, row("08:00", 1)),
        at(None, None, row("08:08", 2)),
        at(None, None, row("08:04", 4)),
        end(),
    )
    outputs = run(summed(Session(5 * MINUTE)), epochs)
    assert shown(outputs["main"]) == [("08:00", "08:13", "on_time", 0, 7)]


def test_a_late_row_bridges_a_session_that_fired_and_one_that_is_open(run: Any) -> None:
    """Gap of five minutes, lateness of ten.

    fired   00 [-----) 05          at W = 08:06
    open                 08 [-----) 13
    late         04 [-----) 09     behind W, but its session ends behind W: open again
    """
    epochs = story(
        at(None, None, row("08:00", 1), row("08:08", 2)),
        at(None, "08:06", row("08:04", 4)),
        at(None, "08:12:59"),
        at(None, "08:13"),
        end(),
    )
    outputs = run(summed(Session(5 * MINUTE), 10 * MINUTE), epochs)
    assert shown(outputs["main"]) == [
        ("08:00", "08:05", "on_time", 0, 1),
        ("08:00", "08:13", "late", 1, 7),
    ]
    assert outputs["late"] == []


def test_a_row_late_for_one_window_of_a_hop_is_added_to_the_open_one(run: Any) -> None:
    """Ten minutes every five, W = 08:10.

    [00 ------- 10)            over: the row at 08:07 is late for it
          [05 ------- 15)      open: the row counts here, and is not sent to late
    """
    epochs = story(
        at(None, None, row("08:06", 1)),
        at(None, "08:10", row("08:07", 2), row("08:04", 4)),
        end(),
    )
    outputs = run(summed(Hopping(10 * MINUTE, 5 * MINUTE)), epochs)
    assert shown(outputs["main"]) == [
        ("08:00", "08:10", "on_time", 0, 1),
        ("08:05", "08:15", "on_time", 0, 3),
    ]
    assert [r["value"] for r in outputs["late"]] == [4]


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


def test_lateness_lasts_after_a_purge(run: Any) -> None:
    """Fired and purged at 08:10, lateness of five minutes: late rows begin with nothing."""

    def build(s: Any) -> Any:
        window = s.key_by("key").window(Tumbling(10 * MINUTE)).allowed_lateness(5 * MINUTE)
        purging = hr.triggers.purging(hr.triggers.event_time())
        return window.trigger(purging).aggregate(t=hr.sum("value"))

    epochs = story(
        at(None, None, row("08:01", 1), row("08:02", 2)),
        at(None, "08:10", row("08:03", 4)),
        at(None, "08:11", row("08:04", 8)),
        at(None, "08:15", row("08:05", 16)),
        end(),
    )
    outputs = run(build, epochs)
    assert shown(outputs["main"]) == [
        ("08:00", "08:10", "late", 1, 4),
        ("08:00", "08:10", "late", 2, 8),
        ("08:00", "08:10", "on_time", 0, 3),
    ]
    assert [r["value"] for r in outputs["late"]] == [16]


def test_cumulate_at_day_change(run: Any) -> None:
    """The day's total every six hours. The last window of a day ends where the first of the next begins.

    15 April                              16 April
    ... [---------- 18:00)
        [------------------- 24:00)      [--- 06:00)
                         23:59  00:00
    """
    midnight = datetime(2020, 4, 16, tzinfo=UTC)
    epochs = story(
        at(None, None, row("13:00", 1), row("23:59", 2), row(midnight, 4)),
        at(None, midnight, row(midnight + HOUR, 8), row("23:58", 16)),
        end(),
    )
    results = run(summed(Cumulating(DAY, 6 * HOUR)), epochs)["main"]
    found = sorted((r["window_end"], r["window_start"], r["t"]) for r in results)
    start, later = midnight - DAY, midnight + DAY
    assert found == [
        (start + 18 * HOUR, start, 1),
        (midnight, start, 3),
        (midnight + 6 * HOUR, midnight, 12),
        (midnight + 12 * HOUR, midnight, 12),
        (midnight + 18 * HOUR, midnight, 12),
        (later, midnight, 12),
    ]


def days(run: Any, start: datetime, hours: int) -> None:
    """One row in the first and one in the last second of a day in Berlin, one just before and behind it."""
    second, finish = timedelta(seconds=1), start + hours * HOUR
    rows = [row(start - second, 1), row(start, 2), row(finish - second, 4), row(finish, 8)]
    results = run(
        summed(Tumbling(DAY, zone="Europe/Berlin")),
        story(at(None, None, *rows), at(None, finish - second), at(None, finish), end()),
    )["main"]
    found = {r["t"]: (r["window_start"], r["window_end"]) for r in results}
    assert sorted(found) == [1, 6, 8]
    assert found[6] == (start, finish)
    assert found[1] == (start - DAY, start)
    assert found[8] == (finish, finish + DAY)


def test_a_day_of_23_hours(run: Any) -> None:
    # Berlin, 30 March 2025: midnight is 23:00 UTC the day before, and the next one 22:00 UTC.
    days(run, datetime(2025, 3, 29, 23, tzinfo=UTC), 23)


def test_a_day_of_25_hours(run: Any) -> None:
    # Berlin, 26 October 2025: from 22:00 UTC to 23:00 UTC a day later.
    days(run, datetime(2025, 10, 25, 22, tzinfo=UTC), 25)


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


def test_a_count_window_over_a_restart(run: Any) -> None:
    # Windows of three: 1 2 | restart | 3, 4 | restart | 5 6, 7 waits. The engine restores before 3 and 5.
    epochs = story(
        at(None, None, row("08:01", 1), row("08:02", 2)),
        at(None, "08:05", row("08:00", 3), row("08:03", 4)),
        at(None, "08:06"),
        at(None, "08:07", row("08:08", 5), row("08:01", 6), row("08:09", 7)),
        end(),
    )
    outputs = run(lambda s: s.key_by("key").window(Count(3)).aggregate(t=hr.sum("value")), epochs)
    assert sorted((r["firing"], r["t"]) for r in outputs["main"]) == [(0, 6), (1, 15)]
    assert outputs["late"] == []


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
