"""How Debezium writes values in JSON, by the type that a column is declared with, and back.

Instants are numbers since 1970 or ISO 8601 texts, dates are days, times and durations are microseconds, exact decimals
are the bytes of a whole number in base64, or digits. Where a message brings its schema, that says what a number is;
where it does not, `Conventions` do.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation, Overflow, Underflow
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from headrace.formats.messages.json.epochs import UNITS, epoch_numbers
from headrace.formats.objects import declared
from headrace.formats.revive import is_simple, revived_bytes
from headrace.formats.text import is_bytes, is_nested

__all__ = ["Conventions", "Form", "Semantic", "forms", "is_known", "semantics", "written"]

_KAFKA = "org.apache.kafka.connect.data."
_DEBEZIUM = "io.debezium.time."
_UNITS = {
    f"{_DEBEZIUM}Timestamp": "millis",
    f"{_DEBEZIUM}MicroTimestamp": "micros",
    f"{_DEBEZIUM}NanoTimestamp": "nanos",
    f"{_KAFKA}Timestamp": "millis",
    f"{_DEBEZIUM}Time": "millis",
    f"{_DEBEZIUM}MicroTime": "micros",
    f"{_DEBEZIUM}NanoTime": "nanos",
    f"{_KAFKA}Time": "millis",
}
#: 76 digits are the most that an Arrow decimal has.
_WIDE = Context(prec=80, traps=[InvalidOperation, Overflow, Underflow])


@dataclass(frozen=True, slots=True)
class Conventions:
    """What the connector was told, where its messages do not say it."""

    timestamps: str = "micros"
    decimals: str = "precise"


@dataclass(frozen=True, slots=True)
class Semantic:
    """What the schema in a message says of a column."""

    kind: str
    name: str | None = None
    scale: int | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """One way in which a column may stand in JSON: what Arrow reads, and how that becomes the declared type."""

    wire: pa.DataType
    turn: Callable[[pa.Array], pa.Array]


def semantics(schema: Any) -> dict[str, Semantic]:
    """What the schema of an envelope says of the columns of a row."""
    found: dict[str, Semantic] = {}
    for part in _listed(schema, "fields"):
        if isinstance(part, Mapping) and part.get("field") in ("before", "after"):
            for field in _listed(part, "fields"):
                if isinstance(
                    field, Mapping
                ):  # a stranger wrote it: what makes no sense says nothing
                    found[str(field.get("field"))] = _semantic(field)
    return found


def is_known(kind: pa.DataType) -> bool:
    """Whether the format can hold such a column."""
    return is_simple(kind) if is_nested(kind) else not pt.is_dictionary(kind)


def forms(kind: pa.DataType, given: Conventions, said: Semantic | None) -> tuple[Form, ...]:
    """The ways in which a column of this type may stand, the likelier first."""
    text = Form(pa.string(), lambda column: declared(column, kind))
    if pt.is_timestamp(kind):
        return (_instants(kind, _unit(said, given.timestamps)), text)
    if pt.is_date(kind):
        return (Form(pa.int32(), lambda column: column.cast(pa.date32()).cast(kind)), text)
    if pt.is_time(kind):
        return (_times(kind, _unit(said, "micros")), text)
    if pt.is_duration(kind):
        return (Form(pa.int64(), lambda column: declared(column, kind)),)
    if pt.is_decimal(kind):
        return _decimals(kind, given, said)
    return (text,) if is_bytes(kind) else (Form(kind, lambda column: column),)


def written(column: pa.Array, given: Conventions) -> pa.Array:
    """A column as `forms` reads it; an instant with a zone is a text, as Debezium has it."""
    kind = column.type
    if pt.is_timestamp(kind) and kind.tz is None:
        return epoch_numbers(column, given.timestamps)
    if pt.is_date(kind):
        return column.cast(pa.date32()).cast(pa.int32())
    if pt.is_time(kind):
        return column.cast(pa.time64("us"), safe=False).cast(pa.int64())
    if not pt.is_decimal(kind) or given.decimals == "double":
        return column
    if given.decimals == "string":
        return column.cast(pa.string())
    texts = [None if v is None else _unscaled(v, kind.scale) for v in column.to_pylist()]
    return pa.array(texts, pa.string())


def _instants(kind: pa.TimestampType, unit: str) -> Form:
    stored = pa.timestamp(UNITS[unit], kind.tz)
    # Nanoseconds are cut off, not refused: no table that says microseconds has them.
    return Form(pa.int64(), lambda column: column.cast(stored).cast(kind, safe=unit != "nanos"))


def _times(kind: pa.DataType, unit: str) -> Form:
    if unit == "millis":
        return Form(pa.int32(), lambda column: column.cast(pa.time32("ms")).cast(kind))
    stored = pa.time64(UNITS[unit])
    return Form(pa.int64(), lambda column: column.cast(stored).cast(kind, safe=unit != "nanos"))


def _decimals(kind: pa.DataType, given: Conventions, said: Semantic | None) -> tuple[Form, ...]:
    if said is not None and said.name == "io.debezium.data.VariableScaleDecimal":
        wire = pa.struct({"scale": pa.int32(), "value": pa.string()})
        return (Form(wire, lambda column: _variable(column, kind)),)
    exact = given.decimals == "precise" if said is None else said.kind == "bytes"
    if not exact:
        return (Form(kind, lambda column: column),)
    scale = kind.scale if said is None or said.scale is None else said.scale
    return (Form(pa.string(), lambda column: _scaled(column, scale, kind)),)


def _scaled(column: pa.Array, scale: int, kind: pa.DataType) -> pa.Array:
    wholes = revived_bytes(column, pa.binary()).to_pylist()
    return pa.array([None if v is None else _decimal(v, scale) for v in wholes], kind)


def _variable(column: pa.StructArray, kind: pa.DataType) -> pa.Array:
    scales, texts = column.flatten()
    wholes = revived_bytes(texts, pa.binary()).to_pylist()
    values = zip(wholes, scales.to_pylist(), strict=True)
    return pa.array([None if v is None else _decimal(v, scale or 0) for v, scale in values], kind)


def _decimal(whole: bytes, scale: int) -> Decimal:
    try:
        return Decimal(int.from_bytes(whole, "big", signed=True)).scaleb(-scale, _WIDE)
    except ArithmeticError:
        raise ValueError(f"no decimal has the scale {scale}") from None


def _unscaled(value: Decimal, scale: int) -> str:
    whole = int(value.scaleb(scale, _WIDE))
    return base64.b64encode(
        whole.to_bytes(whole.bit_length() // 8 + 1, "big", signed=True)
    ).decode()


def _unit(said: Semantic | None, otherwise: str) -> str:
    return otherwise if said is None or said.name is None else _UNITS.get(said.name, otherwise)


def _semantic(field: Mapping[str, Any]) -> Semantic:
    parameters, name = field.get("parameters"), field.get("name")
    scale = parameters.get("scale") if isinstance(parameters, Mapping) else None
    return Semantic(
        str(field.get("type")),
        name if isinstance(name, str) else None,
        _whole(scale),
    )


def _whole(text: Any) -> int | None:
    try:
        return int(text)
    except (TypeError, ValueError):
        return None


def _listed(part: Any, name: str) -> list[Any]:
    found = part.get(name) if isinstance(part, Mapping) else None
    return found if isinstance(found, list) else []
