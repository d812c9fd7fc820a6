"""JSON messages: one object each. Fields that the schema does not name are ignored, absent ones are null."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from headrace.errors import BuildError
from headrace.formats.lines import Int64s
from headrace.formats.messages.format import (
    BadMessage,
    DecodedMessages,
    MessageDecoder,
    MessageEncoder,
    MessageFormat,
)
from headrace.formats.messages.joined import (
    TOMBSTONE,
    as_lines,
    decoded_at_once,
    decoded_in_doubt,
    decoded_one_by_one,
    in_order,
    moved,
    without_bom,
)
from headrace.formats.messages.json.causes import glance_at_kinds, object_cause
from headrace.formats.messages.json.epochs import epochs, instants, wire_instants
from headrace.formats.messages.json.flat import flat_objects
from headrace.formats.messages.probing import check_readable
from headrace.formats.objects import labels, object_decoder, object_texts
from headrace.formats.text import is_nested

__all__ = ["Json", "split_objects"]

_TIMESTAMPS = ("iso", "seconds", "millis", "micros")
_OTHER = {
    b"[": "an array",
    b'"': "a string",
    b"n": "null",
    b"t": "true or false",
    b"f": "true or false",
}
#: Joined texts of so many rows stay below the 2 GiB that one Arrow string column can hold.
_WRITE_ROWS = 65_536


@dataclass(frozen=True)
class Json(MessageFormat):
    """One JSON object a message.

    `timestamps` says how instants are written: "iso" (ISO 8601 with a zone), or as a number of "seconds" (fractions
    are allowed), "millis" or "micros" since 1970. Writing numbers cuts off what is finer than the unit, and reading texts
    into columns of microseconds what is finer than these.
    """

    name = "json"
    narrows = True
    timestamps: Literal["iso", "seconds", "millis", "micros"] = "iso"

    def __post_init__(self) -> None:
        """Refuse an unknown way to write instants."""
        if self.timestamps not in _TIMESTAMPS:
            raise BuildError(f"timestamps={self.timestamps!r}: choose {', '.join(_TIMESTAMPS)}")

    def row_schema(self, declared: pa.Schema | None) -> pa.Schema:
        """The declared columns; a number can only be an instant where a column is one."""
        schema = super().row_schema(declared)
        self.check_writable(schema)
        check_readable(schema, self.name, self.decoder, b"{}")
        return schema

    def check_writable(self, schema: pa.Schema) -> None:
        """Everything has a form in JSON; but instants in lists and structs are always ISO 8601."""
        for field in schema if self.timestamps != "iso" else ():
            if is_nested(field.type) and "timestamp[" in str(field.type):
                raise BuildError(
                    f"column {field.name!r}: timestamps={self.timestamps!r} holds for columns, not for what is in"
                    f" {field.type}; declare int64 there, or use timestamps='iso'"
                )

    def decoder(self, schema: pa.Schema) -> MessageDecoder:
        """Objects to rows."""
        return _JsonDecoder(schema, self.timestamps)

    def encoder(self, schema: pa.Schema) -> MessageEncoder:
        """Rows to objects."""
        before = labels(schema.names)
        unit = self.timestamps

        def encode(batch: pa.RecordBatch) -> pa.Array:
            written = batch if unit == "iso" else epochs(batch, unit)
            parts = [
                object_texts(written.slice(first, _WRITE_ROWS), before, "}").cast(pa.binary())
                for first in range(0, len(batch), _WRITE_ROWS)
            ]
            return pa.concat_arrays(parts) if parts else pa.array([], pa.binary())

        return encode


class _JsonDecoder:
    def __init__(self, schema: pa.Schema, timestamps: str) -> None:
        self._schema = schema
        self._timestamps = timestamps
        self._wire = schema if timestamps == "iso" else wire_instants(schema, timestamps)
        self._flat = flat_objects(self._wire, self._declared)
        self._objects = object_decoder(self._wire)
        self._glance = glance_at_kinds(self._wire)

    def __call__(self, values: Sequence[bytes | None]) -> DecodedMessages:
        if self._flat is None:
            decoded = decoded_at_once(as_lines(values), len(values), self._lines)
            return decoded or self._judged(values)
        decoded = self._flat.rows(values)
        if decoded is not None:
            return decoded
        good, refused = self._flat.sifted(values)
        rest = moved(self._judged([values[place] for place in refused]), refused)
        return in_order([*good, rest], [], self._schema)

    def _judged(self, values: Sequence[bytes | None]) -> DecodedMessages:
        messages, places, bad = split_objects(values)
        part = decoded_in_doubt(messages, places, self._judge, self._glance, self._schema)
        return in_order([part], bad, self._schema)

    def _lines(self, content: bytes) -> pa.RecordBatch:
        return self._declared(self._objects(content))

    def _declared(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._timestamps == "iso":
            return batch
        return instants(batch, self._schema, self._timestamps)

    def _judge(
        self, messages: Sequence[bytes], places: Int64s, most: int | None
    ) -> DecodedMessages:
        return decoded_one_by_one(
            messages, places, self._lines, self._schema, self._cause, most=most
        )

    def _cause(self, message: bytes, said: str) -> str:
        return object_cause(message, self._wire, said)


def split_objects(values: Sequence[bytes | None]) -> tuple[list[bytes], Int64s, list[BadMessage]]:
    """What may be objects, each on one line, with their places; and what cannot be."""
    whole = [None if value is None else without_bom(value).strip() for value in values]
    good = np.array([v is not None and v[:1] == b"{" and v[-1:] == b"}" for v in whole], dtype=bool)
    bad = [BadMessage(int(place), _refusal(whole[place])) for place in np.flatnonzero(~good)]
    # A carriage return is white space as a line break is, and as wrong as one inside a string.
    places = np.flatnonzero(good)
    return [(whole[place] or b"").replace(b"\n", b"\r") for place in places], places, bad


def _refusal(message: bytes | None) -> str:
    if message is None:
        return TOMBSTONE
    if not message:
        return "the message is empty"
    if message[:1] == b"{":
        return "the message is not one whole JSON object: it does not end with }"
    other = _OTHER.get(message[:1], "something else")
    return f"the message is not a JSON object but {other}"
