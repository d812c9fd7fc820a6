"""Rows as JSON text: the payload of a dead letter, for people to read."""

import base64
import json
from datetime import date, datetime, time
from typing import Any

import pyarrow as pa

__all__ = ["as_json", "shown"]


def as_json(batch: pa.RecordBatch) -> list[str]:
    """One JSON object a row. Instants are ISO 8601, bytes are base64, what JSON lacks is its text."""
    return [json.dumps(row, default=shown, ensure_ascii=False) for row in _objects(batch)]


def _objects(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    try:
        return list(batch.to_pylist())
    except (ValueError, OverflowError, pa.ArrowException):
        # An instant that no datetime can hold is shown as its number.
        columns = [
            column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
            for column in batch.columns
        ]
        return list(pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist())


def shown(value: Any) -> str:
    """What JSON lacks, as text."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)
