"""Protobuf descriptors as bytes that travel, and the message classes that a process makes of them.

A set of files in the order of their imports is the form: what `protoc --include_imports -o` writes, what a generated
class knows of itself, and what a schema registry holds, file by file.
"""

import base64
import binascii
import functools
import importlib
from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from headrace.errors import BuildError
from headrace.formats.messages.protobuf.text import parsed_proto
from headrace.formats.messages.registry.client import RegisteredSchema

__all__ = ["files_of_class", "message_at", "message_class", "place_of", "registered_files", "texts"]

_KNOWN = "google/protobuf/"


def files_of_class(kind: Any) -> bytes:
    """The files that a generated class comes from."""
    found: dict[str, FileDescriptorProto] = {}
    for file in _imports(kind.DESCRIPTOR.file):
        if file.name not in found:
            found[file.name] = FileDescriptorProto.FromString(file.serialized_pb)
    return bytes(FileDescriptorSet(file=found.values()).SerializeToString(deterministic=True))


def registered_files(schema: RegisteredSchema) -> bytes:
    """The files of a schema of a registry, whether it holds them as base64 or as `.proto` text."""
    pairs = zip(schema.names, schema.named, strict=True)
    files = [_registered(text, name) for name, text in pairs]
    own = _registered(schema.text, f"schema-{schema.id}.proto")
    return bytes(FileDescriptorSet(file=[*files, own]).SerializeToString(deterministic=True))


def texts(files: bytes) -> list[tuple[str, str, list[str]]]:
    """Each file as a registry takes it: its name, base64, and the names of what it imports; the last is the main one."""
    return [
        (
            file.name,
            base64.standard_b64encode(file.SerializeToString()).decode(),
            _own_imports(file),
        )
        for file in FileDescriptorSet.FromString(files).file
        if not file.name.startswith(_KNOWN)
    ]


@functools.lru_cache(maxsize=256)
def message_class(files: bytes, name: str | None) -> Any:
    """The class of a message type; without a name it is the first of the last file."""
    pool, last = _pool(files)
    if name is None:
        if not last.message_type:
            raise BuildError("the Protobuf descriptor has no message type")
        name = f"{last.package}.{last.message_type[0].name}".lstrip(".")
    try:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except KeyError:
        raise BuildError(
            f"the Protobuf descriptor has no message type {name!r}; it has {', '.join(_names(files))}"
        ) from None


def message_at(files: bytes, place: Sequence[int]) -> str | None:
    """The full name of the message type at this place of the last file: its number, and those of nested ones."""
    last = FileDescriptorSet.FromString(files).file[-1]
    types, name = last.message_type, last.package
    for number in place:
        if number >= len(types):
            return None
        name = f"{name}.{types[number].name}".lstrip(".")
        types = types[number].nested_type
    return str(name)


def place_of(descriptor: Any) -> list[int]:
    """The place of a message type in its file, as `message_at` takes it."""
    place: list[int] = []
    while descriptor is not None:
        above = descriptor.containing_type
        siblings = above.nested_types if above else descriptor.file.message_types_by_name.values()
        place.insert(0, [each.full_name for each in siblings].index(descriptor.full_name))
        descriptor = above
    return place


def _imports(file: Any) -> Iterator[Any]:
    for other in file.dependencies:
        yield from _imports(other)
    yield file


def _registered(text: str, name: str) -> FileDescriptorProto:
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, DecodeError, ValueError):
        file = parsed_proto(text)
    if not file.name or name.startswith(_KNOWN):
        file.name = name
    return file


def _pool(files: bytes) -> tuple[Any, FileDescriptorProto]:
    pool = descriptor_pool.DescriptorPool()
    try:
        held = FileDescriptorSet.FromString(files).file
        known = {file.name: file for file in held}
        added: set[str] = set()
        for file in held:
            _add(pool, file, known, added)
        return pool, held[-1]
    except (TypeError, IndexError, DecodeError) as error:
        raise BuildError(
            f"the Protobuf descriptor cannot be used: {error}; write it with protoc --include_imports -o"
        ) from None


def _add(
    pool: Any, file: FileDescriptorProto, known: dict[str, FileDescriptorProto], added: set[str]
) -> None:
    if file.name in added:
        return
    added.add(file.name)
    for name in file.dependency:
        if name in known:
            _add(pool, known[name], known, added)
        elif name.startswith(_KNOWN):
            _add(pool, _well_known(name), known, added)
    pool.Add(file)


def _well_known(name: str) -> FileDescriptorProto:
    module = importlib.import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    found = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(found)
    return found


def _own_imports(file: FileDescriptorProto) -> list[str]:
    return [name for name in file.dependency if not name.startswith(_KNOWN)]


def _names(files: bytes) -> list[str]:
    return [
        f"{file.package}.{message.name}".lstrip(".")
        for file in FileDescriptorSet.FromString(files).file
        for message in file.message_type
        if not file.name.startswith(_KNOWN)
    ]
