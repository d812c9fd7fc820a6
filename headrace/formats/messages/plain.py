"""Messages that are one value: bytes as they are, or a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from headrace.errors import BuildError
from headrace.formats.lines import halved
from headrace.formats.messages.format import (
    BadMessage,
    DecodedMessages,
    MessageDecoder,
    MessageEncoder,
    MessageFormat,
)
from headrace.formats.text import is_bytes

__all__ = ["Raw", "String"]


class _OneColumn(MessageFormat):
    """The only column of a row is the message; null is a tombstone."""

    _kind: ClassVar[pa.DataType]

    def row_schema(self, declared: pa.Schema | None) -> pa.Schema:
        """One column, called `value` unless it was declared."""
        if declared is None:
            return pa.schema({"value": self._kind})
        self.check_writable(declared)
        return declared

    def check_writable(self, schema: pa.Schema) -> None:
        """One column that is what a message is."""
        if len(schema) != 1 or not self._holds(schema.field(0).type):
            raise BuildError(
                f"format {self.name!r} is one column of {self._kind}, not {', '.join(map(str, schema)) or 'none'}"
            )

    def encoder(self, schema: pa.Schema) -> MessageEncoder:
        """The column itself."""
        return lambda batch: batch.column(0).cast(pa.binary())

    def _holds(self, kind: pa.DataType) -> bool:
        raise NotImplementedError


@dataclass(frozen=True)
class Raw(_OneColumn):
    """Bytes as they are, in a column `value` or the one that is declared. A tombstone is null."""

    name = "raw"
    _kind = pa.binary()

    def decoder(self, schema: pa.Schema) -> MessageDecoder:
        """Every message is good, unless the declared bytes have a fixed size."""
        return lambda values: _decoded(values, schema)

    def _holds(self, kind: pa.DataType) -> bool:
        return is_bytes(kind)


@dataclass(frozen=True)
class String(_OneColumn):
    """A text in UTF-8, in a column `value` or the one that is declared. A tombstone is null."""

    name = "string"
    _kind = pa.string()

    def decoder(self, schema: pa.Schema) -> MessageDecoder:
        """Messages that are not UTF-8 are bad."""
        return lambda values: _decoded(values, schema)

    def _holds(self, kind: pa.DataType) -> bool:
        return bool(pt.is_string(kind) or pt.is_large_string(kind))


def _decoded(values: Sequence[bytes | None], schema: pa.Schema) -> DecodedMessages:
    kind = schema.field(0).type

    def attempt(first: int, last: int) -> tuple[pa.Array, slice]:
        return pa.array(values[first:last], pa.binary()).cast(kind), slice(first, last)

    good, failed = halved(len(values), attempt)
    column = pa.concat_arrays([part for part, _ in good]) if good else pa.array([], kind)
    places = np.delete(np.arange(len(values)), [place for place, _ in failed])
    bad = (BadMessage(place, f"the message is not {_said(kind)}: {e}") for place, e in failed)
    return DecodedMessages(pa.record_batch([column], schema=schema), places, tuple(bad))


def _said(kind: pa.DataType) -> str:
    return str(kind) if is_bytes(kind) else "UTF-8"
