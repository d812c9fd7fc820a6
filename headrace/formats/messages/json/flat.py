"""Objects of plain values, each message parsed alone into an object of its declared fields.

Most streams are like that, and it takes about half the time of Arrow's reader, which wants all messages in one text.
What is refused here is left to those who find out why, and may still be a row: a byte order mark, say. What is taken
here is a row, and no other message of the batch has a say in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from headrace.formats.lines import Int64s, halved
from headrace.formats.messages.format import DecodedMessages
from headrace.formats.objects import declared, wire_type

__all__ = ["FlatObjects", "flat_objects"]

#: What is done with a batch of numbers and texts as they were written.
Finish: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch]
#: A tombstone is a TypeError, a message that is nested too deep a RecursionError, every other bad one a ValueError.
_REFUSALS = (ValueError, TypeError, RecursionError)


def flat_objects(schema: pa.Schema, finish: Finish) -> FlatObjects | None:
    """A reader for these columns, or None if one of them is not for it."""
    kinds = [_python_type(field.type) for field in schema]
    if None in kinds or not kinds or not all(_is_spelled_plainly(name) for name in schema.names):
        return None
    return FlatObjects(schema, kinds, finish)


class FlatObjects:
    """Messages to rows of plain columns."""

    def __init__(self, schema: pa.Schema, kinds: Sequence[Any], finish: Finish) -> None:
        self._schema = schema
        self._finish = finish
        # Names of fields may be anything, names of attributes may not.
        names = [f"f{place}" for place in range(len(schema))]
        row = msgspec.defstruct(
            "Row",
            [(name, kind | None, None) for name, kind in zip(names, kinds, strict=True)],
            rename=dict(zip(names, schema.names, strict=True)),
            gc=False,
        )
        self._parse: Callable[[Any], Any] = msgspec.json.Decoder(row).decode
        wire = [wire_type(kind) for kind in schema.types]
        self._columns = list(zip(map(attrgetter, names), wire, schema.types, strict=True))

    def rows(self, values: Sequence[bytes | None]) -> DecodedMessages | None:
        """All messages, a row each, or None if one of them is refused."""
        try:
            batch = self._batch(list(map(self._parse, values)))
        except _REFUSALS:
            return None
        return DecodedMessages(batch, np.arange(len(values)))

    def sifted(self, values: Sequence[bytes | None]) -> tuple[list[DecodedMessages], Int64s]:
        """The rows of messages that are taken, and the places of the others."""
        found: list[Any] = []
        places: list[int] = []
        for place, value in enumerate(values):
            try:
                found.append(self._parse(value))
            except _REFUSALS:
                continue
            places.append(place)

        def attempt(first: int, last: int) -> DecodedMessages:
            return DecodedMessages(self._batch(found[first:last]), np.array(places[first:last]))

        good, _ = halved(len(found), attempt)
        taken = np.concatenate([np.arange(0), *(part.places for part in good)])
        return good, np.setdiff1d(np.arange(len(values)), taken)

    def _batch(self, rows: list[Any]) -> pa.RecordBatch:
        try:
            columns = [
                declared(pa.array(list(map(get, rows)), wire), kind)
                for get, wire, kind in self._columns
            ]
        except OverflowError as error:
            raise ValueError(str(error)) from error
        return self._finish(pa.record_batch(columns, schema=self._schema))


def _is_spelled_plainly(name: str) -> bool:
    """Whether a name is written in JSON as it is; the library does not look for others."""
    return json.dumps(name, ensure_ascii=False) == f'"{name}"'


def _python_type(kind: pa.DataType) -> type | None:
    """What stands for a column in Python without a loss; a fraction of 32 bits would be rounded twice."""
    if pt.is_boolean(kind):
        return bool
    if pt.is_integer(kind):
        return int
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_timestamp(kind) or pt.is_date(kind):
        return str
    return float if pt.is_float64(kind) else None
