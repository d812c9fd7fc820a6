"""Framed messages to rows: each by the schema that it was written with, all versions of a batch side by side.

A new version of a schema is fetched when its id is first seen and goes on being read without a restart, if it can
become the declared columns. If not, its messages are bad and the cause names the field and both versions.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow as pa

from headrace.errors import BuildError, EngineError, SetupError
from headrace.formats.messages.format import BadMessage, DecodedMessages, Mismatch
from headrace.formats.messages.joined import in_order, tombstones
from headrace.formats.messages.packed import Packed, packed
from headrace.formats.messages.registry.client import (
    RegisteredSchema,
    RegistryClient,
    UnknownSchema,
    client_of,
)
from headrace.formats.messages.registry.framing import by_schema
from headrace.formats.messages.registry.registry import Registry

__all__ = ["Reader", "RegisteredDecoder"]

#: The rows of messages of one schema, by the places that the messages have in the batch.
Reader: TypeAlias = Callable[[Packed], DecodedMessages]


class RegisteredDecoder:
    """Decodes what is framed with ids of a registry.

    `kind` is the registry's word for the schemas. `reader_of` makes the reader for one, or raises `Mismatch`. Without `rows_only` a tombstone is
    no row and no mistake.
    """

    def __init__(
        self,
        kind: str,
        registry: Registry,
        subject: str | None,
        schema: pa.Schema,
        reader_of: Callable[[RegisteredSchema], Reader],
        *,
        rows_only: bool = True,
    ) -> None:
        self._kind = kind
        self._client = client_of(registry)
        self._subject = subject
        self._schema = schema
        self._reader_of = reader_of
        self._rows_only = rows_only
        self._readers: dict[int, Reader | str] = {}

    def __call__(self, messages: Sequence[bytes | None]) -> DecodedMessages:
        groups, bad = by_schema(packed(messages))
        if self._rows_only:
            bad += tombstones(messages)
        parts: list[DecodedMessages] = []
        for number, group in groups.items():
            reader = self._reader(number)
            if isinstance(reader, str):
                bad += [BadMessage(place, reader) for place in group.places.tolist()]
            else:
                parts.append(reader(group))
        if len(parts) == 1 and not bad and not parts[0].bad:
            return parts[0]
        return in_order(parts, bad, self._schema)

    def _reader(self, number: int) -> Reader | str:
        """What reads messages of this schema, or why nothing does."""
        if number not in self._readers:
            try:
                self._readers[number] = self._made(self._client.schema(number))
            except UnknownSchema as error:
                return str(error)  # not kept: it may be there when it is asked for again
            except BuildError as error:
                self._readers[number] = f"the schema with id {number} cannot be used: {error}"
            except Mismatch as error:
                self._readers[number] = self._explained(number, error)
        return self._readers[number]

    def _made(self, schema: RegisteredSchema) -> Reader:
        if schema.kind != self._kind:
            raise BuildError(f"it is {schema.kind}, and the format reads {self._kind}")
        return self._reader_of(schema)

    def _explained(self, number: int, mismatch: Mismatch) -> str:
        subject, versions = _history(self._client, self._subject, number)
        before: list[RegisteredSchema] = []
        for version in versions:
            if version.id == number:
                break
            before = [*before, version] if self._is_readable(version) else []
        found = [f"{_called(each)} of {subject!r}" for each in versions if each.id == number]
        wrote = found[0] if found else f"the schema with id {number}"
        since = f" since {_called(before[0])}" if before else ""
        return (
            f"{wrote} has {mismatch.path}: {mismatch.wrote};"
            f" this job reads {mismatch.path}: {mismatch.reads}{since}"
        )

    def _is_readable(self, schema: RegisteredSchema) -> bool:
        try:
            self._made(schema)
        except (Mismatch, BuildError):
            return False
        return True


def _history(
    client: RegistryClient, subject: str | None, number: int
) -> tuple[str, list[RegisteredSchema]]:
    """The subject that an id belongs to, and its versions: the one that is read if it has the id."""
    found: tuple[str, list[RegisteredSchema]] = (subject or "", [])
    try:
        for name in dict.fromkeys([*([subject] if subject else []), *client.subjects(number)]):
            found = (name, client.versions(name))
            if any(version.id == number for version in found[1]):
                break
    except (UnknownSchema, EngineError, SetupError):
        pass  # deleted, or the registry does not tell (everybody): the id has to do
    return found


def _called(schema: RegisteredSchema) -> str:
    return f"version {schema.version} (id {schema.id})"
