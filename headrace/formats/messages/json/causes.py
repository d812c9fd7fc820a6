"""Why a JSON message is no row: the field and what is wrong with it, where a field is at fault."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from headrace.formats.messages.joined import Glance
from headrace.formats.revive import parsed, revived_values
from headrace.formats.text import is_nested

__all__ = [
    "Fields",
    "field_cause",
    "glance_at_events",
    "glance_at_kinds",
    "kinds_of",
    "object_cause",
]

#: What may stand in JSON for the columns of a row, and what they are declared as.
Fields: TypeAlias = Mapping[str, tuple[frozenset[str], pa.DataType]]

_CHANGED = re.compile(r"Column\(/(.+)\) changed from \w+ to (\w+)")
_ROW = re.compile(r" in row \d+$")
_KINDS = {
    int: "number",
    float: "number",
    str: "string",
    bool: "boolean",
    list: "array",
    dict: "object",
    type(None): "null",
}


def glance_at_kinds(schema: pa.Schema) -> Glance:
    """Tells quickly which messages have a string where a number is declared, and the like.

    What it calls bad is bad for every decoder; about syntax and values it has doubts only.
    """
    fields = {field.name: (kinds_of(field.type), field.type) for field in schema}
    instants = [field.name for field in schema if pt.is_timestamp(field.type)]

    def glance(message: bytes) -> str | bool:
        try:
            row = json.loads(message)
            if said := _mismatched(row, fields, []):
                return said
            for name in instants:
                datetime.fromisoformat(row.get(name) or "2000-01-01")
        except (ValueError, RecursionError):
            return True
        return False

    return glance


def glance_at_events(fields: Fields) -> Glance:
    """The same for change events, whose rows are their `before` and `after`."""

    def glance(message: bytes) -> str | bool:
        try:
            event = json.loads(message)
        except (ValueError, RecursionError):
            return True
        sides = [(side, event.get(side)) for side in ("before", "after")]
        if not all(row is None or isinstance(row, dict) for _, row in sides):
            return True
        found = (_mismatched(row, fields, [side]) for side, row in sides if row)
        return next(filter(None, found), False)

    return glance


def kinds_of(kind: pa.DataType) -> frozenset[str]:
    """What may stand in JSON for a value of this type."""
    if pt.is_decimal(kind):
        return frozenset(("number", "string", "null"))
    if pt.is_integer(kind) or pt.is_floating(kind) or pt.is_duration(kind):
        return frozenset(("number", "null"))
    if is_nested(kind):
        plural = not pt.is_struct(kind) and not pt.is_map(kind)
        return frozenset(("array" if plural else "object", "null"))
    return frozenset(("boolean" if pt.is_boolean(kind) else "string", "null"))


def object_cause(message: bytes, schema: pa.Schema, said: str) -> str:
    """Why a message is no row, with the field where one is at fault."""
    if changed := _CHANGED.search(said):
        path = changed[1].split("/")
        return _mismatch(path, _leaf(schema, path), changed[2])
    try:
        row = parsed(message)
    except ValueError as error:
        return f"the message is not one JSON object: {error}"
    return field_cause(row, schema) or _ROW.sub("", said)


def field_cause(row: Any, schema: pa.Schema) -> str | None:
    """The first field of an object that does not fit, and why."""
    for field in schema if isinstance(row, dict) else ():
        try:
            revived_values([row.get(field.name)], field.type)
        except ValueError as error:
            return f"field {field.name!r}: {error}"
    return None


def _leaf(schema: pa.Schema, path: Sequence[str]) -> pa.DataType:
    kind = pa.struct(list(schema))
    for name in path:
        if not pt.is_struct(kind) or kind.get_field_index(name) < 0:
            break
        kind = kind.field(name).type
    return kind


def _mismatched(row: Mapping[str, Any], fields: Fields, path: Sequence[str]) -> str | None:
    for name, (kinds, declared) in fields.items():
        if _KINDS[type(row.get(name))] not in kinds:
            return _mismatch([*path, name], declared, _KINDS[type(row[name])])
    return None


def _mismatch(path: Sequence[str], kind: pa.DataType, found: str) -> str:
    return f"field {'.'.join(path)!r} is declared as {kind}, but the message has a {found}"
