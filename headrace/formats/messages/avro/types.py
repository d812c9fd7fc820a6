"""Arrow columns as Avro fields and back.

    Arrow                          Avro, written        Avro, read
    bool                           boolean              boolean
    int8 int16 int32 uint8 uint16  int                  int
    int64 uint32 uint64            long                 int, long
    float                          float                int, long, float
    double                         double               int, long, float, double
    string, large_string           string               string, bytes, enum, uuid
    binary, large_binary           bytes                bytes, string, fixed
    fixed_size_binary(n)           fixed of n           fixed of n
    timestamp with a zone          timestamp-micros     timestamp-* and local-timestamp-* (millis, micros, nanos)
    timestamp without one          local-timestamp-micros   the same
    date32                         date                 date
    time32, time64                 time-micros          time-millis, time-micros, Debezium's NanoTime
    decimal128(p, s)               bytes decimal(p, s)  decimal of at most these digits
    duration                       long, microseconds   long
    list                           array                array
    map with string keys           map                  map
    struct                         record               record

Every field is written as `["null", X]` with null as its default, so columns may be added and removed. Timestamps in
nanoseconds are `timestamp-nanos`, and are cut off when a column is coarser. In Arrow every field is nullable. A union of more than null and one type, and a
record inside itself, are no columns.
"""

from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from headrace.errors import BuildError
from headrace.formats.messages.avro.schema import AvroType, described

__all__ = ["arrow_schema", "arrow_type", "avro_kind", "avro_schema", "check_record"]

_PLAIN = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "null": pa.null(),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "time-nanos": pa.time64("ns"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
    "timestamp-text": pa.timestamp("us", "UTC"),
}
#: What an Arrow decimal can hold.
_MOST_DIGITS = 76


def arrow_schema(record: AvroType) -> pa.Schema:
    """The columns that a record makes; `BuildError` names a field that cannot be one."""
    check_record(record)
    return pa.schema([pa.field(f.name, arrow_type(f.type, f.name)) for f in record.fields])


def check_record(kind: AvroType) -> None:
    """Raise `BuildError` if this is no record."""
    if kind.kind != "record":
        raise BuildError(f"the Avro schema is of type {described(kind)}; rows need a record")


def arrow_type(kind: AvroType, path: str) -> pa.DataType:
    """The type of the column that a field makes."""
    if kind.logical == "decimal":
        if kind.precision > _MOST_DIGITS:
            raise BuildError(
                f"field {path!r} has {kind.precision} digits; a column has {_MOST_DIGITS} at most"
            )
        wide = pa.decimal128 if kind.precision <= 38 else pa.decimal256
        return wide(kind.precision, kind.scale)
    if kind.logical in _LOGICAL:
        return _LOGICAL[kind.logical]
    if kind.kind in _PLAIN:
        return _PLAIN[kind.kind]
    if kind.kind == "fixed":
        return pa.binary(kind.size)
    if kind.kind == "record":
        return pa.struct([(f.name, arrow_type(f.type, f"{path}.{f.name}")) for f in kind.fields])
    if kind.items is not None:
        inner = arrow_type(kind.items, f"{path}[]")
        return pa.list_(inner) if kind.kind == "array" else pa.map_(pa.string(), inner)
    raise BuildError(
        f"field {path!r} is a {described(kind)}, which cannot be a column; declare schema= without it"
    )


def avro_schema(schema: pa.Schema, name: str = "Row") -> dict[str, Any]:
    """The Avro record of these columns; `BuildError` names a column that Avro cannot hold."""
    return {"type": "record", "name": name, "fields": [_field(field, name) for field in schema]}


def avro_kind(kind: pa.DataType) -> str | None:
    """Avro's word for what a scalar column holds, logical types aside; None for other columns."""
    if pt.is_boolean(kind):
        return "boolean"
    if pt.is_integer(kind):
        return "int" if kind.bit_width < 32 or kind == pa.int32() else "long"
    if pt.is_float32(kind) or pt.is_float64(kind):
        return "float" if pt.is_float32(kind) else "double"
    if pt.is_string(kind) or pt.is_large_string(kind):
        return "string"
    if pt.is_binary(kind) or pt.is_large_binary(kind):
        return "bytes"
    return "long" if pt.is_duration(kind) else None


def _field(field: pa.Field, owner: str) -> dict[str, Any]:
    if not (field.name.isascii() and field.name.isidentifier()):
        raise BuildError(
            f"field {field.name!r}: Avro names are letters, digits and _; rename the column"
        )
    inner = _written(field.type, f"{owner}_{field.name}", field.name)
    return {"name": field.name, "type": ["null", inner], "default": None}


def _written(kind: pa.DataType, name: str, path: str) -> Any:
    plain = avro_kind(kind)
    if plain is not None:
        return plain
    if pt.is_timestamp(kind):
        unit = "nanos" if kind.unit == "ns" else "micros"
        return {"type": "long", "logicalType": f"{'' if kind.tz else 'local-'}timestamp-{unit}"}
    if pt.is_date(kind):
        return {"type": "int", "logicalType": "date"}
    if pt.is_time(kind):
        return {"type": "long", "logicalType": "time-micros"}
    if pt.is_decimal(kind):
        digits = {"precision": kind.precision, "scale": kind.scale}
        return {"type": "bytes", "logicalType": "decimal", **digits}
    if pt.is_fixed_size_binary(kind):
        return {"type": "fixed", "name": name, "size": kind.byte_width}
    return _written_nested(kind, name, path)


def _written_nested(kind: pa.DataType, name: str, path: str) -> Any:
    if pt.is_struct(kind):
        return {"type": "record", "name": name, "fields": [_field(f, name) for f in kind]}
    if pt.is_list(kind) or pt.is_large_list(kind):
        return {"type": "array", "items": ["null", _written(kind.value_type, name, path)]}
    if pt.is_map(kind) and pt.is_string(kind.key_type):
        return {"type": "map", "values": ["null", _written(kind.item_type, name, path)]}
    hint = "; the keys of a map must be strings" if pt.is_map(kind) else ""
    raise BuildError(f"field {path!r}: Avro has no form for {kind}{hint}")
