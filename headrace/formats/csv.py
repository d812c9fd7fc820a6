"""CSV as RFC 4180 has it: a header, commas, double quotes, line breaks allowed between them.

An empty field is null and an empty string is `""`. Lists, structs and maps are JSON in a quoted field.
"""

import csv
import io
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.types as pt

from headrace.errors import InputError
from headrace.formats.format import BatchWriter, ByteSink, Decoded, Format
from headrace.formats.lines import IsBlank, blocks, decode
from headrace.formats.revive import revived_bytes, revived_texts
from headrace.formats.text import is_bytes, is_nested, json_texts, plain

__all__ = ["Csv", "CsvDecoder", "csv_plain"]


class Csv(Format):
    """Comma separated values in UTF-8 with a header."""

    name = "csv"
    suffix = ".csv"
    read_suffixes = (".csv",)

    def check_writable(self, schema: pa.Schema) -> None:
        """Everything has a form in CSV."""

    def writer(self, file: ByteSink, schema: pa.Schema) -> BatchWriter:
        """Begin a file with its header."""
        return _CsvBatchWriter(file, schema)

    def combine(self, parts: Sequence[Path], file: ByteSink) -> None:
        """Lines behind lines, under one header."""
        for place, part in enumerate(parts):
            with part.open("rb") as lines:
                header = _header_bytes(lines)
                if place == 0:
                    file.write(header)
                shutil.copyfileobj(lines, file)

    def read(self, path: Path, schema: pa.Schema) -> Iterator[Decoded]:
        """The rows of a file, with the records that are not rows of this schema set apart."""
        with path.open("rb") as file:
            names, lines = _read_header(file, path, schema)
            decoder = CsvDecoder(names, schema)
            for block in blocks(file, lines + 1, quoted_newlines=True, is_blank=_blank_test(names)):
                yield decode(block, decoder, schema)


class _CsvBatchWriter(BatchWriter):
    def __init__(self, file: ByteSink, schema: pa.Schema) -> None:
        self._schema = _wire_schema(schema)
        self._writer = pcsv.CSVWriter(file, self._schema)

    def write(self, batch: pa.RecordBatch) -> None:
        columns = [csv_plain(column) for column in batch.columns]
        self._writer.write_batch(pa.record_batch(columns, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


class CsvDecoder:
    """Records with these columns, to rows of the schema; `ValueError` if one of them is bad."""

    def __init__(self, names: Sequence[str], schema: pa.Schema, delimiter: str = ",") -> None:
        self._names = names
        self._schema = schema
        self._parsing = pcsv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=len(names) > 1
        )
        self._convert = pcsv.ConvertOptions(
            column_types={field.name: _read_type(field.type) for field in schema},
            include_columns=schema.names,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        )

    def __call__(self, content: bytes) -> pa.RecordBatch:
        reading = pcsv.ReadOptions(
            use_threads=False, block_size=len(content) + 1, column_names=self._names
        )
        table = pcsv.read_csv(io.BytesIO(content), reading, self._parsing, self._convert)
        columns = [
            _declared(table.column(field.name).combine_chunks(), field.type)
            for field in self._schema
        ]
        return pa.record_batch(columns, schema=self._schema)


def _blank_test(names: Sequence[str]) -> IsBlank:
    """An empty line is nothing, but in a file with one column it is a null."""
    return lambda record: len(names) > 1 and not record.strip(b"\r\n")


def csv_plain(column: pa.Array) -> pa.Array:
    """The column with only numbers, booleans and strings in it; nulls stay nulls."""
    if not is_nested(column.type):
        return plain(column)
    # A null stays a null here; json_texts would make it the word "null".
    texts = json_texts(column)
    return pa.array(
        [
            text if valid else None
            for text, valid in zip(texts.to_pylist(), column.is_valid().to_pylist(), strict=True)
        ],
        pa.string(),
    )


def _wire_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(field.name, csv_plain(pa.array([], field.type)).type) for field in schema])


def _header_bytes(file: BinaryIO) -> bytes:
    """The first record; the file stands behind it."""
    header = b""
    while line := file.readline():
        header += line
        if header.count(b'"') % 2 == 0:
            break
    return header


def _read_header(file: BinaryIO, path: Path, schema: pa.Schema) -> tuple[list[str], int]:
    """The names of the columns and how many lines they take."""
    text = _header_bytes(file)
    try:
        names = next(csv.reader([text.decode("utf-8-sig")]), [])
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} does not begin with a header of CSV: {error}") from error
    missing = [name for name in schema.names if name not in names]
    if missing:
        raise InputError(f"{path} has no column {', '.join(missing)}; it has {', '.join(names)}")
    return names, text.count(b"\n")


def _read_type(kind: pa.DataType) -> pa.DataType:
    return pa.string() if is_nested(kind) or is_bytes(kind) or pt.is_duration(kind) else kind


def _declared(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if is_nested(kind):
        return revived_texts(column, kind)
    if is_bytes(kind):
        return revived_bytes(column, kind)
    if pt.is_duration(kind):
        return column.cast(pa.int64()).cast(pa.duration("us")).cast(kind)
    return column
