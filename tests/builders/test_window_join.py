"""What `window_join` and `co_group` make of what users write, and what they refuse on the line it is written on."""

from datetime import timedelta

import pyarrow as pa
import pytest

from headrace import errors
from headrace._graph.changes import carries_changes
from headrace._graph.join_nodes import WindowJoin
from headrace._graph.nodes import WindowProcess
from headrace.aggregates import count
from headrace.expressions import col
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

SECOND = timedelta(seconds=1)
INSTANT = pa.timestamp("us", tz="UTC")
MINUTE = Tumbling(timedelta(minutes=1))
HOWS = ("inner", "left", "right", "full", "semi", "anti")
ASKS = pa.schema(
    [
        pa.field("auction", pa.int64()),
        pa.field("price", pa.int64()),
        pa.field("gap", pa.duration("us")),
        pa.field("date_time", pa.timestamp("ms", tz="UTC")),
    ]
)


class Days(WindowAssigner):
    def assign(self, row, timestamp):
        day = timestamp.replace(hour=0, minute=0, second=0, microsecond=0)
        yield day, day + timedelta(days=1)


@pytest.fixture
def asks(env, source, strategy):
    return env.from_source(source(ASKS, "asks"), watermarks=strategy, uid="asks")


def node_of(stream):
    return stream._graph.nodes[stream._port.node]


def both(key, window, left, right):
    yield {"auction": key, "rows": len(left) + len(right)}


ROWS = {"auction": int, "rows": int}


@pytest.mark.parametrize(
    "window", [MINUTE, Session(SECOND), Days()], ids=["aligned", "session", "written"]
)
def test_results_have_both_sides_and_the_window(bids, asks, window):
    joined = bids.select("auction", "price", "date_time").window_join(asks, window, on="auction")
    assert joined.schema == pa.schema(
        [
            ("auction", pa.int64()),
            ("price", pa.int64()),
            ("date_time", pa.timestamp("ms", tz="UTC")),
            ("price_right", pa.int64()),
            ("gap", pa.duration("us")),
            ("date_time_right", pa.timestamp("ms", tz="UTC")),
            ("window_start", INSTANT),
            ("window_end", INSTANT),
        ]
    )


@pytest.mark.parametrize("window", [MINUTE, Days()], ids=["aligned", "written"])
@pytest.mark.parametrize("how", HOWS)
def test_results_that_lateness_may_withdraw_say_so(bids, asks, how, window):
    late = bids.window_join(asks, window, on="auction", how=how, allowed_lateness=SECOND)
    told = how not in ("inner", "semi")
    assert ("change" in late.schema.names) is told
    assert carries_changes(late._graph.nodes, late._port) is told
    prompt = bids.window_join(asks, window, on="auction", how=how)
    assert "change" not in prompt.schema.names
    assert not carries_changes(prompt._graph.nodes, prompt._port)


def test_what_is_withdrawn_is_counted_by_a_window_behind(bids, asks):
    late = bids.window_join(asks, Days(), on="auction", how="left", allowed_lateness=SECOND)
    counted = late.key_by("auction").window(MINUTE).aggregate(n=count())
    assert node_of(counted).weighted


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_semi_and_anti_joins_have_the_columns_of_the_left(bids, asks, how):
    joined = bids.window_join(asks, MINUTE, on="auction", how=how)
    assert joined.schema.names == [*bids.schema.names, "window_start", "window_end"]


@pytest.mark.parametrize(
    "window",
    [
        MINUTE,
        Hopping(2 * SECOND, SECOND),
        Cumulating(4 * SECOND, SECOND),
        Tumbling(SECOND, SECOND / 2),
    ],
)
def test_aligned_windows_are_one_step(bids, asks, window):
    before = len(bids._graph.nodes)
    joined = bids.window_join(asks, window, on="auction", allowed_lateness=SECOND, uid="join")
    node = node_of(joined)
    assert isinstance(node, WindowJoin)
    assert (node.window, node.lateness_us, node.uid) == (window, 1_000_000, "join")
    assert len(bids._graph.nodes) == before + 1


@pytest.mark.parametrize("window", [Session(SECOND), Days(), Tumbling(SECOND, time="processing")])
def test_other_windows_are_a_composition_around_one_step_of_that_uid(bids, asks, window):
    bids.window_join(asks, window, on="auction", how="left", uid="join")
    (step,) = [node for node in bids._graph.nodes if node.uid == "join"]
    assert isinstance(step, WindowProcess)
    assert {node.uid for node in bids._graph.nodes if node.uid.startswith("join.")} >= {
        "join.left", "join.right", "join.both", "join.results",
    }  # fmt: skip
    made = [node for node in bids._graph.nodes if node.inputs]
    assert all(node.where.startswith("test_window_join.py") for node in made)
    assert not bids._graph.generated


@pytest.mark.parametrize(
    "window", [MINUTE, Session(SECOND), Days()], ids=["aligned", "session", "written"]
)
def test_late_rows_and_errors_have_their_columns(bids, asks, window):
    joined = bids.window_join(asks, window, on="auction", how="full")
    assert joined.late_left.schema == bids.schema
    assert joined.late_right.schema == asks.schema
    assert "cause" in joined.errors.schema.names
    assert joined.late_left._port == joined.late_left._port


@pytest.mark.parametrize("window", [MINUTE, Session(SECOND)], ids=["aligned", "session"])
def test_late_rows_that_are_dropped_are_nowhere(bids, asks, window):
    joined = bids.window_join(asks, window, on="auction", on_late="drop")
    with pytest.raises(errors.BuildError, match="drop"):
        _ = joined.late_left


@pytest.mark.parametrize("window", [LookBack(SECOND), Count(3), Global()])
def test_windows_without_bounds_are_refused(bids, asks, window):
    with pytest.raises(errors.BuildError, match="begin and end in time"):
        bids.window_join(asks, window, on="auction")
    with pytest.raises(errors.BuildError, match="begin and end in time"):
        bids.co_group(asks, window, both, on="auction", schema=ROWS)


@pytest.mark.parametrize("window", [SECOND, "minute", None, Tumbling])
def test_what_is_no_window_is_refused(bids, asks, window):
    with pytest.raises(errors.BuildError, match=r"window_join takes one of hr\.windows"):
        bids.window_join(asks, window, on="auction")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"how": "outer"}, "how='outer'"),
        ({"on_late": "own_window"}, "on_late='own_window'"),
        ({"allowed_lateness": -SECOND}, "allowed_lateness"),
        ({"allowed_lateness": 3}, "allowed_lateness"),
        ({"suffix": ""}, "two columns"),
    ],
)
@pytest.mark.parametrize("window", [MINUTE, Session(SECOND)], ids=["aligned", "session"])
def test_options_that_cannot_be_are_refused(bids, asks, window, options, said):
    with pytest.raises(errors.BuildError, match=said):
        bids.window_join(asks, window, on="auction", **options)


@pytest.mark.parametrize("window", [MINUTE, Session(SECOND)], ids=["aligned", "session"])
def test_keys_of_other_types_are_refused(bids, asks, window):
    with pytest.raises(errors.SchemaError, match="same types"):
        bids.window_join(asks, window, left_on="channel", right_on="auction")


@pytest.mark.parametrize("window", [MINUTE, Session(SECOND)], ids=["aligned", "session"])
def test_rows_that_are_withdrawn_are_refused(bids, asks, window):
    totals = asks.key_by("auction").window(MINUTE).retracting().aggregate(n=count())
    with pytest.raises(errors.BuildError, match="cannot take back"):
        bids.window_join(totals, window, on="auction")
    with pytest.raises(errors.BuildError, match="cannot take back"):
        totals.co_group(bids, window, both, on="auction", schema=ROWS)


@pytest.mark.parametrize(
    "window", [MINUTE, Session(SECOND), Days()], ids=["aligned", "session", "written"]
)
def test_windows_of_event_time_need_it_on_both_sides(env, source, bids, window):
    timeless = env.from_source(source(ASKS, "timeless"), uid="timeless")
    with pytest.raises(errors.BuildError, match="window_join needs event time"):
        bids.window_join(timeless, window, on="auction")
    with pytest.raises(errors.BuildError, match="co_group needs event time"):
        timeless.co_group(bids, window, both, on="auction", schema=ROWS)


def test_windows_of_the_clock_need_no_event_time(env, source, bids):
    timeless = env.from_source(source(ASKS, "timeless"), uid="timeless")
    window = Tumbling(SECOND, time="processing")
    assert "window_end" in bids.window_join(timeless, window, on="auction").schema.names


def test_sessions_cannot_be_late(bids, asks):
    with pytest.raises(errors.BuildError, match="windows that merge"):
        bids.window_join(asks, Session(SECOND), on="auction", allowed_lateness=SECOND)
    late = bids.co_group(
        asks, Session(SECOND), both, on="auction", schema=ROWS, allowed_lateness=SECOND
    )
    assert node_of(late).lateness_us == 1_000_000


def test_both_sides_need_the_gap_of_a_session(bids, asks):
    with pytest.raises(errors.SchemaError, match="gap"):
        bids.window_join(asks, Session.dynamic("gap"), on="auction")
    with pytest.raises(errors.SchemaError, match="duration"):
        bids.window_join(asks, Session.dynamic(col("price")), on="auction")


def test_a_column_of_the_name_of_a_bound_is_refused(bids, asks):
    taken = asks.select("auction", window_end="date_time")
    for window in (MINUTE, Session(SECOND)):
        with pytest.raises(errors.BuildError, match="'window_end'"):
            bids.window_join(taken, window, on="auction")


def test_the_keys_of_keyed_streams_need_not_be_said(bids, asks):
    for window in (MINUTE, Session(SECOND)):
        joined = bids.key_by("auction").window_join(asks.key_by("auction"), window)
        assert joined.schema.names.count("auction") == 1


def test_a_co_group_has_the_columns_of_its_function(bids, asks):
    assert bids.co_group(asks, MINUTE, both, on="auction", schema=ROWS).schema.names == [
        "auction", "rows",
    ]  # fmt: skip
    with pytest.raises(errors.BuildError, match="cannot tell the columns"):
        bids.co_group(asks, MINUTE, both, on="auction")
    with pytest.raises(errors.BuildError, match="co_group takes a function"):
        bids.co_group(asks, MINUTE, "both", on="auction", schema=ROWS)
