"""Debezium Avro: envelopes with the fields `before`, `after` and `op` as change rows, and back.

Schemas tell the units of times (logical types, or Debezium's names in `connect.name`), so there is nothing to declare.
What an event means is said in `changelog`, the same as for Debezium JSON.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.changes import CHANGE
from headrace.errors import BuildError
from headrace.formats.messages.avro.format import Avro, latest_record, require_fastavro
from headrace.formats.messages.avro.reader import AvroReader
from headrace.formats.messages.avro.resolution import resolved
from headrace.formats.messages.avro.schema import AvroType, parsed
from headrace.formats.messages.avro.types import arrow_schema, avro_schema
from headrace.formats.messages.debezium.changelog import (
    change_rows,
    ops_of,
    with_change,
)
from headrace.formats.messages.format import (
    BadMessage,
    DecodedMessages,
    MessageDecoder,
    MessageEncoder,
    MessageFormat,
    Mismatch,
)
from headrace.formats.messages.joined import in_order
from headrace.formats.messages.packed import Packed, packed
from headrace.formats.messages.registry.client import RegisteredSchema
from headrace.formats.messages.registry.decoder import Reader, RegisteredDecoder
from headrace.formats.messages.registry.registry import Registry, subject_of

__all__ = ["DebeziumAvro"]


@dataclass(frozen=True)
class DebeziumAvro(MessageFormat):
    """Change events of Debezium in Avro; rows have a column `change` behind the others, as with `DebeziumJson`.

    `registry` is where the schemas are; without one, `schema` is the envelope's, and messages have no frame. Without
    declared columns they are those of `after` in the subject's latest version.
    """

    name = "debezium-avro"
    changes = True
    schema: str | Mapping[str, Any] | None = None
    registry: Registry | None = None
    subject: str | None = None

    def __post_init__(self) -> None:
        """Keep the schema as text, and refuse one that is no envelope."""
        require_fastavro()
        if self.schema is not None:
            text = self.schema if isinstance(self.schema, str) else json.dumps(self.schema)
            _row_of(parsed(text))
            object.__setattr__(self, "schema", text)

    def for_topic(self, topic: str, *, key: bool = False) -> "DebeziumAvro":
        """The same with the topic's subject, if none was said."""
        return self if self.subject else replace(self, subject=subject_of(topic, key=key))

    def row_schema(self, declared: pa.Schema | None) -> pa.Schema:
        """The declared columns, or those of `after`, and `change`."""
        if declared is None:
            found = parsed(self.schema) if self.schema is not None else None
            found = found or latest_record(self.name, self.registry, self.subject)
            declared = arrow_schema(_row_of(found))
        elif self.registry is None:
            self._check_declared(declared)
        return with_change(declared, self.name)

    def _check_declared(self, declared: pa.Schema) -> None:
        if self.schema is None:
            raise BuildError(
                f"format {self.name!r} needs registry=, or the schema= of its envelopes"
            )
        try:
            resolved(parsed(self.schema), pa.struct(list(_envelope(declared))), None)
        except Mismatch as error:
            raise BuildError(f"format {self.name!r}: {error}") from None

    def check_writable(self, schema: pa.Schema) -> None:
        """Every column must have a form in Avro."""
        avro_schema(_envelope(schema))

    def decoder(self, schema: pa.Schema) -> MessageDecoder:
        """Envelopes to change rows."""
        columns = pa.struct(list(_envelope(schema)))
        if self.registry is None:
            return _BareDecoder(AvroReader(str(self.schema), columns), schema)

        def reader_of(found: RegisteredSchema) -> Reader:
            reader = AvroReader(found.text, columns, named=found.named)
            return lambda messages: _changes(reader, messages, schema)

        return RegisteredDecoder(
            "AVRO", self.registry, self.subject, schema, reader_of, rows_only=False
        )

    def encoder(self, schema: pa.Schema) -> MessageEncoder:
        """Change rows to envelopes; rows without `change` are inserts."""
        envelope = _envelope(schema)
        encode = Avro(self.schema, self.registry, self.subject).encoder(envelope)
        return lambda batch: encode(_enveloped(batch, envelope))


class _BareDecoder:
    def __init__(self, reader: AvroReader, schema: pa.Schema) -> None:
        self._reader = reader
        self._schema = schema

    def __call__(self, messages: Sequence[bytes | None]) -> DecodedMessages:
        decoded = _changes(self._reader, packed(messages), self._schema)
        return in_order([decoded], (), self._schema)


def _row_of(envelope: AvroType) -> AvroType:
    for field in envelope.fields:
        if field.name == "after" and field.type.kind == "record":
            return field.type
    raise BuildError("the Avro schema has no record 'after', so it is no Debezium envelope")


def _envelope(schema: pa.Schema) -> pa.Schema:
    row = pa.struct([field for field in schema if field.name != CHANGE])
    return pa.schema({"before": row, "after": row, "op": pa.string()})


def _changes(reader: AvroReader, messages: Packed, schema: pa.Schema) -> DecodedMessages:
    envelopes, places, bad = reader.read(messages)
    before, after, op = envelopes.flatten()
    rows = change_rows(op, before, after)
    batch = pa.record_batch([*rows.columns, rows.change], schema=schema)
    bad += [BadMessage(int(places[place]), cause) for place, cause in rows.bad]
    return DecodedMessages(batch, places[rows.places], tuple(bad))


def _enveloped(batch: pa.RecordBatch, envelope: pa.Schema) -> pa.RecordBatch:
    ops = ops_of(batch)
    gone = pc.equal(ops, "d")
    columns = [batch.column(field.name) for field in envelope.field("after").type]
    fields = list(envelope.field("after").type)
    before = pa.StructArray.from_arrays(columns, fields=fields, mask=pc.invert(gone))
    after = pa.StructArray.from_arrays(columns, fields=fields, mask=gone)
    return pa.record_batch([before, after, ops], schema=envelope)
