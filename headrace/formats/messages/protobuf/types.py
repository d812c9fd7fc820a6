"""Arrow columns as Protobuf fields and back.

    Arrow                  Protobuf, written               Protobuf, read
    bool                   bool                            bool
    int8 int16 int32       int32                           int32 sint32 sfixed32
    uint8 uint16 uint32    uint32                          uint32 fixed32
    int64                  int64                           int64 sint64 sfixed64, and narrower
    uint64                 uint64                          uint64 fixed64, and narrower
    float, double          float, double                   the same; float as double
    string                 string                          string, enum (the value's name)
    binary                 bytes                           bytes
    timestamp              google.protobuf.Timestamp       the same
    duration               google.protobuf.Duration        the same
    list                   repeated                        repeated
    map                    map, with keys of text, integers or booleans
    struct                 message                         message

Fields that are derived from columns (`derived`) are `optional`, so a null is a field that is not there. Of a given descriptor,
fields without presence have no null: one that was not set is 0, "" or false, and a null is written so. Messages of
google/protobuf/wrappers.proto are columns of what they wrap. Dates, times and decimals have no form: convert them to
strings or timestamps first. A message inside itself is no column.
"""

from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor

from headrace.errors import BuildError

__all__ = [
    "DURATION",
    "TIMESTAMP",
    "WRAPPERS",
    "arrow_schema",
    "arrow_type",
    "called",
    "has_presence",
    "is_map",
    "is_repeated",
    "type_words",
]

TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in "Double Float Int64 UInt64 Int32 UInt32 Bool String Bytes".split()
)
_SCALARS = {
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT32: pa.uint32(),
    FieldDescriptor.CPPTYPE_UINT64: pa.uint64(),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_ENUM: pa.string(),
}
_NAMES: dict[int, str] = {
    value: name.removeprefix("TYPE_").lower()
    for name, value in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}


def arrow_schema(descriptor: Any) -> pa.Schema:
    """The columns of a message type; `BuildError` names a field that cannot be one."""
    return pa.schema(
        [(f.name, arrow_type(f, f.name, (descriptor.full_name,))) for f in descriptor.fields]
    )


def arrow_type(field: Any, path: str, above: tuple[str, ...]) -> pa.DataType:
    """The type of the column that a field makes; `above` are the messages that it is in."""
    if is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return pa.map_(_single(key, path, above), _single(value, path, above))
    single = _single(field, path, above)
    return pa.list_(single) if is_repeated(field) else single


def is_map(field: Any) -> bool:
    """Whether a field is a map, which Protobuf writes as a list of entries."""
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def type_words(name: str) -> str:
    """The name of a field as protoc spells it in names of types that it derives from it."""
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def is_repeated(field: Any) -> bool:
    """Whether a field holds any number of values; older releases of Protobuf say it by a label."""
    known = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if known is None else known)


def called(field: Any) -> str:
    """The type of a field in a sentence, as `.proto` files have it."""
    if field.message_type is not None:
        return str(field.message_type.full_name)
    if field.enum_type is not None:
        return f"enum {field.enum_type.full_name}"
    return _NAMES[field.type]


def has_presence(field: Any) -> bool:
    """Whether a field can be absent, and not only 0 or empty."""
    return bool(field.has_presence)


def _single(field: Any, path: str, above: tuple[str, ...]) -> pa.DataType:
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return pa.binary() if field.type == FieldDescriptor.TYPE_BYTES else pa.string()
    if field.cpp_type != FieldDescriptor.CPPTYPE_MESSAGE:
        return _SCALARS[field.cpp_type]
    message = field.message_type
    if message.full_name == TIMESTAMP:
        return pa.timestamp("us", "UTC")
    if message.full_name == DURATION:
        return pa.duration("us")
    if message.full_name in WRAPPERS:
        return _single(message.fields_by_name["value"], path, above)
    if message.full_name in above:
        raise BuildError(
            f"field {path!r} is a {message.full_name} inside itself, which cannot be a column;"
            " declare schema= without it"
        )
    inner = (*above, message.full_name)
    return pa.struct([(f.name, arrow_type(f, f"{path}.{f.name}", inner)) for f in message.fields])
