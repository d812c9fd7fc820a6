"""Values that came out of JSON or CSV as plain ones, back to the types they were declared with.

The inverse of `text`. What does not fit raises ValueError, and nothing is guessed: an instant without a
zone is an error, and so are one with a zone where none is declared and a fraction where a whole number is.
"""

import base64
import binascii
import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from headrace.formats.text import is_bytes, is_nested

__all__ = ["is_simple", "parsed", "revived_bytes", "revived_texts", "revived_values"]


def is_simple(kind: pa.DataType) -> bool:
    """Whether Arrow's own reader gets a value of a nested type right: no maps, nothing of our own texts."""
    if pt.is_struct(kind):
        return all(is_simple(kind.field(place).type) for place in range(kind.num_fields))
    if pt.is_list(kind):
        return is_simple(kind.value_type)
    return bool(
        pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind) or pt.is_string(kind)
    )


def revived_values(values: list[Any], kind: pa.DataType) -> pa.Array:
    """What `parsed` gave, as a column of a declared type."""
    try:
        return pa.array([_revived(value, kind) for value in values], kind)
    except (TypeError, KeyError, InvalidOperation, OverflowError) as error:
        raise ValueError(f"a value does not fit {kind}: {error}") from error


def revived_texts(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """JSON texts, as a column of a nested type."""
    texts = column.to_pylist()
    return revived_values([None if text is None else parsed(text) for text in texts], kind)


def parsed(text: str | bytes) -> Any:
    """JSON as Python values; a fraction keeps all its digits."""
    try:
        return json.loads(text, parse_float=Decimal)
    except RecursionError as error:
        raise ValueError("the lists or objects in it are nested too deep") from error


def revived_bytes(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Base64 texts, as a column of bytes."""
    return pa.array([_bytes(text) for text in column.to_pylist()], kind)


def _revived(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if is_nested(kind):
        return _revived_nested(value, kind)
    if is_bytes(kind):
        return _bytes(_of(value, str))
    if pt.is_timestamp(kind):
        return _instant(_of(value, str), zoned=kind.tz is not None)
    if pt.is_date(kind):
        return date.fromisoformat(_of(value, str))
    if pt.is_time(kind):
        return time.fromisoformat(_of(value, str))
    if pt.is_duration(kind):
        return timedelta(microseconds=_of(value, int))
    return _revived_number(value, kind)


def _revived_number(value: Any, kind: pa.DataType) -> Any:
    if pt.is_decimal(kind):
        return Decimal(_of(value, str, int, Decimal))
    if pt.is_boolean(kind):
        return _of(value, bool)
    if pt.is_integer(kind):
        return _of(value, int)
    if pt.is_floating(kind):
        return _fraction(_of(value, int, float, Decimal))
    return _of(value, str)


def _fraction(value: float | Decimal) -> float:
    number = float(value)
    if math.isinf(number) and not isinstance(value, float):
        raise ValueError(f"{value} is too large for a fraction of 64 bits")
    return number


def _revived_nested(value: Any, kind: pa.DataType) -> Any:
    if pt.is_struct(kind):
        fields = [kind.field(place) for place in range(kind.num_fields)]
        given = _of(value, dict)
        return {field.name: _revived(given.get(field.name), field.type) for field in fields}
    if pt.is_map(kind):
        return [
            (_map_key(key, kind.key_type), _revived(item, kind.item_type))
            for key, item in _of(value, dict).items()
        ]
    return [_revived(item, kind.value_type) for item in _of(value, list)]


def _map_key(text: str, kind: pa.DataType) -> Any:
    """Keys of a JSON object are strings, whatever the keys of the map are."""
    checks = (pt.is_integer, pt.is_boolean, pt.is_floating, pt.is_duration)
    return _revived(parsed(text) if any(check(kind) for check in checks) else text, kind)


def _of(value: Any, *types: type) -> Any:
    if (isinstance(value, bool) and bool not in types) or not isinstance(value, types):
        expected = " or ".join(type_.__name__ for type_ in types)
        raise ValueError(f"{value!r} is not {expected}")
    return value


def _bytes(text: str | None) -> bytes | None:
    try:
        return None if text is None else base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"{text!r} is not base64: {error}") from error


def _instant(text: str, *, zoned: bool) -> datetime:
    value = datetime.fromisoformat(text)
    if zoned and value.tzinfo is None:
        raise ValueError(f"{text!r} has no zone; write it as {text}Z if it is in UTC")
    if not zoned and value.tzinfo is not None:
        raise ValueError(f"{text!r} has a zone, and the column has none; declare one")
    return value.astimezone(UTC) if zoned else value
