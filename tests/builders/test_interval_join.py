"""`interval_join(...).between(...)`: the step it becomes, and what is refused where it is written."""

from datetime import timedelta

import pyarrow as pa
import pytest

import headrace as hr
from headrace._graph.changes import carries_changes
from headrace._graph.join_nodes import IntervalJoin
from headrace.errors import BuildError, SchemaError
from headrace.joined import IntervalJoinStreams, JoinResult

SECOND = timedelta(seconds=1)
ASKS = pa.schema(
    [("auction", pa.int64()), ("price", pa.int64()), ("at", pa.timestamp("us", "UTC"))]
)


@pytest.fixture
def asks(env, source, strategy):
    return env.from_source(source(ASKS), watermarks=strategy.with_timestamps("at"), uid="asks")


def node_of(stream) -> IntervalJoin:
    node = stream._graph.nodes[stream._port.node]
    assert isinstance(node, IntervalJoin)
    return node


def test_it_is_one_step_with_the_columns_of_both(bids, asks):
    pair = bids.interval_join(asks, on="auction")
    assert isinstance(pair, IntervalJoinStreams)
    assert repr(pair) == "IntervalJoinStreams('bids' and 'asks')"
    joined = pair.between(-2 * SECOND, SECOND, uid="near")
    assert isinstance(joined, JoinResult)
    assert joined.schema.names == [*bids.schema.names, "price_right", "at"]
    node = node_of(joined)
    assert (node.lower_us, node.upper_us, node.how) == (-2_000_000, 1_000_000, "inner")
    assert (node.keys, node.on_late) == ((("auction",), ("auction",)), "side_output")
    assert node.where.startswith("test_interval_join.py:")
    assert not carries_changes(joined._graph.nodes, joined._port)


def test_ends_that_do_not_belong_to_it_are_a_microsecond_nearer(bids, asks):
    joined = bids.interval_join(asks, on="auction").between(
        -SECOND, SECOND, lower_inclusive=False, upper_inclusive=False
    )
    assert (node_of(joined).lower_us, node_of(joined).upper_us) == (-999_999, 999_999)


def test_a_point_is_an_interval_if_both_ends_belong_to_it(bids, asks):
    pair = bids.interval_join(asks, on="auction")
    assert node_of(pair.between(SECOND, SECOND)).lower_us == 1_000_000
    with pytest.raises(BuildError, match="nothing lies between these"):
        pair.between(SECOND, SECOND, upper_inclusive=False)


def test_keyed_streams_bring_their_keys(bids, asks):
    pair = bids.key_by("auction").interval_join(asks.key_by("auction"))
    assert node_of(pair.between(-SECOND, SECOND)).keys == (("auction",), ("auction",))


def test_late_rows_and_dead_letters_have_their_columns(bids, asks):
    joined = bids.interval_join(asks, on="auction").between(-SECOND, SECOND, how="full")
    assert joined.late_left.schema == bids.schema
    assert joined.late_right.schema == asks.schema
    assert "cause" in joined.errors.schema.names


def test_late_rows_that_are_dropped_are_nowhere(bids, asks):
    joined = bids.interval_join(asks, on="auction").between(-SECOND, SECOND, on_late="drop")
    for output in ("late_left", "late_right"):
        with pytest.raises(BuildError, match=r"drops late rows.*without it they are here"):
            getattr(joined, output)


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ((1, SECOND), r"between\(lower=1\): it is a timedelta, negative for what lies before"),
        ((SECOND, "1 s"), r"between\(upper='1 s'\): it is a timedelta"),
        ((SECOND, -SECOND), "nothing lies between these; lower is the distance of the earliest"),
        ((timedelta.min, SECOND), r"lower=.*no two rows are that far apart.* use join\("),
        ((SECOND, timedelta.max), r"upper=.*no two rows are that far apart"),
    ],
)
def test_intervals_that_cannot_be_are_refused(bids, asks, ends, told):
    with pytest.raises(BuildError, match=told):
        bids.interval_join(asks, on="auction").between(*ends)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"how": "semi"}, "how='semi': choose 'inner', 'left', 'right', 'full'"),
        ({"how": "outer"}, "how='outer': choose 'inner'"),
        ({"on_late": "keep"}, "on_late='keep': choose 'side_output', 'drop'"),
    ],
)
def test_options_that_cannot_be_are_refused(bids, asks, options, told):
    with pytest.raises(BuildError, match=told):
        bids.interval_join(asks, on="auction").between(-SECOND, SECOND, **options)


def test_both_sides_need_event_time(env, source, bids, asks):
    timeless = env.from_source(source(ASKS), uid="timeless")
    for pair in (
        bids.interval_join(timeless, on="auction"),
        timeless.interval_join(asks, on="auction"),
    ):
        with pytest.raises(
            BuildError, match=r"interval_join .*'timeless' \(.*\) has no watermark strategy"
        ):
            pair.between(-SECOND, SECOND)


def test_rows_that_are_withdrawn_are_refused_on_either_side(bids, asks):
    window = hr.windows.Tumbling(10 * SECOND)
    counts = (
        bids.key_by("auction").window(window).retracting().aggregate(n=hr.count(), uid="counts")
    )
    told = r"'counts' withdraws earlier results.*interval_join cannot take back.*use join\("
    for pair in (
        counts.interval_join(asks, on="auction"),
        asks.interval_join(counts, on="auction"),
    ):
        with pytest.raises(BuildError, match=told):
            pair.between(-SECOND, SECOND)


def test_only_streams_of_one_environment_are_joined(bids, source):
    elsewhere = hr.Environment("other").from_source(source(ASKS), uid="elsewhere")
    with pytest.raises(BuildError, match="'elsewhere' belongs to another Environment"):
        bids.interval_join(elsewhere, on="auction")
    with pytest.raises(BuildError, match="A join takes streams or keyed streams, not 'asks'"):
        bids.interval_join("asks", on="auction")


def test_a_stream_may_be_joined_with_itself(bids):
    joined = bids.interval_join(bids, on="auction").between(-SECOND, SECOND, uid="itself")
    assert node_of(joined).inputs[0] == node_of(joined).inputs[1]
    assert joined.schema.names[-1] == "local_time_right"


def test_types_of_keys_must_agree(bids, asks):
    with pytest.raises(
        SchemaError, match=r"\(channel: string\) and \(auction: int64\).*with select or map"
    ):
        bids.interval_join(asks, left_on="channel", right_on="auction").between(-SECOND, SECOND)


def test_explain_shows_what_lies_before_as_it_is_said(env, bids, asks, sink):
    joined = bids.interval_join(asks, on="auction").between(
        -2 * SECOND, timedelta(hours=1), how="left", uid="near"
    )
    joined.sink_to(sink, uid="out")
    assert "left interval join between -0:00:02 and 1:00:00 by auction and auction" in env.explain()
