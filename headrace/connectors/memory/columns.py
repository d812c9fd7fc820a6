"""Rows that a user wrote down, as Arrow columns of a declared or found schema.

A row is a dataclass instance, a mapping, or a row of another stream. Every field must be there and of its
type; an instant needs a zone. Errors name the row by its number, and the field.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from headrace.errors import SchemaError
from headrace.schema import as_schema, describe_fields

__all__ = ["columns_of", "schema_of"]


def schema_of(rows: Sequence[Any]) -> pa.Schema:
    """The schema that the rows themselves show: that of their dataclass, or what Arrow makes of them."""
    if not rows:
        raise SchemaError("a source without rows needs schema=, a dataclass or an Arrow schema")
    if _is_record(rows[0]):
        return as_schema(type(rows[0]))
    try:
        return pa.RecordBatch.from_pylist([_fields(row, 0) for row in rows]).schema
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaError(f"the rows do not show one schema; give schema=: {error}") from error


def columns_of(rows: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    """The rows as one batch."""
    fields = [_fields(row, number) for number, row in enumerate(rows)]
    for number, row in enumerate(fields):
        if row.keys() != set(schema.names):
            _refuse_names(row, number, schema)
    arrays = [_column([row[field.name] for row in fields], field) for field in schema]
    return pa.record_batch(arrays, schema=schema)


def _is_record(row: object) -> bool:
    return dataclasses.is_dataclass(row) and not isinstance(row, type)


def _fields(row: Any, number: int) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if _is_record(row):
        return {field.name: _plain(getattr(row, field.name)) for field in dataclasses.fields(row)}
    if hasattr(row, "_asdict"):
        fields: Mapping[str, Any] = row._asdict()
        return fields
    raise SchemaError(f"row {number} is {row!r}; a row is a dataclass instance or a mapping")


def _plain(value: Any) -> Any:
    return dataclasses.asdict(value) if _is_record(value) else value


def _refuse_names(row: Mapping[str, Any], number: int, schema: pa.Schema) -> None:
    missing = [name for name in schema.names if name not in row]
    if missing:
        trouble = f"has no field {', '.join(missing)}"
    else:
        trouble = f"has unknown fields: {', '.join(n for n in row if n not in schema.names)}"
    raise SchemaError(f"row {number} {trouble}; the fields are {describe_fields(schema)}")


def _column(values: Sequence[Any], field: pa.Field) -> pa.Array:
    if pt.is_timestamp(field.type) and field.type.tz is not None:
        _check_zones(values, field.name)
    try:
        return pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError) as error:
        number = _first_bad(values, field.type)
        found = "" if number is None else f", but row {number} has {values[number]!r}"
        raise SchemaError(f"field {field.name!r} is {field.type}{found}: {error}") from error


def _check_zones(values: Sequence[Any], name: str) -> None:
    for number, value in enumerate(values):
        if isinstance(value, datetime) and value.tzinfo is None:
            raise SchemaError(
                f"field {name!r} of row {number} is the naive datetime {value!r};"
                " give it a time zone, for example tzinfo=UTC"
            )


def _first_bad(values: Sequence[Any], kind: pa.DataType) -> int | None:
    for number, value in enumerate(values):
        try:
            pa.array([value], kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError):
            return number
    return None
