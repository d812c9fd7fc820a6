"""Avro schemas as a tree: named types looked up, `[null, X]` folded into a nullable X, logical types read.

Schemas of Kafka Connect and Debezium say in `connect.name` what Avro has no logical type for; that is read, too.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from headrace.errors import BuildError

__all__ = [
    "MISSING",
    "AvroField",
    "AvroType",
    "default_value",
    "described",
    "parsed",
    "without_logical_types",
]

#: A field's default where it has none; null is a default.
MISSING: Final = object()

PRIMITIVES = frozenset("null boolean int long float double bytes string".split())
#: What is said of a type and does not change how its values are written.
_NOT_WRITTEN = frozenset("logicalType precision scale default".split())
#: What Connect and Debezium call a type, and the logical type that it is.
_CONNECT_NAMES = {
    "org.apache.kafka.connect.data.Date": "date",
    "org.apache.kafka.connect.data.Time": "time-millis",
    "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
    "io.debezium.time.Date": "date",
    "io.debezium.time.Time": "time-millis",
    "io.debezium.time.MicroTime": "time-micros",
    "io.debezium.time.NanoTime": "time-nanos",
    "io.debezium.time.Timestamp": "local-timestamp-millis",
    "io.debezium.time.MicroTimestamp": "local-timestamp-micros",
    "io.debezium.time.NanoTimestamp": "local-timestamp-nanos",
    "io.debezium.time.ZonedTimestamp": "timestamp-text",
}


#: The types that a logical type may stand on; on others it says nothing, as Avro has it.
_BASES = {
    "decimal": {"bytes", "fixed"},
    "date": {"int"},
    "time-millis": {"int"},
    "timestamp-text": {"string"},
    "time-micros": {"long"},
    "time-nanos": {"long"},
    **{
        f"{local}timestamp-{unit}": {"long"}
        for local in ("", "local-")
        for unit in ("millis", "micros", "nanos")
    },
}


@dataclass(frozen=True, slots=True)
class AvroField:
    """A field of a record."""

    name: str
    type: "AvroType"
    default: Any = MISSING
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AvroType:
    """One type. `kind` is Avro's word for it, or "recursive" for a record inside itself."""

    kind: str
    logical: str | None = None
    precision: int = 0
    scale: int = 0
    name: str = ""
    fields: tuple[AvroField, ...] = ()
    #: What an array or a map holds.
    items: "AvroType | None" = None
    symbols: tuple[str, ...] = ()
    size: int = 0
    branches: tuple["AvroType", ...] = ()
    #: The branch of `[null, X]` that is null; None: the value is never null.
    null_branch: int | None = None


def parsed(schema: Any, named: Sequence[Any] = ()) -> AvroType:
    """The tree of a schema, as text or as what `json.loads` made of it; `named` are schemas that it refers to."""
    names: dict[str, AvroType] = {}
    try:
        for other in named:
            _tree(_loaded(other), "", names)
        return _tree(_loaded(schema), "", names)
    except BuildError:
        raise
    except KeyError as error:
        raise BuildError(f"the Avro schema is not complete: {error} is missing") from None
    except (TypeError, AttributeError, ValueError) as error:
        raise BuildError(f"the Avro schema cannot be read: {error}") from None


def described(kind: AvroType) -> str:
    """A type in a sentence: `double`, `timestamp-micros`, `decimal(10, 2)`, `array of string`."""
    if kind.logical == "decimal":
        return f"decimal({kind.precision}, {kind.scale})"
    if kind.kind == "union":
        return "union of " + ", ".join(map(described, kind.branches))
    if kind.items is not None:
        return f"{kind.kind} of {described(kind.items)}"
    if kind.kind in ("record", "enum", "fixed", "recursive"):
        return f"{kind.kind} {kind.name}".rstrip()
    return kind.logical or kind.kind


def default_value(default: Any, kind: AvroType) -> Any:
    """A default as a message would hold it: in schemas bytes are written as letters of the same numbers."""
    if default is None:
        return None
    if kind.kind in ("bytes", "fixed"):
        return default.encode("iso-8859-1")
    if kind.kind == "record":
        return {f.name: default_value(default.get(f.name, f.default), f.type) for f in kind.fields}
    if kind.items is None:
        return default
    inner = kind.items
    if kind.kind == "array":
        return [default_value(item, inner) for item in default]
    return {key: default_value(item, inner) for key, item in default.items()}


def without_logical_types(schema: Any) -> Any:
    """The schema as JSON values, with the plain types that its values are written as.

    Defaults are left out: they say nothing about what is written, and many that are in use do not fit their types.
    """
    if isinstance(schema, list):
        return [without_logical_types(branch) for branch in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {k: v for k, v in schema.items() if k not in _NOT_WRITTEN}
    for inner in ("type", "items", "values"):
        if inner in kept:
            kept[inner] = without_logical_types(kept[inner])
    if isinstance(kept.get("fields"), list):
        kept["fields"] = [without_logical_types(field) for field in kept["fields"]]
    return kept


def _loaded(schema: Any) -> Any:
    if not isinstance(schema, str) or schema in PRIMITIVES:
        return schema
    try:
        return json.loads(schema)
    except ValueError as error:
        raise BuildError(f"the Avro schema is not JSON: {error}") from None


def _tree(schema: Any, space: str, names: dict[str, AvroType]) -> AvroType:
    if isinstance(schema, str):
        return _called(schema, space, names)
    if isinstance(schema, list):
        return _union([_tree(branch, space, names) for branch in schema])
    if not isinstance(schema, Mapping) or "type" not in schema:
        raise BuildError(f"{schema!r} is not an Avro schema")
    kind = schema["type"]
    if not isinstance(kind, str):
        return _tree(kind, space, names)
    if kind in ("record", "error", "enum", "fixed"):
        return _named(schema, kind, space, names)
    if kind in ("array", "map"):
        inner = _tree(schema["items" if kind == "array" else "values"], space, names)
        return AvroType(kind, items=inner)
    return _with_logical(_called(kind, space, names), schema)


def _called(name: str, space: str, names: dict[str, AvroType]) -> AvroType:
    if name in PRIMITIVES:
        return AvroType(name)
    for full in (name if "." in name else f"{space}.{name}", name):
        if full in names:
            return names[full]
    raise BuildError(f"the Avro schema speaks of {name!r}, which it does not define")


def _named(
    schema: Mapping[str, Any], kind: str, space: str, names: dict[str, AvroType]
) -> AvroType:
    short = str(schema.get("name", ""))
    inner = short.rpartition(".")[0] if "." in short else str(schema.get("namespace", space))
    full = short if "." in short or not inner else f"{inner}.{short}"
    names[full] = AvroType("recursive", name=full)
    if kind == "enum":
        made = AvroType("enum", name=full, symbols=tuple(schema["symbols"]))
    elif kind == "fixed":
        made = _with_logical(AvroType("fixed", name=full, size=int(schema["size"])), schema)
    else:
        fields = tuple(_field(field, inner, names) for field in schema["fields"])
        made = AvroType("record", name=full, fields=fields)
    names[full] = made
    return made


def _field(field: Mapping[str, Any], space: str, names: dict[str, AvroType]) -> AvroField:
    return AvroField(
        field["name"],
        # Sloppy writers put a logical type on the field; Avro's own library does not read it there either.
        _tree(field["type"], space, names),
        field.get("default", MISSING),
        tuple(field.get("aliases", ())),
    )


def _union(branches: list[AvroType]) -> AvroType:
    rest = [branch for branch in branches if branch.kind != "null"]
    if len(branches) == 2 and len(rest) == 1 and rest[0].null_branch is None:
        return replace(rest[0], null_branch=int(branches[1].kind == "null"))
    return AvroType("union", branches=tuple(branches))


def _with_logical(plain: AvroType, schema: Mapping[str, Any]) -> AvroType:
    logical = schema.get("logicalType") or _CONNECT_NAMES.get(str(schema.get("connect.name")))
    if logical is None or plain.kind not in _BASES.get(str(logical), (plain.kind,)):
        return plain
    precision, scale = int(schema.get("precision", 0)), int(schema.get("scale", 0))
    if logical == "decimal" and not precision:
        precision = 38  # Connect leaves it out where the column had none
    return replace(plain, logical=str(logical), precision=precision, scale=scale)
