"""Types between Arrow and SQLite, which has whole numbers, doubles, texts and bytes: a column's declared type says the rest.

    bigint, boolean, interval (microseconds)                           as whole numbers
    double                                                             as a double, NaN as a text
    text, uuid, decimal, date, time, timestamp, timestamptz, json      as text
    blob                                                               as bytes

Columns of a table that the sink makes are declared so. Columns that a test declares have SQLite's own types, by the words in
their declarations.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isnan
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.types as pt

from headrace.connectors.databases.dialect import Cell, Column
from headrace.errors import BuildError, SinkRefused

__all__ = ["cell_of", "column_of", "column_type", "read_type", "readers", "values_of"]

_DIGITS = re.compile(r"\s*\((\d+)(?:,\s*(\d+))?\)")
_NUMBERS = ("bigint", "double", "decimal text")
#: What SQLite itself makes of a declaration that holds one of these words, in the order in which it looks for them.
_AFFINITIES = (
    ("INT", "bigint"),
    ("CHAR", "text"),
    ("CLOB", "text"),
    ("TEXT", "text"),
    ("BLOB", "blob"),
    ("REAL", "double"),
    ("FLOA", "double"),
    ("DOUB", "double"),
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """Values of one type on their way: which Arrow types have it, and what SQLite keeps of a value."""

    takes: Callable[[pa.DataType], bool]
    #: What the stream's values become before they are stored.
    arrow: pa.DataType
    stored: Callable[[Any], Any] = lambda value: value
    read: Callable[[Any], Any] = lambda value: value


def column_type(field: pa.Field) -> str:
    """The declared type of a new table's column."""
    name = _name_of(field)
    if name != "decimal text":
        return name
    kind = _plain(field.type)
    digits = (20, 0) if pt.is_uint64(kind) else (kind.precision, max(kind.scale, 0))
    return f"{name}({digits[0]}, {digits[1]})"


def column_of(
    name: str, declared: str, *, required: bool = False, generated: bool = False
) -> Column:
    """A column by its declaration."""
    kind = _DIGITS.sub("", declared).lower()
    if kind not in _KINDS:
        kind = next((own for word, own in _AFFINITIES if word in declared.upper()), kind)
    digits = _DIGITS.search(declared)
    precision, scale = (int(digits[1]), int(digits[2] or 0)) if digits else (None, None)
    return Column(
        name, kind, declared, None, required, generated, precision, scale, nullable=not required
    )


def cell_of(field: pa.Field, column: Column) -> Cell:
    """How a stream's column gets into a table's. SQLite would take anything; servers do not."""
    name = _name_of(field)
    if name == column.kind or column.kind not in _KINDS:
        return _cell(field, name, column)
    if name in _NUMBERS and column.kind in _NUMBERS:
        return _cell(field, column.kind, column)
    if column.kind == "text" and name.endswith("text"):
        return _cell(field, name, column)
    raise SinkRefused(
        f"column {field.name!r} of the stream is {field.type}, the table's is {column.sql}: cast it in the stream,"
        " or change the table"
    )


def read_type(column: Column) -> pa.DataType:
    """The type of a column that is read; what SQLite computed is text unless the query casts it."""
    if column.kind == "decimal text":
        return _decimal(column)
    return _READ.get(column.kind, pa.string())


def values_of(rows: pa.Table, cells: list[Cell]) -> list[tuple[Any, ...]]:
    """Rows as SQLite keeps them."""
    columns = [
        [
            None if value is None else _KINDS[cell.staging].stored(value)
            for value in column.to_pylist()
        ]
        for column, cell in zip(rows.columns, cells, strict=True)
    ]
    return list(zip(*columns, strict=True))


def readers(columns: list[Column], *, parse_json: bool) -> list[Callable[[Any], Any]]:
    """What makes Python values of those that SQLite keeps."""
    return [_reader(column.kind, parse_json=parse_json) for column in columns]


def _reader(kind: str, *, parse_json: bool) -> Callable[[Any], Any]:
    if kind not in _KINDS or (kind == "json text" and not parse_json):
        return lambda value: value
    read = _KINDS[kind].read
    return lambda value: None if value is None else read(value)


def _cell(field: pa.Field, name: str, column: Column) -> Cell:
    arrow = _KINDS[name].arrow
    if name == "decimal text":
        own = column if column.kind == name else column_of(field.name, column_type(field))
        # Arrow converts whole numbers only to decimals that could hold any of them.
        arrow = _decimal(own) if pt.is_decimal(field.type) else pa.decimal128(38, own.scale or 0)
    return Cell(field.name, arrow, staging=name, as_json=name == "json text")


def _decimal(column: Column) -> pa.DataType:
    return pa.decimal128(min(column.precision or 38, 38), column.scale or 0)


def _name_of(field: pa.Field) -> str:
    kind = field.type
    found = next((name for name, one in _KINDS.items() if one.takes(_plain(kind))), None)
    if found is None:
        raise BuildError(
            f"column {field.name!r}: SQLite has no type for {kind}; cast it to another one"
        )
    return found


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if isinstance(kind, pa.DictionaryType) else kind


def _is_uuid(kind: pa.DataType) -> bool:
    return getattr(kind, "extension_name", "") == "arrow.uuid"


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) and not pt.is_uint64(kind))


def _iso(value: datetime | time) -> str:
    """Equal instants are equal texts, in the order of time."""
    return value.isoformat(timespec="microseconds")


_INSTANT = pa.timestamp("us", tz="UTC")
_MICROSECOND = timedelta(microseconds=1)

_KINDS: dict[str, _Kind] = {
    "bigint": _Kind(_is_whole, pa.int64()),
    "boolean": _Kind(pt.is_boolean, pa.bool_(), int, bool),
    # SQLite would keep NULL for NaN.
    "double": _Kind(
        pt.is_floating, pa.float64(), lambda value: "NaN" if isnan(value) else value, float
    ),
    "decimal text": _Kind(
        lambda kind: pt.is_decimal(kind) or pt.is_uint64(kind),
        pa.decimal128(38, 0),
        lambda value: format(value, "f"),
        lambda value: Decimal(str(value)),
    ),
    "text": _Kind(_is_text, pa.string()),
    "uuid text": _Kind(_is_uuid, pa.binary(16), lambda value: str(UUID(bytes=value))),
    "blob": _Kind(_is_bytes, pa.binary()),
    "date text": _Kind(pt.is_date, pa.date32(), str, date.fromisoformat),
    "time text": _Kind(pt.is_time, pa.time64("us"), _iso, time.fromisoformat),
    "timestamptz text": _Kind(
        lambda kind: pt.is_timestamp(kind) and kind.tz is not None,
        _INSTANT,
        _iso,
        datetime.fromisoformat,
    ),
    "timestamp text": _Kind(
        lambda kind: pt.is_timestamp(kind) and kind.tz is None,
        pa.timestamp("us"),
        _iso,
        datetime.fromisoformat,
    ),
    "interval": _Kind(
        pt.is_duration,
        pa.duration("us"),
        lambda value: value // _MICROSECOND,
        lambda value: value * _MICROSECOND,
    ),
    "json text": _Kind(pt.is_nested, pa.string(), read=json.loads),
}

#: What Arrow has for the values as they are read.
_READ = {
    name: kind.arrow for name, kind in _KINDS.items() if name not in ("uuid text", "json text")
}
