"""The tables of Flink's pages on windows: the same bids, the same windows, the same sums.

bids      C4    A2    D5  |  B3    E1        F6                    price, in the order of time
minute    05    07    09  10 11    13        17        20
tumble    [00 ---------- 10)[10 ---------------------- 20)         11, 10
hop       [00 ---------- 10)
            [05 ------------------ 15)                             11, 15, 10, 6
                          [10 ---------------------- 20)
                                         [15 ------------------ 25)
cumulate  [00 -- 06)      [10 12)                                  4, 3
          [00 ----- 08)   [10 -- 14)                               6, 4
          [00 ------- 10) [10 ------ 16)                           11, 4
                          [10 --------- 18)                        10
                          [10 ------------ 20)                     10
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import headrace as hr
from headrace.windows import Count, Cumulating, Global, Hopping, LookBack, Session, Tumbling
from tests.known_answers.timeline import at, clock_time, end, row, story

MINUTE = timedelta(minutes=1)
BIDS = [("05", 4), ("07", 2), ("09", 5), ("11", 3), ("13", 1), ("17", 6)]
#: A watermark one second behind the latest bid, as the pages declare it.
STREAM = story(
    at(None, None, *(row(f"08:{minute}", price) for minute, price in BIDS[:2])),
    at(None, "08:06:59", *(row(f"08:{minute}", price) for minute, price in BIDS[2:4])),
    at(None, "08:10:59", row("08:13", 1)),
    at(None, "08:12:59", row("08:17", 6)),
    at(None, "08:16:59"),
    end(),
)


def sums(results: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    """(start, end, sum), in the order of the pages."""
    assert {(r["pane"], r["firing"]) for r in results} == {("on_time", 0)}
    spans = [(clock_time(r["window_start"]), clock_time(r["window_end"])) for r in results]
    return sorted((*span, r["total"]) for span, r in zip(spans, results, strict=True))


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (Tumbling(10 * MINUTE), [("08:00", "08:10", 11), ("08:10", "08:20", 10)]),
        (
            Hopping(10 * MINUTE, 5 * MINUTE),
            [
                ("08:00", "08:10", 11),
                ("08:05", "08:15", 15),
                ("08:10", "08:20", 10),
                ("08:15", "08:25", 6),
            ],
        ),
        (
            Cumulating(10 * MINUTE, 2 * MINUTE),
            [
                ("08:00", "08:06", 4),
                ("08:00", "08:08", 6),
                ("08:00", "08:10", 11),
                ("08:10", "08:12", 3),
                ("08:10", "08:14", 4),
                ("08:10", "08:16", 4),
                ("08:10", "08:18", 10),
                ("08:10", "08:20", 10),
            ],
        ),
        # The page on offsets: windows of ten minutes, shifted by one.
        (
            Tumbling(10 * MINUTE, MINUTE),
            [("08:01", "08:11", 11), ("08:11", "08:21", 10)],
        ),
    ],
    ids=["tumble", "hop", "cumulate", "offset"],
)
def test_sums_of_all_bids(run: Any, window: Any, expected: list[Any]) -> None:
    outputs = run(lambda s: s.window_all(window).aggregate(total=hr.sum("value")), STREAM)
    assert sums(outputs["main"]) == expected
    assert outputs["late"] == []


def test_sums_by_supplier(run: Any) -> None:
    # Grouping sets of the page: by supplier, windows of ten minutes.
    suppliers = ["one", "one", "two", "two", "one", "two"]
    rows = [row(f"08:{m}", price, by) for (m, price), by in zip(BIDS, suppliers, strict=True)]
    outputs = run(
        lambda s: s.key_by("key").window(Tumbling(10 * MINUTE)).aggregate(total=hr.sum("value")),
        story(at(None, None, *rows), end()),
    )
    found = [(clock_time(r["window_end"]), r["key"], r["total"]) for r in outputs["main"]]
    assert sorted(found) == [
        ("08:10", "one", 6),
        ("08:10", "two", 5),
        ("08:20", "one", 1),
        ("08:20", "two", 9),
    ]


SESSIONS = story(
    at(None, None, row("08:07", 4, "A"), row("08:06", 2, "A")),
    at(None, "08:06:59", row("08:09", 5, "B"), row("08:08", 3, "A"), row("08:17", 1, "B")),
    end(),
)


def test_sessions_by_item(run: Any) -> None:
    # A  06 07 08 |-- 5 min --) 13         B  09 |-- 5 min --) 14    17 |-- 5 min --) 22
    outputs = run(
        lambda s: s.key_by("key").window(Session(5 * MINUTE)).aggregate(total=hr.sum("value")),
        SESSIONS,
    )
    assert sums(outputs["main"]) == [
        ("08:06", "08:13", 9),
        ("08:09", "08:14", 5),
        ("08:17", "08:22", 1),
    ]


def test_sessions_of_all_items(run: Any) -> None:
    # 06 07 08 09 |-- 5 min --) 14       17 |-- 5 min --) 22
    outputs = run(
        lambda s: s.window_all(Session(5 * MINUTE)).aggregate(total=hr.sum("value")), SESSIONS
    )
    assert sums(outputs["main"]) == [("08:06", "08:14", 14), ("08:17", "08:22", 1)]


def test_over_a_range_of_time(run: Any) -> None:
    """OVER (PARTITION BY key ORDER BY at RANGE BETWEEN INTERVAL '4' MINUTE PRECEDING AND CURRENT ROW).

    price     4     2     5     3     1           6
    minute    05    07    09    11    13          17
    sees      05    05-07 05-09 07-11 09-13       13-17
    sum       4     6     11    10    9           7
    """
    outputs = run(
        lambda s: s.key_by("key").window(LookBack(4 * MINUTE)).aggregate(total=hr.sum("value")),
        STREAM,
    )
    found = sorted((clock_time(r["at"]), r["value"], r["total"]) for r in outputs["main"])
    assert found == [
        ("08:05", 4, 4),
        ("08:07", 2, 6),
        ("08:09", 5, 11),
        ("08:11", 3, 10),
        ("08:13", 1, 9),
        ("08:17", 6, 7),
    ]


def test_count_windows(run: Any) -> None:
    # 4 2 | 5 3 | 1 6, and 6 waits in windows of four
    outputs = run(lambda s: s.key_by("key").window(Count(2)).aggregate(t=hr.sum("value")), STREAM)
    assert sorted((r["firing"], r["t"]) for r in outputs["main"]) == [(0, 6), (1, 8), (2, 7)]
    outputs = run(lambda s: s.key_by("key").window(Count(4)).aggregate(t=hr.sum("value")), STREAM)
    assert [(r["firing"], r["t"]) for r in outputs["main"]] == [(0, 14)]


def test_sliding_count_windows(run: Any) -> None:
    # The last three after every two: 4 2, then 2 5 3, then 3 1 6.
    outputs = run(
        lambda s: s.key_by("key").window(Count(3, 2)).aggregate(t=hr.sum("value")), STREAM
    )
    assert sorted((r["firing"], r["t"]) for r in outputs["main"]) == [(0, 6), (1, 10), (2, 10)]


def test_the_global_window_fires_when_the_input_ends(run: Any) -> None:
    build = lambda s: s.key_by("key").window(Global()).aggregate(t=hr.sum("value"))
    assert run(build, STREAM[:-1])["main"] == []
    (result,) = run(build, STREAM)["main"]
    assert result == {"key": "x", "pane": "on_time", "firing": 0, "t": 21}
