"""JSON messages framed with the id of their JSON Schema in a registry: the frame around another format.

Avro and Protobuf need the schema to read a message and take `registry=` themselves. JSON does not: the schema is looked
at once, to refuse a field that can never be what is declared, and the message is the inner format's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import BuildError
from headrace.formats.messages.format import (
    BadMessage,
    DecodedMessages,
    MessageDecoder,
    MessageEncoder,
    MessageFormat,
)
from headrace.formats.messages.json.format import Json
from headrace.formats.messages.json.schema import check_readable, columns_of, json_schema
from headrace.formats.messages.packed import Packed
from headrace.formats.messages.registry.client import RegisteredSchema, UnknownSchema, client_of
from headrace.formats.messages.registry.decoder import Reader, RegisteredDecoder
from headrace.formats.messages.registry.framing import frame
from headrace.formats.messages.registry.registry import Registry, subject_of

__all__ = ["Registered"]


@dataclass(frozen=True)
class Registered(MessageFormat):
    """JSON with its JSON Schema in a registry: `Registered(registry=Registry("http://localhost:8081"))`.

    `subject` is the one that is written under and whose latest version gives the columns where none are declared:
    `<topic>-value` if it is not said.
    """

    name = "json-schema"
    format: Json = field(default_factory=Json)
    registry: Registry | None = None
    subject: str | None = None

    def __post_init__(self) -> None:
        """Refuse formats that have their own way."""
        if not isinstance(self.format, Json):
            raise BuildError(
                "Registered frames Json(); Avro, Protobuf and DebeziumAvro take registry= themselves"
            )
        if self.registry is None:
            raise BuildError(
                "Registered needs registry=, such as Registry('http://localhost:8081')"
            )

    def for_topic(self, topic: str, *, key: bool = False) -> "Registered":
        """The same with the topic's subject, if none was said."""
        return self if self.subject else replace(self, subject=subject_of(topic, key=key))

    def row_schema(self, declared: pa.Schema | None) -> pa.Schema:
        """The declared columns, or those of the subject's latest version."""
        if declared is None and self.subject is not None:
            assert self.registry is not None
            try:
                found = client_of(self.registry).latest(self.subject)
            except UnknownSchema as error:
                raise BuildError(f"{error}: declare schema=, or register one first") from None
            if found.kind != "JSON":
                raise BuildError(f"subject {self.subject!r} holds {found.kind}: use its format")
            declared = columns_of(found.text, f"subject {self.subject!r}")
        return self.format.row_schema(declared)

    def check_writable(self, schema: pa.Schema) -> None:
        """What JSON can hold."""
        self.format.check_writable(schema)

    def decoder(self, schema: pa.Schema) -> MessageDecoder:
        """Framed objects to rows."""
        assert self.registry is not None
        inner = self.format.decoder(schema)

        def reader_of(found: RegisteredSchema) -> Reader:
            check_readable(found.text, schema)
            return lambda messages: _decoded(inner, messages)

        return RegisteredDecoder("JSON", self.registry, self.subject, schema, reader_of)

    def encoder(self, schema: pa.Schema) -> MessageEncoder:
        """Rows to framed objects; the schema is registered here, once a process."""
        assert self.registry is not None
        if self.subject is None:
            raise BuildError("Registered needs subject=: the name to register the schema under")
        text = json_schema(schema, numbers=self.format.timestamps != "iso")
        header = frame(client_of(self.registry).register(self.subject, "JSON", text))
        encode = self.format.encoder(schema)
        joint = pa.scalar(b"", pa.binary())
        return lambda batch: pc.binary_join_element_wise(header, encode(batch), joint)


def _decoded(inner: MessageDecoder, messages: Packed) -> DecodedMessages:
    values: Sequence[bytes] = messages.messages()
    decoded = inner(values)
    bad = tuple(BadMessage(int(messages.places[b.place]), b.cause) for b in decoded.bad)
    return DecodedMessages(decoded.batch, messages.places[decoded.places], bad)
