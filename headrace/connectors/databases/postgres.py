"""PostgreSQL through psycopg 3: its catalogue, binary COPY, and INSERT … ON CONFLICT."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from headrace.connectors.databases import postgres_errors, postgres_types
from headrace.connectors.databases.access import Access
from headrace.connectors.databases.dialect import (
    Cell,
    Column,
    Connection,
    Cursor,
    Dialect,
    Target,
    Verdict,
)
from headrace.connectors.databases.names import TableName
from headrace.connectors.databases.packing import END, HEADER
from headrace.connectors.databases.packing import rows as packed_rows
from headrace.connectors.databases.postgres_driver import connection_settings, driver
from headrace.errors import SinkRefused

__all__ = ["PostgresDialect"]

#: Rows that are packed at once: enough for numpy, little enough for memory.
_PACKED_ROWS = 32_768

# A transaction whose process froze must not hold the marker for ever, and whoever waits for a lock longer than that
# shall say so and ask again. A server that acknowledges commits before they are on its disk would lose what we took
# for published.
_SESSION = """
SET TIME ZONE 'UTC'; SET datestyle TO 'ISO'; SET idle_in_transaction_session_timeout TO '2min';
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
SELECT set_config('lock_timeout', '150s', false) WHERE current_setting('lock_timeout') = '0'
"""

# With its digits where a cast rounds as the table itself does, and without its length where a cast would cut.
_COLUMNS = """
SELECT a.attname, COALESCE(b.typname, t.typname),
       CASE WHEN t.typname = 'bit' THEN 'bit varying'
            WHEN t.typname IN ('numeric', 'timestamp', 'timestamptz', 'time', 'interval')
            THEN format_type(a.atttypid, a.atttypmod) ELSE format_type(a.atttypid, NULL) END, e.typname,
       a.attnotnull AND NOT a.atthasdef AND a.attidentity = '', a.attgenerated <> '' OR a.attidentity = 'a',
       NOT a.attnotnull
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type b ON t.typtype = 'd' AND b.oid = t.typbasetype
LEFT JOIN pg_type e ON t.typcategory = 'A' AND e.oid = t.typelem
WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""

_UNIQUE = """
SELECT array_agg(a.attname::text) FROM pg_index i
JOIN unnest(i.indkey[0:i.indnkeyatts - 1]) AS k(number) ON true
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND i.indisvalid AND i.indimmediate
  AND i.indpred IS NULL AND i.indexprs IS NULL
GROUP BY i.indexrelid
"""


class PostgresDialect(Dialect):
    """PostgreSQL 12 and later."""

    name = "PostgreSQL"
    longest_name = 63
    takes_nul = False
    marker_columns = (
        '"incarnation" text, "sink" text, "epoch" bigint NOT NULL, "fence" bigint NOT NULL,'
        ' "at" timestamptz NOT NULL DEFAULT now(), PRIMARY KEY ("incarnation", "sink")'
    )

    def quote(self, name: str) -> str:
        """In double quotes."""
        return '"' + name.replace('"', '""') + '"'

    def connect(self, access: Access, purpose: str) -> Connection:
        """A connection in UTC, with keepalives, that commits when told to."""
        settings = connection_settings(access, purpose)
        connection = driver().connect(**settings, prepare_threshold=None, autocommit=True)
        connection.execute(_SESSION)
        connection.autocommit = False
        return connection

    @property
    def driver_error(self) -> type[Exception]:
        """`psycopg.Error`."""
        error: type[Exception] = driver().Error
        return error

    def verdict(self, error: Exception) -> Verdict:
        """By the error's SQLSTATE."""
        return postgres_errors.verdict(error)  # type: ignore[arg-type]

    def find_table(self, cursor: Cursor, table: TableName) -> TableName | None:
        """The search path decides for a name without a schema."""
        cursor.execute(
            "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.oid = to_regclass(%s)",
            (self.place(table),),
        )
        found = cursor.fetchone()
        return None if found is None else TableName(found[1], found[0])

    def columns(self, cursor: Cursor, table: TableName) -> list[Column]:
        """From the catalogue; a domain is what it is a domain of."""
        cursor.execute(_COLUMNS, (self.place(table),))
        return [
            Column(name, kind, sql, element, required, generated, nullable=nullable)
            for name, kind, sql, element, required, generated, nullable in cursor.fetchall()
        ]

    def unique_keys(self, cursor: Cursor, table: TableName) -> list[frozenset[str]]:
        """Unique indexes that ON CONFLICT can name: whole, of plain columns, not deferred."""
        cursor.execute(_UNIQUE, (self.place(table),))
        return [frozenset(names) for (names,) in cursor.fetchall()]

    def column_type(self, field: pa.Field, *, is_key: bool) -> str:
        """See `postgres_types`."""
        return postgres_types.column_type(field)

    def cell(self, field: pa.Field, column: Column) -> Cell:
        """See `postgres_types`."""
        return postgres_types.cell_of(field, column)

    def add_marker(self, marker: str) -> str:
        """Another start may do the same at the same moment."""
        return (
            f'INSERT INTO {marker} ("incarnation", "sink", "epoch", "fence")'  # noqa: S608 - quoted
            " VALUES (%s, %s, -1, -1) ON CONFLICT DO NOTHING"
        )

    def insert(self, cursor: Cursor, target: Target, rows: pa.Table) -> None:
        """INSERT … SELECT from what was copied."""
        staged = self._copy(cursor, "headrace_written", target.cells, rows)
        cursor.execute(self._insert(target, staged))

    def upsert(self, cursor: Cursor, target: Target, rows: pa.Table) -> None:
        """INSERT … SELECT … ON CONFLICT."""
        staged = self._copy(cursor, "headrace_written", target.cells, rows)
        key = ", ".join(self.quote(name) for name in target.key)
        others = [self.quote(cell.name) for cell in target.cells if cell.name not in target.key]
        changes = ", ".join(f"{name} = EXCLUDED.{name}" for name in others)
        action = f"DO UPDATE SET {changes}" if others else "DO NOTHING"
        cursor.execute(f"{self._insert(target, staged)} ON CONFLICT ({key}) {action}")

    def delete(self, cursor: Cursor, target: Target, keys: pa.Table) -> None:
        """DELETE … USING what was copied."""
        staged = self._copy(cursor, "headrace_deleted", target.key_cells, keys)
        same = " AND ".join(
            f"t.{self.quote(cell.name)} = {self._value(cell, 's.')}" for cell in target.key_cells
        )
        cursor.execute(f"DELETE FROM {self.place(target.table)} t USING {staged} s WHERE {same}")  # noqa: S608

    def _insert(self, target: Target, staged: str) -> str:
        names = ", ".join(self.quote(cell.name) for cell in target.cells)
        values = ", ".join(self._value(cell) for cell in target.cells)
        return f"INSERT INTO {self.place(target.table)} ({names}) SELECT {values} FROM {staged}"  # noqa: S608

    def _value(self, cell: Cell, alias: str = "") -> str:
        return cell.expression.replace("{}", f"{alias}{self.quote(cell.name)}")

    def _copy(self, cursor: Cursor, name: str, cells: Sequence[Cell], rows: pa.Table) -> str:
        """Load a temporary table, which the commit drops, by binary COPY; how a statement names it."""
        names = ", ".join(self.quote(cell.name) for cell in cells)
        columns = ", ".join(f"{self.quote(cell.name)} {cell.staging}" for cell in cells)
        staged = f"pg_temp.{self.quote(name)}"
        cursor.execute(f"CREATE TEMPORARY TABLE {self.quote(name)} ({columns}) ON COMMIT DROP")
        with cursor.copy(f"COPY {staged} ({names}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.write(HEADER)
            for batch in rows.to_batches(max_chunksize=_PACKED_ROWS):
                copy.write(_packed(batch, cells))
            copy.write(END)
        return staged

    def read_type(self, column: Column) -> tuple[pa.DataType, str]:
        """See `postgres_types`."""
        return postgres_types.read_type(column)

    def describe(self, cursor: Cursor, query: str) -> list[Column]:
        """From a run of the query without rows."""
        cursor.execute(f"SELECT * FROM (\n{query}\n) AS q LIMIT 0")  # noqa: S608 - the user's own query
        asked = [(c.name, c.type_code, c.precision, c.scale) for c in cursor.description]
        cursor.execute(
            "SELECT t.oid, t.typname, format_type(t.oid, NULL), e.typname FROM pg_type t LEFT JOIN pg_type e"
            " ON t.typcategory = 'A' AND e.oid = t.typelem WHERE t.oid = ANY(%s)",
            ([oid for _, oid, _, _ in asked],),
        )
        kinds = {oid: rest for oid, *rest in cursor.fetchall()}
        columns = []
        for name, oid, precision, scale in asked:
            kind, sql, element = kinds[oid]
            columns.append(Column(name, kind, sql, element, precision=precision, scale=scale))
        return columns

    def stream(
        self, connection: Connection, statement: str, parameters: Sequence[Any], rows: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        """A cursor of the server, in a transaction of its own that sees one moment."""
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        # Whoever takes the rows may take his time.
        connection.execute("SET LOCAL idle_in_transaction_session_timeout TO 0")
        with connection.cursor(name="headrace_read", binary=True) as cursor:
            cursor.execute(statement, parameters)
            while found := cursor.fetchmany(rows):
                yield found


def _packed(batch: pa.RecordBatch, cells: Sequence[Cell]) -> bytes:
    columns = []
    for array, cell in zip(batch.columns, cells, strict=True):
        try:
            columns.append(postgres_types.encode(array, cell.staging))
        except ValueError as error:
            raise SinkRefused(
                f"column {cell.name!r}: {error}; take it out in the stream, with map or filter"
            ) from error
    return packed_rows(columns, batch.num_rows)
