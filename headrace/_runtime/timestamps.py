"""The event time of rows, read where they arise; rows without a usable one become dead letters.

A timestamp that is null, outside the years 1 to 9999 or too far ahead of the epoch's clock is refused: one
such row could otherwise push the watermark so far that every row after it is late. The clock is the one in
the epoch's offset, so a replay refuses the same rows. In ingestion time the clock is the timestamp.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.nodes import AssignTimestamps, ReadSource
from headrace._runtime.columns import row_objects
from headrace._runtime.expressions import evaluate
from headrace._runtime.payload import as_json
from headrace._runtime.rows import Origin, Rows
from headrace._runtime.usercode import calling
from headrace.endpoints import DeadLetter
from headrace.errors import BuildError, InputError, SchemaError, UserCodeError
from headrace.expressions import Expression
from headrace.watermarks import WatermarkStrategy

__all__ = ["assign"]

Int64s = npt.NDArray[np.int64]
#: What gives rows their timestamps.
Timing = ReadSource | AssignTimestamps

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST_US = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def assign(
    rows: Rows, node: Timing, clock_us: int, records: Int64s | None = None
) -> tuple[Rows, list[DeadLetter]]:
    """The rows with their timestamps, and those that have none that can be used.

    `records` are the timestamps that the source has for its records, in microseconds.
    """
    strategy = node.strategy
    if strategy is None:
        return rows, []
    if strategy.kind == "ingestion":
        return Rows(rows.batch, np.full(len(rows), clock_us, np.int64), rows.origin), []
    with calling(node.uid, rows):
        column = _column(rows, node, strategy, records)
    stamps, inside = _microseconds(column)
    present = column.is_valid().to_numpy(zero_copy_only=False)
    good = present & inside
    if strategy.max_ahead_us is not None:
        good &= stamps <= min(clock_us + strategy.max_ahead_us, _LAST_US)
    timed = Rows(rows.batch, stamps, rows.origin)
    if good.all():
        return timed, []
    refused = np.flatnonzero(~good)
    causes = [_cause(column, int(index), strategy, clock_us) for index in refused]
    return timed.filter(good), _letters(rows, refused, causes)


def _column(
    rows: Rows, node: Timing, strategy: WatermarkStrategy, records: Int64s | None
) -> pa.Array:
    name = f"{node.verb} '{node.uid}'"
    if strategy.record_timestamps:
        return _of_records(rows, name, records)
    wanted = strategy.timestamps
    if wanted is None:
        raise BuildError(
            f"The watermark strategy of {name} does not say where timestamps are;"
            " add .with_timestamps(...)."
        )
    if isinstance(wanted, str):
        column = rows.batch.column(wanted)
    elif isinstance(wanted, Expression):
        column = evaluate(wanted, rows.batch)
    else:
        return _called(rows, node.uid, name, wanted)
    if not pa.types.is_timestamp(column.type) or column.type.tz is None:
        raise SchemaError(
            f"The timestamps of {name} must have a time zone, for example"
            f" timestamp[us, tz=UTC], but they are {column.type}."
        )
    return column


def _of_records(rows: Rows, name: str, records: Int64s | None) -> pa.Array:
    if records is None or len(records) != len(rows):
        raise InputError(
            f"The {name} says that it has a timestamp for each of its records, but a batch of"
            f" {len(rows)} rows came with {0 if records is None else len(records)}."
        )
    return pa.array(records, pa.int64()).cast(pa.timestamp("us", "UTC"))


def _called(rows: Rows, uid: str, name: str, function: Any) -> pa.Array:
    results: list[int | None] = []
    with calling(uid, rows, lambda: len(results)):
        for row in row_objects(rows.batch):
            moment = function(row)
            if moment is not None and (
                not isinstance(moment, datetime) or moment.utcoffset() is None
            ):
                raise UserCodeError(
                    f"The timestamp function of {name} must return a datetime with a time"
                    f" zone, but it returned {moment!r}; use datetime(..., tzinfo=UTC)."
                )
            results.append(None if moment is None else (moment - _EPOCH) // _MICROSECOND)
    return pa.array(results, pa.int64()).cast(pa.timestamp("us", "UTC"))


def _microseconds(column: pa.Array) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """Microseconds since 1970, rounded down, and which of them a datetime can show."""
    integers = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    per_second = _PER_SECOND[column.type.unit]
    if per_second > 1_000_000:
        stamps = integers // (per_second // 1_000_000)
        return stamps, (stamps >= _FIRST_US) & (stamps <= _LAST_US)
    scale = 1_000_000 // per_second
    inside = (integers >= -(-_FIRST_US // scale)) & (integers <= _LAST_US // scale)
    return np.where(inside, integers, 0) * scale, inside


def _cause(column: pa.Array, index: int, strategy: WatermarkStrategy, clock_us: int) -> str:
    value = column[index]
    if not value.is_valid:
        return "null timestamp"
    stamps, inside = _microseconds(column.slice(index, 1))
    if not inside[0]:
        return f"timestamp {value.value} {column.type.unit} lies outside the years 1 to 9999"
    assert strategy.max_ahead_us is not None
    moment = _EPOCH + timedelta(microseconds=int(stamps[0]))
    clock = _EPOCH + timedelta(microseconds=clock_us)
    ahead = timedelta(microseconds=strategy.max_ahead_us)
    return f"timestamp {moment.isoformat()} is more than {ahead} ahead of the clock {clock.isoformat()}"


def _letters(rows: Rows, refused: Int64s, causes: Sequence[str]) -> list[DeadLetter]:
    payloads = as_json(rows.batch.take(pa.array(refused)))
    origin = rows.origin or Origin("", "", np.full(len(rows), -1, np.int64))
    return [
        DeadLetter(origin.partition, int(origin.offsets[index]), cause, payload)
        for index, cause, payload in zip(refused, causes, payloads, strict=True)
    ]
