"""Window joins and co-groups as jobs: all kinds of windows, all outputs, whatever happens on the way."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

import headrace as hr
from headrace._local.job import POINTS
from headrace.testing import run_local
from headrace.windows import Cumulating, Hopping, Session, Tumbling
from tests.local.window_joins import (
    SECOND,
    Shifts,
    all_pairs,
    build,
    epochs_of,
    expected,
    found,
    grouped,
    without_keys,
)

HOWS = ("inner", "left", "right", "full", "semi", "anti")
#: Ways to disturb a run; none may show.
RUNS: list[dict[str, Any]] = [
    {"shards": 1},
    {"shards": 3, "tasks": 2},
    {"shards": 2, "rescale": {2: 3, 4: 1}},
    {"shards": 2, "crashes": [(n, point) for n, point in enumerate(POINTS)], "rescale": {3: 3}},
]
runs = pytest.mark.parametrize("run", RUNS, ids=["calm", "tasks", "rescaled", "crashed"])


def joined(window: Any, how: str, lateness: int = 0) -> Any:
    """The step, as users write it."""
    return lambda clicks, views: clicks.window_join(
        views, window, on="user", how=how, allowed_lateness=lateness * SECOND, uid="join"
    )


@pytest.mark.sampled
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("lateness", [0, 4])
@pytest.mark.parametrize(
    "window",
    [
        Tumbling(5 * SECOND),
        Hopping(6 * SECOND, 2 * SECOND),
        Cumulating(6 * SECOND, 3 * SECOND),
        Shifts(),
    ],
    ids=["tumbling", "hopping", "cumulating", "written"],
)
def test_windows_that_do_not_merge(window: Any, how: str, lateness: int) -> None:
    env, sinks, rows = build(len(how) + lateness, joined(window, how, lateness))
    result = run_local(env, shards=2)
    right = expected(window, epochs_of(result, rows), how=how, lateness_us=lateness * 1_000_000)
    assert found(sinks) == right
    assert right["results"]
    assert right["late_left"] or right["late_right"]


@runs
@pytest.mark.parametrize("window", [Tumbling(5 * SECOND), Shifts()], ids=["tumbling", "written"])
def test_disturbances_do_not_show(window: Any, run: Any) -> None:
    env, sinks, rows = build(7, joined(window, "full", 8))
    result = run_local(env, **run)
    assert found(sinks) == expected(
        window, epochs_of(result, rows), how="full", lateness_us=8_000_000
    )


@pytest.mark.sampled
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(
    ("window", "written"),
    [
        (Session(2 * SECOND), None),
        (Session.dynamic("gap"), None),
        (Session.dynamic(lambda row: row.gap), None),
        (Session.dynamic(lambda row: row.gap + SECOND), Session.dynamic(hr.col("gap") + SECOND)),
    ],
    ids=["one gap", "column", "function", "expression"],
)
def test_sessions(window: Any, written: Any, how: str) -> None:
    env, sinks, rows = build(3, joined(written or window, how))
    result = run_local(env, shards=2)
    epochs = epochs_of(result, rows)
    right = grouped(window, epochs, all_pairs(how))
    lonely = without_keys(window, epochs, how)
    came = found(sinks)
    for output in ("results", "late_left", "late_right"):
        assert came[output] == right[output] + lonely[output], output
    assert came["errors"] == right["errors"] - lonely["errors"]
    if how not in ("inner", "semi"):
        assert lonely["results"]
        # Of the epochs that were durable, each row once.
        assert result.metrics["join.null_keys"]["null_keys"] == sum(lonely["errors"].values())


@runs
def test_sessions_that_are_disturbed(run: Any) -> None:
    env, sinks, rows = build(5, joined(Session(2 * SECOND), "inner"))
    result = run_local(env, **run)
    assert found(sinks) == grouped(Session(2 * SECOND), epochs_of(result, rows), all_pairs("inner"))


@pytest.mark.parametrize("how", ["inner", "full", "anti"])
@pytest.mark.parametrize(
    "window", [Tumbling(3 * SECOND, time="processing"), Session(SECOND, time="processing")]
)
def test_windows_of_the_clock(window: Any, how: str) -> None:
    # Which rows share a window is decided by the epochs; all rows of a key and window meet.
    env, sinks, rows = build(2, joined(window, how))
    result = run_local(env, shards=2)
    told = epochs_of(result, rows, "processing")
    right = grouped(window, told, all_pairs(how))["results"]
    alone = [row for row in found(sinks)["results"].elements() if dict(row)["user"] is None]
    assert found(sinks)["results"] - type(right)(alone) == right
    assert right or how == "anti"


def tell(key: str, window: Any, left: list[Any], right: list[Any]) -> Iterator[dict[str, Any]]:
    """How many rows there are of each side, and which was the last."""
    yield {
        "user": key,
        "start": window.start,
        "clicks": len(left),
        "views": len(right),
        "last": max((row.page for row in right), default=None),
    }
    if left and right:
        yield {
            "user": key,
            "start": window.end,
            "clicks": sum(row.n for row in left),
            "views": 0,
            "last": "",
        }


TOLD = {"user": str, "start": datetime, "clicks": int, "views": int, "last": str}


@pytest.mark.parametrize("lateness", [0, 6])
@pytest.mark.parametrize(
    "window",
    [
        Tumbling(5 * SECOND),
        Hopping(6 * SECOND, 2 * SECOND),
        Session(2 * SECOND),
        Session.dynamic("gap"),
        Shifts(),
    ],
    ids=["tumbling", "hopping", "session", "gaps", "written"],
)
@pytest.mark.parametrize("run", RUNS[1::2], ids=["tasks", "crashed"])
def test_co_group(window: Any, lateness: int, run: Any) -> None:
    env, sinks, rows = build(
        11,
        lambda clicks, views: clicks.co_group(
            views,
            window,
            tell,
            on="user",
            schema=TOLD,
            allowed_lateness=lateness * SECOND,
            uid="both",
        ),
    )
    result = run_local(env, **run)
    assert found(sinks) == grouped(window, epochs_of(result, rows), tell, lateness * 1_000_000)


@pytest.mark.parametrize(
    "window", [Tumbling(5 * SECOND), Session(SECOND)], ids=["aligned", "session"]
)
def test_a_join_of_a_stream_with_itself_has_all_pairs(window: Any) -> None:
    env, sinks, _ = build(
        4,
        lambda clicks, _: clicks.window_join(clicks, window, on="user", how="full", uid="join"),
    )
    run_local(env, shards=2)
    results = sinks["results"].to_pylist()
    # Each row meets at least itself, but for those without a key, which come out twice.
    met = {row["n"] for row in results if row["n"] == row["n_right"] is not None}
    keyed = {row["n"] for row in results if row["user"] is not None}
    assert met == keyed
    alone = [(row["n"], row["n_right"]) for row in results if row["user"] is None]
    assert sorted(left for left, _ in alone if left is not None) == sorted(
        right for _, right in alone if right is not None
    )


def test_keys_of_several_columns_and_other_names_reach_the_function() -> None:
    env, sinks, _ = build(
        6,
        lambda clicks, views: clicks.select("user", "n", "at").co_group(
            views.select("page", "at", who="user", m=hr.lit(0)),
            Tumbling(50 * SECOND),
            lambda key, _, __, right: [{"key": repr(key), "views": [r.page for r in right]}],
            left_on=["user", "n"],
            right_on=["who", "m"],
            schema={"key": str, "views": list[str]},
            uid="both",
        ),
    )
    run_local(env, shards=2)
    keys = [row["key"] for row in sinks["results"].to_pylist()]
    assert "('a', 0)" in keys
