from datetime import timedelta

import pytest
from pyspark import cloudpickle

from headrace import aggregates
from headrace._graph.nodes import ERRORS, LATE, Port
from headrace._plan.depths import measure
from headrace.expressions import col
from headrace.windows import Tumbling


def counted(stream, uid, key="auction", result="n"):
    windowed = stream.key_by(key).window(Tumbling(timedelta(seconds=10)))
    return windowed.aggregate(**{result: aggregates.count()}, uid=uid)


def by_uid(plan, mapping):
    return {plan.nodes[number].uid: value for number, value in mapping.items()}


def test_a_job_without_keys_has_one_stage(env, bids, sink):
    bids.filter(col("price") > 1).sink_to(sink, uid="out")
    plan = env.plan(shards=2)
    assert (plan.stages, plan.stage_of, plan.feeds) == (1, {}, {})


def test_a_chain_of_windows_has_a_stage_each(env, bids, sink):
    counted(counted(bids, "one"), "two", key="n", result="m").sink_to(sink, uid="out")
    plan = env.plan(shards=2)
    assert by_uid(plan, plan.stage_of) == {"one": 1, "two": 2}
    assert plan.stages == 3


def test_windows_of_one_depth_share_a_stage(env, bids, sink):
    counted(bids, "one").sink_to(sink, uid="a")
    counted(bids, "two", key="channel").sink_to(sink, uid="b")
    plan = env.plan(shards=2)
    assert [plan.nodes[number].uid for number in plan.hosted(1)] == ["one", "two"]


@pytest.mark.parametrize("output", [LATE, ERRORS])
def test_what_does_not_get_in_arises_before_the_shuffle(env, bids, sink, output):
    result = counted(bids, "one")
    getattr(result, output).sink_to(sink, uid="out")
    assert measure(env.graph.nodes).arises(Port(result._port.node, output)) == {0}


def test_a_window_over_late_rows_is_no_deeper_than_the_one_they_missed(env, bids, sink):
    counted(counted(bids, "one").late, "again").sink_to(sink, uid="out")
    plan = env.plan(shards=2)
    assert by_uid(plan, plan.stage_of) == {"one": 1, "again": 1}


def test_a_step_over_rows_of_several_depths_runs_in_each(env, bids, sink):
    shallow = bids.select(auction="auction", n="price")
    deep = counted(bids, "one").select("auction", "n")
    both = shallow.union(deep, uid="both")
    counted(both, "two").sink_to(sink, uid="out")
    depths = measure(env.graph.nodes)
    assert depths.entered[both._port.node] == {0, 1}
    plan = env.plan(shards=2)
    assert by_uid(plan, plan.stage_of) == {"one": 1, "two": 2}


def test_late_rows_of_a_window_over_several_depths_arise_in_each(env, bids):
    shallow = bids.select(auction="auction", n="price")
    deep = counted(bids, "one").select("auction", "n")
    two = counted(shallow.union(deep), "two")
    assert measure(env.graph.nodes).arises(Port(two._port.node, LATE)) == {0, 1}
    assert measure(env.graph.nodes).arises(two._port) == {2}


def test_feeds_are_the_sources_upstream(env, bids, source, strategy, sink):
    more = env.from_source(source(bids.schema), watermarks=strategy, uid="more")
    env.from_source(source(bids.schema), uid="other").sink_to(sink, uid="copy")
    counted(counted(bids.union(more), "one"), "two", key="n", result="m").sink_to(sink, uid="out")
    plan = env.plan(shards=2)
    assert by_uid(plan, plan.feeds) == {"one": ("bids", "more"), "two": ("bids", "more")}


def test_consumers_stand_in_the_order_of_the_calls(env, bids, sink):
    bids.sink_to(sink, uid="a")
    bids.select("price").sink_to(sink, uid="b")
    bids.sink_to(sink, uid="c")
    plan = env.plan(shards=2)
    assert [plan.nodes[number].uid for number, _ in plan.consumers[Port(0)]] == [
        "a",
        "select-1",
        "c",
    ]


def test_a_stream_united_with_itself_is_consumed_twice(env, bids, sink):
    twice = bids.union(bids)
    twice.sink_to(sink, uid="out")
    node = twice._port.node
    assert env.plan(shards=1).consumers[Port(0)] == ((node, 0), (node, 1))


def test_steps_that_reach_no_sink_are_left_out(env, bids, source, sink):
    counted(bids, "unused")
    env.from_source(source(bids.schema), uid="idle").select("price")
    bids.sink_to(sink, uid="out")
    plan = env.plan(shards=2)
    assert [node.uid for node in plan.nodes.values()] == ["bids", "out"]
    assert plan.consumers == {Port(0): ((plan.sinks["out"].id, 0),)}


def test_a_window_of_which_only_late_rows_are_taken_is_kept(env, bids, sink):
    counted(bids, "one").late.sink_to(sink, uid="late")
    plan = env.plan(shards=2)
    assert by_uid(plan, plan.stage_of) == {"one": 1}


def test_a_plan_travels(env, bids, sink):
    factor = 3
    bids.map(lambda row: {"x": row.price * factor}, schema={"x": int}).sink_to(sink, uid="out")
    plan = env.plan(shards=2)
    copy = cloudpickle.loads(cloudpickle.dumps(plan))
    assert (copy.digest, copy.consumers, list(copy.nodes)) == (
        plan.digest,
        plan.consumers,
        list(plan.nodes),
    )
