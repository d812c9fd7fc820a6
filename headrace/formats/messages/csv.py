"""CSV messages: one record each without a header, the columns in the order of the schema.

An empty field is null and an empty string is `""`. Lists, structs and maps are JSON in a quoted field. Messages are
parsed at once; those with line breaks in quotes one by one, which costs about a tenth of a millisecond each.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from headrace.errors import BuildError
from headrace.formats.csv import CsvDecoder, csv_plain
from headrace.formats.messages.format import (
    BadMessage,
    DecodedMessages,
    MessageDecoder,
    MessageEncoder,
    MessageFormat,
)
from headrace.formats.messages.joined import (
    TOMBSTONE,
    are_lines,
    as_lines,
    decoded_at_once,
    decoded_one_by_one,
    in_order,
    without_bom,
)
from headrace.formats.messages.probing import check_readable

__all__ = ["Csv"]

_COLUMN = re.compile(r"In CSV column #(\d+): (?:Row #\d+: )?(?:CSV )?")
#: These stand in numbers, instants and words that are not quoted.
_NO_DELIMITERS = frozenset('"+-.:_\r\n\\')


@dataclass(frozen=True)
class Csv(MessageFormat):
    """One record of comma separated values a message, without a header; columns in the order of the schema."""

    name = "csv"
    delimiter: str = ","

    def __post_init__(self) -> None:
        """Refuse what cannot part two values."""
        mark = self.delimiter
        if len(mark) != 1 or not mark.isascii() or mark.isalnum() or mark in _NO_DELIMITERS:
            raise BuildError(
                f"delimiter={mark!r}: choose one ASCII character that no number or instant has,"
                r" such as ',', ';', '|' or '\t'"
            )

    def row_schema(self, declared: pa.Schema | None) -> pa.Schema:
        """The declared columns, in their order."""
        schema = super().row_schema(declared)
        check_readable(schema, self.name, self.decoder, b"")
        return schema

    def decoder(self, schema: pa.Schema) -> MessageDecoder:
        """Records to rows."""
        return _CsvMessages(schema, self.delimiter)

    def encoder(self, schema: pa.Schema) -> MessageEncoder:
        """Rows to records."""
        return lambda batch: pc.binary_join_element_wise(
            *(_fields(column) for column in batch.columns), self.delimiter
        ).cast(pa.binary())


class _CsvMessages:
    def __init__(self, schema: pa.Schema, delimiter: str) -> None:
        self._schema = schema
        self._records = CsvDecoder(schema.names, schema, delimiter)
        self._end = delimiter * (len(schema) - 1)

    def __call__(self, values: Sequence[bytes | None]) -> DecodedMessages:
        content = as_lines(values)
        if content is not None and are_lines(content, len(values)):
            # No message is more than a line, so as many rows as messages means that each line is one.
            decoded = decoded_at_once(content, len(values), self._decoder)
            if decoded is not None:
                return decoded
        return self._one_by_one(values)

    def _one_by_one(self, values: Sequence[bytes | None]) -> DecodedMessages:
        whole = [None if v is None else without_bom(v).rstrip(b"\r\n") for v in values]
        kinds = np.array([self._kind(v) for v in whole])
        bad = [BadMessage(int(n), TOMBSTONE) for n in np.flatnonzero(kinds == "tombstone")]
        bad += [
            BadMessage(int(n), "the message is empty") for n in np.flatnonzero(kinds == "empty")
        ]
        groups = [np.flatnonzero(kinds == "line")]
        groups += [np.array([n]) for n in np.flatnonzero(kinds == "lines")]
        parts = [
            decoded_one_by_one(
                [whole[n] or b"" for n in places], places, self._decoder, self._schema, self._cause
            )
            for places in groups
        ]
        return in_order(parts, bad, self._schema)

    def _kind(self, message: bytes | None) -> str:
        if message is None:
            return "tombstone"
        if not message and len(self._schema) > 1:
            return "empty"
        return "lines" if b"\n" in message or b"\r" in message else "line"

    def _decoder(self, content: bytes) -> pa.RecordBatch:
        # Arrow takes the end of the text for the end of a quoted field. A last record of nulls would be swallowed
        # by a field that is still open, and is then missing in the count.
        batch = self._records(content.removesuffix(b"\n") + f"\n{self._end}\n".encode())
        return batch.slice(0, len(batch) - 1)

    def _cause(self, message: bytes, said: str) -> str:
        found = _COLUMN.match(said)
        return (
            f"field {self._schema.names[int(found[1])]!r}: {said[found.end() :]}" if found else said
        )


def _fields(column: pa.Array) -> pa.Array:
    """A column as it stands in a record: nulls are nothing, texts are quoted."""
    values = csv_plain(column)
    if pt.is_string(values.type) or pt.is_large_string(values.type):
        doubled = pc.replace_substring(values.cast(pa.string()), '"', '""')
        values = pc.binary_join_element_wise('"', doubled, '"', "")
    return pc.fill_null(values.cast(pa.string()), "")
