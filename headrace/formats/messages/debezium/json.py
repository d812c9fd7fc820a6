"""Debezium JSON: the changes of a table as change rows, and change rows as changes of a table.

Envelopes are parsed in columns (`payloads`), and what events mean is said in `changelog`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from headrace._graph.changes import CHANGE
from headrace.errors import BuildError
from headrace.formats.lines import Int64s
from headrace.formats.messages.debezium.changelog import (
    NO_OP,
    ops_of,
    with_change,
)
from headrace.formats.messages.debezium.envelopes import WRAPPED, Envelopes, Group
from headrace.formats.messages.debezium.payloads import Payloads
from headrace.formats.messages.debezium.values import (
    Conventions,
    forms,
    is_known,
    semantics,
    written,
)
from headrace.formats.messages.format import (
    BadMessage,
    DecodedMessages,
    MessageDecoder,
    MessageEncoder,
    MessageFormat,
)
from headrace.formats.messages.joined import in_order
from headrace.formats.messages.probing import check_readable
from headrace.formats.objects import labels, object_texts

__all__ = ["DebeziumJson"]

_TIMESTAMPS = ("millis", "micros", "nanos")
_DECIMALS = ("precise", "string", "double")


@dataclass(frozen=True)
class DebeziumJson(MessageFormat):
    """Change events of Debezium in JSON, with or without their schema; rows have a column `change` behind the others.

    Inserts and snapshots are "+I", deletes "-D", updates "-U" and "+U". Without a full replica identity an update is
    only "+U", and a delete cannot be read: set `REPLICA IDENTITY FULL` on tables of PostgreSQL. Tombstones are no rows.

    Messages without their schema do not say what a number means: `timestamps` are "millis", "micros" (as PostgreSQL's
    connector has it) or "nanos" since 1970 unless they are texts, and `decimals` are Debezium's
    `decimal.handling.mode`: "precise" (bytes in base64, with the declared scale), "string" or "double".

    Written are "+I" as op c, "+U" as op u, "-D" and "-U" as op d; a sink leaves out a "-U" whose key gets another row.
    """

    name = "debezium-json"
    changes = True
    timestamps: Literal["millis", "micros", "nanos"] = "micros"
    decimals: Literal["precise", "string", "double"] = "precise"

    def __post_init__(self) -> None:
        """Refuse unknown conventions."""
        if self.timestamps not in _TIMESTAMPS:
            raise BuildError(f"timestamps={self.timestamps!r}: choose {', '.join(_TIMESTAMPS)}")
        if self.decimals not in _DECIMALS:
            raise BuildError(f"decimals={self.decimals!r}: choose {', '.join(_DECIMALS)}")

    def row_schema(self, declared: pa.Schema | None) -> pa.Schema:
        """The declared columns and `change`."""
        given = super().row_schema(declared)
        schema = with_change(given, self.name)
        self.check_writable(schema)
        check_readable(given, self.name, self._of_rows, b'{"op":"c","after":{}}')
        return schema

    def check_writable(self, schema: pa.Schema) -> None:
        """Lists and structs may hold numbers, texts and truths only."""
        for field in schema:
            if not is_known(field.type):
                raise BuildError(
                    f"column {field.name!r}: format {self.name!r} cannot hold {field.type}"
                )
        if CHANGE in schema.names and not pt.is_string(schema.field(CHANGE).type):
            raise BuildError(f"column {CHANGE!r} must be a string: +I, -U, +U or -D")

    def decoder(self, schema: pa.Schema) -> MessageDecoder:
        """Envelopes to change rows."""
        return _DebeziumDecoder(schema, Conventions(self.timestamps, self.decimals))

    def _of_rows(self, given: pa.Schema) -> MessageDecoder:
        return self.decoder(with_change(given, self.name))

    def encoder(self, schema: pa.Schema) -> MessageEncoder:
        """Change rows to envelopes; rows without `change` are inserts."""
        given = Conventions(self.timestamps, self.decimals)
        names = [name for name in schema.names if name != CHANGE]
        before = labels(names)

        def encode(batch: pa.RecordBatch) -> pa.Array:
            columns = [written(batch.column(name), given) for name in names]
            rows = object_texts(pa.record_batch(columns, names=names), before, "}")
            return _envelopes(rows, ops_of(batch)).cast(pa.binary())

        return encode


class _DebeziumDecoder:
    def __init__(self, schema: pa.Schema, given: Conventions) -> None:
        self._schema = schema
        self._given = given
        self._envelopes = Envelopes(self._reader)

    def __call__(self, values: Sequence[bytes | None]) -> DecodedMessages:
        present = [value for value in values if value is not None]
        places = np.arange(len(values))
        if len(present) < len(values):
            places = np.flatnonzero([value is not None for value in values])
        parts = [self._decoded(group, places) for group in self._envelopes.groups(present)]
        if len(parts) == 1 and not parts[0].bad:
            return parts[0]
        again = dict(each for part in parts for each in self._wrapped_otherwise(part, values))
        bad = [found for part in parts for found in part.bad if found.place not in again]
        good = [DecodedMessages(part.batch, part.places) for part in parts]
        return in_order([*good, *again.values()], bad, self._schema)

    def _decoded(self, group: Group[Payloads], places: Int64s) -> DecodedMessages:
        decoded = group.reader(group.payloads)
        own = places[group.places]
        bad = tuple(BadMessage(int(own[found.place]), found.cause) for found in decoded.bad)
        return DecodedMessages(decoded.batch, own[decoded.places], bad)

    def _wrapped_otherwise(
        self, part: DecodedMessages, values: Sequence[bytes | None]
    ) -> Iterator[tuple[int, DecodedMessages]]:
        """Messages whose payload does not stand where Kafka Connect writes it, or not alone."""
        for bad in part.bad:
            place, value = bad.place, values[bad.place] or b""
            if bad.cause != NO_OP and not value.startswith(WRAPPED):
                continue
            group = self._envelopes.unwrapped(value)
            if group is not None:
                yield place, self._decoded(group, np.array([place]))

    def _reader(self, schema: Any) -> Payloads:
        said = semantics(schema)
        columns = {
            field.name: forms(field.type, self._given, said.get(field.name))
            for field in self._schema
            if field.name != CHANGE
        }
        return Payloads(self._schema, columns)


def _envelopes(rows: pa.Array, ops: pa.Array) -> pa.Array:
    gone = pc.equal(ops, "d")
    before, after = pc.if_else(gone, rows, "null"), pc.if_else(gone, "null", rows)
    return pc.binary_join_element_wise(
        '{"before":', before, ',"after":', after, ',"op":"', ops, '"}', ""
    )
