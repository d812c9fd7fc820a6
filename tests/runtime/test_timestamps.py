"""Rows get their event time, or become dead letters with a cause."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace._graph.nodes import ReadSource
from headrace._runtime.rows import Origin, Rows
from headrace._runtime.timestamps import assign
from headrace.endpoints import DeadLetter
from headrace.errors import InputError, UserCodeError
from headrace.expressions import col
from headrace.watermarks import WatermarkStrategy

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
NOON_US = int(NOON.timestamp()) * 1_000_000
STRATEGY = WatermarkStrategy.monotonous()
BY_COLUMN = STRATEGY.with_timestamps("at")


def run(
    column: pa.Array, strategy: WatermarkStrategy = BY_COLUMN, records: Any = None
) -> tuple[Rows, list[DeadLetter]]:
    batch = pa.RecordBatch.from_arrays([column, pa.array(range(len(column)))], names=["at", "n"])
    node = ReadSource(
        id=0,
        uid="bids",
        inputs=(),
        schema=batch.schema,
        source=None,  # type: ignore[arg-type]
        strategy=strategy,
    )
    rows = Rows(batch, None, Origin("bids", "p", np.arange(len(column)) + 50))
    return assign(rows, node, NOON_US, records)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_every_unit_becomes_microseconds(unit: str) -> None:
    rows, dead = run(pa.array([NOON], pa.timestamp(unit, "UTC")))
    assert rows.timestamps is not None
    assert rows.timestamps.tolist() == [NOON_US]
    assert dead == []


def test_zone_does_not_change_the_instant() -> None:
    rows, _ = run(pa.array([NOON], pa.timestamp("us", "America/New_York")))
    assert rows.timestamps is not None
    assert rows.timestamps.tolist() == [NOON_US]


def test_nanoseconds_before_1970_round_down() -> None:
    rows, _ = run(pa.array([-1], pa.int64()).cast(pa.timestamp("ns", "UTC")))
    assert rows.timestamps is not None
    assert rows.timestamps.tolist() == [-1]


def test_null_timestamp_is_a_dead_letter_with_its_row() -> None:
    rows, [letter] = run(pa.array([NOON, None], pa.timestamp("us", "UTC")))
    assert len(rows) == 1
    assert (letter.partition, letter.offset, letter.cause) == ("p", 51, "null timestamp")
    assert json.loads(letter.payload) == {"at": None, "n": 1}


def test_far_future_is_a_dead_letter() -> None:
    far = datetime(9999, 12, 31, tzinfo=UTC)
    rows, [letter] = run(pa.array([far, NOON], pa.timestamp("us", "UTC")))
    assert rows.batch.column("n").to_pylist() == [1]
    assert "9999-12-31T00:00:00+00:00 is more than 365 days" in letter.cause


def test_limit_itself_is_not_too_far() -> None:
    ahead = timedelta(hours=1)
    strategy = STRATEGY.with_timestamps("at").with_max_ahead(ahead)
    moments = [NOON + ahead, NOON + ahead + timedelta(microseconds=1)]
    rows, dead = run(pa.array(moments, pa.timestamp("us", "UTC")), strategy)
    assert (len(rows), len(dead)) == (1, 1)


def test_guard_can_be_switched_off() -> None:
    strategy = STRATEGY.with_timestamps("at").with_max_ahead(None)
    rows, dead = run(
        pa.array([datetime(9999, 12, 31, tzinfo=UTC)], pa.timestamp("us", "UTC")), strategy
    )
    assert (len(rows), dead) == (1, [])


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("number", [2**63 - 1, -(2**63) + 1])
def test_number_beyond_any_calendar_is_a_dead_letter(unit: str, number: int) -> None:
    strategy = STRATEGY.with_timestamps("at").with_max_ahead(None)
    column = pa.array([number], pa.int64()).cast(pa.timestamp(unit, "UTC"))
    rows, [letter] = run(column, strategy)
    assert len(rows) == 0
    assert "outside the years 1 to 9999" in letter.cause
    assert str(number) in letter.payload


def test_expression_gives_timestamps() -> None:
    rows, _ = run(pa.array([NOON], pa.timestamp("us", "UTC")), STRATEGY.with_timestamps(col("at")))
    assert rows.timestamps is not None
    assert rows.timestamps.tolist() == [NOON_US]


def test_function_gives_timestamps_and_nulls() -> None:
    def moment(row: Any) -> Any:
        return NOON + timedelta(seconds=row.n) if row.n else None

    rows, [letter] = run(pa.array(["a", "b"]), STRATEGY.with_timestamps(moment))
    assert rows.timestamps is not None
    assert rows.timestamps.tolist() == [NOON_US + 1_000_000]
    assert letter.cause == "null timestamp"


@pytest.mark.parametrize("made", [datetime(2025, 1, 1), 1735689600, "2025-01-01"])
def test_function_that_returns_no_aware_datetime_is_an_error(made: Any) -> None:
    with pytest.raises(UserCodeError, match="must return a datetime with a time zone"):
        run(pa.array(["a"]), STRATEGY.with_timestamps(lambda _: made))


def test_ingestion_time_is_the_clock_whatever_the_row_says() -> None:
    rows, dead = run(pa.array([None, "x"]), WatermarkStrategy.ingestion_time())
    assert rows.timestamps is not None
    assert (rows.timestamps.tolist(), dead) == ([NOON_US, NOON_US], [])


def test_records_bring_their_own_timestamps() -> None:
    own = STRATEGY.with_record_timestamps()
    far = int(datetime(9999, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
    rows, [letter] = run(pa.array(["a", "b"]), own, np.array([NOON_US - 5, far]))
    assert rows.timestamps is not None
    assert rows.timestamps.tolist() == [NOON_US - 5]
    assert "ahead of the clock" in letter.cause


@pytest.mark.parametrize("records", [None, np.array([1, 2, 3])])
def test_a_source_that_promised_timestamps_and_has_none_is_told(records: Any) -> None:
    with pytest.raises(InputError, match="source 'bids' says that it has a timestamp for each"):
        run(pa.array(["a"]), STRATEGY.with_record_timestamps(), records)
