"""Protobuf messages of one type to rows: parsed by Protobuf's own C code, gathered column by column."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt
from google.protobuf.message import DecodeError

from headrace.formats.lines import halved
from headrace.formats.messages.format import BadMessage, Mismatch
from headrace.formats.messages.protobuf.types import (
    WRAPPERS,
    arrow_type,
    called,
    has_presence,
    is_map,
    is_repeated,
)

__all__ = ["ProtobufReader"]

#: Values of messages (or None for one that is absent) to a column.
_Column = Callable[[Sequence[Any]], pa.Array]


class ProtobufReader:
    """Reads messages of a class as rows. `Mismatch` if a field cannot be the column that is declared."""

    def __init__(self, kind: Any, schema: pa.Schema) -> None:
        self._parse = kind.FromString
        self._schema = schema
        self._columns = [_field_column(kind.DESCRIPTOR, field, field.name) for field in schema]

    def read(
        self, payloads: Sequence[bytes], places: npt.NDArray[np.int64]
    ) -> tuple[pa.RecordBatch, npt.NDArray[np.int64], list[BadMessage]]:
        """The rows of the messages in order, their places, and the messages that are none."""
        try:
            return self._batch(list(map(self._parse, payloads))), places, []
        except (DecodeError, ValueError):
            return self._without_bad(payloads, places)

    def _without_bad(
        self, payloads: Sequence[bytes], places: npt.NDArray[np.int64]
    ) -> tuple[pa.RecordBatch, npt.NDArray[np.int64], list[BadMessage]]:
        messages, held, bad = [], [], []
        for payload, place in zip(payloads, places.tolist(), strict=True):
            try:
                messages.append(self._parse(payload))
                held.append(place)
            except DecodeError as error:
                bad.append(_bad(place, error))
        good, failed = halved(len(messages), lambda a, b: self._batch(messages[a:b]))
        bad += [_bad(held[place], error) for place, error in failed]
        kept = np.delete(np.array(held, dtype=np.int64), [place for place, _ in failed])
        return pa.concat_batches([self._batch([]), *good]), kept, bad

    def _batch(self, messages: list[Any]) -> pa.RecordBatch:
        """`ValueError` if a value has no place in its column's type."""
        try:
            columns = [column(messages) for column in self._columns]
        except OverflowError as error:  # an instant that is further away than a column can say
            raise ValueError(f"a number is too large for its column: {error}") from error
        return pa.record_batch(columns, schema=self._schema)


def _bad(place: int, error: Exception) -> BadMessage:
    return BadMessage(place, f"not a message of this type: {error}")


def _field_column(descriptor: Any, field: pa.Field, path: str) -> _Column:
    """What makes a column of one field of messages."""
    found = descriptor.fields_by_name.get(field.name)
    if found is None:
        return lambda messages: pa.nulls(len(messages), field.type)
    name, values = found.name, _values(found, field.type, path)
    if is_repeated(found) or not has_presence(found):
        get = attrgetter(name)
        return lambda messages: values([None if m is None else get(m) for m in messages])
    return lambda messages: values(
        [getattr(m, name) if m is not None and m.HasField(name) else None for m in messages]
    )


def _values(field: Any, target: pa.DataType, path: str) -> _Column:
    if is_map(field):
        return _maps(field, target, path)
    if not is_repeated(field):
        return _single(field, target, path)
    if not (pt.is_list(target) or pt.is_large_list(target)):
        raise Mismatch(path, f"repeated {called(field)}", str(target))
    inner = _single(field, target.value_type, f"{path}[]")

    def lists(values: Sequence[Any]) -> pa.Array:
        items = inner([item for value in values if value is not None for item in value])
        return pa.ListArray.from_arrays(_offsets(values), items).cast(target)

    return lists


def _maps(field: Any, target: pa.DataType, path: str) -> _Column:
    if not pt.is_map(target):
        raise Mismatch(path, "map", str(target))
    parts = field.message_type.fields_by_name
    keys = _single(parts["key"], target.key_type, f"{path} (key)")
    items = _single(parts["value"], target.item_type, f"{path} (value)")

    def maps(values: Sequence[Any]) -> pa.Array:
        pairs = [pair for value in values if value is not None for pair in sorted(value.items())]
        key_column, item_column = keys([k for k, _ in pairs]), items([v for _, v in pairs])
        return pa.MapArray.from_arrays(_offsets(values), key_column, item_column).cast(target)

    return maps


def _single(field: Any, target: pa.DataType, path: str) -> _Column:
    message = field.message_type
    if message is not None and message.full_name in WRAPPERS:
        inner = _single(message.fields_by_name["value"], target, path)
        return lambda values: inner([None if value is None else value.value for value in values])
    if message is not None and pt.is_struct(target):
        return _structs(message, target, path)
    if field.enum_type is not None and pt.is_string(target):
        names = {number: each.name for number, each in field.enum_type.values_by_number.items()}
        return lambda values: pa.array(
            [None if v is None else names.get(v, str(v)) for v in values], target
        )
    natural = pa.int32() if field.enum_type is not None else None
    if natural is None and (message is None or message.full_name.startswith("google.protobuf.")):
        natural = arrow_type(field, path, ())
        natural = natural.value_type if pt.is_list(natural) else natural
    if natural is None or not _widens(natural, target):
        raise Mismatch(path, called(field), str(target))
    if message is not None:
        return _instants(target)
    return lambda values: pa.array(values, natural).cast(target)


def _structs(message: Any, target: pa.StructType, path: str) -> _Column:
    columns = [_field_column(message, field, f"{path}.{field.name}") for field in target]

    def structs(values: Sequence[Any]) -> pa.Array:
        absent = pa.array([value is None for value in values], pa.bool_())
        inner = [column(values) for column in columns]
        return pa.StructArray.from_arrays(inner, fields=list(target), mask=absent)

    return structs


def _instants(target: pa.DataType) -> _Column:
    """Seconds and nanoseconds as one number; finer than the column is cut off."""
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[target.unit]
    finer = 10**9 // per_second
    return lambda values: pa.array(
        [None if v is None else v.seconds * per_second + v.nanos // finer for v in values],
        pa.int64(),
    ).cast(target)


def _widens(natural: pa.DataType, target: pa.DataType) -> bool:
    if natural.equals(target):
        return True
    if pt.is_timestamp(natural) or pt.is_duration(natural):
        return bool(target.id == natural.id)
    if pt.is_integer(natural) and pt.is_integer(target):
        # Columns that are narrower are written as 32 bits; a value that does not fit is a bad message.
        narrow = natural.bit_width == 32 and target.bit_width < 32
        signs = pt.is_signed_integer(natural) == pt.is_signed_integer(target)
        wider = target.bit_width > natural.bit_width and pt.is_signed_integer(target)
        return bool(wider or (signs and (narrow or target.bit_width >= natural.bit_width)))
    if pt.is_float32(natural):
        return bool(pt.is_float64(target))
    pairs = ((pt.is_string, pt.is_large_string), (pt.is_binary, pt.is_large_binary))
    return any(one(natural) and other(target) for one, other in pairs)


def _offsets(values: Sequence[Any]) -> pa.Array:
    ends = np.cumsum([0, *(0 if value is None else len(value) for value in values)])
    absent = np.array([*(value is None for value in values), False], dtype=np.bool_)
    return pa.array(ends.astype(np.int32), pa.int32(), mask=absent)
