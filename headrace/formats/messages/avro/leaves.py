"""Scalar columns between the form that Avro writes and the types that users declare."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from headrace.formats.messages.avro.schema import AvroType
from headrace.formats.messages.avro.types import arrow_type
from headrace.formats.objects import declared

__all__ = ["converted", "physical"]

#: The plain columns whose values Avro writes; bytes and text are the same to it.
_PHYSICAL = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.large_string(),
    "bytes": pa.large_binary(),
    "fixed": pa.large_binary(),
}


def converted(column: pa.Array, kind: AvroType, target: pa.DataType) -> pa.Array:
    """What Avro holds as `target`. What does not fit (a number out of its range, bad UTF-8) raises `ArrowInvalid`."""
    if pt.is_null(column.type):
        return pa.nulls(len(column), target)
    if pt.is_decimal(target):
        decimals = _decimals(column, arrow_type(kind, ""))
        return decimals if decimals.type.equals(target) else decimals.cast(target)
    if kind.logical == "timestamp-text" and pt.is_timestamp(target):
        return declared(column.cast(pa.string()), pa.timestamp("us", "UTC")).cast(target)
    if pt.is_temporal(target):
        return _times(column, kind, target)
    if pt.is_floating(target):
        # Avro promotes any number to a float, also where the last digits do not fit.
        return column.cast(target, safe=False)
    return column if column.type.equals(target) else column.cast(target)


def physical(column: pa.Array, kind: AvroType) -> pa.Array:
    """A column as Avro holds it, the reverse of `converted`; `ArrowInvalid` if a value has no such form."""
    if kind.kind == "enum":
        places = pc.index_in(column, pa.array(kind.symbols, column.type))
        if pc.any(pc.and_(pc.is_null(places), pc.is_valid(column))).as_py():
            raise pa.ArrowInvalid(f"a value is none of {', '.join(kind.symbols)}")
        return places.cast(pa.int64())
    if kind.logical == "decimal":
        return _unscaled(column.cast(arrow_type(kind, "")), kind.size)
    if pt.is_timestamp(column.type):
        finer = {"s": 0, "ms": 3, "us": 6, "ns": 9}
        unit = arrow_type(kind, "").unit
        exact = finer[unit] >= finer[column.type.unit]
        return column.cast(pa.timestamp(unit, column.type.tz), safe=exact).cast(pa.int64())
    if pt.is_duration(column.type):
        return column.cast(pa.duration("us")).cast(pa.int64())
    if pt.is_temporal(column.type):
        return column.cast(arrow_type(kind, "")).cast(_PHYSICAL[kind.kind])
    if kind.kind == "null":
        return pa.nulls(len(column))
    return column.cast(_PHYSICAL[kind.kind])


def _decimals(column: pa.Array, exact: pa.DataType) -> pa.Array:
    """Numbers of any length, big end first, as Arrow's own: of one length, little end first."""
    width = exact.bit_width // 8
    numbers = [
        0 if octets is None else int.from_bytes(octets, "big", signed=True)
        for octets in column.to_pylist()
    ]
    try:
        content = b"".join(number.to_bytes(width, "little", signed=True) for number in numbers)
    except OverflowError:
        raise pa.ArrowInvalid(f"a decimal has more than {exact.precision} digits") from None
    validity = pc.is_valid(column).buffers()[1] if column.null_count else None
    decimals = pa.Array.from_buffers(exact, len(column), [validity, pa.py_buffer(content)])
    decimals.validate(full=True)
    return decimals


def _unscaled(column: pa.Array, size: int) -> pa.Array:
    width = column.type.bit_width // 8
    content = column.buffers()[1].to_pybytes()[column.offset * width :]
    valid = column.is_valid().to_pylist()
    return pa.array(
        [
            _shortest(content[place * width : (place + 1) * width], size) if there else None
            for place, there in enumerate(valid)
        ],
        pa.large_binary(),
    )


def _shortest(little: bytes, size: int) -> bytes:
    number = int.from_bytes(little, "little", signed=True)
    return number.to_bytes(size or (number.bit_length() // 8) + 1, "big", signed=True)


def _times(column: pa.Array, kind: AvroType, target: pa.DataType) -> pa.Array:
    if pt.is_duration(target):
        return column.cast(pa.int64()).cast(pa.duration("us")).cast(target)
    wrote = arrow_type(kind, "")
    numbers = column.cast(pa.int32() if wrote.bit_width == 32 else pa.int64())
    times = numbers.view(wrote)
    if pt.is_timestamp(target):
        # A zone is a way to show an instant: the number stays, whether one is declared or not.
        times = times.view(pa.timestamp(wrote.unit, target.tz))
    elif pt.is_time(target):
        times.validate(full=True)  # a day has so many microseconds and no more
    if times.type.equals(target):
        return times
    # Nanoseconds are cut off where the column has none, as Debezium JSON does; other units must fit.
    return times.cast(target, safe=getattr(wrote, "unit", "") != "ns")
