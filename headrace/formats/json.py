"""JSON lines: one object a line. Fields that the schema does not name are ignored, absent ones are null.

NaN and the infinities have no form in JSON and are written as null.
"""

import io
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.types as pt

from headrace.formats.format import BatchWriter, ByteSink, Decoded, Format
from headrace.formats.lines import blocks, decode
from headrace.formats.revive import is_simple, parsed, revived_bytes, revived_values
from headrace.formats.text import is_bytes, is_nested, json_texts

__all__ = ["Jsonl"]

#: Joined texts of so many rows stay below the 2 GiB that one Arrow string column can hold.
_WRITE_ROWS = 65_536


class Jsonl(Format):
    """JSON lines in UTF-8."""

    name = "jsonl"
    suffix = ".jsonl"
    read_suffixes = (".jsonl", ".ndjson", ".json")

    def check_writable(self, schema: pa.Schema) -> None:
        """Everything has a form in JSON."""

    def writer(self, file: ByteSink, schema: pa.Schema) -> BatchWriter:
        """Begin a file."""
        return _JsonlWriter(file, schema)

    def combine(self, parts: Sequence[Path], file: ByteSink) -> None:
        """Lines behind lines."""
        for part in parts:
            with part.open("rb") as lines:
                shutil.copyfileobj(lines, file)

    def read(self, path: Path, schema: pa.Schema) -> Iterator[Decoded]:
        """The rows of a file, with the lines that are not rows of this schema set apart."""
        decoder = _ArrowDecoder(schema) if _arrow_reads(schema) else _PythonDecoder(schema)
        with path.open("rb") as file:
            for block in blocks(file, 1, quoted_newlines=False, is_blank=_is_blank):
                yield decode(block, decoder, schema)


class _JsonlWriter(BatchWriter):
    def __init__(self, file: ByteSink, schema: pa.Schema) -> None:
        self._file = file
        self._labels = [
            f"{',' if place else '{'}{json.dumps(name)}:" for place, name in enumerate(schema.names)
        ]

    def write(self, batch: pa.RecordBatch) -> None:
        for first in range(0, batch.num_rows, _WRITE_ROWS):
            self._file.write(self._lines(batch.slice(first, _WRITE_ROWS)))

    def close(self) -> None:
        pass

    def _lines(self, batch: pa.RecordBatch) -> bytes | memoryview:
        if not batch.num_columns:
            return b"{}\n" * len(batch)
        pieces: list[pa.Array | str] = []
        for label, column in zip(self._labels, batch.columns, strict=True):
            pieces += [label, json_texts(column)]
        lines = pc.binary_join_element_wise(*pieces, "}\n", "")
        _, ends, content = lines.buffers()
        places = np.frombuffer(ends, dtype=np.int32)
        first, last = places[lines.offset], places[lines.offset + len(lines)]
        return memoryview(content)[int(first) : int(last)]


def _arrow_reads(schema: pa.Schema) -> bool:
    return all(is_simple(field.type) for field in schema if is_nested(field.type))


class _ArrowDecoder:
    """Arrow's reader for plain types, and a cast to the declared ones."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._options = pj.ParseOptions(
            explicit_schema=pa.schema([(field.name, _wire_type(field.type)) for field in schema]),
            newlines_in_values=False,
            unexpected_field_behavior="ignore",
        )

    def __call__(self, content: bytes) -> pa.RecordBatch:
        _check_objects(content)
        reading = pj.ReadOptions(use_threads=False, block_size=len(content) + 1)
        table = pj.read_json(io.BytesIO(content), reading, self._options).combine_chunks()
        columns = [
            _declared(_one_chunk(table.column(field.name)), field.type) for field in self._schema
        ]
        batch = pa.record_batch(columns, schema=self._schema)
        batch.validate(full=True)
        return batch


class _PythonDecoder:
    """Line by line, for maps and for nested columns with dates or bytes in them."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def __call__(self, content: bytes) -> pa.RecordBatch:
        rows = [parsed(line) for line in content.splitlines()]
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError("a line must hold an object")
        columns = [
            revived_values([row.get(field.name) for row in rows], field.type)
            for field in self._schema
        ]
        return pa.record_batch(columns, schema=self._schema)


def _is_blank(line: bytes) -> bool:
    return not line.strip()


def _check_objects(content: bytes) -> None:
    """Arrow takes the word null for a row of nulls; a look at each line's first byte is enough."""
    octets = np.frombuffer(content, dtype=np.uint8)
    begins = np.flatnonzero(octets[:-1] == ord("\n")) + 1
    if octets[0] == ord("{") and (octets[begins] == ord("{")).all():
        return
    if not all(line.lstrip().startswith(b"{") for line in content.splitlines()):
        raise ValueError("a line must hold an object")


def _wire_type(kind: pa.DataType) -> pa.DataType:
    """What Arrow's reader is asked for: it knows neither dates nor our form of bytes."""
    if pt.is_temporal(kind) and not pt.is_duration(kind):
        return pa.string()
    if pt.is_duration(kind):
        return pa.int64()
    return pa.string() if is_bytes(kind) else kind


def _declared(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if is_bytes(kind):
        return revived_bytes(column, kind)
    if pt.is_time(kind):
        return revived_values(column.to_pylist(), kind)
    if pt.is_duration(kind):
        return column.cast(pa.duration("us")).cast(kind)
    return column if column.type.equals(kind) else column.cast(kind)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
