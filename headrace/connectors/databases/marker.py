"""The marker: one row a sink in the user's database that says which epoch it shows and who may write the next.

    incarnation, sink   whose row it is: a checkpoint that begins anew has another one, and writes everything again
    epoch               the last one whose rows are committed, written in the same transaction; -1: none
    fence               the number of the start that took the sink over; a lower one is refused

The row is locked before anything is written, so a start that takes over waits for what is in flight and then knows.
"""

from dataclasses import dataclass

from headrace.connectors.databases.dialect import Cursor, Dialect
from headrace.connectors.databases.names import TableName
from headrace.connectors.databases.session import Session
from headrace.errors import SinkRefused

__all__ = ["Mark", "Marker", "make_marker_table"]

#: Two jobs may make the table at the same moment; then one of them is told so and finds it.
_ATTEMPTS = 5
_NAMES = {"incarnation", "sink", "epoch", "fence", "at"}


@dataclass(frozen=True, slots=True)
class Mark:
    """What a marker row says."""

    epoch: int
    fence: int


class Marker:
    """The marker row of one sink, on a table that is there."""

    def __init__(self, dialect: Dialect, table: TableName, incarnation: str, sink: str) -> None:
        self._dialect = dialect
        self._table = table
        self._row = (incarnation, sink)
        # These statements have parameters, so a % in a name must not look like one.
        self._place = dialect.place(table).replace("%", "%%")
        self._epoch, self._fence = dialect.quote("epoch"), dialect.quote("fence")
        self._whose = f"{dialect.quote('incarnation')} = %s AND {dialect.quote('sink')} = %s"

    def lock(self, cursor: Cursor, fence: int) -> Mark:
        """What the row says, nobody else's until the transaction ends. `SinkRefused` if a later start has it."""
        found = self._locked(cursor)
        if found is None:
            cursor.execute(self._dialect.add_marker(self._place), self._row)
            found = self._locked(cursor)
        assert found is not None
        if found.fence > fence:
            raise SinkRefused(
                f"sink {self._row[1]!r}: another start of this job (number {found.fence}) has taken the table over"
                f" from this one (number {fence}); this run writes nothing more"
            )
        return found

    def write(self, cursor: Cursor, mark: Mark) -> None:
        """Say something else, when the transaction commits."""
        cursor.execute(
            f"UPDATE {self._place} SET {self._epoch} = %s, {self._fence} = %s,"  # noqa: S608 - quoted
            f" {self._dialect.quote('at')} = CURRENT_TIMESTAMP WHERE {self._whose}",
            (mark.epoch, mark.fence, *self._row),
        )

    @property
    def removal(self) -> str:
        """The statement by which a user has the sink begin with whatever epoch comes next."""
        incarnation, sink = (text.replace("'", "''") for text in self._row)
        whose = self._whose.replace("%s", f"'{incarnation}'", 1).replace("%s", f"'{sink}'", 1)
        return f"DELETE FROM {self._dialect.place(self._table)} WHERE {whose}"  # noqa: S608 - shown only

    def _locked(self, cursor: Cursor) -> Mark | None:
        cursor.execute(
            f"SELECT {self._epoch}, {self._fence} FROM {self._place}"  # noqa: S608 - quoted
            f" WHERE {self._whose}{self._dialect.row_lock}",
            self._row,
        )
        found = cursor.fetchone()
        return None if found is None else Mark(*found)


def make_marker_table(dialect: Dialect, session: Session, table: TableName) -> TableName:
    """The marker table with its schema; made if there is none."""
    for attempt in range(_ATTEMPTS):
        with session.transaction(f"looking for the marker table {table}") as cursor:
            found = dialect.find_table(cursor, table)
            names = {column.name for column in dialect.columns(cursor, found)} if found else _NAMES
        if not names >= _NAMES:
            raise SinkRefused(
                f"the table {str(table)!r} is somebody else's: a marker table has the columns"
                f" {', '.join(sorted(_NAMES))}; name another one with marker_table="
            )
        if found is not None:
            return found
        statement = f"CREATE TABLE IF NOT EXISTS {dialect.place(table)} ({dialect.marker_columns}){dialect.table_options}"
        try:
            with session.transaction("making the marker table") as cursor:
                cursor.execute(statement)
        except SinkRefused as error:
            if attempt == _ATTEMPTS - 1:
                raise SinkRefused(
                    f"{error}. The job needs this table: {statement}; have it made by somebody who may,"
                    " or name another one with marker_table="
                ) from error
    raise SinkRefused(
        f"the marker table {table} was made and cannot be found: is its schema right?"
    )
