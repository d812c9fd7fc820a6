"""Whether the columns of a stream can be what a Kafka sink wants to make of them."""

from __future__ import annotations

import pyarrow as pa

from headrace.connectors.kafka.writing.encoding import Layout
from headrace.connectors.kafka.writing.keys import check_key
from headrace.errors import BuildError

__all__ = ["check_columns"]


def check_columns(layout: Layout, schema: pa.Schema) -> None:
    """`BuildError` with the option, the column and what it should be."""
    check_key(schema, layout.key, layout.key_format)
    topic = _type_of(schema, layout.topic_column, "topic_column")
    if topic is not None and not (pa.types.is_string(topic) or pa.types.is_large_string(topic)):
        raise _wrong("topic_column", layout.topic_column, topic, "a column of strings")
    partition = _type_of(schema, layout.partition_by, "partition_by")
    if partition is not None and not pa.types.is_integer(partition):
        expected = "an integer column with the partition's number; to go by a hash, use key="
        raise _wrong("partition_by", layout.partition_by, partition, expected)
    instant = _type_of(schema, layout.timestamp, "timestamp")
    if instant is not None and not pa.types.is_timestamp(instant):
        raise _wrong("timestamp", layout.timestamp, instant, "a column of instants")
    headers = _type_of(schema, layout.headers, "headers")
    if headers is not None and not _are_headers(headers):
        expected = "map<string, binary or string> or list<struct<key: string, value: binary>>"
        raise _wrong("headers", layout.headers, headers, expected)
    layout.format.check_writable(layout.value_schema(schema))


def _type_of(schema: pa.Schema, column: str | None, option: str) -> pa.DataType | None:
    if column is None:
        return None
    if column not in schema.names:
        raise BuildError(f"{option}={column!r}: there is no such column, only {schema.names}")
    return schema.field(column).type


def _are_headers(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return _is_text(kind.key_type) and _is_bytes(kind.item_type)
    if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        return False
    fields = {field.name: field.type for field in kind.value_type}
    return (
        set(fields) == {"key", "value"} and _is_text(fields["key"]) and _is_bytes(fields["value"])
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return _is_text(kind) or bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _wrong(option: str, column: str | None, kind: pa.DataType, expected: str) -> BuildError:
    return BuildError(f"{option}={column!r} is {kind}; it must be {expected}")
