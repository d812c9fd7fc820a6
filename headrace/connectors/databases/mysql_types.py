"""Types between Arrow and MySQL: of new tables, into tables that are there, and back.

Timestamps are `datetime(6)` in UTC, lengths of time are microseconds in a `bigint`, nested values are JSON.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from headrace.connectors.databases.dialect import Cell, Column
from headrace.errors import BuildError, SinkRefused

__all__ = ["cell_of", "column_type", "described", "read_type"]

_BINARY_CHARSET = 63
_UNSIGNED_FLAG = 32


def column_type(field: pa.Field, *, is_key: bool) -> str:
    """The type of a new table's column. Texts of a key have a length, because an index needs one."""
    kind = field.type.value_type if isinstance(field.type, pa.DictionaryType) else field.type
    if getattr(kind, "extension_name", "") == "arrow.uuid":
        return "binary(16)"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {max(kind.scale, 0)})"
    if is_key and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return "varchar(500)"
    if is_key and _is_bytes(kind):
        return "varbinary(500)"
    found = next((sql for test, sql in _NEW if test(kind)), None)
    if found is None:
        raise BuildError(
            f"column {field.name!r}: MySQL has no type for {kind}; cast it to another one"
        )
    return found


def cell_of(field: pa.Field, column: Column) -> Cell:
    """How a stream's column gets into a table's: the server converts, strictly."""
    kind = field.type.value_type if isinstance(field.type, pa.DictionaryType) else field.type
    kind = getattr(kind, "storage_type", kind)
    if pa.types.is_nested(kind):
        if column.kind in ("json", "longtext", "mediumtext", "text"):
            return Cell(field.name, pa.string(), as_json=True)
        raise SinkRefused(
            f"column {field.name!r} of the stream is {kind}, the table's is {column.sql}; make it json"
        )
    if pa.types.is_timestamp(kind):
        return Cell(field.name, pa.timestamp("us"))
    if pa.types.is_duration(kind):
        whole = pa.int64() if column.kind in _INTEGERS else pa.duration("us")
        return Cell(field.name, whole)
    if pa.types.is_time(kind):
        return Cell(field.name, pa.time64("us"))
    if _is_bytes(kind):
        return Cell(field.name, pa.binary())
    return Cell(field.name, kind)


def read_type(column: Column) -> pa.DataType:
    """The type of a column that is read."""
    if column.kind == "decimal" and column.precision is not None and column.precision <= 38:
        return pa.decimal128(column.precision, column.scale or 0)
    return _READ.get(column.kind, pa.string())


def described(field: Any) -> Column:
    """A column of a result, from what the server says of it."""
    kind = _CODES.get(field.type_code, "text")
    unsigned = bool(field.flags & _UNSIGNED_FLAG)
    if kind == "text" and field.charsetnr == _BINARY_CHARSET:
        kind = "blob"
    if unsigned and f"{kind} unsigned" in _READ:
        kind = f"{kind} unsigned"
    if kind != "decimal":
        return Column(field.name, kind, kind)
    # The length counts the sign and the point.
    digits = field.length - (0 if unsigned else 1) - (1 if field.scale else 0)
    return Column(field.name, kind, kind, precision=digits, scale=field.scale)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")

_READ: dict[str, pa.DataType] = {
    "tinyint": pa.int8(),
    "tinyint unsigned": pa.uint8(),
    "smallint": pa.int16(),
    "smallint unsigned": pa.uint16(),
    "int": pa.int32(),
    "int unsigned": pa.uint32(),
    "bigint": pa.int64(),
    "bigint unsigned": pa.uint64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal": pa.decimal128(38, 18),
    "date": pa.date32(),
    "time": pa.duration("us"),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "blob": pa.binary(),
    "bit": pa.binary(),
}

#: The numbers of types in the protocol.
_CODES = {
    0: "decimal",
    246: "decimal",
    1: "tinyint",
    2: "smallint",
    13: "smallint",  # a year
    3: "int",
    9: "int",
    8: "bigint",
    4: "float",
    5: "double",
    7: "timestamp",
    12: "datetime",
    10: "date",
    11: "time",
    16: "bit",
    245: "json",
}

_NEW: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "tinyint(1)"),
    (pa.types.is_int8, "tinyint"),
    (lambda kind: kind in (pa.int16(), pa.uint8()), "smallint"),
    (lambda kind: kind in (pa.int32(), pa.uint16()), "int"),
    (lambda kind: kind in (pa.int64(), pa.uint32()) or pa.types.is_duration(kind), "bigint"),
    (pa.types.is_uint64, "bigint unsigned"),
    (lambda kind: kind in (pa.float16(), pa.float32()), "float"),
    (pa.types.is_float64, "double"),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), "longtext"),
    (_is_bytes, "longblob"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time(6)"),
    (pa.types.is_timestamp, "datetime(6)"),
    (pa.types.is_nested, "json"),
)
