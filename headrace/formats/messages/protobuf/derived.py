"""A message type for columns that have none: what is written if the user gives no descriptor.

Fields are numbered in the order of the columns. Numbers that earlier versions in a registry gave to fields are kept, and
none is given twice, so columns may be added, removed and put in another order.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from headrace.errors import BuildError
from headrace.formats.messages.protobuf.types import DURATION, TIMESTAMP, type_words

__all__ = ["derived_files", "numbers_of"]

_NAME = "Row"
_KEYS = (pt.is_string, pt.is_integer, pt.is_boolean)


def derived_files(schema: pa.Schema, numbers: Mapping[str, int] | None = None) -> bytes:
    """A file with one message type for these columns; `BuildError` names a column that Protobuf cannot hold.

    `numbers` are those that fields have already, by their paths (`place.x`).
    """
    made = _Derivation(numbers or {})
    made.fill(made.file.message_type.add(name=_NAME), list(schema), "")
    return bytes(FileDescriptorSet(file=[made.file]).SerializeToString(deterministic=True))


def numbers_of(versions: Sequence[bytes]) -> dict[str, int]:
    """The numbers of all fields of the type in files of earlier versions, the oldest first, by their paths."""
    found: dict[str, int] = {}
    for files in versions:
        for message in FileDescriptorSet.FromString(files).file[-1].message_type[:1]:
            _collect(message, "", found)
    return found


def _collect(message: DescriptorProto, path: str, found: dict[str, int]) -> None:
    inner = {nested.name: nested for nested in message.nested_type}
    for field in message.field:
        found[f"{path}{field.name}"] = field.number
        nested = inner.get(field.type_name.rpartition(".")[2])
        if nested is not None and not nested.options.map_entry:
            _collect(nested, f"{path}{field.name}.", found)


class _Derivation:
    def __init__(self, numbers: Mapping[str, int]) -> None:
        self.file = FileDescriptorProto(name="row.proto", syntax="proto3")
        self._numbers = numbers

    def fill(self, message: DescriptorProto, fields: list[pa.Field], path: str) -> None:
        siblings = [n for p, n in self._numbers.items() if p.rpartition(".")[0] == path[:-1]]
        free = max(siblings, default=0) + 1
        for field in fields:
            _check_name(field.name)
            number = self._numbers.get(f"{path}{field.name}", free)
            free += number == free
            made = message.field.add(name=field.name, number=number, label=1)
            self._shape(made, field.type, message, f"{path}{field.name}")
        # Protobuf keeps presence of scalars as a oneof of one field each.
        for made in message.field:
            if made.label == made.LABEL_OPTIONAL and made.type != made.TYPE_MESSAGE:
                made.proto3_optional, made.oneof_index = True, len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{made.name}")

    def _shape(
        self, made: FieldDescriptorProto, kind: pa.DataType, owner: DescriptorProto, path: str
    ) -> None:
        if pt.is_map(kind) and any(check(kind.key_type) for check in _KEYS):
            made.label = made.LABEL_REPEATED
            made.type, made.type_name = made.TYPE_MESSAGE, f"{type_words(made.name)}Entry"
            entry = owner.nested_type.add(name=made.type_name)
            entry.options.map_entry = True
            key, value = (
                entry.field.add(name="key", number=1),
                entry.field.add(name="value", number=2),
            )
            key.label = value.label = made.LABEL_OPTIONAL
            self._single(key, kind.key_type, owner, path)
            self._single(value, kind.item_type, owner, path)
        elif pt.is_list(kind) or pt.is_large_list(kind):
            self._single(made, kind.value_type, owner, path)
            made.label = made.LABEL_REPEATED
        else:
            self._single(made, kind, owner, path)

    def _single(
        self, made: FieldDescriptorProto, kind: pa.DataType, owner: DescriptorProto, path: str
    ) -> None:
        scalar = _scalar(kind)
        if scalar is not None:
            made.type = scalar
            return
        made.type = made.TYPE_MESSAGE
        if pt.is_timestamp(kind):
            self._import(made, TIMESTAMP, "google/protobuf/timestamp.proto")
        elif pt.is_duration(kind):
            self._import(made, DURATION, "google/protobuf/duration.proto")
        elif pt.is_struct(kind):
            made.type_name = f"{type_words(path.replace('.', '_'))}Row"
            self.fill(owner.nested_type.add(name=made.type_name), list(kind), f"{path}.")
        else:
            raise BuildError(
                f"field {path!r}: Protobuf has no form for {kind}; convert it first, for example to a string"
            )

    def _import(self, made: FieldDescriptorProto, name: str, file: str) -> None:
        made.type_name = f".{name}"
        if file not in self.file.dependency:
            self.file.dependency.append(file)


def _check_name(name: str) -> None:
    if not (name.isascii() and name.isidentifier()):
        raise BuildError(
            f"field {name!r}: Protobuf names are letters, digits and _; rename the column"
        )


def _scalar(kind: pa.DataType) -> Any:
    of = FieldDescriptorProto
    if pt.is_boolean(kind):
        return of.TYPE_BOOL
    if pt.is_integer(kind):
        signed = pt.is_signed_integer(kind)
        if kind.bit_width == 64:
            return of.TYPE_INT64 if signed else of.TYPE_UINT64
        return of.TYPE_INT32 if signed else of.TYPE_UINT32
    if pt.is_float32(kind) or pt.is_float64(kind):
        return of.TYPE_FLOAT if pt.is_float32(kind) else of.TYPE_DOUBLE
    if pt.is_string(kind) or pt.is_large_string(kind):
        return of.TYPE_STRING
    return of.TYPE_BYTES if pt.is_binary(kind) or pt.is_large_binary(kind) else None
