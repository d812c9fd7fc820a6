"""JSON Schemas of columns, columns of JSON Schemas, and whether one kind of message can become other columns.

    boolean                 bool
    integer                 any integer, duration (microseconds)
    number                  float, double; decimals are numbers, and strings inside lists and structs
    string                  string; binary (base64); timestamp, date, time (formats date-time, date, time)
    array, object           list; struct, and map with string keys

Every property may be null and may be left out. A schema that is read may say more than one type and more than types:
what is refused is only a field that can never be what is declared; a message that is not is told when it comes.
"""

import json
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from headrace.errors import BuildError
from headrace.formats.messages.format import Mismatch

__all__ = ["check_readable", "columns_of", "json_schema"]

_FORMATS = {"date-time": pa.timestamp("us", "UTC"), "date": pa.date32(), "time": pa.time64("us")}
_TYPES = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "string": pa.string(),
}


def json_schema(schema: pa.Schema, *, numbers: bool = False) -> str:
    """The schema of objects with these columns; with `numbers` instants are numbers."""
    return json.dumps(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "Row",
            **_object(list(schema), numbers=numbers),
        }
    )


def check_readable(text: str, schema: pa.Schema) -> None:
    """Raise `Mismatch` if a property can never be the column that is declared."""
    _check_properties(json.loads(text), list(schema), "")


def columns_of(text: str, what: str) -> pa.Schema:
    """The columns of an object; `BuildError` names a property that cannot be one."""
    found = _column(json.loads(text), "")
    if not pt.is_struct(found):
        raise BuildError(f"{what} is no JSON Schema of an object with properties; declare schema=")
    return pa.schema(list(found))


def _object(fields: list[pa.Field], *, numbers: bool) -> dict[str, Any]:
    properties = {field.name: _property(field.type, numbers=numbers) for field in fields}
    # Closed, so that a later version may add a column without a clash with what others put under its name.
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _property(kind: pa.DataType, *, numbers: bool) -> dict[str, Any]:
    if pt.is_struct(kind):
        inner = _object(list(kind), numbers=False)
        return inner | {"type": ["object", "null"]}
    if pt.is_map(kind):
        values = _property(kind.item_type, numbers=False)
        return {"type": ["object", "null"], "additionalProperties": values}
    if pt.is_nested(kind):
        return {"type": ["array", "null"], "items": _property(kind.value_type, numbers=False)}
    if pt.is_timestamp(kind) and numbers:
        return {"type": ["number", "null"]}
    if pt.is_decimal(kind):
        return {"type": ["number", "string", "null"]}
    shape: dict[str, Any] = {"type": [_written(kind), "null"]}
    if pt.is_timestamp(kind) and kind.tz:
        shape["format"] = "date-time"
    elif pt.is_date(kind):
        shape["format"] = "date"
    return shape


def _written(kind: pa.DataType) -> str:
    if pt.is_boolean(kind):
        return "boolean"
    if pt.is_integer(kind) or pt.is_duration(kind):
        return "integer"
    return "number" if pt.is_floating(kind) else "string"


def _check_properties(shape: Any, fields: list[pa.Field], path: str) -> None:
    properties = shape.get("properties", {}) if isinstance(shape, dict) else {}
    for field in fields:
        _check(properties.get(field.name, {}), field.type, f"{path}{field.name}")


def _check(shape: Any, kind: pa.DataType, path: str) -> None:
    wrote = _types(shape) - {"null"}
    if wrote and not wrote & _readable(kind):
        raise Mismatch(path, " or ".join(sorted(wrote)), str(kind))
    if pt.is_struct(kind):
        _check_properties(shape, list(kind), f"{path}.")
    elif pt.is_list(kind) or pt.is_large_list(kind):
        _check(
            shape.get("items", {}) if isinstance(shape, dict) else {}, kind.value_type, f"{path}[]"
        )


def _types(shape: Any) -> set[str]:
    """The types that a value may have; none if the schema does not say it in plain words."""
    if not isinstance(shape, dict):
        return set()
    said = shape.get("type", [])
    found = {said} if isinstance(said, str) else set(said)
    for choice in (*shape.get("anyOf", ()), *shape.get("oneOf", ())):
        inner = _types(choice)
        if not inner:
            return set()
        found |= inner
    return found


def _readable(kind: pa.DataType) -> set[str]:
    if pt.is_struct(kind) or pt.is_map(kind):
        return {"object"}
    if pt.is_nested(kind):
        return {"array"}
    if pt.is_boolean(kind):
        return {"boolean"}
    if pt.is_integer(kind) or pt.is_floating(kind) or pt.is_duration(kind):
        return {"integer", "number"}
    if pt.is_temporal(kind) or pt.is_decimal(kind):
        return {"string", "integer", "number"}
    return {"string"}


def _column(shape: Any, path: str) -> pa.DataType:
    types = _types(shape) - {"null"}
    if types == {"object"} and shape.get("properties"):
        inner = shape["properties"].items()
        return pa.struct([(n, _column(each, f"{path}.{n}".lstrip("."))) for n, each in inner])
    if types == {"object"} and isinstance(shape.get("additionalProperties"), dict):
        return pa.map_(pa.string(), _column(shape["additionalProperties"], f"{path}{{}}"))
    if types == {"array"} and isinstance(shape.get("items"), dict):
        return pa.list_(_column(shape["items"], f"{path}[]"))
    if types == {"string"} and shape.get("format") in _FORMATS:
        return _FORMATS[shape["format"]]
    if types == {"integer", "number"}:
        return pa.float64()
    if len(types) == 1 and (only := types.pop()) in _TYPES:
        return _TYPES[only]
    raise BuildError(
        f"property {path!r} of the JSON Schema has no single type that a column can have; declare schema="
    )
