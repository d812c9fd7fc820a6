"""Rows to Avro messages of one schema: all at once where that can be, one at a time (by fastavro) where it cannot."""

import io
import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.errors import BuildError, SinkRefused
from headrace.formats.messages.avro import pieces
from headrace.formats.messages.avro.leaves import physical
from headrace.formats.messages.avro.resolution import absent_field, resolved
from headrace.formats.messages.avro.rows import default_column
from headrace.formats.messages.avro.schema import MISSING, AvroType, parsed, without_logical_types
from headrace.formats.messages.avro.types import arrow_schema, arrow_type, avro_schema
from headrace.formats.messages.format import Mismatch

__all__ = ["AvroWriter", "check_fits"]


class AvroWriter:
    """Writes columns as records of one schema, each behind a header."""

    def __init__(self, schema: str, columns: pa.Schema, header: bytes) -> None:
        self._record = parsed(schema)
        check_fits(columns, self._record)
        self._header = header
        self._fast = pieces.can_write(self._record)
        self._schema = schema

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        try:
            rows = self._ordered(batch)
            if self._fast:
                return pieces.write(rows, self._record, self._header)
            return self._slowly(_values(rows, self._record))
        except pa.ArrowInvalid as error:
            raise SinkRefused(f"a row does not fit the Avro schema: {error}") from error

    def _ordered(self, batch: pa.RecordBatch) -> pa.StructArray:
        columns = []
        for field in self._record.fields:
            kind = arrow_type(field.type, field.name)
            if field.name in batch.schema.names:
                column = _fitting(batch.column(field.name), kind)
            else:
                column = default_column(absent_field(field, kind), len(batch))
            _check_nulls(column, field.type, field.name)
            columns.append(column)
        names = [field.name for field in self._record.fields]
        return pa.StructArray.from_arrays(columns, names)

    def _writer(self) -> Callable[[io.BytesIO, Any], None]:
        from fastavro import parse_schema, schemaless_writer

        plain = parse_schema(without_logical_types(json.loads(self._schema)))
        return lambda out, value: schemaless_writer(out, plain, value)

    def _slowly(self, values: Sequence[Any]) -> pa.Array:
        write = self._writer()
        out, ends = io.BytesIO(), [0]
        for value in values:
            out.write(self._header)
            try:
                write(out, value)
            except Exception as error:
                # fastavro raises whatever its C code met, such as a null where none may be.
                raise pa.ArrowInvalid(repr(error)) from error
            ends.append(out.tell())
        buffers = [None, pa.py_buffer(np.array(ends, dtype=np.int64)), pa.py_buffer(out.getvalue())]
        messages = pa.Array.from_buffers(pa.large_binary(), len(values), buffers)
        return messages.cast(pa.binary())


def check_fits(columns: pa.Schema, record: AvroType) -> None:
    """Raise `BuildError` naming the column that has no place in the record, or the field that has no value."""
    wanted = arrow_schema(record)
    for name in columns.names:
        if name not in wanted.names:
            raise BuildError(
                f"column {name!r} is no field of the Avro schema: drop it, or add it there"
            )
    for field in record.fields:
        if field.name in columns.names or field.default is not MISSING:
            continue
        if field.type.null_branch is None:
            raise BuildError(
                f"field {field.name!r} of the Avro schema has no default and no column"
            )
    own = parsed(avro_schema(columns))
    there = pa.struct([field for field in wanted if field.name in columns.names])
    try:
        resolved(own, there, None)
    except Mismatch as error:
        raise BuildError(
            f"column {error.path!r} is {error.wrote}, but the Avro schema has {error.reads}"
        ) from None


def _fitting(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Widened to the schema's type; times keep their own unit until they are written."""
    if pa.types.is_temporal(kind) or pa.types.is_duration(column.type) or column.type.equals(kind):
        return column
    return column.cast(kind)


def _check_nulls(column: pa.Array, kind: AvroType, path: str) -> None:
    if column.null_count and kind.null_branch is None and kind.kind != "null":
        raise SinkRefused(f"column {path!r} has a null, which the Avro schema does not allow there")


def _values(column: pa.Array, kind: AvroType) -> list[Any]:
    """Rows as fastavro takes them, with plain numbers for times."""
    if kind.kind == "record":
        inner = [_values(c, f.type) for c, f in zip(column.flatten(), kind.fields, strict=True)]
        names = [field.name for field in kind.fields]
        rows: list[Any] = [dict(zip(names, row, strict=True)) for row in zip(*inner, strict=True)]
        return _with_nulls(rows, column)
    if kind.items is None:
        if kind.kind == "enum":
            return list(column.to_pylist())
        return list(physical(column, kind).to_pylist())
    bounds = list(pairwise(column.offsets.to_pylist()))
    if kind.kind == "array":
        items = _values(column.values, kind.items)
        return _with_nulls([items[start:end] for start, end in bounds], column)
    keys, items = column.keys.to_pylist(), _values(column.items, kind.items)
    maps: list[Any] = [dict(zip(keys[a:b], items[a:b], strict=True)) for a, b in bounds]
    return _with_nulls(maps, column)


def _with_nulls(values: list[Any], column: pa.Array) -> list[Any]:
    if not column.null_count:
        return values
    valid = column.is_valid().to_pylist()
    return [value if there else None for value, there in zip(values, valid, strict=True)]
