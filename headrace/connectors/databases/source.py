"""A table or a query as a bounded stream, read in ranges of a column.

A position is a range. Each is read in one statement, as of the moment of that statement; a database that is written to
meanwhile gives each range as it is when it is read, and an epoch that is run again reads its ranges again. For rows
as of one moment read a table that nobody writes to, or a query with a condition that later rows do not fulfil.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.connectors.databases.access import access_to
from headrace.connectors.databases.dialect import Column, Cursor, Dialect
from headrace.connectors.databases.mysql import MySqlDialect
from headrace.connectors.databases.names import parse_table
from headrace.connectors.databases.pool import reading
from headrace.connectors.databases.postgres import PostgresDialect
from headrace.connectors.databases.ranges import (
    PARTITION,
    Range,
    RangeEnumerator,
    equal_ranges,
    load_ranges,
    write_ranges,
)
from headrace.connectors.databases.values import record_batch
from headrace.endpoints import Enumerator, Json, Source, SourceBatch
from headrace.errors import BuildError, CheckpointDamaged, InputError
from headrace.schema import as_schema

__all__ = ["MySqlSource", "PostgresSource", "TableSource"]

#: Rows of a batch.
_ROWS = 30_000


class TableSource(Source):
    """What the sources of all databases are."""

    row_positions = False
    _dialect: Dialect

    def __init__(
        self,
        dsn: str,
        *,
        table: str | None = None,
        query: str | None = None,
        schema: Any = None,
        partition_column: str | None = None,
        partitions: int = 1,
        max_partitions_per_epoch: int | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        if (table is None) == (query is None):
            raise BuildError("say either table= or query=, and not both")
        if partitions < 1 or (partitions > 1 and partition_column is None):
            raise BuildError(
                f"partitions={partitions!r} needs partition_column=, the column that makes the ranges, and must be"
                " 1 or more"
            )
        if max_partitions_per_epoch is not None and max_partitions_per_epoch < 1:
            raise BuildError(
                f"max_partitions_per_epoch must be 1 or more, not {max_partitions_per_epoch!r}"
            )
        self.max_positions = max_partitions_per_epoch
        self._access = access_to(dsn, options)
        self._what = query if table is None else table
        self._from = self._rows_of(table, query)
        self._schema = None if schema is None else as_schema(schema)
        self._column = partition_column
        self._partitions = partitions

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._access.shown!r}, {self._what!r})"

    @property
    def schema(self) -> pa.Schema:
        """The declared columns; without any, those that the server has, asked once."""
        if self._schema is None:
            with reading(self._dialect, self._access, f"looking at {self._what}") as connection:
                columns = self._columns(connection.cursor())
            types = {name: self._dialect.read_type(column)[0] for name, column in columns.items()}
            self._schema = pa.schema(types)
        return self._schema

    def signature(self) -> dict[str, Json]:
        """What is read, and the column of the ranges. Where the server is may change."""
        return {
            "source": self._dialect.name.lower(),
            "rows": self._what,
            "partition_column": self._column,
        }

    def enumerator(self, directory: Path) -> Enumerator:
        """Compute the ranges, or take those that an earlier start wrote down."""
        ranges = load_ranges(directory)
        if ranges is None:
            ranges = self._ranges()
            write_ranges(directory, ranges)
        return RangeEnumerator(ranges)

    def read(self, partition: str, start: int, end: int, directory: Path) -> Iterator[SourceBatch]:
        """The rows of these ranges; a row's offset is its number in the range."""
        ranges = load_ranges(directory) or []
        if end > len(ranges):
            raise CheckpointDamaged(
                f"{directory} knows {len(ranges)} ranges of {self._what}; the checkpoint speaks of {end}"
            )
        for number in range(start, end):
            yield from self._read(ranges[number], f"{PARTITION}[{number}]")

    def _read(self, range: Range, name: str) -> Iterator[SourceBatch]:
        doing, seen, wanted = f"reading {self._what}", 0, self.schema
        with reading(self._dialect, self._access, doing) as connection:
            with connection.cursor() as cursor:
                columns = self._columns(cursor)
            connection.rollback()
            natural, statement, parameters = self._selected(columns, range)
            for rows in self._dialect.stream(connection, statement, parameters, _ROWS):
                batch = record_batch(rows, natural, wanted)
                yield SourceBatch(batch, np.arange(seen, seen + len(rows)), name)
                seen += len(rows)

    def _selected(
        self, columns: Mapping[str, Column], range: Range
    ) -> tuple[pa.Schema, str, Sequence[Any]]:
        """The types of what is selected, and how it is."""
        quote = self._dialect.quote
        chosen = [
            (field.name, *self._read_type(columns[field.name], field)) for field in self.schema
        ]
        natural = pa.schema([(name, kind) for name, kind, _ in chosen])
        values = ", ".join(
            f"{how.replace('{}', quote(name))} AS {quote(name)}" for name, _, how in chosen
        )
        # The statement has parameters, so a % of the user's own must not look like one.
        statement = f"SELECT {values} FROM {self._from}".replace("%", "%%")  # noqa: S608 - quoted
        if self._column is None:
            return natural, statement, ()
        condition, bounds = range.condition(quote(self._column).replace("%", "%%"))
        return natural, f"{statement} WHERE {condition}", bounds

    def _read_type(self, column: Column, field: pa.Field) -> tuple[pa.DataType, str]:
        natural, how = self._dialect.read_type(column)
        if pa.types.is_string(field.type) and natural != field.type:
            # The server writes its own types best.
            return field.type, self._dialect.as_text
        return natural, how

    def _columns(self, cursor: Cursor) -> dict[str, Column]:
        """The columns by name; all that the schema and the ranges need are there."""
        columns = self._dialect.describe(cursor, f"SELECT * FROM {self._from}")  # noqa: S608
        found = {column.name: column for column in columns}
        declared = [] if self._schema is None else self._schema.names
        for name in (*declared, *([self._column] if self._column else [])):
            if name not in found:
                raise InputError(
                    f"{self._what} has no column {name!r}; it has {', '.join(map(repr, found))}"
                )
        return found

    def _ranges(self) -> list[Range]:
        with reading(self._dialect, self._access, f"looking at {self._what}") as connection:
            cursor = connection.cursor()
            self._columns(cursor)
            if self._column is None:
                return [Range()]
            column = self._dialect.quote(self._column)
            cursor.execute(f"SELECT min({column}), max({column}) FROM {self._from}")  # noqa: S608
            lowest, highest = cursor.fetchone()
        return equal_ranges(lowest, highest, self._partitions, self._column)

    def _rows_of(self, table: str | None, query: str | None) -> str:
        if table is not None:
            name = parse_table(table, "table", longest=self._dialect.longest_name)
            return self._dialect.place(name)
        # On lines of their own, so that a comment at its end hides nothing of ours.
        return f"(\n{str(query).rstrip().rstrip(';')}\n) AS rows_of_query"


class PostgresSource(TableSource):
    """Read the rows that a PostgreSQL table or query has.

    With `partition_column` (whole numbers, decimals, dates or timestamps) the rows are read in `partitions` ranges of
    equal length, side by side, and one more for rows without a value; `max_partitions_per_epoch` limits how many of
    them make an epoch. Without `schema` the columns are those of the server, asked when the pipeline is built.
    Each range is read as of its own moment. `uuid`, `json` and types that Arrow does not have come as text.

        PostgresSource("postgresql://app@db/shop", table="orders", partition_column="id", partitions=8)
    """

    _dialect = PostgresDialect()


class MySqlSource(TableSource):
    """Read the rows that a MySQL or MariaDB table or query has. Like `PostgresSource`.

    `datetime` comes as a timestamp without a zone, `timestamp` in UTC, `time` as a length of time.

        MySqlSource("mysql://app@db/shop", query="SELECT id, total FROM orders WHERE total > 0")
    """

    _dialect = MySqlDialect()
