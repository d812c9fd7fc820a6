"""Avro messages: one record each, bare or framed with the id of its schema in a registry.

Bare messages are read and written with the given schema, or with the one that the columns make (`types`). Framed
ones are read with the schema that each was written with; what they become follows Avro's rules (`resolution`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from headrace.errors import BuildError, SetupError
from headrace.formats.messages.avro.reader import AvroReader
from headrace.formats.messages.avro.resolution import resolved
from headrace.formats.messages.avro.schema import AvroType, described, parsed
from headrace.formats.messages.avro.types import arrow_schema, avro_schema, check_record
from headrace.formats.messages.avro.writer import AvroWriter, check_fits
from headrace.formats.messages.format import (
    DecodedMessages,
    MessageDecoder,
    MessageEncoder,
    MessageFormat,
    Mismatch,
)
from headrace.formats.messages.joined import in_order, tombstones
from headrace.formats.messages.packed import Packed, packed
from headrace.formats.messages.registry.client import (
    RegisteredSchema,
    UnknownSchema,
    client_of,
)
from headrace.formats.messages.registry.decoder import Reader, RegisteredDecoder
from headrace.formats.messages.registry.framing import frame
from headrace.formats.messages.registry.registry import Registry, subject_of

__all__ = ["Avro", "latest_record", "require_fastavro"]


@dataclass(frozen=True)
class Avro(MessageFormat):
    """One Avro record a message.

    `schema` is the reader's and the writer's own schema (JSON, or what `json.loads` makes of it): it gives aliases and
    defaults. `registry` says where the schemas of framed messages are; `subject` is the one that is written under and
    whose latest version gives the columns where none are declared: `<topic>-value` if it is not said.
    """

    name = "avro"
    schema: str | Mapping[str, Any] | None = None
    registry: Registry | None = None
    subject: str | None = None

    def __post_init__(self) -> None:
        """Keep the schema as text, and refuse one that is no record."""
        require_fastavro()
        if self.schema is not None:
            text = self.schema if isinstance(self.schema, str) else json.dumps(self.schema)
            check_record(parsed(text))
            _check_defaults(text)
            object.__setattr__(self, "schema", text)

    def for_topic(self, topic: str, *, key: bool = False) -> "Avro":
        """The same with the topic's subject, if none was said."""
        return self if self.subject else replace(self, subject=subject_of(topic, key=key))

    def row_schema(self, declared: pa.Schema | None) -> pa.Schema:
        """The declared columns, or those of the schema, or those of the subject's latest version."""
        own = self._own()
        if declared is None:
            if own is None:
                own = latest_record(self.name, self.registry, self.subject)
            return arrow_schema(own)
        if own is not None:
            try:
                resolved(own, pa.struct(list(declared)), own)
            except Mismatch as error:
                raise BuildError(f"format 'avro': {error}") from None
        return declared

    def decoder(self, schema: pa.Schema) -> MessageDecoder:
        """Records to rows."""
        if self.registry is None:
            reader = AvroReader(self._text(schema), pa.struct(list(schema)), reader=self._own())
            return _BareDecoder(reader, schema)
        own, columns = self._own(), pa.struct(list(schema))

        def reader_of(found: RegisteredSchema) -> Reader:
            reader = AvroReader(found.text, columns, named=found.named, reader=own)
            return lambda messages: _rows(reader, messages, schema)

        return RegisteredDecoder("AVRO", self.registry, self.subject, schema, reader_of)

    def encoder(self, schema: pa.Schema) -> MessageEncoder:
        """Rows to records; the schema is registered here, once a process."""
        text, header = self._text(schema), b""
        if self.registry is not None:
            header = frame(_registered(self.registry, self.subject, text))
        return AvroWriter(text, schema, header)

    def check_writable(self, schema: pa.Schema) -> None:
        """Every column must have a form in Avro, and a field if a schema is given."""
        avro_schema(schema)
        own = self._own()
        if own is not None:
            check_fits(schema, own)

    def _own(self) -> AvroType | None:
        return None if self.schema is None else parsed(self.schema)

    def _text(self, schema: pa.Schema) -> str:
        return str(self.schema) if self.schema is not None else json.dumps(avro_schema(schema))


def latest_record(name: str, registry: Registry | None, subject: str | None) -> AvroType:
    """The record of a subject's latest version, for columns that nobody declared."""
    if registry is None or subject is None:
        raise BuildError(
            f"format {name!r} needs schema=: the columns of a row, or a registry and a subject to ask"
        )
    try:
        found = client_of(registry).latest(subject)
    except UnknownSchema as error:
        raise BuildError(f"{error}: declare schema=, or register one first") from None
    if found.kind != "AVRO":
        raise BuildError(f"subject {subject!r} holds {found.kind}, not AVRO: use its format")
    return parsed(found.text, found.named)


def require_fastavro() -> None:
    """Say what to install where fastavro is absent."""
    try:
        import fastavro  # noqa: F401
    except ImportError as error:
        raise SetupError("Avro needs fastavro: pip install 'headrace[kafka]'") from error


def _check_defaults(text: str) -> None:
    """What is wrong with a schema otherwise; with a default that does not fit, the first message would tell."""
    from fastavro import parse_schema

    try:
        parse_schema(json.loads(text))
    except Exception as error:
        # fastavro has errors of its own, and lets others through.
        raise BuildError(f"the Avro schema cannot be used: {error}") from error


class _BareDecoder:
    def __init__(self, reader: AvroReader, schema: pa.Schema) -> None:
        self._reader = reader
        self._schema = schema

    def __call__(self, messages: Sequence[bytes | None]) -> DecodedMessages:
        decoded = _rows(self._reader, packed(messages), self._schema)
        bad = tombstones(messages)
        return in_order([decoded], bad, self._schema) if bad or decoded.bad else decoded


def _rows(reader: AvroReader, messages: Packed, schema: pa.Schema) -> DecodedMessages:
    rows, places, bad = reader.read(messages)
    batch = pa.RecordBatch.from_arrays(rows.flatten(), schema=schema)
    return DecodedMessages(batch, places, tuple(bad))


def _registered(registry: Registry, subject: str | None, text: str) -> int:
    if subject is None:
        raise BuildError("Avro(registry=...) needs subject=: the name to register the schema under")
    return client_of(registry).register(
        subject,
        "AVRO",
        text,
        changes=lambda latest: _changes(parsed(latest.text, latest.named), parsed(text)),
    )


def _changes(old: AvroType, new: AvroType) -> str:
    """The fields whose types differ, for a sentence."""
    before = {field.name: described(field.type) for field in old.fields}
    found = [
        f"; there {field.name} is {before[field.name]}, here {described(field.type)}"
        for field in new.fields
        if field.name in before and before[field.name] != described(field.type)
    ]
    return "".join(found)
