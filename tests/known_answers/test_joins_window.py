"""Window joins by hand: the tables and pictures with which Flink's documentation explains them, and co-groups of them.

Every answer is asked of jobs, calm and disturbed; where windows do not merge, of the oracle as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import run_local
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Hopping, Session, Tumbling
from tests.oracle.joins.window import WindowJoinOracle

NOON = datetime(2020, 4, 15, 12, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS = timedelta(milliseconds=1)
MINUTE = timedelta(minutes=1)
COLUMNS = {"key": int, "id": str, "at": datetime}

Rows = list[dict[str, Any]]
#: (id of the left, id of the right, start of the window, end) of all results.
Told = list[tuple[str | None, str | None, int, int]]


def rows_of(since: datetime, unit: timedelta, *given: tuple[int, int, str]) -> Rows:
    """Rows of (time, key, id)."""
    return [{"key": key, "id": name, "at": since + time * unit} for time, key, name in given]


def by_job(left: Rows, right: Rows, window: Any, how: str, **run: Any) -> Rows:
    env, sink = hr.Environment("documented", epochs=hr.Epochs(rows=2)), MemorySink()
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(10 * MINUTE).with_timestamps("at")
    streams = [
        env.from_source(MemorySource(rows, COLUMNS), watermarks=strategy, uid=uid)
        for rows, uid in ((left, "left"), (right, "right"))
    ]
    chosen: Any = how
    streams[0].window_join(streams[1], window, on="key", how=chosen, uid="join").sink_to(
        sink, uid="out"
    )
    run_local(env, **run)
    return sink.to_pylist()


def by_oracle(left: Rows, right: Rows, window: Any, how: str) -> Rows:
    oracle = WindowJoinOracle(window, [("key",), ("key",)], [list(COLUMNS)] * 2, how=how)
    rows = [
        SidedRow((row["at"] - EPOCH) // timedelta(microseconds=1), row, side)
        for side, mine in enumerate((left, right))
        for row in mine
    ]
    return oracle.epoch(StepEpoch(NO_WATERMARK, END_OF_TIME, (), rows)).ticked


def disturbed(left: Rows, right: Rows, window: Any, how: str) -> Rows:
    run: dict[str, Any] = {
        "shards": 3,
        "crashes": [(1, "staged"), (2, "durable")],
        "rescale": {2: 2},
    }
    return by_job(left, right, window, how, **run)


ways = pytest.mark.parametrize(
    "ask", [by_oracle, by_job, disturbed], ids=["oracle", "job", "crashes"]
)


def told(rows: Rows, since: datetime, unit: timedelta) -> Told:
    return sorted(
        (
            (
                row["id"],
                row.get("id_right"),
                (row["window_start"] - since) // unit,
                (row["window_end"] - since) // unit,
            )
            for row in rows
        ),
        key=repr,
    )


#: The tables of the page on window joins in SQL.
LEFT = rows_of(NOON, MINUTE, (2, 1, "L1"), (6, 2, "L2"), (3, 3, "L3"))
RIGHT = rows_of(NOON, MINUTE, (1, 2, "R2"), (4, 3, "R3"), (5, 4, "R4"))
PAIR: Told = [("L3", "R3", 0, 5)]
LEFT_ALONE: Told = [("L1", None, 0, 5), ("L2", None, 5, 10)]
RIGHT_ALONE: Told = [(None, "R2", 0, 5), (None, "R4", 5, 10)]


@ways
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", PAIR),
        ("left", PAIR + LEFT_ALONE),
        ("right", PAIR + RIGHT_ALONE),
        ("full", PAIR + LEFT_ALONE + RIGHT_ALONE),
        ("semi", [("L3", None, 0, 5)]),
        ("anti", LEFT_ALONE),
    ],
)
def test_five_minutes_in_sql(ask: Any, how: str, expected: Told) -> None:
    """L2 and R2 have the same number but lie in windows of their own."""
    found = ask(LEFT, RIGHT, Tumbling(5 * MINUTE), how)
    assert told(found, NOON, MINUTE) == sorted(expected, key=repr)


def numbered(*times: int) -> Rows:
    """Rows of one key that are called as their millisecond."""
    return rows_of(NOON, MS, *((time, 1, str(time)) for time in times))


def pairs(rows: Rows) -> dict[int, list[str]]:
    """ "left,right" of each window, by its first millisecond."""
    found: dict[int, list[str]] = {}
    for left, right, start, _ in told(rows, NOON, MS):
        found.setdefault(start, []).append(f"{left},{right}")
    return {start: sorted(found[start]) for start in sorted(found)}


@ways
def test_tumbling_by_two_milliseconds(ask: Any) -> None:
    """
    green     0  1     3  4
    orange    0  1  2  3  4  5  6  7
             [----)[----)[----)[----)        nobody is there for 6 and 7
    """
    found = ask(numbered(*range(8)), numbered(0, 1, 3, 4), Tumbling(2 * MS), "inner")
    assert pairs(found) == {
        0: ["0,0", "0,1", "1,0", "1,1"],
        2: ["2,3", "3,3"],
        4: ["4,4", "5,4"],
    }


@ways
def test_sliding_two_milliseconds_by_one(ask: Any) -> None:
    """2 meets 3 in [2, 4), and nobody in [1, 3).

    green     0        3  4
    orange    0  1  2  3  4
    """
    found = ask(numbered(*range(5)), numbered(0, 3, 4), Hopping(2 * MS, MS), "inner")
    assert pairs(found) == {
        -1: ["0,0"],
        0: ["0,0", "1,0"],
        2: ["2,3", "3,3"],
        3: ["3,3", "3,4", "4,3", "4,4"],
        4: ["4,4"],
    }


ORANGE, GREEN = numbered(1, 2, 5, 6, 8, 9), numbered(0, 4, 5)


@pytest.mark.parametrize("ask", [by_job, disturbed], ids=["job", "crashes"])
def test_sessions_with_a_gap_of_one_millisecond(ask: Any) -> None:
    """
    green     0           4  5
    orange       1  2        5  6     8  9
             [--------)  [--------)  [----)   8 and 9 are alone
    """
    found = ask(ORANGE, GREEN, Session(MS), "inner")
    assert pairs(found) == {0: ["1,0", "2,0"], 4: ["5,4", "5,5", "6,4", "6,5"]}
    assert {(start, end) for _, _, start, end in told(found, NOON, MS)} == {(0, 3), (4, 7)}
    alone = ask(ORANGE, GREEN, Session(MS), "anti")
    assert told(alone, NOON, MS) == [("8", None, 8, 10), ("9", None, 8, 10)]


def test_a_co_group_sees_what_a_join_leaves_out() -> None:
    def sizes(key: int, window: Any, left: Sequence[Any], right: Sequence[Any]) -> Iterator[Any]:
        start = (window.start - NOON) // MS
        yield {
            "key": key,
            "start": start,
            "left": [r.id for r in left],
            "right": [r.id for r in right],
        }

    env, sink = hr.Environment("documented"), MemorySink()
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(MINUTE).with_timestamps("at")
    orange, green = (
        env.from_source(MemorySource(rows, COLUMNS), watermarks=strategy, uid=uid)
        for rows, uid in ((ORANGE, "orange"), (GREEN, "green"))
    )
    schema = {"key": int, "start": int, "left": list[str], "right": list[str]}
    orange.co_group(green, Session(MS), sizes, on="key", schema=schema, uid="both").sink_to(
        sink, uid="out"
    )
    run_local(env, shards=2)
    rows = sorted(sink.to_pylist(), key=lambda row: row["start"])
    assert [(row["start"], sorted(row["left"]), sorted(row["right"])) for row in rows] == [
        (0, ["1", "2"], ["0"]),
        (4, ["5", "6"], ["4", "5"]),
        (8, ["8", "9"], []),
    ]


def test_results_have_the_last_microsecond_of_their_window() -> None:
    # A window behind the join counts them where they belong: [12:00, 12:05) and [12:05, 12:10).
    env, sink = hr.Environment("documented"), MemorySink()
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(MINUTE).with_timestamps("at")
    left, right = (
        env.from_source(MemorySource(rows, COLUMNS), watermarks=strategy, uid=uid)
        for rows, uid in ((LEFT, "left"), (RIGHT, "right"))
    )
    joined = left.window_join(right, Tumbling(5 * MINUTE), on="key", how="full", uid="join")
    counted = joined.window_all(Tumbling(5 * MINUTE)).aggregate(rows=hr.count(), uid="counted")
    counted.sink_to(sink, uid="out")
    run_local(env, shards=2)
    found = sorted((row["window_start"], row["rows"]) for row in sink.to_pylist())
    assert found == [(NOON, 3), (NOON + 5 * MINUTE, 2)]
