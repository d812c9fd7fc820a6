"""JSON objects, one a line, to rows and back: what JSON lines and JSON messages share.

Objects are parsed in one go. Arrow's parser takes a line break for any other white space, so that every line must
begin with `{` and end with `}`: a break between those two can only stand between two objects, and as many rows as
lines then means one object a line. The same holds for messages that are joined by line breaks.
"""

import io
import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.types as pt

from headrace.formats.lines import Decoder
from headrace.formats.revive import is_simple, parsed, revived_bytes, revived_values
from headrace.formats.text import is_bytes, is_nested, json_texts

__all__ = [
    "check_objects",
    "declared",
    "labels",
    "object_decoder",
    "object_texts",
    "one_chunk",
    "parse_options",
    "parsed_objects",
    "wire_type",
]

_NEWLINE, _RETURN, _OPEN, _CLOSE = b"\n\r{}"
#: How Arrow says that an object has a field more than once; for us the last one counts, as it does for most readers.
_TWICE = "specified twice"
_NANOS = r"(:\d\d\.\d{6})\d+(Z|[+-][\d:]+)?$"


def object_decoder(schema: pa.Schema) -> Decoder:
    """Lines of objects to rows; `ValueError` if one of them is not a row of this schema."""
    simple = all(is_simple(field.type) for field in schema if is_nested(field.type))
    return _ArrowObjects(schema) if simple else _PythonObjects(schema)


class _ArrowObjects:
    """Arrow's reader for plain types, and a cast to the declared ones."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._options = parse_options(pa.schema([(f.name, wire_type(f.type)) for f in schema]))

    def __call__(self, content: bytes) -> pa.RecordBatch:
        check_objects(content)
        try:
            table = parsed_objects(content, self._options)
        except pa.ArrowInvalid as error:
            # One line alone, or what its neighbours are would depend on it: the other way has other limits.
            if _TWICE not in str(error) or b"\n" in content.removesuffix(b"\n"):
                raise
            return _PythonObjects(self._schema)(content)
        columns = [self._declared(table.column(field.name), field) for field in self._schema]
        batch = pa.record_batch(columns, schema=self._schema)
        batch.validate(full=True)
        return batch

    def _declared(self, column: pa.ChunkedArray, field: pa.Field) -> pa.Array:
        try:
            return declared(one_chunk(column), field.type)
        except ValueError as error:
            raise ValueError(f"field {field.name!r}: {error}") from error


class _PythonObjects:
    """Line by line, for maps and for nested columns with dates or bytes in them."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def __call__(self, content: bytes) -> pa.RecordBatch:
        rows = [parsed(line) for line in content.removesuffix(b"\n").split(b"\n")]
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError("a line must hold an object")
        columns = [
            revived_values([row.get(field.name) for row in rows], field.type)
            for field in self._schema
        ]
        return pa.record_batch(columns, schema=self._schema)


def parse_options(schema: pa.Schema) -> pj.ParseOptions:
    """Exactly these fields, whatever else an object has."""
    return pj.ParseOptions(
        explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="ignore"
    )


def parsed_objects(content: bytes, options: pj.ParseOptions) -> pa.Table:
    """All objects as one block."""
    reading = pj.ReadOptions(use_threads=False, block_size=len(content) + 1)
    return pj.read_json(io.BytesIO(content), reading, options).combine_chunks()


def check_objects(content: bytes) -> None:
    """`ValueError` unless every line begins and ends as an object does; a look at two bytes of each is enough."""
    octets = np.frombuffer(content.removesuffix(b"\n"), dtype=np.uint8)
    breaks = np.flatnonzero(octets == _NEWLINE)
    begins, ends = np.append(breaks + 1, 0), np.append(breaks - 1, len(octets) - 1)
    if len(octets) and begins.max() < len(octets):
        ends -= octets[ends] == _RETURN
        if (octets[begins] == _OPEN).all() and (octets[ends] == _CLOSE).all():
            return
    lines = (line.strip() for line in content.removesuffix(b"\n").split(b"\n"))
    if not all(line.startswith(b"{") and line.endswith(b"}") for line in lines):
        raise ValueError("a line must hold an object")


def wire_type(kind: pa.DataType) -> pa.DataType:
    """What Arrow's reader is asked for: it knows neither dates nor our form of bytes."""
    if pt.is_temporal(kind) and not pt.is_duration(kind):
        return pa.string()
    if pt.is_duration(kind):
        return pa.int64()
    return pa.string() if is_bytes(kind) else kind


def declared(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column as it was read, as the type that it was declared with."""
    if is_bytes(kind):
        return revived_bytes(column, kind)
    if pt.is_time(kind) and pt.is_string(column.type):
        return revived_values(column.to_pylist(), kind)
    if pt.is_duration(kind):
        return column.cast(pa.duration("us")).cast(kind)
    if pt.is_timestamp(kind) and kind.unit == "us" and pt.is_string(column.type):
        return _instants(column, kind)
    return column if column.type.equals(kind) else column.cast(kind)


def _instants(column: pa.Array, kind: pa.TimestampType) -> pa.Array:
    """Texts with nanoseconds, as Java writes them, lose what a column of microseconds cannot hold."""
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        return pc.replace_substring_regex(column, _NANOS, r"\1\2").cast(kind)


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def labels(names: Sequence[str]) -> list[str]:
    """What stands before each value of an object."""
    return [f"{',' if place else '{'}{json.dumps(name)}:" for place, name in enumerate(names)]


def object_texts(batch: pa.RecordBatch, before: Sequence[str], end: str) -> pa.Array:
    """Each row as an object, `labels` before its values and `end` behind them."""
    if not batch.num_columns:
        return pa.array(["{" + end] * len(batch), pa.string())
    pieces: list[pa.Array | str] = []
    for label, column in zip(before, batch.columns, strict=True):
        pieces += [label, json_texts(column)]
    return pc.binary_join_element_wise(*pieces, end, "")
