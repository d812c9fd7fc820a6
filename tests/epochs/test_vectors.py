"""The clock, generators and steps in the middle of a graph as entries of the watermark vectors."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from headrace._epochs.facts import Facts
from headrace._epochs.offset import INITIAL, Offset
from headrace._epochs.planner import PlannerSettings, plan
from headrace._epochs.settings import WHOLE_STEP, Assigned
from headrace._epochs.vectors import next_due_us
from headrace.config import Epochs
from headrace.endpoints import Span
from headrace.errors import UserCodeError
from headrace.watermarks import (
    CLOCK,
    END_OF_TIME,
    NO_WATERMARK,
    WatermarkGenerator,
    WatermarkStrategy,
)
from tests.epochs.test_planner import Rows

MONOTONOUS = WatermarkStrategy.monotonous()
INGESTION = WatermarkStrategy.ingestion_time()
SPANS = {"s": {"0": Span(0, 10)}}


def settings(
    strategy: WatermarkStrategy | None = MONOTONOUS, **others: WatermarkStrategy | None
) -> PlannerSettings:
    strategies = {"s": strategy, **others}
    return PlannerSettings(Epochs(), {uid: Rows() for uid in strategies}, strategies)


def behind(offset: Offset | None, facts: Facts | None = None, **options: Any) -> Facts:
    """The facts behind an epoch in which every partition of "s" showed its positions as timestamps."""
    assert offset is not None
    maxima = {
        uid: {name: to - 1 for name, (start, to) in parts.items() if to > start}
        for uid, parts in offset.ranges.items()
    }
    measured = {"maxima": maxima, "rows": {}, "size": 0, "duration_us": None, **options}
    return (facts or Facts()).after(offset, **measured)


def first(chosen: PlannerSettings, clock_us: int = 100, spans: Any = SPANS) -> Offset:
    offset = plan(INITIAL, Facts(), spans, clock_us=clock_us, settings=chosen)
    assert offset is not None
    return offset


# the clock


def test_the_clock_is_one_behind_itself_and_before_is_that_of_the_epoch_before() -> None:
    one = first(settings())
    assert (one.before[CLOCK], one.watermarks[CLOCK]) == (NO_WATERMARK, 99)
    assert one.clock_before_us == NO_WATERMARK
    two = plan(one, behind(one), SPANS, clock_us=250, settings=settings())
    assert two is not None
    assert (two.before[CLOCK], two.watermarks[CLOCK], two.clock_before_us) == (99, 249, 100)
    end = plan(two, behind(two), SPANS, clock_us=300, settings=settings(), request="drain")
    assert end is not None
    assert (end.before[CLOCK], end.watermarks[CLOCK]) == (249, END_OF_TIME)


def quiet(
    chosen: PlannerSettings, outlooks: Mapping[str, list[int | None]]
) -> tuple[Offset, Facts]:
    """A job that has read everything and whose watermarks have moved as far as rows can move them."""
    one = first(chosen)
    two = plan(one, behind(one), SPANS, clock_us=200, settings=chosen)
    if two is None:
        return one, behind(one, outlooks=outlooks)
    return two, behind(two, behind(one), outlooks=outlooks)


def test_the_clock_alone_is_no_reason_for_an_epoch() -> None:
    start, facts = quiet(settings(), {"w": [10_000, 3, None]})
    assert plan(start, facts, SPANS, clock_us=10**15, settings=settings()) is None


def test_a_step_that_is_due_is_a_reason() -> None:
    start, facts = quiet(settings(), {"w": [None, 0, 500], "v": [None, 0, 400], "u": [9, 1, None]})
    assert facts.due_us == 400
    assert plan(start, facts, SPANS, clock_us=399, settings=settings()) is None
    due = plan(start, facts, SPANS, clock_us=400, settings=settings())
    assert due is not None
    assert (due.positions, due.clock_us) == (0, 400)
    after = behind(due, facts, outlooks={"w": [None, 0, 500]})
    assert plan(due, after, SPANS, clock_us=450, settings=settings()) is None


def test_a_due_step_waits_for_the_interval_between_epochs() -> None:
    slow = replace(settings(), epochs=Epochs(min_interval=timedelta(microseconds=1000)))
    start, facts = quiet(settings(), {"w": [None, 0, 400]})
    assert plan(start, facts, SPANS, clock_us=start.clock_us + 999, settings=slow) is None
    assert plan(start, facts, SPANS, clock_us=start.clock_us + 1000, settings=slow) is not None


@pytest.mark.parametrize(("strategy", "feeds"), [(MONOTONOUS, CLOCK), (INGESTION, "s")])
def test_a_step_that_goes_by_the_clock_gets_its_epoch_when_it_fires(
    strategy: WatermarkStrategy, feeds: str
) -> None:
    chosen = replace(settings(strategy), feeds={"w": (feeds,)})
    start, facts = quiet(chosen, {"w": [499, 3, None]})
    assert next_due_us(facts, chosen) == 500
    assert plan(start, facts, SPANS, clock_us=499, settings=chosen) is None
    fired = plan(start, facts, SPANS, clock_us=500, settings=chosen)
    assert fired is not None
    assert fired.watermarks[feeds] == 499
    # A step that still says the same is not asked again.
    assert plan(fired, facts, SPANS, clock_us=10**6, settings=chosen) is None


# strategies


def test_ingestion_time_follows_the_clock_whatever_partitions_do() -> None:
    chosen = settings(INGESTION)
    one = first(chosen, spans={"s": {"0": Span(0, 10), "1": Span(0, 0)}})
    assert one.watermarks["s"] == 99
    ended = {"s": {"0": Span(0, 10, finished=True), "1": Span(0, 0, finished=True)}}
    other = replace(
        chosen, sources={"s": Rows(), "t": Rows()}, strategies={"s": INGESTION, "t": None}
    )
    after = plan(one, behind(one), ended, clock_us=200, settings=other)
    assert after is not None
    assert after.watermarks["s"] == END_OF_TIME


def test_no_watermarks_means_none_before_the_end_of_the_source() -> None:
    chosen = settings(WatermarkStrategy.no_watermarks().with_timestamps("at"), t=MONOTONOUS)
    one = first(chosen)
    assert plan(one, behind(one), SPANS, clock_us=10**9, settings=chosen) is None
    ended = {"s": {"0": Span(0, 10, finished=True)}, "t": {"0": Span(0, 0)}}
    after = plan(one, behind(one), ended, clock_us=200, settings=chosen)
    assert after is not None
    assert after.watermarks["s"] == END_OF_TIME


class Counting(WatermarkGenerator):
    """Promises as many microseconds as it has seen epochs with the clock, unless told otherwise."""

    def __init__(self) -> None:
        self.epochs = 0

    def on_event(self, timestamp: datetime) -> None:
        raise NotImplementedError

    def on_epoch(self, clock: datetime) -> datetime | None:
        self.epochs += 1
        return clock - timedelta(microseconds=10)


COUNTING = WatermarkStrategy.for_generator(Counting).with_timestamps("at")


def test_what_a_generator_says_and_remembers_is_in_the_offset() -> None:
    one = first(settings(COUNTING))
    assert one.generators["s"]["0"] == (90, {"epochs": 1})
    facts = behind(one, generators={"s": {"0": {"epochs": 41}}})
    assert Facts.from_json(facts.to_json()) == facts
    two = plan(one, facts, SPANS, clock_us=200, settings=settings(COUNTING))
    assert two is not None
    assert two.generators["s"]["0"] == (190, {"epochs": 42})
    assert two.watermarks["s"] == 190
    assert Offset.from_json(two.to_json()) == two


def test_a_generator_that_follows_the_clock_does_not_keep_an_idle_job_busy() -> None:
    chosen = replace(settings(COUNTING), feeds={"w": ("s",)})
    start, facts = quiet(chosen, {"w": [500, 1, None]})
    assert plan(start, facts, SPANS, clock_us=400, settings=chosen) is None
    fired = plan(start, facts, SPANS, clock_us=510, settings=chosen)
    assert fired is not None
    assert fired.watermarks["s"] == 500


def test_the_slowest_partition_of_a_generator_decides() -> None:
    class Once(Counting):
        def on_epoch(self, clock: datetime) -> datetime | None:
            self.epochs += 1
            return clock if self.epochs == 2 else None

    once = settings(WatermarkStrategy.for_generator(Once).with_timestamps("at"))
    one = first(once)
    two = plan(one, behind(one), SPANS, clock_us=200, settings=once)
    assert two is not None
    assert two.watermarks["s"] == 200
    both = {"s": {"0": Span(0, 10), "1": Span(0, 5)}}
    three = plan(two, behind(two, behind(one)), both, clock_us=300, settings=once)
    assert three is not None
    assert three.watermarks["s"] == 200
    assert three.generators["s"] == {"0": (200, {"epochs": 3}), "1": (None, {"epochs": 1})}


def test_a_generator_that_fails_names_its_source() -> None:
    class Broken(Counting):
        def on_epoch(self, clock: datetime) -> datetime | None:
            raise ValueError("no")

    with pytest.raises(UserCodeError, match="generator of source 's'"):
        first(settings(WatermarkStrategy.for_generator(Broken).with_timestamps("at")))


# several sources


def test_an_idle_source_lets_a_step_that_another_feeds_go_on() -> None:
    idling = MONOTONOUS.with_idleness(timedelta(microseconds=50))
    chosen = replace(settings(idling, t=idling), feeds={"w": ("s", "t")})
    spans = {"s": {"0": Span(0, 10)}, "t": {"0": Span(0, 0)}}
    one = first(chosen, spans=spans)
    facts = behind(one)
    moved = plan(one, facts, spans, clock_us=120, settings=chosen)
    assert moved is not None
    assert (moved.watermarks["s"], moved.watermarks["s+t"]) == (8, NO_WATERMARK)
    facts = behind(moved, facts)
    idle = plan(moved, facts, spans, clock_us=150, settings=chosen)
    assert idle is not None
    assert (idle.watermarks["t"], idle.watermarks["s+t"]) == (NO_WATERMARK, 8)
    facts = behind(idle, facts)
    # The source wakes with old rows: it does not pull the step back.
    woken = {**spans, "t": {"0": Span(0, 3)}}
    old = plan(idle, facts, woken, clock_us=160, settings=chosen)
    assert old is not None
    assert old.watermarks["s+t"] == 8
    after = plan(old, behind(old, facts), woken, clock_us=161, settings=chosen)
    assert after is not None
    assert (after.watermarks["t"], after.watermarks["s+t"]) == (1, 8)


def test_without_idleness_a_source_that_never_sends_holds_the_step() -> None:
    chosen = replace(settings(t=MONOTONOUS), feeds={"w": ("s", "t")})
    spans = {"s": {"0": Span(0, 10)}, "t": {"0": Span(0, 0)}}
    one = first(chosen, spans=spans)
    later = plan(one, behind(one), spans, clock_us=10**15, settings=chosen)
    assert later is not None
    assert later.watermarks["s+t"] == NO_WATERMARK


# steps that assign timestamps


def test_a_step_in_the_middle_is_an_entry_with_the_partitions_of_its_sources() -> None:
    chosen = replace(
        settings(None, m=MONOTONOUS),
        sources={"s": Rows()},
        assigned={"m": Assigned(("s",), ("s",))},
    )
    spans = {"s": {"0": Span(0, 10), "1": Span(0, 10)}}
    one = first(chosen, spans=spans)
    step = {"m": ["s/0", "s/1"]}
    maxima = {"s": {"0": 9, "1": 9}, "m": {"s/0": 700}}
    held = behind(one, maxima=maxima, assigned=step)
    assert plan(one, held, spans, clock_us=200, settings=chosen) is None
    both = behind(one, maxima={"m": {"s/0": 700, "s/1": 500}}, assigned=step)
    moved = plan(one, both, spans, clock_us=200, settings=chosen)
    assert moved is not None
    assert moved.watermarks["m"] == 499
    assert moved.watermarks["s"] == NO_WATERMARK
    done = {"s": {"0": Span(0, 10), "1": Span(0, 10, finished=True)}}
    left = plan(one, both, done, clock_us=200, settings=chosen)
    assert left is not None
    assert left.watermarks["m"] == 699


def test_a_step_behind_a_shuffle_is_one_partition_and_ends_with_what_feeds_it() -> None:
    chosen = replace(
        settings(t=MONOTONOUS, m=MONOTONOUS),
        sources={"s": Rows(), "t": Rows()},
        assigned={"m": Assigned(("s",))},
    )
    spans = {"s": {"0": Span(0, 10)}, "t": {"0": Span(0, 0)}}
    one = first(chosen, spans=spans)
    facts = behind(one, maxima={"m": {WHOLE_STEP: 50}}, assigned={"m": [WHOLE_STEP]})
    two = plan(one, facts, spans, clock_us=200, settings=chosen)
    assert two is not None
    assert two.watermarks["m"] == 49
    ended = {**spans, "s": {"0": Span(0, 10, finished=True)}}
    three = plan(two, facts, ended, clock_us=300, settings=chosen)
    assert three is not None
    assert (three.watermarks["s"], three.watermarks["m"]) == (END_OF_TIME, END_OF_TIME)
    assert not three.final
