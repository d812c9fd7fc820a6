"""Whether messages of another version of a message type mean the same by the numbers of their fields.

Protobuf does not say it: a field whose number came to mean something else is read as nonsense, or as absent, and a
number that is too large for the field loses its upper bits.
"""

from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from google.protobuf.descriptor import FieldDescriptor as Of

from headrace.formats.messages.format import Mismatch
from headrace.formats.messages.protobuf.types import called, is_map, is_repeated

__all__ = ["check_numbers"]

#: What else a field of a type reads, every value as it was written.
_READS: dict[int, set[int]] = {
    Of.TYPE_INT64: {Of.TYPE_INT32, Of.TYPE_UINT32, Of.TYPE_BOOL, Of.TYPE_ENUM},
    Of.TYPE_UINT64: {Of.TYPE_UINT32, Of.TYPE_BOOL},
    Of.TYPE_INT32: {Of.TYPE_BOOL, Of.TYPE_ENUM},
    Of.TYPE_UINT32: {Of.TYPE_BOOL},
    Of.TYPE_ENUM: {Of.TYPE_INT32, Of.TYPE_BOOL},
    Of.TYPE_SINT64: {Of.TYPE_SINT32},
    Of.TYPE_STRING: {Of.TYPE_BYTES},
    Of.TYPE_BYTES: {Of.TYPE_STRING},
}


def check_numbers(writer: Any, reader: Any, columns: pa.StructType, path: str = "") -> None:
    """Raise `Mismatch` if a field that is read was written as something else."""
    for column in columns:
        own = reader.fields_by_name.get(column.name)
        if own is not None:
            _check(writer, own, column.type, f"{path}{column.name}")


def _check(writer: Any, own: Any, kind: pa.DataType, path: str) -> None:
    theirs = writer.fields_by_number.get(own.number)
    renamed = writer.fields_by_name.get(own.name)
    if theirs is None:
        if renamed is not None:
            _refuse(path, renamed, own)
        return
    if is_repeated(theirs) != is_repeated(own) or is_map(theirs) != is_map(own):
        _refuse(path, theirs, own)
    if theirs.type != own.type and theirs.type not in _READS.get(own.type, ()):
        _refuse(path, theirs, own)
    if own.message_type is not None and theirs.message_type is not None:
        _check_inside(theirs, own, kind, path)


def _check_inside(theirs: Any, own: Any, kind: pa.DataType, path: str) -> None:
    inner = kind.value_type if pt.is_list(kind) or pt.is_large_list(kind) else kind
    if pt.is_map(kind):
        inner = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
    if pt.is_struct(inner):
        check_numbers(theirs.message_type, own.message_type, inner, f"{path}.")
    elif theirs.message_type.full_name != own.message_type.full_name:
        # Instants and durations have the same fields.
        _refuse(path, theirs, own)


def _refuse(path: str, theirs: Any, own: Any) -> None:
    raise Mismatch(path, _shown(theirs), _shown(own))


def _shown(field: Any) -> str:
    many = "repeated " if is_repeated(field) else ""
    return f"{many}{called(field)} as number {field.number}"
