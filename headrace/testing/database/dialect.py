"""SQLite as a dialect: its catalogue, INSERT … ON CONFLICT, and connections that die when a test asks for it."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from headrace.connectors.databases.access import Access
from headrace.connectors.databases.dialect import Cell, Column, Dialect, Target, Verdict
from headrace.connectors.databases.names import TableName
from headrace.testing.database import sqlite_types
from headrace.testing.database.connection import Connection, ConnectionLost, Cursor, translated
from headrace.testing.database.faults import faults_of

__all__ = ["SCHEME", "SqliteDialect", "opened"]

SCHEME = "sqlite://"

#: A transaction waits so long for another one's lock.
_PATIENCE_S = 10.0
#: Errors under which the same may succeed later.
_LATER = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_FULL")
_ON_UNIQUE = 'mode="insert" only adds rows; use mode="upsert" with these columns as key'

_COLUMNS = """
SELECT name, type, "notnull" AND dflt_value IS NULL AND hidden = 0, hidden > 0 FROM pragma_table_xinfo(%s) ORDER BY cid
"""
_UNIQUE = """
SELECT i.name, c.name FROM pragma_index_list(%s) i, pragma_index_info(i.name) c WHERE i."unique" AND NOT i.partial
"""


class SqliteDialect(Dialect):
    """SQLite 3.26 and later."""

    name = "SQLite"
    #: That of PostgreSQL: what passes here is to pass there.
    longest_name = 63
    #: A transaction locks all there is.
    row_lock = ""
    marker_columns = (
        '"incarnation" text, "sink" text, "epoch" bigint NOT NULL, "fence" bigint NOT NULL,'
        ' "at" text NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY ("incarnation", "sink")'
    )

    def quote(self, name: str) -> str:
        """In double quotes."""
        return '"' + name.replace('"', '""') + '"'

    def place(self, table: TableName) -> str:
        """There are no schemas: theirs is a part of a table's name."""
        return self.quote(str(table))

    def connect(self, access: Access, purpose: str) -> Connection:
        """A connection that commits on request, and fails on request."""
        address = access.resolved()[0]
        faults = faults_of(address)
        if faults.reach("connect"):
            raise ConnectionLost("the database is away")
        return Connection(opened(address), faults)

    @property
    def driver_error(self) -> type[Exception]:
        """`sqlite3.Error`."""
        return sqlite3.Error

    def verdict(self, error: Exception) -> Verdict:
        """A lock and a lost connection pass; everything else is refused."""
        name = getattr(error, "sqlite_errorname", "") or ""
        passing = isinstance(error, ConnectionLost) or name.startswith(_LATER)
        unique = name in ("SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY")
        return Verdict(not passing, f"{error}; {_ON_UNIQUE}" if unique else str(error))

    def find_table(self, cursor: Cursor, table: TableName) -> TableName | None:
        """As it was named."""
        cursor.execute(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = %s", (str(table),)
        )
        return None if cursor.fetchone() is None else table

    def columns(self, cursor: Cursor, table: TableName) -> list[Column]:
        """By their declarations."""
        cursor.execute(_COLUMNS, (str(table),))
        return [
            sqlite_types.column_of(name, declared, required=bool(required), generated=bool(made))
            for name, declared, required, made in cursor.fetchall()
        ]

    def unique_keys(self, cursor: Cursor, table: TableName) -> list[frozenset[str]]:
        """Whole unique indexes; a lone `integer primary key` has none."""
        cursor.execute("SELECT name FROM pragma_table_info(%s) WHERE pk", (str(table),))
        primary = frozenset(name for (name,) in cursor.fetchall())
        cursor.execute(_UNIQUE, (str(table),))
        found: dict[str, set[str]] = {}
        for index, column in cursor.fetchall():
            found.setdefault(index, set()).add(column)
        return [primary, *map(frozenset, found.values())]

    def column_type(self, field: pa.Field, *, is_key: bool) -> str:
        """See `sqlite_types`."""
        return sqlite_types.column_type(field)

    def cell(self, field: pa.Field, column: Column) -> Cell:
        """See `sqlite_types`."""
        return sqlite_types.cell_of(field, column)

    def add_marker(self, marker: str) -> str:
        """Writers follow one another, so none is added meanwhile."""
        return (
            f'INSERT INTO {marker} ("incarnation", "sink", "epoch", "fence")'  # noqa: S608 - quoted
            " VALUES (%s, %s, -1, -1) ON CONFLICT DO NOTHING"
        )

    def insert(self, cursor: Cursor, target: Target, rows: pa.Table) -> None:
        """INSERT, once for each row."""
        self._insert(cursor, target, rows, "")

    def upsert(self, cursor: Cursor, target: Target, rows: pa.Table) -> None:
        """INSERT … ON CONFLICT, once for each row."""
        key = ", ".join(map(self._parameterized, target.key))
        others = [self._parameterized(c.name) for c in target.cells if c.name not in target.key]
        changes = ", ".join(f"{name} = excluded.{name}" for name in others)
        action = f"DO UPDATE SET {changes}" if others else "DO NOTHING"
        self._insert(cursor, target, rows, f" ON CONFLICT ({key}) {action}")

    def delete(self, cursor: Cursor, target: Target, keys: pa.Table) -> None:
        """DELETE, once for each key."""
        same = " AND ".join(f"{self._parameterized(name)} = %s" for name in target.key)
        cursor.executemany(
            f"DELETE FROM {self._place(target.table)} WHERE {same}",  # noqa: S608 - quoted
            sqlite_types.values_of(keys, list(target.key_cells)),
        )

    def read_type(self, column: Column) -> tuple[pa.DataType, str]:
        """See `sqlite_types`."""
        return sqlite_types.read_type(column), "{}"

    def describe(self, cursor: Cursor, query: str) -> list[Column]:
        """From a view of the query, which has the declarations of the columns that it selects."""
        cursor.connection.begin(reading=True)
        cursor.execute(f"CREATE TEMP VIEW headrace_described AS {query}")
        cursor.execute("SELECT name, type FROM pragma_table_info('headrace_described', 'temp')")
        columns = [sqlite_types.column_of(name, declared) for name, declared in cursor.fetchall()]
        cursor.execute("DROP VIEW temp.headrace_described")
        return columns

    def stream(
        self, connection: Connection, statement: str, parameters: Sequence[Any], rows: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        """A cursor, in a transaction that sees one moment."""
        with connection.cursor() as cursor:
            columns = self.describe(cursor, translated(statement, "NULL"))
            read = sqlite_types.readers(columns, parse_json=False)
            cursor.execute(statement, parameters)
            while found := cursor.fetchmany(rows):
                yield [tuple(one(value) for one, value in zip(read, row)) for row in found]  # noqa: B905

    def _insert(self, cursor: Cursor, target: Target, rows: pa.Table, end: str) -> None:
        names = ", ".join(self._parameterized(cell.name) for cell in target.cells)
        places = ", ".join(["%s"] * len(target.cells))
        cursor.executemany(
            f"INSERT INTO {self._place(target.table)} ({names}) VALUES ({places}){end}",  # noqa: S608 - quoted
            sqlite_types.values_of(rows, list(target.cells)),
        )

    def _place(self, table: TableName) -> str:
        return self.place(table).replace("%", "%%")

    def _parameterized(self, name: str) -> str:
        # A % of a name must not look like the beginning of a parameter.
        return self.quote(name).replace("%", "%%")


def opened(address: str) -> sqlite3.Connection:
    """A connection that leaves transactions to its caller. The committer publishes in its own thread."""
    path = address.removeprefix(SCHEME)
    connection = sqlite3.connect(
        f"file:{path}?mode=rw",
        uri=True,
        timeout=_PATIENCE_S,
        isolation_level=None,
        check_same_thread=False,
    )
    # Processes die in tests, machines do not.
    connection.execute("PRAGMA synchronous = OFF")
    return connection
