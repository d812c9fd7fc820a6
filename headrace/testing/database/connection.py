"""A connection to SQLite as a dialect needs it: parameters written `%s`, explicit transactions, death on request.

A transaction takes the database's write lock with its first statement, so writers follow one another, as they do on a row
that is locked. A connection that died does nothing more, and what it had not committed is undone.
"""

import contextlib
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

from headrace.testing.database.faults import Faults

__all__ = ["Connection", "ConnectionLost", "Cursor", "translated"]

_MARKS = re.compile(r"%([s%])")


class ConnectionLost(sqlite3.OperationalError):
    """The test asked for it."""


class Connection:
    """One client's connection."""

    def __init__(self, real: sqlite3.Connection, faults: Faults) -> None:
        self._real = real
        self._faults = faults
        #: The open transaction has written rows of an epoch.
        self._wrote = False

    def cursor(self) -> "Cursor":
        """A new cursor."""
        return Cursor(self, self._real.cursor())

    def begin(self, *, reading: bool = False) -> None:
        """Begin a transaction if none is open; one that only reads has no lock."""
        if not self._real.in_transaction:
            self._real.execute("BEGIN" if reading else "BEGIN IMMEDIATE")

    def about_to_run(self, *, writing: bool) -> None:
        """Begin if need be; die here if the test asked for it."""
        self.begin()
        if self._faults.reach("statement"):
            self._die("a statement")
        if writing and self._faults.reach("write"):
            self._die("rows were written")
        self._wrote = self._wrote or writing

    def commit(self) -> None:
        """Commit. The transactions that a test fails are those that wrote rows, not those of a start."""
        fault = self._faults.reach("commit") if self._wrote else None
        if fault and not fault.applied:
            self._die("the commit took effect")
        if self._real.in_transaction:
            self._real.execute("COMMIT")
        self._wrote = False
        if fault:
            self._die("the answer to the commit came")

    def rollback(self) -> None:
        """Undo what was not committed."""
        if self._real.in_transaction:
            self._real.execute("ROLLBACK")
        self._wrote = False

    def close(self) -> None:
        """Undo what was not committed, and end."""
        # By itself SQLite keeps the transaction, and its lock, for as long as a cursor has rows to give.
        self.rollback()
        self._real.close()

    def _die(self, before: str) -> None:
        self.close()
        raise ConnectionLost(f"the connection was lost before {before}")


class Cursor:
    """PEP 249's cursor, as far as dialects use one."""

    def __init__(self, connection: Connection, real: sqlite3.Cursor) -> None:
        self.connection = connection
        self._real = real

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        # A connection that died has closed it.
        with contextlib.suppress(sqlite3.ProgrammingError):
            self._real.close()

    def execute(self, statement: str, parameters: Sequence[Any] | None = None) -> Self:
        """Run a statement; without parameters a % is a %."""
        self.connection.about_to_run(writing=False)
        if parameters is None:
            self._real.execute(statement)
        else:
            self._real.execute(translated(statement), parameters)
        return self

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Write rows of an epoch; one step, however many there are."""
        self.connection.about_to_run(writing=True)
        self._real.executemany(translated(statement), rows)

    def fetchone(self) -> Any:
        """The next row, or None."""
        return self._real.fetchone()

    def fetchmany(self, rows: int) -> list[tuple[Any, ...]]:
        """At most so many rows."""
        return self._real.fetchmany(rows)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All further rows."""
        return self._real.fetchall()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._real)


def translated(statement: str, parameter: str = "?") -> str:
    """A statement with SQLite's own sign for parameters, or with something else in their place."""
    return _MARKS.sub(lambda found: parameter if found[1] == "s" else "%", statement)
