"""Rows of a driver as columns."""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headrace.errors import InputError

__all__ = ["record_batch"]


def record_batch(
    rows: Sequence[tuple[Any, ...]], natural: pa.Schema, wanted: pa.Schema
) -> pa.RecordBatch:
    """Rows in the types that they have, cast to those that are wanted. `InputError` names what does not fit."""
    columns = [
        _column(values, given, field)
        for values, given, field in zip(zip(*rows, strict=True), natural.types, wanted, strict=True)
    ]
    return pa.record_batch(columns, schema=wanted)


def _column(values: Sequence[Any], given: pa.DataType, field: pa.Field) -> pa.Array:
    try:
        if pa.types.is_nested(field.type) and pa.types.is_string(given):
            parsed = [None if value is None else json.loads(value) for value in values]
            return pa.array(parsed, field.type)
        if pa.types.is_decimal(given) and pa.types.is_decimal(field.type):
            return pa.array(values, field.type)
        array = pa.array(values, given)
        return array if given == field.type else array.cast(field.type)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InputError(
            f"column {field.name!r} holds a value that does not fit {field.type}:"
            f" {' '.join(str(error).split())}; declare another type with schema=, or cast it with query="
        ) from error
