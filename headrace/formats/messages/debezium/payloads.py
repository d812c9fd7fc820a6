"""Payloads of Debezium's JSON envelopes to change rows, in columns.

A column that may be a number or a text (an instant, a date, a time) is read as what it was last; if Arrow says that it
is the other now, it is read again as that. So what a message is never depends on the messages before it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headrace._graph.changes import CHANGE
from headrace.formats.lines import Int64s, halved
from headrace.formats.messages.debezium.changelog import change_rows
from headrace.formats.messages.debezium.values import Form
from headrace.formats.messages.format import BadMessage, DecodedMessages
from headrace.formats.messages.joined import as_lines, decoded_in_doubt, in_order
from headrace.formats.messages.json.causes import (
    field_cause,
    glance_at_events,
    kinds_of,
    object_cause,
)
from headrace.formats.messages.json.format import split_objects
from headrace.formats.objects import check_objects, one_chunk, parse_options, parsed_objects
from headrace.formats.revive import parsed

__all__ = ["Payloads"]

_CHANGED = re.compile(r"Column\(/(?:before|after)/(.+)\) changed from")


class Payloads:
    """Reads payloads whose columns stand in the same forms."""

    def __init__(self, schema: pa.Schema, columns: Mapping[str, tuple[Form, ...]]) -> None:
        self._schema = schema
        self._columns = columns
        self._chosen = dict.fromkeys(columns, 0)
        self._options = self._parse_options()
        self._glance = glance_at_events(
            {
                name: (
                    frozenset().union(*(kinds_of(f.wire) for f in found)),
                    schema.field(name).type,
                )
                for name, found in columns.items()
            }
        )

    def __call__(self, payloads: Sequence[bytes]) -> DecodedMessages:
        content = as_lines(payloads)
        if content:
            try:
                return self._attempt(content, np.arange(len(payloads)))
            except ValueError:
                pass
        return self._one_by_one(payloads)

    def _one_by_one(self, payloads: Sequence[bytes]) -> DecodedMessages:
        messages, places, bad = split_objects(payloads)
        part = decoded_in_doubt(messages, places, self._judge, self._glance, self._schema)
        return in_order([part], bad, self._schema)

    def _judge(
        self, messages: Sequence[bytes], places: Int64s, most: int | None
    ) -> DecodedMessages:
        good, failed = halved(
            len(messages),
            lambda first, last: self._attempt(b"\n".join(messages[first:last]), places[first:last]),
            most,
        )
        bad = [BadMessage(int(places[n]), self._cause(messages[n], error)) for n, error in failed]
        return in_order(good, bad, self._schema)

    def _attempt(self, content: bytes, places: Int64s) -> DecodedMessages:
        check_objects(content)
        table = self._parsed(content)
        if len(table) != len(places):
            raise ValueError("a message must hold exactly one change event")
        op, before, after = (one_chunk(column) for column in table.columns)
        rows = change_rows(op, before, after)
        columns = [
            self._turned(name, column)
            for name, column in zip(self._columns, rows.columns, strict=True)
        ]
        batch = pa.record_batch([*columns, rows.change], schema=self._schema)
        batch.validate(full=True)
        bad = tuple(BadMessage(int(places[place]), cause) for place, cause in rows.bad)
        return DecodedMessages(batch, places[rows.places], bad)

    def _parsed(self, content: bytes) -> pa.Table:
        turned: set[str] = set()
        while True:
            try:
                return parsed_objects(content, self._options)
            except ValueError as error:
                name = found[1] if (found := _CHANGED.search(str(error))) else ""
                if name in turned or len(self._columns.get(name, ())) < 2:
                    raise
                turned.add(name)
                self._chosen[name] = 1 - self._chosen[name]
                self._options = self._parse_options()

    def _parse_options(self) -> Any:
        row = pa.struct(
            [(name, self._columns[name][place].wire) for name, place in self._chosen.items()]
        )
        return parse_options(pa.schema({"op": pa.string(), "before": row, "after": row}))

    def _turned(self, name: str, column: pa.Array) -> pa.Array:
        try:
            return self._columns[name][self._chosen[name]].turn(column)
        except ValueError as error:
            raise ValueError(f"field {name!r}: {error}") from error

    def _cause(self, message: bytes, error: ValueError) -> str:
        said = str(error)
        if said.startswith("field "):
            return said
        if said.startswith("Failed to convert"):
            event = parsed(message)
            wire = pa.schema([(n, self._columns[n][at].wire) for n, at in self._chosen.items()])
            found = (field_cause(event.get(part), wire) for part in ("before", "after"))
            return next(filter(None, found), said)
        row = pa.struct([field for field in self._schema if field.name != CHANGE])
        return object_cause(message, pa.schema({"before": row, "after": row}), said)
