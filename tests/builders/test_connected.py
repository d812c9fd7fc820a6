"""What `connect`, `broadcast` and a rolling `reduce` make of streams, and what they refuse."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
import pytest

import headrace as hr
from headrace._graph import nodes
from headrace._graph.changes import carries_changes
from headrace.connected import BroadcastConnectedStream
from headrace.errors import BuildError, SchemaError, UnboundedStateWarning

RULES = pa.schema([pa.field("name", pa.string()), pa.field("least", pa.int64())])
SALES = pa.schema(
    [
        pa.field("item", pa.int64()),
        pa.field("price", pa.int64()),
        pa.field("at", pa.timestamp("us", "UTC")),
    ]
)


@dataclass
class Found:
    auction: int


class Match(hr.KeyedCoProcessFunction):
    bid: hr.state.Value[int] = hr.state.FOREVER

    def process_element1(self, value, ctx) -> Iterator[Found]:
        yield Found(value.auction)

    def process_element2(self, value, ctx) -> Iterator[Found]:
        yield Found(value.item)


class Merge(hr.CoProcessFunction):
    def process_element1(self, value, ctx) -> Iterator[Found]:
        yield Found(value.auction)

    def process_element2(self, value, ctx) -> Iterator[Found]:
        yield Found(1)


class Check(hr.KeyedBroadcastProcessFunction):
    rules: hr.state.Broadcast[str, int]
    seen: hr.state.Value[int] = hr.state.FOREVER

    def process_element(self, value, ctx) -> Iterator[Found]:
        yield Found(value.auction)

    def process_broadcast_element(self, value, ctx):
        self.rules[value.name] = value.least


class CheckAll(hr.BroadcastProcessFunction):
    rules: hr.state.Broadcast[str, int]

    def process_element(self, value, ctx) -> Iterator[Found]:
        yield Found(value.auction)

    def process_broadcast_element(self, value, ctx):
        self.rules[value.name] = value.least


def _plain(row, ctx) -> Iterator[Found]: ...


@pytest.fixture
def rules(env, source):
    return env.from_source(source(RULES), uid="rules")


@pytest.fixture
def sales(env, source, strategy):
    return env.from_source(source(SALES), uid="sales", watermarks=strategy.with_timestamps("at"))


def test_keyed_streams_share_the_state_of_a_key(env, bids, sales):
    result = bids.connect(sales).key_by("auction", "item").process(Match(), uid="match")
    node = env._graph.nodes[-1]
    assert isinstance(node, nodes.KeyedProcess)
    assert (node.kind, node.keys, node.ordered) == ("co", (("auction",), ("item",)), False)
    assert [port.node for port in node.inputs] == [0, 1]
    assert [spec.name for spec in node.states] == ["bid"]
    assert result.schema.names == ["auction"]
    assert node.time_inputs == node.inputs


def test_streams_that_are_keyed_already_are_connected_the_same_way(env, bids, sales):
    bids.key_by("auction").connect(sales.key_by("item")).process(Match(), uid="match")
    assert env._graph.nodes[-1].keys == (("auction",), ("item",))


def test_keys_may_be_several_columns_or_functions(env, bids, sales):
    pair = bids.connect(sales)
    pair.key_by(["auction", "price"], ["item", "price"]).process(Match(), uid="two-columns")
    assert env._graph.nodes[-1].keys == (("auction", "price"), ("item", "price"))

    def even(row) -> bool:
        return row.auction % 2 == 0

    def odd(row) -> bool:
        return row.item % 2 == 1

    pair.key_by(even, odd).process(Match(), uid="match")
    assert env._graph.nodes[-1].keys == (("key",), ("key",))


def test_the_type_of_what_lambdas_return_can_be_said(env, bids, sales):
    pair = bids.connect(sales)
    with pytest.raises(BuildError, match="pass key_type="):
        pair.key_by("auction", lambda row: row.item)
    pair.key_by("auction", lambda row: row.item, key_type=int).process(Match(), uid="match")
    assert env._graph.nodes[-1].keys == (("auction",), ("key",))


def test_key_types_must_agree(bids, sales):
    with pytest.raises(
        SchemaError, match=r"\(channel: string\) and \(item: int64\).*with select or map"
    ):
        bids.connect(sales).key_by("channel", "item")
    with pytest.raises(SchemaError, match=r"\(auction: int64, channel: string\) and \(item"):
        bids.key_by("auction", "channel").connect(sales.key_by("item"))


def test_one_keyed_stream_and_one_without_are_refused(bids, sales):
    with pytest.raises(BuildError, match=r"two without.*other\.broadcast\(\)"):
        bids.key_by("auction").connect(sales)
    with pytest.raises(BuildError, match="two streams with keys or two without"):
        bids.connect(sales.key_by("item"))
    with pytest.raises(BuildError, match="have keys already"):
        bids.key_by("auction").connect(sales.key_by("item")).key_by("auction", "item")


def test_without_keys_the_step_is_not_keyed(env, bids, sales):
    bids.connect(sales).process(Merge(), uid="merge")
    node = env._graph.nodes[-1]
    assert isinstance(node, nodes.RowProcess)
    assert len(node.inputs) == len(node.input_schemas) == 2


def test_the_class_must_fit_the_streams(bids, sales, rules):
    with pytest.raises(BuildError, match=r"derived from hr.CoProcessFunction"):
        bids.connect(sales).process(Match())
    with pytest.raises(BuildError, match=r"derived from hr.KeyedCoProcessFunction"):
        bids.connect(sales).key_by("auction", "item").process(Merge())
    with pytest.raises(BuildError, match=r"takes an instance: CheckAll\(\)"):
        bids.connect(rules.broadcast()).process(CheckAll)
    with pytest.raises(BuildError, match=r"derived from hr.KeyedBroadcastProcessFunction"):
        bids.key_by("auction").connect(rules.broadcast()).process(CheckAll())
    with pytest.raises(BuildError, match="needs two methods"):
        bids.connect(rules.broadcast()).process(_plain)
    with pytest.raises(BuildError, match=r"derived from hr.CoProcessFunction"):
        bids.connect(sales).process(_plain)


def test_broadcast_with_keys_and_without(env, bids, rules):
    pair = bids.key_by("auction").connect(rules.broadcast())
    assert isinstance(pair, BroadcastConnectedStream)
    pair.process(Check(), uid="check")
    node = env._graph.nodes[-1]
    assert (node.kind, node.keys) == ("broadcast", (("auction",), ()))
    assert node.time_inputs == node.inputs[:1]
    bids.connect(rules.broadcast()).process(CheckAll(), uid="check-all")
    node = env._graph.nodes[-1]
    assert (node.kind, node.keys) == ("broadcast", ((), ()))


def test_what_is_no_stream_cannot_be_connected(bids, source):
    with pytest.raises(BuildError, match="connect takes a stream"):
        bids.connect("rules")
    other = hr.Environment("other").from_source(source(RULES), uid="elsewhere")
    with pytest.raises(BuildError, match="'elsewhere' belongs to another Environment"):
        bids.connect(other)
    with pytest.raises(BuildError, match="'elsewhere' belongs to another Environment"):
        bids.connect(other.broadcast())


def test_order_needs_keys_and_time_on_both_sides(env, bids, sales, rules):
    with pytest.raises(BuildError, match="for streams with keys"):
        bids.connect(sales).process(Merge(), ordered=True)
    with pytest.raises(BuildError, match=r"the source 'rules' \(.*\) has no watermark strategy"):
        bids.connect(rules).key_by("channel", "name").process(Match(), ordered=True)


def test_late_rows_of_both_have_the_columns_of_both(bids, sales):
    both = bids.connect(sales).key_by("auction", "item").process(Match(), ordered=True, uid="m")
    assert both.late.schema.names == [*bids.schema.names, "item", "at"]
    renamed = sales.select("item", price="at")
    with pytest.raises(SchemaError, match=r"'price' is int64 in the first and timestamp.us,"):
        bids.connect(renamed).key_by("auction", "item").process(Match(), ordered=True)


def test_functions_see_changes_on_either_side_and_what_they_yield_is_none(bids, sales):
    window = hr.windows.Tumbling(timedelta(seconds=10))
    counts = bids.key_by("auction").window(window).retracting().aggregate(n=hr.count())
    matched = sales.connect(counts).key_by("item", "auction").process(Match())
    assert not carries_changes(matched._graph.nodes, matched._port)
    checked = sales.connect(counts.broadcast()).process(CheckAll())
    assert not carries_changes(checked._graph.nodes, checked._port)


def test_state_must_fit_the_function(bids, sales, rules):
    class Unkeyed(CheckAll):
        seen: hr.state.Value[int]

    class Mixed(Match):
        rules: hr.state.Broadcast[str, int]

    class Items(Match):
        items: hr.state.OperatorList[int]

    with pytest.raises(BuildError, match=r"Unkeyed.seen: hr.state.Value.*call key_by"):
        bids.connect(rules.broadcast()).process(Unkeyed())
    with pytest.raises(BuildError, match=r"Mixed.rules: hr.state.Broadcast.*broadcast rows"):
        bids.connect(sales).key_by("auction", "item").process(Mixed())
    with pytest.raises(BuildError, match=r"Items.items: hr.state.OperatorList.*without keys"):
        bids.connect(sales).key_by("auction", "item").process(Items())


def test_a_function_without_keys_that_declares_state_gets_shards(env, bids, sales):
    class Numbered(hr.ProcessFunction):
        seen: hr.state.OperatorList[int]

        def process_element(self, value, ctx) -> Iterator[Found]: ...

    class Both(Merge):
        seen: hr.state.OperatorUnion[int]

    bids.process(Numbered(), uid="numbered")
    node = env._graph.nodes[-1]
    assert isinstance(node, nodes.KeyedProcess)
    assert (node.kind, node.keys) == ("keyed", ((),))
    bids.connect(sales).process(Both(), uid="both")
    node = env._graph.nodes[-1]
    assert isinstance(node, nodes.KeyedProcess)
    assert (node.kind, node.keys) == ("co", ((), ()))


class Later(hr.ReduceFunction):
    def reduce(self, a, b):
        return b


@pytest.mark.parametrize("function", [Later(), max, Later().reduce])
def test_reduce_keeps_the_columns(env, bids, function):
    reduced = bids.key_by("auction").reduce(function, forever=True, uid="last")
    node = env._graph.nodes[-1]
    assert isinstance(node, nodes.KeyedProcess)
    assert reduced.schema.equals(bids.schema)
    assert [(s.name, s.kind, s.type) for s in node.states] == [
        ("row", "reducing", pa.struct(list(bids.schema)))
    ]
    assert reduced.errors.uid == "last"


def test_reduce_says_what_it_needs(bids):
    keyed = bids.key_by("auction")
    with pytest.raises(BuildError, match=r"takes an instance: Later\(\)"):
        keyed.reduce(Later)
    with pytest.raises(BuildError, match="function of two rows that returns a row"):
        keyed.reduce("last")
    with pytest.raises(BuildError, match=r"with two rows, but the lambda takes \(a\)"):
        keyed.reduce(lambda a: a)


def test_reduce_warns_of_keys_that_grow(bids):
    with pytest.warns(UnboundedStateWarning, match="a row for every 'auction'"):
        bids.key_by("auction").reduce(max, uid="last")
