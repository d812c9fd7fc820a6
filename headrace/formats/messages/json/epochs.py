"""Instants as numbers since 1970, as many topics have them."""

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

__all__ = ["UNITS", "epoch_numbers", "epochs", "instants", "wire_instants"]

#: The units that users name, and Arrow's names of them.
UNITS = {"seconds": "s", "millis": "ms", "micros": "us", "nanos": "ns"}
#: Seconds have fractions, which a float would not keep.
_SECONDS, _WHOLE = pa.decimal128(28, 9), pa.decimal128(38, 0)
_MILLION, _MILLIONTH = (pa.scalar(Decimal(text)) for text in ("1000000", "0.000001"))


def wire_instants(schema: pa.Schema, unit: str) -> pa.Schema:
    """The columns with numbers where there are instants."""
    number = _SECONDS if unit == "seconds" else pa.int64()
    return pa.schema([(f.name, number if pt.is_timestamp(f.type) else f.type) for f in schema])


def instants(batch: pa.RecordBatch, schema: pa.Schema, unit: str) -> pa.RecordBatch:
    """Numbers as the instants that they are; what the declared type cannot hold raises ValueError."""
    columns = [
        _instant(column, field.type, unit) if pt.is_timestamp(field.type) else column
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.record_batch(columns, schema=schema)


def epochs(batch: pa.RecordBatch, unit: str) -> pa.RecordBatch:
    """Instants as numbers; what is finer than the unit is cut off."""
    columns = [epoch_numbers(c, unit) if pt.is_timestamp(c.type) else c for c in batch.columns]
    return pa.record_batch(columns, names=batch.schema.names)


def epoch_numbers(column: pa.Array, unit: str) -> pa.Array:
    """A column of instants as numbers."""
    if unit == "seconds":
        micros = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
        seconds = pc.multiply(micros.cast(pa.decimal128(19, 0)), _MILLIONTH)
        return seconds.cast(pa.decimal128(26, 6))
    return column.cast(pa.timestamp(UNITS[unit], column.type.tz), safe=False).cast(pa.int64())


def _instant(column: pa.Array, kind: pa.TimestampType, unit: str) -> pa.Array:
    if unit == "seconds":
        # Two steps: one that is not safe cuts off a fraction, but also lets a number that is too large wrap around.
        micros = pc.multiply(column, _MILLION).cast(_WHOLE, safe=False).cast(pa.int64())
        return micros.cast(pa.timestamp("us", kind.tz)).cast(kind)
    return column.cast(pa.timestamp(UNITS[unit], kind.tz)).cast(kind)
