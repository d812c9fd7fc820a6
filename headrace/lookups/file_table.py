"""A table in files beside the stream, for `join_lookup`: what it is. `_runtime.joins.lookup` reads it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from headrace.config import to_us
from headrace.errors import BuildError
from headrace.schema import as_schema

__all__ = ["FileTable", "TableFormat"]

TableFormat = Literal["parquet", "csv", "jsonl"]

_ENDINGS: dict[str, TableFormat] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}


class FileTable:
    """The rows of a Parquet, CSV or JSON lines file, or of all such files in a directory, by key.

        rates = hr.lookups.FileTable("rates.csv", key="currency")
        orders.join_lookup(rates, on="currency", how="inner", uid="with-rate")

    Each worker process holds the whole table in memory, as Arrow columns, and looks every `check_every` whether the files
    are others than before (size, time of change, inode); None: it is read once. A change is taken in when two looks
    have found the same files, all of them at once. Files that cannot be read then are told of, and the old rows stay; at
    the first reading they are an error. So rename a finished file into its place. A key may have several rows: a join
    gives a result for each. Rows with a null in the key are never found.

    `key` is a column or several. `format` follows from the ending of the path, and is "parquet" for a directory. Types are
    those of the files, of CSV and JSON as far as they can be told, or as `schema` says. `columns` are those that a
    join shows, by default all.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        key: str | Sequence[str],
        format: TableFormat | None = None,
        schema: Any = None,
        columns: Sequence[str] | None = None,
        check_every: timedelta | None = timedelta(seconds=1),
    ) -> None:
        if "://" in str(path):
            raise BuildError(f"FileTable reads a local path, which {str(path)!r} is not.")
        self.path = Path(path).expanduser().absolute()
        self.format = format or _ENDINGS.get(self.path.suffix.lower(), "parquet")
        if self.format not in _ENDINGS.values():
            known = ", ".join(sorted(map(repr, set(_ENDINGS.values()))))
            raise BuildError(f"FileTable(format={format!r}): choose {known}.")
        self.key = _names("key", (key,) if isinstance(key, str) else key)
        self.schema: pa.Schema | None = None if schema is None else as_schema(schema)
        self.columns = None if columns is None else _names("columns", columns)
        self.check_us = (
            None if check_every is None else to_us(check_every, "FileTable(check_every=...)")
        )

    def __repr__(self) -> str:
        return f"FileTable({str(self.path)!r}, key={list(self.key)!r})"


def _names(option: str, names: Any) -> tuple[str, ...]:
    found = tuple(names) if isinstance(names, list | tuple) else ()
    if not found or not all(isinstance(name, str) for name in found):
        raise BuildError(
            f"FileTable({option}={names!r}): it takes names of columns, such as ['id']."
        )
    if len(set(found)) != len(found):
        raise BuildError(f"FileTable({option}={names!r}) names a column twice.")
    return found
