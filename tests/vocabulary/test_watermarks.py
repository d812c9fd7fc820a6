"""A watermark strategy is a value: each method returns another one."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from headrace.errors import BuildError
from headrace.expressions import col
from headrace.watermarks import (
    END_OF_TIME,
    NO_WATERMARK,
    Alignment,
    WatermarkGenerator,
    WatermarkStrategy,
)

SECOND = timedelta(seconds=1)


def test_the_order_of_calls_does_not_matter() -> None:
    bounded = WatermarkStrategy.bounded_out_of_orderness(4 * SECOND)
    one = bounded.with_timestamps("at").with_idleness(SECOND).with_max_ahead(SECOND)
    other = bounded.with_max_ahead(SECOND).with_idleness(SECOND).with_timestamps("at")
    assert one == other
    assert one == WatermarkStrategy(4_000_000, "at", 1_000_000, 1_000_000)


def test_a_method_leaves_its_strategy_alone() -> None:
    bounded = WatermarkStrategy.bounded_out_of_orderness(SECOND)
    bounded.with_idleness(SECOND)
    assert bounded.idleness_us is None


def test_monotonous_expects_no_disorder() -> None:
    assert WatermarkStrategy.monotonous().bound_us == 0


def test_the_future_is_guarded_unless_the_user_says_otherwise() -> None:
    strategy = WatermarkStrategy.monotonous()
    assert strategy.max_ahead_us == 365 * 86_400 * 10**6
    assert strategy.with_max_ahead(None).max_ahead_us is None


def test_timestamps_come_from_a_column_an_expression_or_a_function() -> None:
    strategy = WatermarkStrategy.monotonous()
    expression = col("at")
    assert strategy.with_timestamps("at").timestamps == "at"
    assert strategy.with_timestamps(expression).timestamps is expression
    assert strategy.with_timestamps(max).timestamps is max


@pytest.mark.parametrize("timestamps", ["", 5, None])
def test_other_timestamps_are_refused(timestamps: Any) -> None:
    with pytest.raises(BuildError, match="with_timestamps"):
        WatermarkStrategy.monotonous().with_timestamps(timestamps)


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(BuildError, match="bounded_out_of_orderness must not be negative"):
        WatermarkStrategy.bounded_out_of_orderness(-SECOND)


def test_idleness_must_take_time() -> None:
    with pytest.raises(BuildError, match="with_idleness must be longer than zero"):
        WatermarkStrategy.monotonous().with_idleness(timedelta(0))


def test_ingestion_time_takes_everything_from_the_clock() -> None:
    strategy = WatermarkStrategy.ingestion_time()
    assert strategy.kind == "ingestion"
    for refused in (
        lambda: strategy.with_timestamps("at"),
        strategy.with_record_timestamps,
        lambda: strategy.with_idleness(SECOND),
        lambda: strategy.with_alignment("g", SECOND),
    ):
        with pytest.raises(BuildError, match="ingestion_time takes timestamps and watermarks from"):
            refused()


def test_the_last_word_on_timestamps_counts() -> None:
    strategy = WatermarkStrategy.no_watermarks()
    column = strategy.with_record_timestamps().with_timestamps("at")
    assert (column.timestamps, column.record_timestamps) == ("at", False)
    own = strategy.with_timestamps("at").with_record_timestamps()
    assert (own.timestamps, own.record_timestamps) == (None, True)


def test_alignment_has_a_group_and_a_drift() -> None:
    strategy = WatermarkStrategy.monotonous()
    assert strategy.with_alignment("g", SECOND).alignment == Alignment("g", 1_000_000)
    with pytest.raises(BuildError, match="with_alignment takes the name of a group"):
        strategy.with_alignment("", SECOND)
    with pytest.raises(BuildError, match="max_drift of with_alignment must be longer than zero"):
        strategy.with_alignment("g", timedelta(0))


class Hearing(WatermarkGenerator):
    def __init__(self) -> None:
        self.heard: list[datetime] = []

    def on_event(self, timestamp: datetime) -> None:
        self.heard.append(timestamp)

    def on_epoch(self, clock: datetime) -> datetime | None:
        return None


def test_a_generator_hears_timestamps_one_by_one_unless_it_wants_the_array() -> None:
    generator = Hearing()
    generator.on_events(np.array([0, -1, 1_500_000], "datetime64[us]"))
    start = datetime(1970, 1, 1, tzinfo=UTC)
    parts = [timedelta(0), timedelta(microseconds=-1), timedelta(seconds=1.5)]
    assert generator.heard == [start + part for part in parts]


class Deaf(WatermarkGenerator):
    def on_epoch(self, clock: datetime) -> datetime | None:
        return None


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (Deaf, "Deaf sees no rows: define on_event"),
        (dict, "takes a subclass of headrace.WatermarkGenerator, not dict"),
        (3, "takes a class or a function, not 3"),
    ],
)
def test_what_is_no_generator_is_refused(factory: Any, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        WatermarkStrategy.for_generator(factory)
    assert WatermarkStrategy.for_generator(Hearing).generator is Hearing


def test_the_ends_of_time_are_those_of_64_bits() -> None:
    assert (NO_WATERMARK, END_OF_TIME) == (-(2**63), 2**63 - 1)
