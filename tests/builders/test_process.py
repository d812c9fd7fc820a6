"""What builders make of functions on rows: columns, outputs, what becomes of failures, where rows go."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

import headrace as hr
from headrace import errors
from headrace._graph import nodes
from headrace.connectors.memory import MemorySource


@dataclass
class Priced:
    price: int


ALERTS = hr.OutputTag("alerts", {"text": str})


class Alerting(hr.ProcessFunction):
    alerts = ALERTS

    def process_element(self, value, ctx) -> Iterator[Priced]:
        yield Priced(value.price)


class Keyed(hr.KeyedProcessFunction):
    def process_element(self, value, ctx) -> Iterator[Priced]:
        yield Priced(value.price)


def plain(row, ctx) -> Iterator[Priced]:
    yield Priced(row.price)


def node_of(stream):
    return stream._graph.nodes[stream._port.node]


class TestProcess:
    @pytest.mark.parametrize("function", [Alerting(), plain])
    def test_columns_come_from_the_annotation(self, bids, function):
        made = bids.process(function, uid="it")
        assert made.schema.names == ["price"]
        assert isinstance(node_of(made), nodes.RowProcess)

    def test_side_outputs_are_attributes_of_the_class(self, bids):
        assert bids.process(Alerting()).side_output(ALERTS).schema.names == ["text"]

    def test_a_limit_is_a_duration(self, bids):
        assert node_of(bids.process(plain, limit=timedelta(seconds=2))).limit_us == 2_000_000
        with pytest.raises(errors.BuildError, match=r"limit must be a datetime\.timedelta"):
            bids.process(plain, limit=2)

    @pytest.mark.parametrize(
        ("function", "told"),
        [
            (Alerting, r"an instance: Alerting\(\)"),
            (lambda _: [], "two arguments"),
            (7, "hr.ProcessFunction"),
            (Keyed(), r"not Keyed, which is an hr\.KeyedProcessFunction; .* call key_by"),
        ],
    )
    def test_what_is_no_function_is_refused(self, bids, function, told):
        with pytest.raises(errors.BuildError, match=told):
            bids.process(function, schema=Priced)


STEPS = {
    "map": lambda s, **said: s.map(lambda row: row, schema=Priced, **said),
    "flat_map": lambda s, **said: s.flat_map(lambda row: [row], schema=Priced, **said),
    "filter": lambda s, **said: s.filter(lambda _: True, **said),
    "map_batches": lambda s, **said: s.map_batches(lambda batch: batch, **said),
    "key_by": lambda s, **said: s.key_by(lambda _: 1, key_type=int, **said),
    "split": lambda s, **said: s.split(big=lambda _: True, **said),
    "process": lambda s, **said: s.process(plain, **said),
}


class TestErrors:
    @pytest.mark.parametrize("step", STEPS)
    def test_dead_letters_are_an_output(self, bids, step):
        dead = STEPS[step](bids, on_error="dead_letter").errors
        assert dead.schema.equals(nodes.ERRORS_SCHEMA)
        assert node_of(dead).on_error == "dead_letter"

    @pytest.mark.parametrize("step", STEPS)
    def test_without_them_there_is_no_such_output(self, bids, step):
        with pytest.raises(errors.BuildError, match=rf'{step}\(.*on_error="dead_letter"\)'):
            _ = STEPS[step](bids).errors

    @pytest.mark.parametrize("step", STEPS)
    def test_there_are_two_choices(self, bids, step):
        with pytest.raises(errors.BuildError, match='must be "fail" or "dead_letter"'):
            STEPS[step](bids, on_error="drop")

    def test_steps_without_code_have_none(self, bids):
        with pytest.raises(errors.BuildError, match="calls no code"):
            _ = bids.select("price").errors
        with pytest.raises(errors.BuildError, match="only with a function"):
            bids.filter(hr.col("price") > 1, on_error="dead_letter")
        with pytest.raises(errors.BuildError, match="only with a function"):
            bids.key_by("price", on_error="dead_letter")

    def test_other_outputs_have_none_of_their_own(self, bids):
        made = bids.process(Alerting(), on_error="dead_letter")
        with pytest.raises(errors.BuildError, match=r"'alerts' of .* has no errors of its own"):
            _ = made.side_output(ALERTS).errors

    def test_the_errors_of_sources_stay_what_they_were(self, bids):
        assert bids.errors.schema.equals(nodes.ERRORS_SCHEMA)


class TestSplit:
    def test_streams_are_found_by_name(self, bids):
        parts = bids.split(big=hr.col("price") > 100, small=lambda _: True)
        assert parts.names == ("big", "small")
        assert parts.big._port == parts["big"]._port
        assert parts.rest._port == parts["rest"]._port
        assert parts.big.schema == parts.rest.schema == bids.schema
        assert repr(parts) == "SplitStreams('split-1': big, small, rest)"

    @pytest.mark.parametrize(
        ("said", "told"),
        [
            ({}, "split needs conditions"),
            ({"rest": lambda _: True}, "name is taken"),
            ({"errors": lambda _: True}, "errors"),
            ({"big": hr.col("price")}, r"split\(big=...\) needs a condition"),
            ({"big": lambda row: row.prize > 1}, "prize"),
            ({"big": 7}, "takes a function"),
        ],
    )
    def test_what_cannot_be_a_condition_is_refused(self, bids, said, told):
        with pytest.raises(errors.BuildError, match=told):
            bids.split(**said)

    def test_a_name_that_is_not_there_is_told_with_those_that_are(self, bids):
        parts = bids.split(big=lambda _: True)
        with pytest.raises(errors.BuildError, match="no stream 'small'; it has big and rest"):
            _ = parts.small


class TestRepartition:
    def test_both_are_shuffles_without_keys_of_their_own(self, env, bids, sink):
        moved = bids.rebalance(uid="even").partition_custom(lambda *_: 0, "price", uid="placed")
        moved.sink_to(sink, uid="out")
        assert "3 stages, 2 shuffles" in env.explain()
        assert "even evenly" in env.explain()
        assert "placed by price" in env.explain()
        assert moved.schema == bids.schema

    @pytest.mark.parametrize(
        ("partitioner", "key", "told"),
        [
            (7, "price", "takes a function of a key"),
            (lambda _: 0, "price", "two arguments"),
            (lambda *_: 0, "prize", "prize"),
            (lambda *_: 0, [], "needs the name of a column"),
            (lambda *_: 0, lambda row: row.prize, "prize"),
        ],
    )
    def test_what_cannot_work_is_refused(self, bids, partitioner, key, told):
        with pytest.raises(errors.BuildError, match=told):
            bids.partition_custom(partitioner, key)

    def test_withdrawals_are_not_torn_from_what_replaces_them(self, bids):
        window = bids.key_by("auction").window(hr.windows.Tumbling(timedelta(seconds=1)))
        changes = window.trigger(hr.triggers.count(2)).retracting().aggregate(rows=hr.count())
        with pytest.raises(errors.BuildError, match="rebalance would tear"):
            changes.rebalance()
        changes.partition_custom(lambda *_: 0, "auction")


class TestCallLimit:
    def test_it_holds_for_steps_that_do_not_say_it(self, sink):
        env = hr.Environment("job", call_limit=timedelta(seconds=3))
        rows = env.from_source(MemorySource([{"price": 1}]), uid="in")
        own = rows.process(plain, limit=timedelta(seconds=1), uid="own")
        own.filter(lambda _: True, uid="general").sink_to(sink, uid="out")
        found = {node.uid: getattr(node, "limit_us", 0) for node in env.plan().nodes.values()}
        assert found == {"in": 0, "own": 1_000_000, "general": 3_000_000, "out": 0}

    def test_by_default_there_is_none(self, env, bids, sink):
        bids.filter(lambda _: True, uid="it").sink_to(sink)
        assert [n.limit_us for n in env.plan().nodes.values() if n.uid == "it"] == [None]
