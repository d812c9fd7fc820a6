"""A number that came to mean something else is refused with its field."""

from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from headrace.formats.messages.format import Mismatch
from headrace.formats.messages.protobuf.evolution import check_numbers
from headrace.formats.messages.protobuf.files import message_class
from headrace.formats.messages.protobuf.text import parsed_proto

HEAD = """
    syntax = "proto3";
    import "google/protobuf/timestamp.proto";
    import "google/protobuf/duration.proto";
"""


def message(field: str) -> Any:
    file = parsed_proto(f"{HEAD} message Row {{ {field} n = 1; }} enum Kind {{ A = 0; }}")
    file.name = "row.proto"
    files = FileDescriptorSet(file=[file]).SerializeToString()
    return message_class(bytes(files), "Row").DESCRIPTOR


@pytest.mark.parametrize(
    ("wrote", "reads", "column", "path"),
    [
        ("int64", "int32", pa.int32(), "n"),
        ("uint32", "int32", pa.int32(), "n"),
        ("int32", "uint64", pa.uint64(), "n"),
        ("int64", "bool", pa.bool_(), "n"),
        ("sint32", "int32", pa.int32(), "n"),
        ("fixed64", "sfixed64", pa.int64(), "n"),
        ("int32", "repeated int32", pa.list_(pa.int32()), "n"),
        ("map<string, int64>", "map<string, string>", pa.map_(pa.string(), pa.string()), "n.value"),
        (
            "google.protobuf.Timestamp",
            "google.protobuf.Duration",
            pa.duration("us"),
            "n",
        ),
    ],
)
def test_a_value_that_would_be_another_is_refused(
    wrote: str, reads: str, column: pa.DataType, path: str
) -> None:
    with pytest.raises(Mismatch) as raised:
        check_numbers(message(wrote), message(reads), pa.struct([("n", column)]))
    assert raised.value.path == path


@pytest.mark.parametrize(
    ("wrote", "reads", "column"),
    [
        ("int32", "int64", pa.int64()),
        ("uint32", "int64", pa.int64()),
        ("bool", "int32", pa.int32()),
        ("Kind", "int32", pa.int32()),
        ("int32", "Kind", pa.string()),
        ("string", "bytes", pa.binary()),
        ("map<string, int32>", "map<string, int64>", pa.map_(pa.string(), pa.int64())),
    ],
)
def test_a_value_that_stays_itself_is_read(wrote: str, reads: str, column: pa.DataType) -> None:
    check_numbers(message(wrote), message(reads), pa.struct([("n", column)]))
