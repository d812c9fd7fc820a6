"""`.proto` text to a descriptor, as far as messages need it: registries hold schemas as text.

Messages, enums, maps, oneofs, imports and packages are read; options, reserved numbers, extensions and services are
passed over. Names of types are left as they are written: Protobuf's own pool finds them.
"""

import re
from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from headrace.errors import BuildError
from headrace.formats.messages.protobuf.types import type_words

__all__ = ["parsed_proto"]

_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\s+|("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[\w.]+|[^\w\s])""", re.DOTALL
)
_SCALARS = {
    name: getattr(FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in (
        "double float int64 uint64 int32 fixed64 fixed32 bool string bytes uint32 sfixed32 sfixed64 sint32 sint64"
    ).split()
}
_LABELS = {
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
}


def parsed_proto(text: str) -> FileDescriptorProto:
    """The descriptor of a file; it has no name."""
    try:
        return _Parser(text).file()
    except (IndexError, ValueError, KeyError) as error:
        raise BuildError(f"the registered Protobuf schema cannot be read: {error!r}") from None


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [found for found in _TOKEN.findall(text) if found]
        self._at = 0
        self._proto3 = False

    def file(self) -> FileDescriptorProto:
        file = FileDescriptorProto()
        while self._at < len(self._tokens):
            self._top(self._next(), file)
        return file

    def _top(self, word: str, file: FileDescriptorProto) -> None:
        if word == "syntax":
            self._next()
            self._proto3 = self._next()[1:-1] == "proto3"
            file.syntax = "proto3" if self._proto3 else "proto2"
            self._skip()
        elif word == "package":
            file.package = self._next()
            self._skip()
        elif word == "import":
            name = self._next()
            file.dependency.append((self._next() if name in ("public", "weak") else name)[1:-1])
            self._skip()
        elif word == "message":
            self._message(file.message_type.add())
        elif word == "enum":
            self._enum(file.enum_type.add())
        elif word != ";":
            self._skip()

    def _message(self, message: DescriptorProto) -> None:
        message.name = self._next()
        self._expect("{")
        self._body(message, None)
        # Protobuf wants the oneofs that only carry `optional` behind the real ones.
        for field in message.field:
            if field.proto3_optional:
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field.name}")

    def _body(self, message: DescriptorProto, oneof: int | None) -> None:
        members: dict[str, Callable[[], None]] = {
            "message": lambda: self._message(message.nested_type.add()),
            "enum": lambda: self._enum(message.enum_type.add()),
            "oneof": lambda: self._oneof(message),
            "map": lambda: self._map(message),
            **dict.fromkeys(("option", "reserved", "extensions", "extend"), self._skip),
            ";": lambda: None,
        }
        while (word := self._next()) != "}":
            if word in members:
                members[word]()
            else:
                self._field(message, word, oneof)

    def _oneof(self, message: DescriptorProto) -> None:
        message.oneof_decl.add(name=self._next())
        self._expect("{")
        self._body(message, len(message.oneof_decl) - 1)

    def _field(self, message: DescriptorProto, word: str, oneof: int | None) -> None:
        field = message.field.add(label=_LABELS["optional"])
        if word in _LABELS:
            field.label = _LABELS[word]
            field.proto3_optional = word == "optional" and self._proto3
            word = self._next()
        if oneof is not None:
            field.oneof_index = oneof
        self._typed(field, word)
        self._numbered(field)

    def _map(self, message: DescriptorProto) -> None:
        self._expect("<")
        key = self._next()
        self._expect(",")
        value = self._next()
        self._expect(">")
        field = message.field.add(label=_LABELS["repeated"])
        self._numbered(field)
        entry = message.nested_type.add(name=f"{type_words(field.name)}Entry")
        entry.options.map_entry = True
        self._typed(entry.field.add(name="key", number=1, label=_LABELS["optional"]), key)
        self._typed(entry.field.add(name="value", number=2, label=_LABELS["optional"]), value)
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, entry.name

    def _typed(self, field: FieldDescriptorProto, word: str) -> None:
        if word in _SCALARS:
            field.type = _SCALARS[word]
        else:
            field.type_name = word

    def _numbered(self, field: FieldDescriptorProto) -> None:
        field.name = self._next()
        self._expect("=")
        field.number = int(self._next(), 0)
        self._skip()

    def _enum(self, enum: Any) -> None:
        enum.name = self._next()
        self._expect("{")
        while (word := self._next()) != "}":
            if word in ("option", "reserved"):
                self._skip()
            elif word != ";":
                self._expect("=")
                sign = -1 if self._tokens[self._at] == "-" else 1
                self._at += sign < 0
                enum.value.add(name=word, number=sign * int(self._next(), 0))
                self._skip()

    def _skip(self) -> None:
        """To the end of a statement: a semicolon, or the brace that closes its block."""
        depth = 0
        while True:
            word = self._next()
            depth += (word in "{[(") - (word in "}])")
            if depth == 0 and word in (";", "}"):
                return

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, word: str) -> None:
        found = self._next()
        if found != word:
            raise ValueError(f"{word} is expected where {found} stands")
