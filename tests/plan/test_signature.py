import json
from datetime import timedelta

import pytest

from headrace import aggregates, approximate
from headrace._plan.signature import describe_change, digest, signature
from headrace.environment import Environment
from headrace.expressions import col
from headrace.functions import AggregateFunction, ProcessWindowFunction
from headrace.state import Value
from headrace.triggers import Trigger, TriggerResult, purging
from headrace.windows import Hopping, LookBack, Tumbling

SECOND = timedelta(seconds=1)
TEN_SECONDS = Tumbling(10 * SECOND)


class Sum(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value, accumulator):
        return accumulator + value.price

    def get_result(self, accumulator) -> int:
        return accumulator

    def merge(self, a, b):
        return a + b


class SumAsText(Sum):
    def create_accumulator(self) -> str:
        return ""


class SumWithAnotherBody(Sum):
    def add(self, value, accumulator):
        return accumulator + 2 * value.price


@pytest.fixture
def signed(bids, source, strategy, sink):
    """The signature of a small job, of which one thing at a time can be changed."""

    def build(
        *,
        source_uid="bids",
        name="nothing",
        threshold=1,
        keys=("auction",),
        price="price",
        window=TEN_SECONDS,
        lateness=0 * SECOND,
        uid="per-auction",
        sinks=("out",),
        watermarks=strategy,
        twice=False,
        **results,
    ):
        env = Environment("job")
        rows = env.from_source(source(bids.schema, name), watermarks=watermarks, uid=source_uid)
        if twice:
            more = env.from_source(source(bids.schema, name), watermarks=watermarks, uid="more")
            more.sink_to(sink, uid="more-out")
            rows = rows.union(more) if twice == "united" else rows
        chosen = rows.filter(col("price") > threshold).select("auction", "channel", price=price)
        windowed = chosen.key_by(*keys).window(window).allowed_lateness(lateness)
        result = windowed.aggregate(**(results or {"n": aggregates.count()}), uid=uid)
        for sink_uid in sinks:
            result.sink_to(sink, uid=sink_uid)
        return signature(env.plan(shards=1).nodes.values())

    return build


def test_a_signature_is_json_and_stable(signed):
    assert json.loads(json.dumps(signed())) == signed()
    assert digest(signed()) == digest(json.loads(json.dumps(signed())))
    assert describe_change(signed(), signed()) == []


def test_stateless_steps_and_strategies_may_change(signed, strategy):
    assert signed(threshold=100) == signed()
    assert signed(watermarks=strategy.with_idleness(SECOND)) == signed()


def test_the_body_of_a_function_may_change(signed):
    assert signed(total=Sum()) == signed(total=SumWithAnotherBody())


def test_the_order_of_sinks_may_change(signed):
    assert digest(signed(sinks=("a", "b"))) == digest(signed(sinks=("b", "a")))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"keys": ("auction", "channel")}, "keys [auction (int64)] and now has [auction (int64), "),
        (
            {"window": Tumbling(20 * SECOND)},
            "window (kind aligned, size_us 10000000, slide_us 10000000, ",
        ),
        ({"window": Hopping(10 * SECOND, 5 * SECOND)}, "slide_us 5000000"),
        ({"window": Tumbling(10 * SECOND, offset=SECOND)}, "offset_us 1000000"),
        ({"lateness": SECOND}, "lateness_us 0 and now has 1000000"),
        ({"n": aggregates.count("price")}, "[n = count()] and now has [n = count(price (int64))]"),
        ({"m": aggregates.count()}, "[n = count()] and now has [m = count()]"),
        ({"name": "other"}, "the source 'bids' had name nothing and now has other"),
    ],
)
def test_what_state_depends_on_may_not_change(signed, change, sentence):
    found = describe_change(signed(), signed(**change))
    assert len(found) == 1
    assert sentence in found[0]
    assert digest(signed()) != digest(signed(**change))


@pytest.mark.parametrize(
    ("change", "kind", "old", "new"),
    [
        ({"uid": "w"}, "step", "per-auction", "w"),
        ({"sinks": ("o",)}, "sink", "out", "o"),
    ],
)
def test_a_renamed_uid_is_recognised(signed, change, kind, old, new):
    expected = f"the {kind} '{old}' is gone and '{new}' is new (a renamed uid?)"
    assert describe_change(signed(), signed(**change)) == [expected]


def test_sources_and_sinks_that_come_or_go_are_named(signed):
    assert describe_change(signed(), signed(twice=True)) == [
        "the source 'more' is new",
        "the sink 'more-out' is new",
    ]
    assert describe_change(signed(twice=True), signed()) == [
        "the source 'more' is gone",
        "the sink 'more-out' is gone",
    ]


def test_another_source_behind_a_window_could_turn_its_time_back(signed):
    found = describe_change(signed(twice=True), signed(twice="united"))
    assert found == ["the step 'per-auction' had fed by [bids] and now has [bids, more]"]


def test_the_type_of_a_key_or_column_may_not_change(signed):
    as_text = {"price": col("price").cast(str), "n": aggregates.max("price")}
    found = describe_change(signed(n=aggregates.max("price")), signed(**as_text))
    expected = "aggregates [n = max(price (int64))] and now has [n = max(price (string))]"
    assert found == [f"the step 'per-auction' had {expected}"]


def test_the_type_of_an_accumulator_may_not_change(signed):
    found = describe_change(signed(n=Sum()), signed(n=SumAsText()))
    assert "[n = function with int64] and now has [n = function with string]" in found[0]


def test_the_size_of_a_sketch_may_not_change(signed):
    small, large = (approximate.approx_count_distinct("price", lg_k=lg_k) for lg_k in (10, 12))
    found = describe_change(signed(n=small), signed(n=large))
    assert "[n = approx_count_distinct(price (int64), lg_k=10)]" in found[0]


def test_the_columns_of_reduced_rows_may_not_change(signed):
    reduced = aggregates.reduce_of(max)
    found = describe_change(signed(n=reduced), signed(n=reduced, price=col("price").cast(str)))
    assert "[n = reduce with struct<" in found[0]
    assert describe_change(signed(n=reduced), signed(n=aggregates.reduce_of(min))) == []


class Tells(ProcessWindowFunction):
    calls: Value[int]

    def process(self, key, context, rows) -> list[int]:
        return []


class TellsMore(Tells):
    words: Value[list[str]]


class Waits(Trigger):
    seen: Value[int]

    def on_element(self, row, timestamp, window, context):
        return TriggerResult.CONTINUE


class WaitsLonger(Waits):
    @property
    def name(self):
        return "Waits"

    seen: Value[float]


def process(chosen, function, trigger):
    windowed = chosen.key_by("auction").window(TEN_SECONDS)
    return windowed.trigger(trigger).process(function, uid="told")


def test_what_functions_and_triggers_keep_may_not_change(bids, source, strategy, sink):
    def build(function, trigger, price="price"):
        env = Environment("job")
        rows = env.from_source(source(bids.schema, "bids"), watermarks=strategy, uid="bids")
        process(rows.select("auction", price=price), function, purging(trigger)).sink_to(
            sink, uid="out"
        )
        return signature(env.plan(shards=1).nodes.values())

    found = describe_change(build(Tells(), Waits()), build(TellsMore(), Waits()))
    assert "had state [calls (int64)] and now has [calls (int64), words (list<" in found[0]
    found = describe_change(build(Tells(), Waits()), build(Tells(), WaitsLonger()))
    assert "had state of the trigger [seen (int64)] and now has [seen (double)]" in found[0]
    found = describe_change(
        build(Tells(), Waits()), build(Tells(), Waits(), col("price").cast(str))
    )
    assert "price (int64)" in found[0]
    assert describe_change(build(Tells(), Waits()), build(Tells(), Waits())) == []


def test_another_way_to_describe_jobs_is_told(signed):
    assert "version of Headrace" in describe_change({"format": 0}, signed())[0]


def test_the_columns_of_rows_that_a_look_back_keeps_may_not_change(env, bids, sink):
    for columns in (("auction", "price"), ("auction", "price", "channel")):
        (
            bids.select(*columns)
            .key_by("auction")
            .window(LookBack(timedelta(seconds=5)))
            .aggregate(n=aggregates.count(), uid=f"with-{len(columns)}")
            .sink_to(sink, uid=f"out-{len(columns)}")
        )
    steps = signature(env.graph.nodes)["steps"]
    assert steps["with-2"]["rows"] != steps["with-3"]["rows"]
