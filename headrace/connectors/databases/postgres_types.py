"""Types between Arrow and PostgreSQL: of new tables, into tables that are there, and back.

Values travel to the server in one of a few kinds that binary COPY is packed for. A column of another type (numeric,
jsonb, an enum, inet) gets them as text, and the merge casts: the server knows its types best.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.connectors.databases.dialect import Cell, Column
from headrace.connectors.databases.packing import Piece, Ragged, fields, fixed, texts, weave
from headrace.errors import BuildError, SinkRefused

__all__ = ["KINDS", "Kind", "cell_of", "column_type", "encode", "read_type"]

_TO_2000_DAYS = 10_957
_TO_2000_US = _TO_2000_DAYS * 86_400_000_000
#: The days and microseconds since 2000 that the server takes; those at the ends of the integers mean infinity.
_DAYS = (-2_451_545, 2_145_031_948)
_MICROSECONDS = (-211_813_488_000_000_000, 9_223_371_331_200_000_000)


@dataclass(frozen=True)
class Kind:
    """A type that values travel in."""

    oid: int
    arrow: pa.DataType
    encode: Callable[[pa.Array], Piece]


def encode(array: pa.Array, staging: str) -> list[Piece]:
    """A column as it stands in the rows of a binary COPY."""
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    if staging.endswith("[]"):
        return fields(_lists(array, KINDS[staging[:-2]], staging[:-2]), valid)
    return fields(KINDS[staging].encode(array), valid)


def column_type(field: pa.Field) -> str:
    """The type of a new table's column."""
    kind = field.type
    if isinstance(kind, pa.DictionaryType):
        return column_type(field.with_type(kind.value_type))
    if _says_uuid(field):
        return "uuid"
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {max(kind.scale, 0)})"
    if _is_list(kind) and not pa.types.is_nested(kind.value_type):
        return column_type(pa.field(field.name, kind.value_type)) + "[]"
    if pa.types.is_nested(kind):
        return "jsonb"
    found = next((sql for test, sql in _NEW if test(kind)), None)
    if found is None:
        raise BuildError(
            f"column {field.name!r}: PostgreSQL has no type for {kind}; cast it to another one"
        )
    return found


def cell_of(field: pa.Field, column: Column) -> Cell:
    """How a stream's column gets into a table's."""
    kind = field.type.value_type if isinstance(field.type, pa.DictionaryType) else field.type
    if column.kind in ("json", "jsonb") and pa.types.is_nested(kind):
        return Cell(field.name, pa.string(), "text", f"CAST({{}} AS {column.sql})", as_json=True)
    if column.element is not None and _is_list(kind):
        element = cell_of(
            pa.field(field.name, kind.value_type),
            Column(field.name, column.element, column.sql.removesuffix("[]")),
        )
        if not element.as_json:
            plain = element.expression == "{}" or column.element in _TEXTS
            cast = "{}" if plain else f"CAST({{}} AS {column.sql})"
            return Cell(field.name, pa.list_(element.arrow), f"{element.staging}[]", cast)
    elif pa.types.is_nested(kind) and column.kind in _TEXTS:
        return Cell(field.name, pa.string(), "text", as_json=True)
    elif not pa.types.is_nested(kind):
        return _scalar_cell(field, kind, column)
    raise SinkRefused(_misfit(field, kind, column))


def read_type(column: Column) -> tuple[pa.DataType, str]:
    """The type of a column that is read, and how it is selected."""
    if column.element is not None:
        inner, selected = read_type(Column(column.name, column.element, ""))
        return pa.list_(inner), "{}" if selected == "{}" else "CAST({} AS text[])"
    if column.kind == "numeric":
        if column.precision is not None and column.precision <= 38:
            return pa.decimal128(column.precision, column.scale or 0), "{}"
        return pa.decimal128(38, 18), "{}"
    if column.kind in _READ:
        return _READ[column.kind], "{}"
    return pa.string(), "CAST({} AS text)"


def _misfit(field: pa.Field, kind: pa.DataType, column: Column) -> str:
    return (
        f"column {field.name!r} of the stream is {kind}, which does not fit the table's {column.sql};"
        " give one of them the type of the other (nested values fit jsonb)"
    )


def _scalar_cell(field: pa.Field, kind: pa.DataType, column: Column) -> Cell:
    staging = _STAGED.get(column.kind, "text")
    if staging == "uuid" and not _is_uuid_bytes(kind):
        staging = "text"
    if staging in ("text", "bytea") and column.kind != "bytea" and _is_bytes(kind):
        raise SinkRefused(
            f"column {field.name!r} of the stream holds bytes, the table's is {column.sql}; make it bytea"
        )
    if not _suits(kind, staging):
        if pa.types.is_temporal(kind) and pa.types.is_temporal(KINDS[staging].arrow):
            # Through text the server would cut a timestamp to its date in silence.
            raise SinkRefused(_misfit(field, kind, column))
        staging = "text"
    return Cell(field.name, KINDS[staging].arrow, staging, _expression(column, staging))


def _expression(column: Column, staging: str) -> str:
    """What makes a table's value of a staged one; a key is looked for by the same value that was written."""
    if column.kind == "bpchar":
        # As a text it would differ from what the table holds by the blanks behind it.
        return "CAST({} AS bpchar)"
    if column.kind in _TEXTS and staging == "text":
        # A cast to varchar(3) would cut a longer text in silence; what a table does by itself is an error.
        return "{}"
    is_rounded = "(" in column.sql
    return "{}" if column.kind == staging and not is_rounded else f"CAST({{}} AS {column.sql})"


def _suits(kind: pa.DataType, staging: str) -> bool:
    """Whether Arrow can cast values of a type to what a staged column holds."""
    wanted = KINDS[staging].arrow
    if pa.types.is_boolean(kind) or pa.types.is_boolean(wanted):
        return kind == wanted or staging == "text"
    if _is_number(wanted):
        return _is_number(kind)
    if pa.types.is_temporal(wanted):
        # A day is also its first instant.
        families = _family(kind), _family(wanted)
        return families[0] == families[1] or families == ("date", "instant")
    return True


def _family(kind: pa.DataType) -> str:
    tests = {
        "date": pa.types.is_date,
        "time": pa.types.is_time,
        "instant": pa.types.is_timestamp,
        "length": pa.types.is_duration,
    }
    return next((name for name, test in tests.items() if test(kind)), "none")


def _lists(array: pa.Array, kind: Kind, staging: str) -> Ragged:
    """Arrays of one dimension: a header, then the elements as fields."""
    elements = array.flatten()
    woven = weave(encode(elements, staging))
    sizes = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    # Bytes before each element; the elements of a list are a run of them.
    edges = np.concatenate([[0], np.cumsum(woven.lengths)])
    ends = np.cumsum(sizes)
    lengths = edges[ends] - edges[ends - sizes]
    filled = (sizes > 0).astype(np.int64)
    head = np.stack([filled, filled, np.full(len(sizes), kind.oid)], axis=1)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    bound = np.stack([sizes, np.ones_like(sizes)], axis=1)[sizes > 0]
    header = fixed(head[valid], ">i4").reshape(-1)
    pieces = [
        Ragged(header, np.where(valid, 12, 0)),
        Ragged(fixed(bound, ">i4").reshape(-1), 8 * filled),
        Ragged(woven.content, lengths),
    ]
    return weave(pieces)


def _numbers(array: pa.Array) -> np.ndarray:
    if array.null_count:
        array = array.fill_null(False if pa.types.is_boolean(array.type) else 0)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _plain(wire: str) -> Callable[[pa.Array], Piece]:
    return lambda array: fixed(_numbers(array), wire)


def _since_2000(array: pa.Array, shift: int, limits: tuple[int, int], wire: str) -> Piece:
    integers = array.view(pa.int32() if wire == ">i4" else pa.int64())
    counted = integers.cast(pa.int64()).fill_null(shift).to_numpy(zero_copy_only=False)
    lowest, highest = limits
    if len(counted) and not (counted.min() >= lowest + shift and counted.max() - shift <= highest):
        raise ValueError("a date is further away than PostgreSQL can hold")
    return fixed(counted - shift, wire)


def _intervals(array: pa.Array) -> Piece:
    lengths = fixed(_numbers(array.view(pa.int64())), ">i8")
    return np.hstack([lengths, np.zeros((len(lengths), 8), np.uint8)])


def _sixteen(array: pa.Array) -> Piece:
    whole = np.frombuffer(array.buffers()[1], np.uint8).reshape(-1, 16)
    return whole[array.offset : array.offset + len(array)]


def _unbroken(array: pa.Array) -> Piece:
    ragged = texts(array)
    if ragged.content.size and not ragged.content.all():
        raise ValueError("a text holds the character NUL, which PostgreSQL refuses")
    return ragged


def _dates(array: pa.Array) -> Piece:
    return _since_2000(array, _TO_2000_DAYS, _DAYS, ">i4")


def _instants(array: pa.Array) -> Piece:
    return _since_2000(array, _TO_2000_US, _MICROSECONDS, ">i8")


def _says_uuid(field: pa.Field) -> bool:
    told = (field.metadata or {}).get(b"type", b"").lower() == b"uuid"
    return bool(told) or getattr(field.type, "extension_name", "") == "arrow.uuid"


def _is_uuid_bytes(kind: pa.DataType) -> bool:
    storage = getattr(kind, "storage_type", kind)
    return bool(pa.types.is_fixed_size_binary(storage) and storage.byte_width == 16)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _is_number(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


KINDS: dict[str, Kind] = {
    "int2": Kind(21, pa.int16(), _plain(">i2")),
    "int4": Kind(23, pa.int32(), _plain(">i4")),
    "int8": Kind(20, pa.int64(), _plain(">i8")),
    "float4": Kind(700, pa.float32(), _plain(">f4")),
    "float8": Kind(701, pa.float64(), _plain(">f8")),
    "bool": Kind(16, pa.bool_(), _plain(">u1")),
    "text": Kind(25, pa.string(), _unbroken),
    "bytea": Kind(17, pa.binary(), texts),
    "date": Kind(1082, pa.date32(), _dates),
    "time": Kind(1083, pa.time64("us"), lambda array: _plain(">i8")(array.view(pa.int64()))),
    "timestamp": Kind(1114, pa.timestamp("us"), _instants),
    "timestamptz": Kind(1184, pa.timestamp("us", tz="UTC"), _instants),
    "interval": Kind(1186, pa.duration("us"), _intervals),
    "uuid": Kind(2950, pa.binary(16), _sixteen),
}

#: What the server calls its types -> what values of them travel in, if not as text.
_STAGED = {name: name for name in KINDS}
_TEXTS = ("text", "varchar", "bpchar", "name")

_READ: dict[str, pa.DataType] = {
    name: kind.arrow for name, kind in KINDS.items() if name != "uuid"
} | dict.fromkeys(("varchar", "bpchar", "name"), pa.string())

_NEW: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (lambda kind: kind in (pa.int8(), pa.int16(), pa.uint8()), "smallint"),
    (lambda kind: kind in (pa.int32(), pa.uint16()), "integer"),
    (lambda kind: kind in (pa.int64(), pa.uint32()), "bigint"),
    (lambda kind: kind == pa.uint64(), "numeric(20)"),
    (lambda kind: kind in (pa.float16(), pa.float32()), "real"),
    (lambda kind: kind == pa.float64(), "double precision"),
    (pa.types.is_boolean, "boolean"),
    (_is_text, "text"),
    (_is_bytes, "bytea"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None, "timestamptz"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_duration, "interval"),
)
