"""Rows to Protobuf messages of one type."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from headrace.errors import BuildError, SinkRefused
from headrace.formats.messages.format import Mismatch
from headrace.formats.messages.protobuf.reader import ProtobufReader
from headrace.formats.messages.protobuf.types import WRAPPERS, is_map, is_repeated

__all__ = ["ProtobufWriter", "check_fits"]

_Values = Callable[[pa.Array], list[Any]]


class ProtobufWriter:
    """Writes columns as messages of a class, each behind a header. A null is a field that is not set."""

    def __init__(self, kind: Any, schema: pa.Schema, header: bytes) -> None:
        check_fits(kind, schema)
        self._kind = kind
        self._header = header
        fields = kind.DESCRIPTOR.fields_by_name
        self._values = [_values(fields[field.name], field.type) for field in schema]

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        names = batch.schema.names
        columns = [values(c) for values, c in zip(self._values, batch.columns, strict=True)]
        try:
            messages = [
                self._header
                + self._kind(**dict(zip(names, row, strict=True))).SerializeToString(
                    deterministic=True
                )
                for row in zip(*columns, strict=True)
            ]
        except (TypeError, ValueError) as error:
            raise SinkRefused(
                f"a row does not fit the message {self._kind.DESCRIPTOR.full_name}: {error}"
            ) from error
        return pa.array(messages, pa.binary())


def check_fits(kind: Any, schema: pa.Schema) -> None:
    """Raise `BuildError` naming the column that has no field, or one of another type."""
    fields = kind.DESCRIPTOR.fields_by_name
    for name in schema.names:
        if name not in fields:
            raise BuildError(
                f"column {name!r} is no field of the message {kind.DESCRIPTOR.full_name}: drop it, or add it there"
            )
    try:
        ProtobufReader(kind, schema)
    except Mismatch as error:
        raise BuildError(
            f"column {error.path!r} is {error.reads}, but the message has {error.wrote}"
        ) from None


def _values(field: Any, kind: pa.DataType) -> _Values:
    """What makes values of a column that the constructor of a message takes."""
    if is_map(field):
        inner = _single(field.message_type.fields_by_name["value"], kind.item_type)
        return lambda column: _parted(
            column, lambda: zip(column.keys.to_pylist(), inner(column.items), strict=True), dict
        )
    if is_repeated(field):
        items = _single(field, kind.value_type)
        return lambda column: _parted(column, lambda: items(column.values), list)
    return _single(field, kind)


def _parted(column: pa.Array, flat: Callable[[], Any], kind: Callable[[Any], Any]) -> list[Any]:
    items, ends, valid = list(flat()), column.offsets.to_pylist(), column.is_valid().to_pylist()
    bounds = zip(ends[:-1], ends[1:], valid, strict=True)
    return [kind(items[first:last]) if there else None for first, last, there in bounds]


def _single(field: Any, kind: pa.DataType) -> _Values:
    message = field.message_type
    if message is not None and message.full_name in WRAPPERS:
        return lambda column: [None if v is None else {"value": v} for v in column.to_pylist()]
    if pt.is_timestamp(kind) or pt.is_duration(kind):
        return lambda column: _seconds(column, signed=pt.is_duration(kind))
    if pt.is_struct(kind):
        return _structs(message, kind)
    return lambda column: list(column.to_pylist())


def _structs(message: Any, kind: pa.StructType) -> _Values:
    names = [field.name for field in kind]
    fields = [_values(message.fields_by_name[field.name], field.type) for field in kind]

    def structs(column: pa.Array) -> list[Any]:
        inner = [values(part) for values, part in zip(fields, column.flatten(), strict=True)]
        rows = (dict(zip(names, row, strict=True)) for row in zip(*inner, strict=True))
        valid = column.is_valid().to_pylist()
        return [row if there else None for row, there in zip(rows, valid, strict=True)]

    return structs


def _seconds(column: pa.Array, *, signed: bool) -> list[Any]:
    """Seconds and nanoseconds. Those of a negative duration are both negative; of an instant only the seconds are."""
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
    finer = 10**9 // per_second
    return [
        None if v is None else _split(v, per_second, finer, mirrored=signed and v < 0)
        for v in column.cast(pa.int64()).to_pylist()
    ]


def _split(value: int, per_second: int, finer: int, *, mirrored: bool) -> dict[str, int]:
    sign = -1 if mirrored else 1
    seconds, rest = divmod(sign * value, per_second)
    return {"seconds": sign * seconds, "nanos": sign * rest * finer}
