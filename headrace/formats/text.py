"""Values as text: how a column looks in JSON lines and in CSV.

Instants are ISO 8601 in UTC with a `Z`, dates and times ISO 8601, durations whole microseconds, decimals
digits, bytes base64. Whole columns are turned at once; only lists, structs and maps go value by value.
"""

import base64
import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

__all__ = ["is_bytes", "is_nested", "json_texts", "plain"]

_QUOTE, _BACKSLASH, _FIRST_PRINTED = 0x22, 0x5C, 0x20
_MICROSECOND = timedelta(microseconds=1)


def is_nested(type_: pa.DataType) -> bool:
    """Whether values are lists, structs or maps."""
    return bool(pt.is_nested(type_))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether values are bytes, which text files hold as base64."""
    return bool(pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind))


def plain(column: pa.Array) -> pa.Array:
    """The column with only numbers, booleans and strings in it, as text files have them."""
    kind = column.type
    if pt.is_dictionary(kind):
        return plain(column.dictionary_decode())
    if pt.is_timestamp(kind):
        return _instants(column)
    if pt.is_string_view(kind):
        return column.cast(pa.string())
    if pt.is_date(kind) or pt.is_time(kind):
        return column.cast(pa.string())
    if pt.is_duration(kind):
        return column.cast(pa.duration("us"), safe=False).cast(pa.int64())
    if is_bytes(kind):
        return pa.array([_base64(value) for value in column.to_pylist()], pa.string())
    return column


def json_texts(column: pa.Array) -> pa.Array:
    """Each value of the column as JSON, null included."""
    if is_nested(column.type):
        values = (_jsonable(value, column.type) for value in column.to_pylist())
        return pa.array([json.dumps(value) for value in values], pa.string())
    values = plain(column)
    if pt.is_string(values.type) or pt.is_large_string(values.type):
        texts = _quoted(values.cast(pa.string()))
    elif pt.is_floating(values.type):
        finite = pc.is_finite(values)
        texts = pc.if_else(finite, values, None).cast(pa.string())
    else:
        texts = values.cast(pa.string())
    return pc.fill_null(texts, "null")


def _instants(column: pa.Array) -> pa.Array:
    """A column without a time zone gets no `Z`: it is a reading of a clock, not an instant."""
    # What is stored is UTC whatever the zone; printing with a zone costs ten times as much.
    stored = column.view(pa.timestamp(column.type.unit)).cast(pa.string())
    texts = pc.replace_substring(stored, " ", "T", max_replacements=1)
    return texts if column.type.tz is None else pc.binary_join_element_wise(texts, "Z", "")


def _quoted(values: pa.Array) -> pa.Array:
    if _needs_escape(values):
        encode = json.encoder.encode_basestring
        return pa.array([None if v is None else encode(v) for v in values.to_pylist()], pa.string())
    return pc.binary_join_element_wise('"', values, '"', "")


def _needs_escape(values: pa.Array) -> bool:
    """Looks at the bytes of the whole column (and of its neighbours, if it is a slice) at once."""
    content = values.buffers()[2]
    if content is None:
        return False
    octets = np.frombuffer(content, dtype=np.uint8)
    return any(
        bool(found.any())
        for found in (octets < _FIRST_PRINTED, octets == _QUOTE, octets == _BACKSLASH)
    )


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")


_SCALAR_TEXTS: dict[type, Callable[[Any], Any]] = {
    bytes: _base64,
    Decimal: str,
    date: date.isoformat,
    time: time.isoformat,
    timedelta: lambda value: value // _MICROSECOND,
}


def _jsonable(value: Any, kind: pa.DataType) -> Any:
    """A value of a nested column as `json.dumps` takes it."""
    if value is None:
        return None
    if pt.is_struct(kind):
        return {name: _jsonable(item, kind.field(name).type) for name, item in value.items()}
    if pt.is_map(kind):
        return {_key(key, kind.key_type): _jsonable(item, kind.item_type) for key, item in value}
    if is_nested(kind):
        return [_jsonable(item, kind.value_type) for item in value]
    if isinstance(value, datetime):
        return _instant(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    convert = _SCALAR_TEXTS.get(type(value))
    return value if convert is None else convert(value)


def _key(value: Any, kind: pa.DataType) -> str:
    """A key of a map as the name of a field, which is a string in JSON whatever the key is."""
    plain_key = _jsonable(value, kind)
    return plain_key if isinstance(plain_key, str) else json.dumps(plain_key)


def _instant(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat(timespec="microseconds")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
