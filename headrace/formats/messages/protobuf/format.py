"""Protobuf messages, bare or framed with the id of their schema in a registry.

Fields are found by name in the own descriptor and by number in a message, as Protobuf has it: fields may be added,
removed and renamed on either side. The schema that a framed message was written with is looked at once, because
Protobuf itself does not notice a number whose type is another one now (`evolution`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.errors import BuildError
from headrace.formats.messages.format import (
    BadMessage,
    DecodedMessages,
    MessageDecoder,
    MessageEncoder,
    MessageFormat,
    Mismatch,
)
from headrace.formats.messages.joined import in_order, tombstones
from headrace.formats.messages.packed import Packed, packed
from headrace.formats.messages.protobuf.derived import derived_files, numbers_of
from headrace.formats.messages.protobuf.evolution import check_numbers
from headrace.formats.messages.protobuf.files import (
    files_of_class,
    message_at,
    message_class,
    place_of,
    registered_files,
    texts,
)
from headrace.formats.messages.protobuf.indexes import cut, written
from headrace.formats.messages.protobuf.reader import ProtobufReader
from headrace.formats.messages.protobuf.types import arrow_schema
from headrace.formats.messages.protobuf.writer import ProtobufWriter, check_fits
from headrace.formats.messages.registry.client import RegisteredSchema, UnknownSchema, client_of
from headrace.formats.messages.registry.decoder import Reader, RegisteredDecoder
from headrace.formats.messages.registry.framing import frame
from headrace.formats.messages.registry.registry import Registry, subject_of

__all__ = ["Protobuf"]


@dataclass(frozen=True, init=False)
class Protobuf(MessageFormat):
    """One Protobuf message of one type a message.

    The type is that of a generated class (`message`), or `type` ("pkg.Name") of a `descriptor`: the bytes or the path of
    what `protoc --include_imports -o orders.desc orders.proto` writes. With neither, messages are read as the schema
    in the registry says, and written as columns make them (`types`).
    """

    name = "protobuf"
    files: bytes | None
    type: str | None
    registry: Registry | None
    subject: str | None

    def __init__(
        self,
        message: Any = None,
        *,
        descriptor: bytes | str | Path | None = None,
        type: str | None = None,
        registry: Registry | None = None,
        subject: str | None = None,
    ) -> None:
        if message is not None and (descriptor is not None or type is not None):
            raise BuildError("Protobuf takes message=, or descriptor= and type=, not both")
        files = None if descriptor is None else _loaded(descriptor)
        if message is not None:
            if not hasattr(message, "DESCRIPTOR"):
                raise BuildError(f"message={message!r} is no class that protoc generated")
            files, type = files_of_class(message), message.DESCRIPTOR.full_name
        for name, value in (("files", files), ("type", type), ("registry", registry)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "subject", subject)
        if files is not None:
            object.__setattr__(self, "type", message_class(files, type).DESCRIPTOR.full_name)

    def for_topic(self, topic: str, *, key: bool = False) -> "Protobuf":
        """The same with the topic's subject, if none was said."""
        if self.subject:
            return self
        return Protobuf(
            descriptor=self.files,
            type=self.type,
            registry=self.registry,
            subject=subject_of(topic, key=key),
        )

    def row_schema(self, declared: pa.Schema | None) -> pa.Schema:
        """The declared columns, or those of the message type, own or of the subject's latest version."""
        if declared is None:
            return arrow_schema((self._own() or self._latest()).DESCRIPTOR)
        own = self._own()
        if own is not None:
            try:
                ProtobufReader(own, declared)
            except Mismatch as error:
                raise BuildError(
                    f"format 'protobuf': the message has {error.path}: {error.wrote},"
                    f" but it is declared as {error.reads}"
                ) from None
        return declared

    def check_writable(self, schema: pa.Schema) -> None:
        """Every column must have a form in Protobuf, and a field if a type is given."""
        check_fits(message_class(*self._for_writing(schema)), schema)

    def decoder(self, schema: pa.Schema) -> MessageDecoder:
        """Messages to rows."""
        own = self._own()
        if self.registry is None:
            files, name = self._for_writing(schema)
            return _BareDecoder(ProtobufReader(own or message_class(files, name), schema), schema)

        def reader_of(found: RegisteredSchema) -> Reader:
            return _FramedReader(found, own, self.type, schema)

        return RegisteredDecoder("PROTOBUF", self.registry, self.subject, schema, reader_of)

    def encoder(self, schema: pa.Schema) -> MessageEncoder:
        """Rows to messages; the schema is registered here, once a process."""
        files, name = self._for_writing(schema)
        if self.files is None and self.registry is not None and self.subject is not None:
            files = self._numbered(schema)
        kind, header = message_class(files, name), b""
        if self.registry is not None:
            number = _registered(self.registry, self.subject, files)
            header = frame(number) + written(place_of(kind.DESCRIPTOR))
        return ProtobufWriter(kind, schema, header)

    def _numbered(self, schema: pa.Schema) -> bytes:
        """The type that columns make, with the numbers that fields have in the subject's versions."""
        assert self.registry is not None
        client = client_of(self.registry)
        try:
            versions = client.versions(self.subject or "")
        except UnknownSchema:
            return derived_files(schema)
        return derived_files(schema, numbers_of([registered_files(each) for each in versions]))

    def _own(self) -> Any:
        return None if self.files is None else message_class(self.files, self.type)

    def _latest(self) -> Any:
        if self.registry is None or self.subject is None:
            raise BuildError(
                "format 'protobuf' needs message=, descriptor= or schema=, or a registry and a subject to ask"
            )
        try:
            found = client_of(self.registry).latest(self.subject)
        except UnknownSchema as error:
            raise BuildError(f"{error}: declare schema=, or register one first") from None
        if found.kind != "PROTOBUF":
            raise BuildError(f"subject {self.subject!r} holds {found.kind}: use its format")
        return message_class(registered_files(found), self.type)

    def _for_writing(self, schema: pa.Schema) -> tuple[bytes, str | None]:
        if self.files is not None:
            return self.files, self.type
        return derived_files(schema), None


class _BareDecoder:
    def __init__(self, reader: ProtobufReader, schema: pa.Schema) -> None:
        self._reader = reader
        self._schema = schema

    def __call__(self, messages: Sequence[bytes | None]) -> DecodedMessages:
        there = packed(messages)
        batch, places, bad = self._reader.read(there.messages(), there.places)
        decoded = DecodedMessages(batch, places, tuple(bad))
        gone = tombstones(messages)
        return in_order([decoded], gone, self._schema) if gone or bad else decoded


class _FramedReader:
    """Reads messages of one schema of a registry, of whose types one is wanted."""

    def __init__(
        self, found: RegisteredSchema, own: Any, name: str | None, schema: pa.Schema
    ) -> None:
        self._files = registered_files(found)
        self._refusals: dict[tuple[int, ...], str | None] = {}
        writer = message_class(self._files, name)
        if own is not None:
            check_numbers(writer.DESCRIPTOR, own.DESCRIPTOR, pa.struct(list(schema)))
        kind = own or writer
        self._name = kind.DESCRIPTOR.full_name
        self._reader = ProtobufReader(kind, schema)

    def __call__(self, messages: Packed) -> DecodedMessages:
        payloads, wrong = cut(messages.messages(), self._is_wanted)
        good = np.array([place for place, _ in payloads], dtype=np.int64)
        batch, places, bad = self._reader.read([p for _, p in payloads], messages.places[good])
        bad += [BadMessage(int(messages.places[place]), cause) for place, cause in wrong]
        return DecodedMessages(batch, places, tuple(bad))

    def _is_wanted(self, place: Sequence[int]) -> str | None:
        """Why messages of the type at this place are not read; None: they are."""
        key = tuple(place)
        if key not in self._refusals:
            found = message_at(self._files, place)
            said = f"the message is a {found or 'type that its schema lacks'}; this job reads {self._name}"
            if found is None:  # any numbers may stand in a message that is none of ours
                return said
            self._refusals[key] = None if found == self._name else said
        return self._refusals[key]


def _loaded(descriptor: bytes | str | Path) -> bytes:
    if isinstance(descriptor, bytes):
        return descriptor
    try:
        return Path(descriptor).read_bytes()
    except OSError as error:
        raise BuildError(f"descriptor={str(descriptor)!r} cannot be read: {error}") from None


def _registered(registry: Registry, subject: str | None, files: bytes) -> int:
    if subject is None:
        raise BuildError("Protobuf(registry=...) needs subject=: the name to register under")
    client = client_of(registry)
    *imported, (_, text, named) = texts(files)
    for name, inner, others in imported:
        client.register(name, "PROTOBUF", inner, others)
    return client.register(subject, "PROTOBUF", text, named)
