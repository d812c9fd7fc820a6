"""What `join_versioned` makes of streams, and what it refuses."""

from datetime import timedelta

import pyarrow as pa
import pytest

from headrace import aggregates as agg
from headrace._graph.join_nodes import AsOfJoin
from headrace._graph.nodes import LATE, LATE_RIGHT
from headrace.environment import Environment
from headrace.errors import BuildError, SchemaError
from headrace.windows import Tumbling

ORDERS = pa.schema(
    [
        ("id", pa.int64()),
        ("currency", pa.string()),
        ("price", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
RATES = pa.schema(
    [
        ("currency", pa.string()),
        ("rate", pa.float64()),
        ("price", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


@pytest.fixture
def orders(env, source, strategy):
    return env.from_source(source(ORDERS), uid="orders", watermarks=strategy.with_timestamps("at"))


@pytest.fixture
def rates(env, source, strategy):
    return env.from_source(source(RATES), uid="rates", watermarks=strategy.with_timestamps("at"))


def node_of(stream) -> AsOfJoin:
    node = stream._graph.nodes[stream._port.node]
    assert isinstance(node, AsOfJoin)
    return node


def test_columns_of_the_left_then_those_of_the_version(orders, rates):
    joined = orders.join_versioned(rates, on="currency", at=orders.time, uid="in-euros")
    assert joined.schema.names == "id currency price at rate price_right at_right".split()
    node = node_of(joined)
    assert (node.uid, node.how, node.direction) == ("in-euros", "inner", "backward")
    assert node.tolerance_us is None
    assert (node.exact, node.versions_end, node.wait_us) == (True, False, 0)
    assert str(node) == "backward as-of join"
    assert node.where.startswith("test_join_versioned.py:")


def test_keys_of_other_names_and_another_suffix(orders, rates):
    codes = rates.select("rate", "price", code="currency")
    joined = orders.join_versioned(
        codes, left_on=["currency"], right_on=["code"], how="left", suffix="_then", uid="join"
    )
    assert joined.schema.names == "id currency price at rate price_then code".split()
    assert node_of(joined).keys == (("currency",), ("code",))


def test_keyed_streams_bring_their_keys(orders, rates):
    keyed = orders.key_by("currency")
    joined = keyed.join_versioned(rates.key_by("currency"), at=keyed.time, uid="join")
    assert node_of(joined).keys == (("currency",), ("currency",))


def test_late_rows_of_both_sides_are_outputs(orders, rates):
    joined = orders.join_versioned(rates, on="currency", uid="join")
    assert joined.late_left.schema == ORDERS
    assert joined.late_right.schema == RATES
    assert (joined.late_left._port.output, joined.late_right._port.output) == (LATE, LATE_RIGHT)
    dropped = orders.join_versioned(rates, on="currency", on_late="drop", uid="dropping")
    with pytest.raises(BuildError, match="'dropping' drops late rows"):
        _ = dropped.late_right


def test_a_right_side_with_changes_ends_versions(orders, rates):
    counts = (
        rates.key_by("currency").window(Tumbling(timedelta(minutes=1))).retracting()
        .aggregate(rates=agg.count(), uid="counts")
    )  # fmt: skip
    joined = orders.join_versioned(counts, on="currency", uid="join")
    assert node_of(joined).versions_end
    assert "change" not in joined.schema.names


def test_a_left_side_with_changes_is_refused(orders, rates):
    counts = (
        orders.key_by("currency").window(Tumbling(timedelta(minutes=1))).retracting()
        .aggregate(orders=agg.count(), uid="counts")
    )  # fmt: skip
    with pytest.raises(BuildError, match=r"'counts' withdraws earlier results.*join_versioned"):
        counts.join_versioned(rates, on="currency", uid="join")


@pytest.mark.parametrize("at", ["at", 5])
def test_a_time_that_is_no_event_time_is_refused(orders, rates, at):
    with pytest.raises(BuildError, match=r"join_versioned\(at=...\) takes the event time"):
        orders.join_versioned(rates, on="currency", at=at, uid="join")


def test_the_time_of_another_stream_is_refused(orders, rates):
    with pytest.raises(BuildError, match="not the time of another stream"):
        orders.join_versioned(rates, on="currency", at=rates.time, uid="join")


def test_streams_without_event_time_are_refused(env, orders, rates, source):
    plain = env.from_source(source(RATES), uid="plain")
    with pytest.raises(BuildError, match=r"join_versioned needs event time, but .*'plain'"):
        orders.join_versioned(plain, on="currency", uid="join")
    with pytest.raises(BuildError, match=r"join_versioned needs event time, but .*'plain'"):
        plain.join_versioned(rates, on="currency", uid="join")


@pytest.mark.parametrize("how", ["right", "full", "semi", "anti", None, "outer"])
def test_other_kinds_are_refused(orders, rates, how):
    with pytest.raises(BuildError, match="choose 'inner', 'left'"):
        orders.join_versioned(rates, on="currency", how=how, uid="join")


def test_keys_that_cannot_be_compared_are_refused(orders, rates):
    with pytest.raises(SchemaError, match=r"\(id: int64\) and \(currency: string\)"):
        orders.join_versioned(rates, left_on="id", right_on="currency", uid="join")
    with pytest.raises(BuildError, match="needs keys"):
        orders.join_versioned(rates, uid="join")
    with pytest.raises(BuildError, match="left_on= and right_on= together"):
        orders.join_versioned(rates, left_on="id", uid="join")


def test_what_is_no_stream_or_of_another_job_is_refused(orders, source, strategy):
    with pytest.raises(BuildError, match="takes streams or keyed streams"):
        orders.join_versioned("rates", on="currency", uid="join")
    other = Environment("other").from_source(
        source(RATES), uid="rates", watermarks=strategy.with_timestamps("at")
    )
    with pytest.raises(BuildError, match="another Environment"):
        orders.join_versioned(other, on="currency", uid="join")


def test_a_stream_may_be_joined_with_itself(orders):
    joined = orders.join_versioned(orders, on="currency", uid="join")
    assert joined.schema.names == "id currency price at id_right price_right at_right".split()
