"""The columns of a table in files, told from the files themselves."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.json as pjson
import pyarrow.parquet as pq
import pyarrow.types as pt

from headrace._runtime.joins.lookup.files import files_of
from headrace.errors import BuildError, InputError, SchemaError
from headrace.lookups import FileTable
from headrace.schema import as_schema

__all__ = ["file_schema"]


def file_schema(table: FileTable) -> pa.Schema:
    """The columns that the files have together, with types that hold all their values."""
    try:
        found = [_schema(path, table.format) for path in files_of(table)]
        schema = as_schema(pa.unify_schemas(found, promote_options="permissive"))
    except SchemaError:
        raise
    except (InputError, OSError, pa.ArrowException) as error:
        raise BuildError(
            f"The columns of {table!r} cannot be told from its files: {error}. Pass schema= to FileTable, then they are"
            " not looked at before the job runs."
        ) from error
    for field in schema:
        if pt.is_null(field.type):
            raise SchemaError(
                f"The type of '{field.name}' of {table!r} cannot be told, as it has no values; pass schema= to FileTable."
            )
    return pa.schema([field.with_type(_plain(field.type)) for field in schema])


def _schema(path: Path, format: str) -> pa.Schema:
    if format == "parquet":
        return pq.read_schema(path).remove_metadata()
    if format == "jsonl":
        return pa.schema([f.with_type(_in_json(f.type)) for f in pjson.read_json(path).schema])
    # What is null must be told as it is when rows are read.
    convert = pcsv.ConvertOptions(
        strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
    )
    found = pcsv.read_csv(path, convert_options=convert).schema
    return pa.schema([field.with_type(_in_csv(field.type)) for field in found])


def _in_json(kind: pa.DataType) -> pa.DataType:
    """A text that looks like a time is a text: its zone would be lost."""
    if pt.is_struct(kind):
        return pa.struct([field.with_type(_in_json(field.type)) for field in kind])
    if pt.is_list(kind):
        return pa.list_(_in_json(kind.value_type))
    return pa.string() if pt.is_temporal(kind) else kind


def _in_csv(kind: pa.DataType) -> pa.DataType:
    """Times are counted in microseconds, as everywhere here, however many digits a file has."""
    if pt.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.time64("us") if pt.is_time(kind) else kind


def _plain(kind: pa.DataType) -> pa.DataType:
    """Dictionaries differ from file to file; their values do not."""
    return kind.value_type if pt.is_dictionary(kind) else kind
