"""Nested values as JSON text, in the forms that PostgreSQL's own `to_jsonb` gives them.

A struct or a map is an object, a list is an array, a decimal keeps all its digits, times are ISO 8601, bytes are
`"\\\\x6869"`, and numbers that JSON has no sign for are the words `"NaN"`, `"Infinity"`, `"-Infinity"`.
"""

import json
import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

__all__ = ["json_texts"]

_Writer: TypeAlias = Callable[[Any], str]


def json_texts(array: pa.Array) -> pa.Array:
    """Each value of a column as JSON; NULL stays NULL."""
    written = _writer(array.type)
    return pa.array(
        [None if value is None else written(value) for value in array.to_pylist()], pa.string()
    )


def _writer(kind: pa.DataType) -> _Writer:
    """What writes values of a type; made once for a column."""
    if pa.types.is_struct(kind):
        inner = {field.name: _or_null(_writer(field.type)) for field in kind}
        return lambda value: _object((n, written(value[n])) for n, written in inner.items())
    if pa.types.is_map(kind):
        item = _or_null(_writer(kind.item_type))
        return lambda value: _object((_name(key), item(one)) for key, one in value)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        one = _or_null(_writer(kind.value_type))
        return lambda value: f"[{', '.join(map(one, value))}]"
    return _scalar


def _or_null(written: _Writer) -> _Writer:
    return lambda value: "null" if value is None else written(value)


def _object(members: Any) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {text}" for name, text in members) + "}"


def _name(key: Any) -> str:
    return key if isinstance(key, str) else _scalar(key).strip('"')


def _scalar(value: Any) -> str:
    if isinstance(value, bool | int | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f'"{_WORDS[str(value)]}"'
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime | date | time):
        return f'"{value.isoformat()}"'
    if isinstance(value, timedelta):
        return repr(value.total_seconds())
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    return json.dumps(str(value), ensure_ascii=False)


_WORDS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
