"""How a record that was written with one schema becomes the columns of another: Avro's rules of resolution.

A field is found by its name, or by an alias of the reader's. Numbers widen (int, long, float, double), string and
bytes stand for each other, a field that the writer lacks is the reader's default (null where none is given), one that
only the writer has is passed over. Anything else is a `Mismatch`, which names the field and both types. Units of
times are the writer's and are converted.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from headrace.formats.messages.avro.schema import (
    MISSING,
    AvroField,
    AvroType,
    default_value,
    described,
)
from headrace.formats.messages.avro.types import arrow_type, avro_kind
from headrace.formats.messages.format import Mismatch

__all__ = ["Child", "Plan", "absent_field", "resolved"]

_WIDER = {
    "int": {"int", "long", "float", "double"},
    "long": {"long", "float", "double"},
    "float": {"float", "double"},
    "double": {"double"},
    "boolean": {"boolean"},
    "string": {"string", "bytes"},
    "bytes": {"string", "bytes"},
    "enum": {"string"},
    "fixed": {"bytes"},
}


@dataclass(frozen=True, slots=True)
class Child:
    """A field of the result: the writer's field, or a default for all rows; and the plan for either.

    Without both it is null.
    """

    name: str
    source: str | None
    plan: "Plan | None"
    type: pa.DataType
    default: Any = None


@dataclass(frozen=True, slots=True)
class Plan:
    """How one type of the writer becomes one of the reader."""

    writer: AvroType
    target: pa.DataType
    children: tuple[Child, ...] = ()
    inner: "Plan | None" = None


def resolved(
    writer: AvroType, target: pa.DataType, reader: AvroType | None, path: str = ""
) -> Plan:
    """The plan for a value; `reader` is the reader's own Avro type, which knows aliases and defaults."""
    if pt.is_struct(target) and writer.kind == "record":
        return Plan(writer, target, _children(writer, target, reader, path))
    if (pt.is_list(target) or pt.is_large_list(target)) and writer.kind == "array":
        inner = _inner(writer, target.value_type, reader, path)
        return Plan(writer, target, inner=inner)
    if pt.is_map(target) and writer.kind == "map":
        return Plan(writer, target, inner=_inner(writer, target.item_type, reader, path))
    if writer.kind == "null" or _is_readable(writer, target):
        return Plan(writer, target)
    raise Mismatch(path or "the record", described(writer), str(target))


def _inner(writer: AvroType, target: pa.DataType, reader: AvroType | None, path: str) -> Plan:
    assert writer.items is not None
    return resolved(writer.items, target, reader.items if reader else None, f"{path}[]")


def _children(
    writer: AvroType, target: pa.StructType, reader: AvroType | None, path: str
) -> tuple[Child, ...]:
    written = {field.name: field for field in writer.fields}
    known = {field.name: field for field in reader.fields} if reader else {}
    # A name that the reader has a field for is that field's, whatever aliases others have.
    taken = {field.name for field in target}
    return tuple(
        _child(
            field,
            {n: f for n, f in written.items() if n == field.name or n not in taken},
            known.get(field.name),
            f"{path}.{field.name}".lstrip("."),
        )
        for field in target
    )


def _child(
    field: pa.Field, written: dict[str, AvroField], known: AvroField | None, path: str
) -> Child:
    for name in (field.name, *(known.aliases if known else ())):
        if name in written:
            source = written[name]
            plan = resolved(source.type, field.type, known.type if known else None, path)
            return Child(field.name, name, plan, field.type)
    return (
        Child(field.name, None, None, field.type)
        if known is None
        else absent_field(known, field.type, path)
    )


def absent_field(known: AvroField, target: pa.DataType, path: str = "") -> Child:
    """What stands for a field that was not written: its default, or null; `Mismatch` if it has none."""
    if known.default is MISSING and known.type.null_branch is None:
        raise Mismatch(path, "nothing, and it has no default", str(target))
    if known.default is MISSING or known.default is None:
        return Child(known.name, None, None, target)
    plan = resolved(known.type, target, known.type, path)
    return Child(known.name, None, plan, target, default_value(known.default, known.type))


def _is_readable(writer: AvroType, target: pa.DataType) -> bool:
    if pt.is_decimal(target):
        return writer.logical == "decimal" and _has_room(writer, target)
    if pt.is_temporal(target) and not pt.is_duration(target):
        return _same_kind_of_time(writer, target)
    if pt.is_fixed_size_binary(target):
        return writer.kind == "fixed" and writer.size == target.byte_width
    if writer.logical == "decimal" and not pt.is_binary(target):
        return False
    return avro_kind(target) in _WIDER.get(writer.kind, ())


def _has_room(writer: AvroType, target: pa.DataType) -> bool:
    whole = target.precision - target.scale
    # Connect writes 64 for a precision that it does not know: then each value is looked at.
    known = writer.precision if writer.precision < 64 else 0
    return bool(target.scale >= writer.scale and whole >= known - writer.scale)


def _same_kind_of_time(writer: AvroType, target: pa.DataType) -> bool:
    """A plain number has no unit, so it is no time."""
    if writer.logical is None or writer.logical in {"decimal", "uuid"}:
        return False
    wrote = arrow_type(writer, "")
    checks = (pt.is_timestamp, pt.is_date, pt.is_time)
    return any(check(wrote) and check(target) for check in checks)
