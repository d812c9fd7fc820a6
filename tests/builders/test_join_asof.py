"""What `join_asof` makes of streams, and what it refuses."""

from datetime import timedelta

import pyarrow as pa
import pytest

from headrace._graph.join_nodes import AsOfJoin
from headrace.errors import BuildError

SECOND = timedelta(seconds=1)
TRADES = pa.schema(
    [("symbol", pa.string()), ("price", pa.float64()), ("at", pa.timestamp("us", "UTC"))]
)
QUOTES = pa.schema(
    [("symbol", pa.string()), ("bid", pa.float64()), ("at", pa.timestamp("us", "UTC"))]
)


@pytest.fixture
def trades(env, source, strategy):
    return env.from_source(source(TRADES), uid="trades", watermarks=strategy.with_timestamps("at"))


@pytest.fixture
def quotes(env, source, strategy):
    return env.from_source(source(QUOTES), uid="quotes", watermarks=strategy.with_timestamps("at"))


def node_of(stream) -> AsOfJoin:
    node = stream._graph.nodes[stream._port.node]
    assert isinstance(node, AsOfJoin)
    return node


def test_without_options_it_looks_backward_and_keeps_all_rows(trades, quotes):
    joined = trades.join_asof(quotes, on="symbol", uid="quoted")
    node = node_of(joined)
    assert (node.how, node.direction, node.tolerance_us, node.exact) == (
        "left",
        "backward",
        None,
        True,
    )
    assert joined.schema.names == ["symbol", "price", "at", "bid", "at_right"]


@pytest.mark.parametrize(
    ("direction", "wait", "text"),
    [("backward", 0, "backward"), ("forward", 2, "forward"), ("nearest", 2, "nearest")],
)
def test_rows_wait_as_long_as_they_look_forward(trades, quotes, direction, wait, text):
    joined = trades.join_asof(
        quotes, on="symbol", direction=direction, tolerance=2 * SECOND, how="inner",
        allow_exact_matches=False, uid="quoted",
    )  # fmt: skip
    node = node_of(joined)
    assert (node.wait_us, node.tolerance_us) == (wait * 1_000_000, 2_000_000)
    assert not node.exact
    assert str(node) == f"{text} as-of join within 0:00:02"


@pytest.mark.parametrize("direction", ["forward", "nearest"])
def test_looking_forward_without_end_is_refused(trades, quotes, direction):
    with pytest.raises(BuildError, match=f'direction="{direction}".* needs a tolerance'):
        trades.join_asof(quotes, on="symbol", direction=direction, uid="quoted")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"direction": "sideways"},
            "direction='sideways': choose 'backward', 'forward', 'nearest'",
        ),
        ({"tolerance": 5}, r"join_asof\(tolerance=...\) must be a datetime.timedelta"),
        ({"tolerance": -SECOND}, "must not be negative"),
        ({"tolerance": timedelta.max}, "longer than time itself"),
        ({"tolerance": timedelta(0), "allow_exact_matches": False}, "finds nothing"),
        ({"how": "full"}, "how='full': choose 'inner', 'left'"),
        ({"on_late": "ignore"}, "on_late='ignore': choose 'side_output', 'drop'"),
    ],
)
def test_other_options_are_refused(trades, quotes, options, message):
    with pytest.raises(BuildError, match=message):
        trades.join_asof(quotes, on="symbol", uid="quoted", **options)


def test_streams_without_event_time_are_refused(env, trades, source):
    plain = env.from_source(source(QUOTES), uid="plain")
    with pytest.raises(BuildError, match=r"join_asof needs event time, but .*'plain'"):
        trades.join_asof(plain, on="symbol", uid="quoted")
