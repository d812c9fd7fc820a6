"""What a checkpoint with process functions depends on."""

import json
import operator
from collections.abc import Iterator
from datetime import timedelta

import pytest

import headrace as hr
from headrace._plan.signature import describe_change, signature
from headrace.environment import Environment

MINUTE = timedelta(minutes=1)


class Counts(hr.KeyedProcessFunction):
    seen: hr.state.Value[int] = hr.state.FOREVER
    by_channel: hr.state.Map[str, int] = hr.state.TTL(MINUTE)

    def process_element(self, value, ctx) -> Iterator[int]: ...


class Renamed(hr.KeyedProcessFunction):
    by_channel: hr.state.Map[str, int] = hr.state.TTL(2 * MINUTE)
    seen: hr.state.Value[int] = hr.state.FOREVER

    def process_element(self, value, ctx) -> Iterator[int]:
        yield 1


class OtherType(Counts):
    seen: hr.state.Value[float] = hr.state.FOREVER


class OtherKind(Counts):
    seen: hr.state.Reducing[int] = hr.state.keep(reduce=operator.add, forever=True)


class NoEnd(Counts):
    by_channel: hr.state.Map[str, int] = hr.state.FOREVER


class More(Counts):
    last: hr.state.List[str] = hr.state.FOREVER


@pytest.fixture
def signed(bids, source, strategy, sink):
    """The signature of a job with one process step, of which one thing at a time can be changed."""

    def build(function=None, *, keys=("auction",), columns=("auction", "channel"), ordered=False):
        env = Environment("job")
        rows = env.from_source(source(bids.schema), watermarks=strategy, uid="bids")
        keyed = rows.select(*columns).key_by(*keys)
        keyed.process(function or Counts(), ordered=ordered, uid="p").sink_to(sink, uid="out")
        return signature(env.plan(shards=1).nodes.values())

    return build


def test_it_is_plain_json(signed):
    assert json.loads(json.dumps(signed())) == signed()
    assert signed()["steps"] == {
        "p": {
            "operation": "process",
            "kept as": "KeyedProcess",
            "keys": [["auction (int64)"]],
            "states": [
                "by_channel (map of string, int64, ends in event time)",
                "seen (value of int64)",
            ],
            "fed by": ["bids"],
            "stage": 1,
        }
    }


def test_code_names_order_of_lines_and_times_to_live_may_change(signed):
    assert describe_change(signed(), signed(Renamed())) == []
    assert describe_change(signed(), signed(columns=("auction", "channel", "price"))) == []


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (OtherType(), "seen (value of int64)] and now has "),
        (OtherType(), "seen (value of double)]"),
        (OtherKind(), "seen (reducing of int64)]"),
        (NoEnd(), "[by_channel (map of string, int64), seen"),
        (More(), "last (list of string), seen"),
    ],
)
def test_state_may_not_change(signed, function, sentence):
    (found,) = describe_change(signed(), signed(function))
    assert found.startswith("the step 'p' had states [")
    assert sentence in found


def test_keys_and_order_may_not_change(signed):
    (found,) = describe_change(signed(), signed(keys=("auction", "channel")))
    assert found.endswith(
        "had keys [[auction (int64)]] and now has [[auction (int64), channel (string)]]"
    )
    found = describe_change(signed(), signed(ordered=True))
    assert "the step 'p' had ordered nothing and now has True" in found


def test_the_columns_of_rows_that_wait_may_not_change(signed):
    changed = signed(ordered=True, columns=("auction", "channel", "price"))
    (found,) = describe_change(signed(ordered=True), changed)
    assert found == (
        "the step 'p' had rows [[auction (int64), channel (string)]] and now has"
        " [[auction (int64), channel (string), price (int64)]]"
    )


class Both(hr.KeyedBroadcastProcessFunction):
    rules: hr.state.Broadcast[str, int]

    def process_element(self, value, ctx) -> Iterator[int]: ...

    def process_broadcast_element(self, value, ctx) -> Iterator[int]: ...


def test_a_broadcast_input_has_no_keys_and_does_not_feed_time(bids, source, strategy, sink):
    env = Environment("job")
    rows = env.from_source(source(bids.schema), watermarks=strategy, uid="bids")
    rules = env.from_source(source(bids.schema), watermarks=strategy, uid="rules")
    pair = rows.key_by("auction").connect(rules.broadcast())
    pair.process(Both(), uid="p").sink_to(sink, uid="out")
    step = signature(env.plan(shards=1).nodes.values())["steps"]["p"]
    assert step["keys"] == [["auction (int64)"], []]
    assert step["states"] == ["rules (broadcast of string, int64)"]
    assert step["fed by"] == ["bids"]
