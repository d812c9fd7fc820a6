"""MySQL and MariaDB through PyMySQL: multi-row INSERT … ON DUPLICATE KEY UPDATE on InnoDB tables."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote

import pyarrow as pa

from headrace.connectors.databases import mysql_types
from headrace.connectors.databases.access import Access, missing_driver, split_address
from headrace.connectors.databases.dialect import (
    Cell,
    Column,
    Connection,
    Cursor,
    Dialect,
    Target,
    Verdict,
    advice_on_rows,
)
from headrace.connectors.databases.names import TableName
from headrace.errors import SetupError, SinkRefused

__all__ = ["MySqlDialect"]

#: At most so many rows and bytes in a statement; servers take 16 MB and more unless told otherwise.
_ROWS, _BYTES = 1_000, 2_000_000

#: Codes under which the same may succeed later: lost or refused connections, a server that starts or stops, a deadlock
#: or a lock that took too long, no room, read-only for now.
_LATER = frozenset(
    int(code)
    for code in """
    0 1021 1037 1038 1040 1041 1053 1077 1079 1080 1114 1152 1158 1159 1160 1161 1180 1203 1205 1213 1290 1317 1792
    1836 1927 1969 2002 2003 2006 2013 2055 3024
    """.split()
)
_ADVICE = {
    1062: 'mode="insert" only adds rows; use mode="upsert" with the columns of that index as key',
    1366: "the column cannot hold this text; give it the character set utf8mb4, or another type",
    1153: "raise max_allowed_packet on the server: a row is larger than that",
    1142: "grant SELECT, INSERT, UPDATE and DELETE on the table to this user",
}
#: What helps the rows at hand, and what the ones behind them.
_ON_ROWS = {
    1048: ("let the column be NULL", "give every row a value for it"),
    1406: ("widen the column", "cut the text in the stream"),
    1264: ("widen the column's type", "filter such numbers in the stream"),
}
#: A process that was stopped amid a transaction holds the marker's lock; MariaDB ends it, MySQL has no word for that.
_SESSION = (
    "SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_ZERO_DATE'"
    " /*M!100303 , idle_transaction_timeout = 120 */"
)
#: Settings of PyMySQL that are no texts; a user or a database may be called 2024.
_NUMBERS = frozenset(
    (
        "port",
        "connect_timeout",
        "read_timeout",
        "write_timeout",
        "max_allowed_packet",
        "client_flag",
    )
)
#: The driver takes the text "0" for yes.
_FLAGS = frozenset(
    """
    autocommit binary_prefix compress defer_connect local_infile named_pipe ssl_disabled ssl_verify_cert
    ssl_verify_identity use_unicode
    """.split()
)
_GENERATED = re.compile(r"(VIRTUAL|STORED|PERSISTENT) GENERATED", re.IGNORECASE)

_COLUMNS = """
SELECT column_name, data_type, column_type, is_nullable, column_default, extra
FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
_UNIQUE = """
SELECT index_name, column_name, sub_part FROM information_schema.statistics
WHERE table_schema = %s AND table_name = %s AND non_unique = 0
"""


class MySqlDialect(Dialect):
    """MySQL 8 and MariaDB 10.5, and later ones."""

    name = "MySQL"
    longest_name = 64
    marker_columns = (
        "`incarnation` varchar(64) CHARACTER SET ascii, `sink` varchar(500) COLLATE utf8mb4_bin,"
        " `epoch` bigint NOT NULL, `fence` bigint NOT NULL,"
        " `at` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (`incarnation`, `sink`)"
    )
    as_text = "CAST({} AS CHAR)"
    as_double = "({} + 0e0)"
    table_options = " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"

    def quote(self, name: str) -> str:
        """In backticks."""
        return "`" + name.replace("`", "``") + "`"

    def connect(self, access: Access, purpose: str) -> Connection:
        """A connection in UTC whose server refuses values that do not fit."""
        dsn, options = access.resolved()
        own = {"connect_timeout": 10, "charset": "utf8mb4", "init_command": _SESSION}
        return _driver().connect(**own | _settings({**_parts(dsn), **options}))

    @property
    def driver_error(self) -> type[Exception]:
        """`pymysql.MySQLError`."""
        error: type[Exception] = _driver().MySQLError
        return error

    def verdict(self, error: Exception) -> Verdict:
        """By the error's number."""
        code, *rest = error.args or (0,)
        if not isinstance(code, int):
            return Verdict(refused=True, sentence=str(code))
        told = f"{' '.join(str(part) for part in rest) or 'the connection is closed'} ({code})"
        advice = _ADVICE.get(code)
        on_rows = advice_on_rows(*_ON_ROWS[code]) if code in _ON_ROWS else ""
        return Verdict(code not in _LATER, f"{told}; {advice}" if advice else told, on_rows)

    def find_table(self, cursor: Cursor, table: TableName) -> TableName | None:
        """The connection's own database decides for a name without one."""
        cursor.execute(
            "SELECT table_schema, table_name FROM information_schema.tables"
            " WHERE table_schema = COALESCE(%s, DATABASE()) AND table_name = %s",
            (table.schema, table.table),
        )
        found = cursor.fetchone()
        return None if found is None else TableName(found[1], found[0])

    def columns(self, cursor: Cursor, table: TableName) -> list[Column]:
        """From the catalogue; a table without transactions is refused."""
        cursor.execute(
            "SELECT engine FROM information_schema.tables WHERE table_schema = %s AND table_name = %s",
            (table.schema, table.table),
        )
        (engine,) = cursor.fetchone()
        if engine is not None and engine.lower() != "innodb":
            raise SinkRefused(
                f"the table {str(table)!r} is of the engine {engine}, which has no transactions:"
                f" alter table {self.place(table)} engine=InnoDB"
            )
        cursor.execute(_COLUMNS, (table.schema, table.table))
        return [_column(*found) for found in cursor.fetchall()]

    def unique_keys(self, cursor: Cursor, table: TableName) -> list[frozenset[str]]:
        """Unique indexes of whole columns."""
        cursor.execute(_UNIQUE, (table.schema, table.table))
        found: dict[str, set[str]] = {}
        for index, column, part in cursor.fetchall():
            found.setdefault(index, set()).add(column if part is None else f"{column}({part})")
        return [frozenset(columns) for columns in found.values()]

    def column_type(self, field: pa.Field, *, is_key: bool) -> str:
        """See `mysql_types`."""
        return mysql_types.column_type(field, is_key=is_key)

    def cell(self, field: pa.Field, column: Column) -> Cell:
        """See `mysql_types`."""
        return mysql_types.cell_of(field, column)

    def add_marker(self, marker: str) -> str:
        """Another start may do the same at the same moment."""
        return (
            f"INSERT IGNORE INTO {marker} (`incarnation`, `sink`, `epoch`, `fence`)"  # noqa: S608 - quoted
            " VALUES (%s, %s, -1, -1)"
        )

    def insert(self, cursor: Cursor, target: Target, rows: pa.Table) -> None:
        """INSERT … VALUES."""
        self._insert(cursor, target, rows, "")

    def upsert(self, cursor: Cursor, target: Target, rows: pa.Table) -> None:
        """INSERT … VALUES … ON DUPLICATE KEY UPDATE."""
        written = [cell.name for cell in target.cells if cell.name not in target.key]
        names = [self.quote(name) for name in written or target.key]
        changes = ", ".join(f"{name} = VALUES({name})" for name in names)
        self._insert(cursor, target, rows, f" ON DUPLICATE KEY UPDATE {changes}")

    def delete(self, cursor: Cursor, target: Target, keys: pa.Table) -> None:
        """DELETE … WHERE the key is one of these."""
        names = ", ".join(self.quote(name) for name in target.key)
        begin = f"DELETE FROM {self.place(target.table)} WHERE ({names}) IN ("  # noqa: S608 - quoted
        _in_parts(cursor, begin, keys, ")")

    def read_type(self, column: Column) -> tuple[pa.DataType, str]:
        """See `mysql_types`."""
        return mysql_types.read_type(column), "{}"

    def describe(self, cursor: Cursor, query: str) -> list[Column]:
        """From a run of the query without rows."""
        cursor.execute(f"SELECT * FROM (\n{query}\n) AS q LIMIT 0")  # noqa: S608 - the user's own query
        # PEP 249's description does not tell a text from bytes, nor which numbers have no sign.
        return [mysql_types.described(field) for field in cursor._result.fields]  # noqa: SLF001

    def stream(
        self, connection: Connection, statement: str, parameters: Sequence[Any], rows: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        """An unbuffered cursor, in a transaction of its own that sees one moment."""
        from pymysql.cursors import SSCursor

        with connection.cursor() as cursor:
            # Whoever takes the rows may take his time; by itself the server gives up after a minute.
            cursor.execute(
                "SET SESSION net_write_timeout = 86400 /*M!100303 , idle_transaction_timeout = 0 */"
            )
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        with connection.cursor(SSCursor) as cursor:
            cursor.execute(statement, parameters)
            while found := cursor.fetchmany(rows):
                yield list(found)

    def _insert(self, cursor: Cursor, target: Target, rows: pa.Table, end: str) -> None:
        names = ", ".join(self.quote(cell.name) for cell in target.cells)
        begin = f"INSERT INTO {self.place(target.table)} ({names}) VALUES "  # noqa: S608 - quoted
        _in_parts(cursor, begin, rows, end)


def _in_parts(cursor: Cursor, begin: str, rows: pa.Table, end: str) -> None:
    """Statements with some rows each between their beginning and their end."""
    begin, end = begin.replace("%", "%%"), end.replace("%", "%%")
    row = f"({', '.join(['%s'] * rows.num_columns)})"
    size = max(1, rows.nbytes // max(rows.num_rows, 1))
    for batch in rows.to_batches(max_chunksize=max(1, min(_ROWS, _BYTES // size))):
        if not batch.num_rows:
            continue
        columns = [column.to_pylist() for column in batch.columns]
        values = [value for found in zip(*columns, strict=True) for value in found]
        cursor.execute(f"{begin}{', '.join([row] * batch.num_rows)}{end}", values)


def _column(
    name: str, kind: str, sql: str, nullable: str, default: str | None, extra: str
) -> Column:
    generated = bool(_GENERATED.search(extra))
    given = default is not None or generated or "auto_increment" in extra.lower()
    return Column(
        name, kind.lower(), sql, required=nullable == "NO" and not given, generated=generated
    )


def _parts(dsn: str) -> dict[str, str]:
    """PyMySQL's settings of `mysql://user:password@host:port/database?setting=value`."""
    scheme, there, _ = dsn.strip().lower().partition("://")
    if not there or scheme.partition("+")[0] not in ("mysql", "mariadb"):
        raise SetupError("dsn must be 'mysql://user@host:3306/database' for MySQL and MariaDB")
    url = split_address(dsn)
    # An @ that comes only then had a ? or a # before it, in the password.
    if url is None or ("@" not in url.netloc and "@" in url.query + url.fragment):
        # What the parser says of it may quote a piece of the password.
        raise SetupError(
            "the dsn cannot be taken apart: in its user and password write %2F for a slash, %3F for ?, %23 for #,"
            " %5B for [ and %40 for @; its port is a number up to 65535"
        )
    found = {
        "host": url.hostname,
        "port": str(url.port or 3306),
        "user": url.username,
        "password": url.password,
        "database": url.path.lstrip("/"),
    }
    parts = {name: unquote(value) for name, value in found.items() if value}
    return {**parts, **dict(parse_qsl(url.query))}


def _settings(given: Mapping[str, str]) -> dict[str, str | int]:
    """What the driver is called with; names that it does not know would be a bare TypeError of it."""
    known = inspect.signature(_driver().connections.Connection).parameters
    for name, value in given.items():
        if name not in known:
            raise SetupError(f"PyMySQL has no setting {name!r}: take it out of options= or the dsn")
        if name in _NUMBERS and not value.isdecimal():
            raise SetupError(f"{name} must be a whole number, in options= or in the dsn")
    return {
        name: int(value) if name in _NUMBERS | _FLAGS and value.isdecimal() else value
        for name, value in given.items()
    }


def _driver() -> Any:
    try:
        import pymysql
    except ImportError as error:
        raise missing_driver("pymysql", "mysql") from error
    return pymysql
