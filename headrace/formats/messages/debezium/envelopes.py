"""Debezium's JSON envelopes: `{"before", "after", "op"}` as it is, or as the payload behind its own schema.

Kafka Connect repeats the whole schema in every message, and writes it first and always the same. What stands before
the payload is compared and cut off as bytes, so that a schema is parsed once and not with every message.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from headrace.formats.lines import Int64s
from headrace.formats.messages.joined import without_bom

__all__ = ["WRAPPED", "Envelopes", "Group"]

Reader = TypeVar("Reader")

#: How messages begin that bring their schema.
WRAPPED = b'{"schema"'
_NULL = b"null"
#: Schemas of tables change seldom; more than these are forgotten and parsed again.
_KEPT = 64
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Group(Generic[Reader]):
    """Payloads with one schema, their places, and what reads them."""

    reader: Reader
    payloads: Sequence[bytes]
    places: Int64s


@dataclass(slots=True)
class Envelopes(Generic[Reader]):
    """Parts messages by what stands before their payloads. `read(None)` makes the reader of bare ones."""

    read: Callable[[Any], Reader]
    _readers: dict[bytes, Reader] = field(default_factory=dict)
    _last: bytes = b""

    def groups(self, values: Sequence[bytes]) -> list[Group[Reader]]:
        """The messages by their schemas; one group, as a rule."""
        prefix, opening = self._last, self._last + b"{"
        # Lists, not generators: these lines are run for every message.
        if prefix and all([v.startswith(opening) and v[-1:] == b"}" for v in values]):  # noqa: C419
            payloads = [value[len(prefix) : -1] for value in values]
            return [Group(self._reader(prefix), payloads, np.arange(len(values)))]
        if not any([value.startswith(WRAPPED) for value in values]):  # noqa: C419
            return [Group(self._reader(b""), values, np.arange(len(values)))]
        return self._parted(values)

    def unwrapped(self, value: bytes) -> Group[Reader] | None:
        """The payload of a message that has one, wherever it stands; None: it is bare."""
        prefix, payload = self._learned(without_bom(value).strip())
        if prefix is None:
            return None
        payloads = [payload] if payload != _NULL else []
        return Group(self._reader(prefix), payloads, np.arange(len(payloads)))

    def _parted(self, values: Sequence[bytes]) -> list[Group[Reader]]:
        parted: dict[bytes, list[tuple[bytes, int]]] = {}
        for place, value in enumerate(values):
            prefix, payload = self._cut(value) if value.startswith(WRAPPED) else (None, value)
            if prefix is None or payload != _NULL:
                parted.setdefault(prefix or b"", []).append((payload, place))
        return [
            Group(self._reader(prefix), [p for p, _ in found], np.array([n for _, n in found]))
            for prefix, found in parted.items()
        ]

    def _cut(self, value: bytes) -> tuple[bytes | None, bytes]:
        stripped = without_bom(value).strip()
        for prefix in self._readers:
            if prefix and stripped.startswith(prefix) and stripped.endswith(b"}"):
                self._last = prefix
                return prefix, stripped[len(prefix) : -1].strip()
        return self._learned(stripped)

    def _learned(self, value: bytes) -> tuple[bytes | None, bytes]:
        try:
            text = value.decode()
            members = {name: (first, last) for name, first, last in _members(text)}
        except (ValueError, IndexError, TypeError, RecursionError):
            return None, value
        if "payload" not in members or "schema" not in members:
            return None, value
        first, last = members["payload"]
        begin, end = members["schema"]
        if text[last:].strip() == "}":
            self._last = text[:first].encode()
            return self._last, text[first:last].encode()
        return b'{"schema":' + text[begin:end].encode() + b',"payload":', text[first:last].encode()

    def _reader(self, prefix: bytes) -> Reader:
        if prefix not in self._readers:
            if len(self._readers) >= _KEPT:
                self._readers.clear()
            schema = json.loads(prefix + b"null}")["schema"] if prefix else None
            self._readers[prefix] = self.read(schema)
        return self._readers[prefix]


def _members(text: str) -> Iterator[tuple[str, int, int]]:
    """The names in an object, and from where to where the value of each stands."""
    place = _skipped(text, 1)
    while text[place] != "}":
        name, place = _DECODER.raw_decode(text, place)
        place = _skipped(text, place)
        if text[place] != ":":
            raise ValueError("no colon")
        first = _skipped(text, place + 1)
        _, last = _DECODER.raw_decode(text, first)
        yield name, first, last
        place = _skipped(text, last)
        if text[place] == ",":
            place = _skipped(text, place + 1)


def _skipped(text: str, place: int) -> int:
    while text[place] in " \t\r\n":
        place += 1
    return place
