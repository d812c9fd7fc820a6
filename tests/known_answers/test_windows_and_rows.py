"""Assigners, evictors and policies for late rows, by hand. Rows are worth powers of two: a sum says which are in it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import headrace as hr
from headrace import evictors, triggers
from headrace.windows import (
    Count,
    Cumulating,
    Global,
    Hopping,
    LookBack,
    Session,
    Tumbling,
    WindowAssigner,
)
from tests.known_answers.timeline import at, clock_time, end, row, story

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def shown(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """(start, end, pane, firing, sum), in order."""
    return sorted(
        (clock_time(r["window_start"]), clock_time(r["window_end"]), r["pane"], r["firing"], r["t"])
        for r in rows
    )


def test_sessions_with_a_gap_of_each_row(run: Any) -> None:
    """Each row keeps its session open as long as it says.

    1   00 [-- 10 min -------) 10
    2        02 [-1-) 03                 inside: the end stays at 10
    4                        10 [-2-) 12    touches
    8                                     13 [-1-) 14
    """
    gaps = [("08:00", 1, 10), ("08:02", 2, 1), ("08:10", 4, 2), ("08:13", 8, 1)]
    epochs = story(
        at(None, None, *(row(t, v, gap=g * MINUTE) for t, v, g in gaps[2:])),
        at(None, None, *(row(t, v, gap=g * MINUTE) for t, v, g in gaps[:2])),
        end(),
    )
    outputs = run(
        lambda s: s.key_by("key").window(Session.dynamic("gap")).aggregate(t=hr.sum("value")),
        epochs,
    )
    assert shown(outputs["main"]) == [
        ("08:00", "08:12", "on_time", 0, 7),
        ("08:13", "08:14", "on_time", 0, 8),
    ]


def test_a_row_without_a_gap_is_a_dead_letter(run: Any) -> None:
    epochs = story(at(None, None, row("08:00", 1), row("08:01", 2, gap=timedelta(0))), end())
    outputs = run(
        lambda s: s.key_by("key").window(Session.dynamic("gap")).aggregate(t=hr.sum("value")),
        epochs,
    )
    assert outputs["main"] == []
    assert len(outputs["errors"]) == 2


class Shifts(WindowAssigner):
    """Eight hours, and every row before noon also in a window of the morning."""

    def assign(self, row: Any, timestamp: datetime) -> Iterator[tuple[datetime, datetime]]:
        midnight = timestamp.replace(hour=0, minute=0, second=0, microsecond=0)
        start = midnight + timestamp.hour // 8 * timedelta(hours=8)
        yield start, start + timedelta(hours=8)
        if timestamp.hour < 12:
            yield midnight, midnight + timedelta(hours=12)


def test_windows_of_the_users_own(run: Any) -> None:
    """[00, 08) [08, 16) and [00, 12): a row at 07:59 is in two of them, one at 12:00 in one."""
    epochs = story(
        at(None, None, row("07:59", 1), row("08:00", 2), row("12:00", 4)),
        at(None, "08:00", row("07:58", 8)),
        end(),
    )
    outputs = run(lambda s: s.key_by("key").window(Shifts()).aggregate(t=hr.sum("value")), epochs)
    assert shown(outputs["main"]) == [
        ("00:00", "08:00", "on_time", 0, 1),
        ("00:00", "12:00", "on_time", 0, 11),
        ("08:00", "16:00", "on_time", 0, 6),
    ]
    assert outputs["late"] == []


def test_cumulating_in_one_step_is_tumbling(run: Any) -> None:
    # The step is the size: one window at a time, whatever is aggregated.
    window = Cumulating(10 * MINUTE, 10 * MINUTE)
    build = lambda s: s.key_by("key").window(window).aggregate(t=hr.count_distinct("value"))
    rows = [row("08:01", 1), row("08:02", 1), row("08:03", 2), row("08:11", 1)]
    outputs = run(build, story(at(None, None, *rows), at(None, "08:10"), end()))
    assert shown(outputs["main"]) == [
        ("08:00", "08:10", "on_time", 0, 2),
        ("08:10", "08:20", "on_time", 0, 1),
    ]


def test_peers_of_a_look_back_see_each_other(run: Any) -> None:
    """Two minutes back, both ends included; a row at or behind the watermark is late and nobody sees it.

    1    2 4    8       16
    00   02 02  03      06          W = 08:02 - 1 us when 4 comes, 08:03 - 1 us when 32 (02) comes
    """
    epochs = story(
        at(None, None, row("08:00", 1), row("08:02", 2)),
        at(None, "08:02", row("08:02", 4)),
        at(None, "08:03", row("08:02", 32), row("08:03", 8), row("08:06", 16)),
        end(),
    )
    outputs = run(
        lambda s: s.key_by("key").window(LookBack(2 * MINUTE)).aggregate(t=hr.sum("value")), epochs
    )
    assert sorted((r["value"], r["t"]) for r in outputs["main"]) == [
        (1, 1),
        (2, 7),
        (4, 7),
        (8, 14),
        (16, 16),
    ]
    assert [r["value"] for r in outputs["late"]] == [32]


def test_late_rows_in_windows_of_their_own(run: Any) -> None:
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


def test_late_rows_in_sessions_of_their_own(run: Any) -> None:
    # W = 08:20, gap one minute: 1 and 2 touch and are one session of their own, 4 is another; 8 is in time.
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


def test_an_old_row_that_bridges_to_a_live_session_is_not_late(run: Any) -> None:
    """Gap five minutes, no lateness, W = 08:06. The row of 08:00 alone would be over at 08:05.

    live          04 [-----) 09
    old      00 [-----) 05          overlaps: not late
    old   54 [-----) 59             touches nothing: late
    """
    epochs = story(
        at(None, None, row("08:04", 1)),
        at(None, "08:06", row("08:00", 2), row("07:54", 4)),
        end(),
    )
    outputs = run(
        lambda s: s.key_by("key").window(Session(5 * MINUTE)).aggregate(t=hr.sum("value")), epochs
    )
    assert shown(outputs["main"]) == [("08:00", "08:09", "on_time", 0, 3)]
    assert [r["value"] for r in outputs["late"]] == [4]


def test_only_the_last_rows_count(run: Any) -> None:
    """The last two by arrival; what was left out does not come back with the next firing."""

    def build(s: Any) -> Any:
        window = s.key_by("key").window(Tumbling(10 * MINUTE)).trigger(triggers.count(3))
        return window.evictor(evictors.count(2)).aggregate(t=hr.sum("value"))

    rows = [row("08:05", 1), row("08:04", 2), row("08:03", 4), row("08:02", 8), row("08:01", 16)]
    epochs = story(at(None, None, *rows), at(None, None, row("08:06", 32)), end())
    assert [r["t"] for r in sorted(run(build, epochs)["main"], key=lambda r: r["firing"])] == [
        6,
        48,
    ]


def test_only_young_rows_count(run: Any) -> None:
    # Younger than two minutes before the latest (08:05): 08:03 is not, 08:03:01 is.
    def build(s: Any) -> Any:
        window = s.key_by("key").window(Tumbling(10 * MINUTE))
        return window.evictor(evictors.time(2 * MINUTE)).aggregate(t=hr.sum("value"))

    rows = [row("08:05", 1), row("08:03", 2), row("08:03:01", 4)]
    assert [r["t"] for r in run(build, story(at(None, None, *rows), end()))["main"]] == [5]


def test_a_week_of_calendar_days_has_an_hour_less_in_march(run: Any) -> None:
    # Seven days every day in New York; clocks go forward on 9 March 2025, at 07:00 UTC.
    start = datetime(2025, 3, 5, 5, tzinfo=UTC)
    build = lambda s: (
        s.key_by("key")
        .window(Hopping(7 * DAY, DAY, zone="America/New_York"))
        .aggregate(t=hr.sum("value"))
    )
    results = run(build, story(at(None, None, row(start + 6 * DAY, 1)), end()))["main"]
    lengths = sorted((r["window_start"], r["window_end"] - r["window_start"]) for r in results)
    assert len(lengths) == 7
    assert [hours // timedelta(hours=1) for _, hours in lengths] == [167] * 5 + [168] * 2


class Spread(hr.ProcessWindowFunction):
    """How far apart the values are, how often the window has fired, and for how many windows of the key."""

    seen: hr.state.Value[int]

    def process(self, key: Any, context: Any, rows: Any) -> Iterator[Any]:
        mine, all_windows = context.window_state.seen, context.global_state.seen
        mine.update((mine.value() or 0) + 1)
        all_windows.update((all_windows.value() or 0) + 1)
        values = [r.value for r in rows]
        yield {
            "key": key,
            "spread": max(values) - min(values),
            "here": mine.value(),
            "ever": all_windows.value(),
            "pane": context.pane,
        }


SPREAD = {"key": str, "spread": int, "here": int, "ever": int, "pane": str}


def test_a_function_of_the_users_own(run: Any) -> None:
    # Two windows; the first is corrected once: its own state says 2, that of the key 2 and 3.
    epochs = story(
        at(None, None, row("08:01", 1), row("08:02", 8)),
        at(None, "08:10", row("08:03", 64), row("08:11", 5)),
        end(),
    )
    build = lambda s: (
        s.key_by("key")
        .window(Tumbling(10 * MINUTE))
        .allowed_lateness(5 * MINUTE)
        .process(Spread(), schema=SPREAD)
    )
    assert sorted(
        (r["ever"], r["here"], r["spread"], r["pane"]) for r in run(build, epochs)["main"]
    ) == [
        (1, 1, 7, "on_time"),
        (2, 2, 63, "late"),
        (3, 1, 0, "on_time"),
    ]


def test_a_function_over_count_windows(run: Any) -> None:
    epochs = story(at(None, None, *(row("08:01", 2**n) for n in range(5))), end())
    build = lambda s: s.key_by("key").window(Count(2)).process(Spread(), schema=SPREAD)
    assert sorted((r["ever"], r["spread"]) for r in run(build, epochs)["main"]) == [(1, 1), (2, 4)]


def test_all_rows_without_a_key(run: Any) -> None:
    rows = [row("08:01", 1, "a"), row("08:02", 2, "b"), row("08:03", 4, "c")]
    build = lambda s: s.window_all(Global()).aggregate(t=hr.sum("value"))
    (result,) = run(build, story(at(None, None, *rows), end()))["main"]
    assert result == {"pane": "on_time", "firing": 0, "t": 7}
