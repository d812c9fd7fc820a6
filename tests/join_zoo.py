"""Every kind of join in one job: what runs on Spark and is killed there.

All of it follows from event time and the cuts of epochs, so two runs with the same cuts have the same results,
whatever happened in between.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import headrace as hr
from headrace import windows
from headrace.endpoints import Sink

SECOND = timedelta(seconds=1)
PAIR = ["key", "sequence"]

Taken = Callable[[str], Sink]


def sizes(key: Any, window: Any, left: list[Any], right: list[Any]) -> Iterator[dict[str, int]]:
    """A function of groups."""
    yield {"key": key, "lefts": len(left), "rights": len(right)}


def squares(keys: list[int]) -> dict[int, dict[str, int]]:
    """A table outside: it lacks every fifth key."""
    return {key: {"square": key * key} for key in keys if key % 5}


def add_joins(rows: hr.Stream, sink: Taken) -> None:
    """All kinds on rows with `key`, `sequence` and event time; `sink(name)` takes what comes out."""
    sequence = hr.col("sequence")
    left = rows.filter(sequence % 2 == 0)
    # Four of five left rows have a partner of their key and number, a second and a half later.
    right = rows.filter((sequence % 2 == 1) & (sequence % 10 != 3)).select(
        "key", "at", sequence=sequence - 3, other=sequence
    )
    by_key = rows.filter(sequence % 7 == 0).select("key", seventh=sequence)
    named: dict[str, Any] = {
        **_timed(left, right, rows),
        **_untimed(left, right, by_key),
        "beside-a-table": rows.join(by_key.broadcast(), on="key", how="left", uid="beside-a-table"),
        "looked-up": rows.join_lookup(
            squares, on="key", schema={"square": int}, how="inner", uid="looked-up"
        ),
        "grouped": left.co_group(
            right, windows.Session(3 * SECOND), sizes, on="key",
            schema={"key": int, "lefts": int, "rights": int}, uid="grouped",
        ),
    }  # fmt: skip
    for name, result in named.items():
        result.sink_to(sink(name), uid=f"{name}-out")
    near = named["near"]
    near.late_left.sink_to(sink("near-late-left"), uid="near-late-left-out")
    near.late_right.sink_to(sink("near-late-right"), uid="near-late-right-out")


def _timed(left: hr.Stream, right: hr.Stream, rows: hr.Stream) -> dict[str, Any]:
    ten = windows.Tumbling(10 * SECOND)
    return {
        "near": left.interval_join(right, on=PAIR).between(-SECOND, 2 * SECOND, how="full", uid="near"),
        "with-itself": rows.interval_join(rows, on="key").between(
            timedelta(0), SECOND, lower_inclusive=False, uid="with-itself"
        ),
        "in-windows": left.window_join(
            right, ten, on=PAIR, how="full", allowed_lateness=200 * SECOND, uid="in-windows"
        ),
        "in-hops": left.window_join(
            right, windows.Hopping(10 * SECOND, 5 * SECOND), on=PAIR, how="semi", uid="in-hops"
        ),
        "in-sessions": left.window_join(right, windows.Session(2 * SECOND), on=PAIR, uid="in-sessions"),
        "versioned": left.join_versioned(right, on="key", at=left.time, how="left", uid="versioned"),
        "as-of": left.join_asof(
            right, on="key", direction="nearest", tolerance=SECOND, uid="as-of"
        ),
    }  # fmt: skip


def _untimed(left: hr.Stream, right: hr.Stream, by_key: hr.Stream) -> dict[str, Any]:
    full = left.join(right, on=PAIR, how="full", forever=True, uid="all-of-both")
    lefts = left.select("key", "sequence", mark=hr.col("sequence") % 11)
    return {
        "all-of-both": full,
        "without-partner": left.join(right, on=PAIR, how="anti", forever=True, uid="without-partner"),
        "three": left.join(right, lefts, on=PAIR, how="left", forever=True, uid="three"),
"behind-a-join": full.join(lefts, on=PAIR, how="left", forever=True, uid="behind-a-join"),
        "with-last": left.join(
            by_key.key_by("key").last(forever=True, uid="last-seventh"), on="key", forever=True,
            uid="with-last",
        ),
        "best": by_key.key_by("key")
        .first(forever=True, uid="first-seventh")
        .join(lefts, on="key", where=hr.col("sequence") > hr.col("seventh"), forever=True, uid="marked")
        .key_by("key")
        .top(["mark", "sequence"], descending=[True, False], forever=True, uid="best"),
    }  # fmt: skip


NAMES = (
    "near near-late-left near-late-right with-itself in-windows in-hops in-sessions versioned as-of all-of-both"
    " without-partner three behind-a-join with-last best beside-a-table looked-up grouped"
).split()
