"""A watermark strategy is a value: each method returns another one."""

from datetime import timedelta
from typing import Any

import pytest

from headrace.errors import BuildError
from headrace.expressions import col
from headrace.watermarks import END_OF_TIME, NO_WATERMARK, WatermarkStrategy

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


def test_the_ends_of_time_are_those_of_64_bits() -> None:
    assert (NO_WATERMARK, END_OF_TIME) == (-(2**63), 2**63 - 1)
