"""What the sink and the source need of a database, and nothing else of it.

A dialect knows how its server is reached, asked about tables, loaded and merged, and what its errors mean. When
things happen, and in which transaction, is said once for all of them in `publisher` and `source`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from headrace.connectors.databases.access import Access
from headrace.connectors.databases.names import TableName

__all__ = [
    "Cell",
    "Column",
    "Connection",
    "Cursor",
    "Dialect",
    "Target",
    "Verdict",
    "advice_on_rows",
]

#: Connections and cursors as PEP 249 has them; parameters are written `%s`.
Connection: TypeAlias = Any
Cursor: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table that is there."""

    name: str
    #: The name of its type as the server's catalogue has it, and as a statement may write it.
    kind: str
    sql: str
    #: The elements' type, if it is an array.
    element: str | None = None
    #: It must have a value and nobody but us would give it one.
    required: bool = False
    #: The server makes its values and refuses others.
    generated: bool = False
    precision: int | None = None
    scale: int | None = None
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Cell:
    """How the values of a stream's column get into a table's column."""

    name: str
    #: What the stream's values become before they are loaded.
    arrow: pa.DataType
    #: The type of the column that they are loaded into, where that is not the table's own.
    staging: str = ""
    #: What makes the table's value of it; `{}` is the loaded column.
    expression: str = "{}"
    #: Nested values that become JSON first.
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """The table rows go to, as it was found when the job began."""

    table: TableName
    cells: tuple[Cell, ...]
    key: tuple[str, ...]

    def cell(self, name: str) -> Cell:
        """The cell of a column."""
        return next(cell for cell in self.cells if cell.name == name)

    @property
    def key_cells(self) -> tuple[Cell, ...]:
        """The cells of the key, in the key's order."""
        return tuple(self.cell(name) for name in self.key)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an error of the driver means: somebody must act, or the same may succeed later."""

    refused: bool
    sentence: str
    #: What helps if rows of a sink are refused; a reader has none.
    on_rows: str = ""


def advice_on_rows(now: str, later: str) -> str:
    """An epoch's rows are staged for good and written as they are at every start: new code helps only those behind."""
    return f"{now}, since the rows at hand are staged and stay as they are; for later ones, {later}"


class Dialect(ABC):
    """One kind of database. Stateless; travels to the workers."""

    #: As people write it.
    name: str
    #: Bytes of the longest name that the server keeps.
    longest_name: int
    #: The columns of the marker table, as they are written when it is made.
    marker_columns: str
    #: What stands behind the columns of a table that is made.
    table_options: str = ""
    #: At the end of a SELECT: the rows that it finds stay as they are until the transaction ends.
    row_lock: str = " FOR UPDATE"
    #: Texts may hold the character NUL.
    takes_nul: bool = True
    #: Any value as text; `{}` is the value.
    as_text: str = "CAST({} AS text)"
    #: A number as a double.
    as_double: str = "CAST({} AS double precision)"

    @abstractmethod
    def quote(self, name: str) -> str:
        """A name that cannot end the statement it stands in."""

    def place(self, table: TableName) -> str:
        """A table in a statement."""
        parts = (table.schema, table.table)
        return ".".join(self.quote(part) for part in parts if part is not None)

    @abstractmethod
    def connect(self, access: Access, purpose: str) -> Connection:
        """Open a connection that commits when told to. `purpose` is shown to the server's people."""

    @property
    @abstractmethod
    def driver_error(self) -> type[Exception]:
        """What every error of the driver is."""

    @abstractmethod
    def verdict(self, error: Exception) -> Verdict:
        """What an error of the driver means."""

    @abstractmethod
    def find_table(self, cursor: Cursor, table: TableName) -> TableName | None:
        """The table with the schema that it is in; None if there is none."""

    @abstractmethod
    def columns(self, cursor: Cursor, table: TableName) -> list[Column]:
        """The columns of a table that is there, in order."""

    @abstractmethod
    def unique_keys(self, cursor: Cursor, table: TableName) -> list[frozenset[str]]:
        """The sets of columns that the server keeps unique at every statement."""

    @abstractmethod
    def column_type(self, field: pa.Field, *, is_key: bool) -> str:
        """The type that a new table's column has. `BuildError` if there is none."""

    @abstractmethod
    def cell(self, field: pa.Field, column: Column) -> Cell:
        """How values of a stream's column get into a table's. `SinkRefused` if they cannot."""

    @abstractmethod
    def add_marker(self, marker: str) -> str:
        """The statement that makes the marker row (incarnation, sink) with epoch and fence -1, if it is absent."""

    @abstractmethod
    def insert(self, cursor: Cursor, target: Target, rows: pa.Table) -> None:
        """Add rows, in their order. Their columns are those of the target's cells."""

    @abstractmethod
    def upsert(self, cursor: Cursor, target: Target, rows: pa.Table) -> None:
        """Add rows or replace those with the same key; no two of them have the same one."""

    @abstractmethod
    def delete(self, cursor: Cursor, target: Target, keys: pa.Table) -> None:
        """Delete the rows with these keys, as far as they are there."""

    @abstractmethod
    def read_type(self, column: Column) -> tuple[pa.DataType, str]:
        """The type of a column when it is read, and how it is selected; `{}` is the column."""

    @abstractmethod
    def describe(self, cursor: Cursor, query: str) -> list[Column]:
        """The columns of a query."""

    @abstractmethod
    def stream(
        self, connection: Connection, statement: str, parameters: Sequence[Any], rows: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a statement, so many at a time, without all of them in memory."""
