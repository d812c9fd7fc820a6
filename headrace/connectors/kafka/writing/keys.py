"""Keys of records: the columns that the user names, as bytes.

One column is written as its text (bytes as they are, integers in decimal), several as a JSON object; any message
format may be asked for instead. The bytes decide the partition, so they must be what other programs would write.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import BuildError
from headrace.formats.messages import MessageFormat, message_format

__all__ = ["KeyEncoder", "check_key", "key_encoder"]

#: The keys of a batch, a binary column; null: no key.
KeyEncoder: TypeAlias = Callable[[pa.RecordBatch], pa.Array]

_TEXT = "string"


def key_encoder(
    columns: tuple[str, ...], format: str | MessageFormat | None, topic: str | None
) -> KeyEncoder:
    """How the keys of rows are made."""
    if not columns:
        return lambda batch: pa.nulls(batch.num_rows, pa.binary())
    if _is_text(columns, format):
        return lambda batch: _texts(batch.column(columns[0]))
    chosen = _for_keys(message_format(format or "json"), topic)
    encoder = functools.cache(chosen.encoder)  # it may ask a registry: once, not with every batch
    return lambda batch: encoder(_only(batch.schema, columns))(batch.select(list(columns)))


def check_key(
    schema: pa.Schema, columns: tuple[str, ...], format: str | MessageFormat | None
) -> None:
    """`BuildError` if the columns are not there or cannot be a key."""
    absent = [name for name in columns if name not in schema.names]
    if absent:
        raise BuildError(f"key={columns}: there is no column {absent[0]!r}, only {schema.names}")
    if not columns:
        return
    if not _is_text(columns, format):
        message_format(format or "json").check_writable(_only(schema, columns))
    elif len(columns) > 1:
        raise BuildError(f'key_format="string" is for one column; {columns} need key_format="json"')
    elif pa.types.is_nested(schema.field(columns[0]).type):
        raise BuildError(f'key column {columns[0]!r} is nested; it needs key_format="json"')


def _is_text(columns: tuple[str, ...], format: str | MessageFormat | None) -> bool:
    return format == _TEXT or (format is None and len(columns) == 1)


def _texts(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_large_binary(kind):
        return column.cast(pa.binary())
    if pa.types.is_binary(kind):
        return column
    return pc.cast(column, pa.string()).cast(pa.binary())


def _for_keys(format: MessageFormat, topic: str | None) -> MessageFormat:
    """A format that asks a registry wants to know whose keys they are."""
    for_topic = getattr(format, "for_topic", None)
    if for_topic is None or topic is None:
        return format
    made: MessageFormat = for_topic(topic, key=True)
    return made


def _only(schema: pa.Schema, columns: tuple[str, ...]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in columns])
