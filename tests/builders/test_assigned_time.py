"""Time as the user declares it: what is built, and what is refused on the line of the call."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from headrace import errors
from headrace._graph.nodes import AssignTimestamps
from headrace._plan.timing import planner_settings
from headrace.aggregates import count
from headrace.connectors.generator import Nexmark
from headrace.connectors.memory import MemorySource
from headrace.environment import Environment
from headrace.stream import TimedStream
from headrace.watermarks import CLOCK, WatermarkGenerator, WatermarkStrategy
from headrace.windows import Tumbling

SECOND = timedelta(seconds=1)
BOUNDED = WatermarkStrategy.bounded_out_of_orderness(SECOND)
TIMED = BOUNDED.with_timestamps("date_time")


class Some(WatermarkGenerator):
    def on_event(self, timestamp: datetime) -> None: ...

    def on_epoch(self, clock: datetime) -> datetime | None:
        return None


def window(stream: Any, sink: Any, uid: str = "w", **options: Any) -> None:
    keyed = stream.key_by("auction").window(Tumbling(10 * SECOND, **options))
    keyed.aggregate(n=count(), uid=uid).sink_to(sink, uid=f"{uid}-out")


def feeds(env: Environment) -> dict[str, tuple[str, ...]]:
    return dict(planner_settings(env.plan(shards=1), env.epochs).feeds)


def test_a_window_goes_by_the_step_that_assigned_its_time(env, source, bids, sink) -> None:
    plain = env.from_source(source(bids.schema), uid="plain")
    timed = plain.select("auction", "date_time").assign_timestamps_and_watermarks(
        TIMED, uid="timed"
    )
    assert isinstance(timed, TimedStream)
    assert timed.schema == plain.select("auction", "date_time").schema
    window(timed, sink)
    assert feeds(env) == {"w": ("timed",)}


def test_a_union_goes_by_all_and_processing_time_by_the_clock(env, source, bids, sink) -> None:
    plain = env.from_source(source(bids.schema), uid="plain")
    timed = plain.assign_timestamps_and_watermarks(TIMED, uid="timed")
    window(bids.union(timed), sink)
    window(plain, sink, "by-clock", time="processing")
    assert feeds(env) == {"w": ("bids", "timed"), "by-clock": (CLOCK,)}
    settings = planner_settings(env.plan(shards=1), env.epochs)
    assert settings.merges == {("bids", "timed")}
    assert settings.strategies == {
        "bids": settings.strategies["bids"],
        "plain": None,
        "timed": TIMED,
    }


@pytest.mark.parametrize(
    ("shape", "by_partition"),
    [
        (lambda s: s, True),
        (lambda s: s.filter(lambda row: row.price > 1).union(s), True),
        (lambda s: s.map_batches(lambda batch: batch), False),
    ],
)
def test_partitions_are_told_apart_where_rows_come_straight_from_them(
    env, bids, sink, shape, by_partition
) -> None:
    shape(bids).assign_timestamps_and_watermarks(TIMED, uid="timed").sink_to(sink, uid="out")
    node = next(n for n in env.graph.nodes if isinstance(n, AssignTimestamps))
    assert node.by_partition is by_partition
    assigned = planner_settings(env.plan(shards=1), env.epochs).assigned
    assert assigned["timed"].sources == (("bids",) if by_partition else ())
    assert assigned["timed"].feeds == ("bids",)


def test_dead_letters_can_be_given_a_time(env, bids, sink) -> None:
    clock = WatermarkStrategy.ingestion_time()
    letters = bids.errors.assign_timestamps_and_watermarks(clock, uid="timed")
    keyed = letters.key_by("uid").window(Tumbling(SECOND))
    keyed.aggregate(n=count(), uid="w").sink_to(sink, uid="out")
    assert feeds(env) == {"w": ("timed",)}


def test_explain_shows_the_step(env, bids, sink) -> None:
    bids.assign_timestamps_and_watermarks(TIMED, uid="timed").sink_to(sink, uid="out")
    assert "assign_timestamps" in env.explain()
    assert "watermarks 0:00:01 behind 'date_time'  <- bids" in env.explain()


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (TIMED.with_alignment("g", SECOND), "cannot align: only a source can be read less"),
        (
            WatermarkStrategy.for_generator(Some).with_timestamps("date_time"),
            "takes no generator.*for_generator.*from_source",
        ),
        (BOUNDED.with_record_timestamps(), "does not know the records' own timestamps"),
        (BOUNDED, "does not say where timestamps are"),
        (BOUNDED.with_timestamps("price"), "needs points in time, but 'price' is int64"),
        ("date_time", "takes a headrace.WatermarkStrategy"),
    ],
)
def test_what_cannot_work_in_the_middle_is_refused(bids, chosen, message) -> None:
    with pytest.raises(errors.BuildError, match=message):
        bids.assign_timestamps_and_watermarks(chosen)


def test_a_window_without_time_says_how_to_get_it(env, source, bids) -> None:
    plain = env.from_source(source(bids.schema), uid="plain")
    with pytest.raises(errors.BuildError, match="assign_timestamps_and_watermarks"):
        plain.key_by("auction").window(Tumbling(SECOND))


def test_records_without_timestamps_of_their_own_are_refused(env, source, bids) -> None:
    own = BOUNDED.with_record_timestamps()
    with pytest.raises(errors.BuildError, match="Nothing has no timestamps beside its columns"):
        env.from_source(source(bids.schema), watermarks=own)
    with pytest.raises(errors.BuildError, match="MemorySource has no timestamps"):
        env.from_source(MemorySource([{"n": 1}]), watermarks=own)
    env.from_source(Nexmark(events=1).bids(), watermarks=own)


def test_two_drifts_in_one_group_are_refused(env, source, bids) -> None:
    one = TIMED.with_alignment("g", SECOND)
    env.from_source(source(bids.schema), watermarks=one, uid="one")
    env.from_source(source(bids.schema), watermarks=one, uid="same")
    env.from_source(source(bids.schema), watermarks=TIMED.with_alignment("h", 2 * SECOND))
    with pytest.raises(errors.BuildError, match=r"'g' has two drifts: 2 s here and 1 s .*'one'"):
        env.from_source(source(bids.schema), watermarks=TIMED.with_alignment("g", 2 * SECOND))


@pytest.mark.parametrize("kind", ["ingestion_time", "no_watermarks"])
def test_explain_names_the_kind_of_time(env, source, bids, sink, kind) -> None:
    strategy = getattr(WatermarkStrategy, kind)()
    if kind == "no_watermarks":
        strategy = strategy.with_timestamps("date_time")
    env.from_source(source(bids.schema), watermarks=strategy, uid="in").sink_to(sink, uid="out")
    shown = {"ingestion_time": "ingestion time", "no_watermarks": "no watermarks, timestamps are"}
    assert shown[kind] in env.explain()
