"""The database that a test makes: it gives out sinks and sources, fails on request, and shows what is committed.

It is SQLite in a temporary directory, in memory where the system has room for that, and goes with the object.
"""

import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.connectors.databases.names import parse_table
from headrace.connectors.databases.sink import Mode, TableSink
from headrace.connectors.databases.source import TableSource
from headrace.errors import BuildError
from headrace.testing.database.connection import Connection, Cursor
from headrace.testing.database.dialect import SCHEME, SqliteDialect, opened
from headrace.testing.database.faults import Fault, Faults, Step, faults_of
from headrace.testing.database.sqlite_types import readers
from headrace.testing.memory_disk import memory_disk

__all__ = ["Database"]

_DIALECT = SqliteDialect()


class Database:
    """A database for tests, with transactions, that loses connections when it is asked to.

    Its sinks and sources run the code of `PostgresSink` and `PostgresSource`: the marker of an epoch, its transaction,
    the fence of a start and the reduction of changes. Only the statements that touch rows are SQLite's.

        database = Database()
        revenue.sink_to(database.sink("revenue", mode="upsert", key="country", create=True), uid="table")
        database.fail("commit", applied=True)
        run_local(env, crashes=[(2, "published")])
        assert database.rows("revenue") == [{"country": "FR", "revenue": 12.5}]

    Tables that a sink makes keep all types: `rows` has them as Python's own (`Decimal`, `datetime`, `timedelta`, nested
    values as lists and dicts), but 64-bit numbers without a sign come as `Decimal` and a uuid comes as text.
    Tables that a test makes with `execute` have SQLite's types: what it has none for is text.
    Unlike a server it has one writer at a time and no schemas (`"sales.revenue"` is a table with a point in its name), and
    names that differ only in case are one.
    """

    def __init__(self) -> None:
        directory = tempfile.mkdtemp(prefix="headrace-database-", dir=memory_disk())
        weakref.finalize(self, _remove, directory, os.getpid())
        path = Path(directory) / "database"
        path.touch()
        #: Where sinks and sources find it, also those of other processes on this machine.
        self.address = f"{SCHEME}{path}"
        self._faults = faults_of(self.address)
        # A reader and a writer do not wait for each other.
        self.execute("PRAGMA journal_mode = WAL")

    def __repr__(self) -> str:
        return f"Database({self.address!r})"

    def sink(
        self,
        table: str,
        *,
        mode: Mode = "insert",
        key: Sequence[str] | str = (),
        create: bool = False,
        marker_table: str = "headrace_markers",
    ) -> TableSink:
        """A sink of one of its tables, with the options of `PostgresSink`."""
        return _DatabaseSink(
            self.address, table=table, mode=mode, key=key, create=create, marker_table=marker_table
        )

    def source(
        self,
        table: str | None = None,
        *,
        query: str | None = None,
        schema: Any = None,
        partition_column: str | None = None,
        partitions: int = 1,
        max_partitions_per_epoch: int | None = None,
    ) -> TableSource:
        """A source of a table or a query, with the options of `PostgresSource`. Ranges are of whole numbers."""
        return _DatabaseSource(
            self.address,
            table=table,
            query=query,
            schema=schema,
            partition_column=partition_column,
            partitions=partitions,
            max_partitions_per_epoch=max_partitions_per_epoch,
        )

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The committed rows of a table, in the order in which they were added. Nothing that was asked for fails this.

        It reads tables that have a rowid; `execute` also reads views and tables that are declared WITHOUT ROWID.
        """
        name = parse_table(table, "table", longest=_DIALECT.longest_name)
        with contextlib.closing(Connection(opened(self.address), Faults())) as connection:
            connection.begin(reading=True)
            cursor = connection.cursor()
            _check_readable(cursor, str(name))
            columns = _DIALECT.columns(cursor, name)
            read = readers(columns, parse_json=True)
            cursor.execute(f"SELECT * FROM {_DIALECT.place(name)} ORDER BY rowid")  # noqa: S608 - quoted
            return [
                {c.name: one(v) for c, one, v in zip(columns, read, row, strict=True)}
                for row in cursor.fetchall()
            ]

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement of SQLite (parameters are `?`) as another client and commit it; its rows."""
        with contextlib.closing(opened(self.address)) as connection:
            return connection.execute(statement, parameters).fetchall()

    def fail(self, step: Step, *, times: int = 1, after: int = 0, applied: bool = False) -> None:
        """Lose the connection at the next `times` steps of a kind, once `after` of them have succeeded.

        "connect"    no connection is opened: the database is away
        "write"      before rows of an epoch are written, or those that it deletes
        "commit"     before the commit of such rows takes effect; with `applied`, before the client hears that it did
        "statement"  before any statement, also those of a start, which reads the table's columns and takes it over

        What a connection had not committed is undone.
        """
        self._faults.ask(Fault(step, after, times, applied))

    @property
    def unreached(self) -> int:
        """How many of the failures that were asked for have not happened."""
        return self._faults.unreached


class _DatabaseSink(TableSink):
    _dialect = _DIALECT


class _DatabaseSource(TableSource):
    _dialect = _DIALECT


def _check_readable(cursor: Cursor, table: str) -> None:
    cursor.execute("SELECT type, wr FROM pragma_table_list WHERE name = %s", (table,))
    kind, unordered = cursor.fetchone() or (None, None)
    if kind is None:
        raise BuildError(f"There is no table {table!r}; nothing has made it so far.")
    if kind != "table" or unordered:
        found = "is WITHOUT ROWID" if unordered else f"is a {kind}"
        raise BuildError(
            f"rows() reads tables in the order in which rows were added, and {table!r} {found}:"
            " read it with execute()."
        )


def _remove(directory: str, owner: int) -> None:
    # A process that was forked ends before the one that has the database.
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)
