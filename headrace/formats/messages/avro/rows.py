"""Avro messages one at a time, by fastavro: for arrays and maps, and to learn why a message cannot be read."""

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.formats.messages.avro.leaves import converted
from headrace.formats.messages.avro.resolution import Child, Plan
from headrace.formats.messages.avro.schema import without_logical_types

__all__ = ["column", "default_column", "row_reader"]

#: The types that fastavro's values have before they are converted.
_PHYSICAL = {
    "boolean": pa.bool_(),
    "int": pa.int64(),
    "long": pa.int64(),
    "float": pa.float64(),
    "double": pa.float64(),
    "string": pa.string(),
    "enum": pa.string(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "null": pa.null(),
}


def row_reader(schema: Any, named: Sequence[Any]) -> Callable[[bytes], Any]:
    """What reads one message; `ValueError` if its bytes are not one record."""
    from fastavro import parse_schema, schemaless_reader
    from fastavro.schema import SchemaParseException

    names: dict[str, Any] = {}
    try:
        for other in named:
            parse_schema(without_logical_types(other), named_schemas=names)
        writer = parse_schema(without_logical_types(schema), named_schemas=names)
    except (SchemaParseException, ValueError) as error:
        # Others take schemas that fastavro does not, such as one that defines a name twice.
        return _refusing(f"the schema that it was written with cannot be used: {error}")

    def read(message: bytes) -> Any:
        content = io.BytesIO(message)
        try:
            row = schemaless_reader(content, writer)
        except Exception as error:
            # fastavro raises whatever its C code met: IndexError, EOFError, MemoryError for an absurd length.
            reason = str(error) or "it ends too early"
            raise ValueError(f"not a record of this schema: {reason}") from error
        if content.tell() != len(message):
            raise ValueError(f"{len(message) - content.tell()} bytes are left behind the record")
        return row

    return read


def _refusing(cause: str) -> Callable[[bytes], Any]:
    def refuse(_message: bytes) -> Any:
        raise ValueError(cause)

    return refuse


def column(values: Sequence[Any], plan: Plan) -> pa.Array:
    """Values as fastavro gives them, as a column of the plan's target."""
    if plan.writer.kind == "record":
        return _structs(values, plan)
    if plan.inner is not None:
        return _lists(values, plan) if plan.writer.kind == "array" else _maps(values, plan)
    plain = pa.array(values, _PHYSICAL[plan.writer.kind])
    return converted(plain, plan.writer, plan.target)


def default_column(child: Child, rows: int) -> pa.Array:
    """A field that was not written: its default in all rows."""
    if child.plan is None:
        return pa.nulls(rows, child.type)
    return pa.repeat(column([child.default], child.plan)[0], rows)


def _structs(values: Sequence[Any], plan: Plan) -> pa.Array:
    if not plan.children:
        return pa.array(values, plan.target)
    columns = [
        default_column(child, len(values))
        if child.plan is None or child.source is None
        else column([None if v is None else v[child.source] for v in values], child.plan)
        for child in plan.children
    ]
    absent = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(columns, fields=list(plan.target), mask=absent)


def _lists(values: Sequence[Any], plan: Plan) -> pa.Array:
    assert plan.inner is not None
    items = column([item for value in values for item in value or ()], plan.inner)
    lists = pa.ListArray.from_arrays(_offsets(values), items)
    return lists.cast(plan.target)


def _maps(values: Sequence[Any], plan: Plan) -> pa.Array:
    assert plan.inner is not None
    keys = pa.array([key for value in values for key in value or ()], pa.string())
    items = column([item for value in values for item in (value or {}).values()], plan.inner)
    maps = pa.MapArray.from_arrays(_offsets(values), keys.cast(plan.target.key_type), items)
    return maps.cast(plan.target)


def _offsets(values: Sequence[Any]) -> pa.Array:
    """Where each list begins; null for one that is absent, which Arrow takes for a null list."""
    sizes = np.fromiter((len(value or ()) for value in values), dtype=np.int32, count=len(values))
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    absent = np.array([value is None for value in values] + [False], dtype=np.bool_)
    return pa.array(ends, pa.int32(), mask=absent)
