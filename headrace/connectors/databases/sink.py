"""Exactly-once tables: rows are staged in the spool and written in one transaction with a marker of the epoch.

Readers see an epoch as a whole or not at all. Nothing of ours lies in the database but the marker table.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import pyarrow as pa

from headrace._graph.changes import CHANGE
from headrace.connectors.databases.access import access_to
from headrace.connectors.databases.dialect import Dialect
from headrace.connectors.databases.marker import Marker, make_marker_table
from headrace.connectors.databases.mysql import MySqlDialect
from headrace.connectors.databases.names import check_name, parse_table
from headrace.connectors.databases.postgres import PostgresDialect
from headrace.connectors.databases.publisher import TablePublisher
from headrace.connectors.databases.session import Session
from headrace.connectors.databases.staging import TableStager
from headrace.connectors.databases.target import Wanted, prepare
from headrace.endpoints import Publisher, Sink, SinkContext, Stager
from headrace.errors import BuildError
from headrace.schema import require_field

__all__ = ["Mode", "MySqlSink", "PostgresSink", "TableSink"]

Mode = Literal["insert", "upsert"]


class TableSink(Sink):
    """What the sinks of all databases are."""

    _dialect: Dialect

    def __init__(
        self,
        dsn: str,
        *,
        table: str,
        mode: Mode = "insert",
        key: Sequence[str] | str = (),
        create: bool = False,
        marker_table: str = "headrace_markers",
        options: Mapping[str, str] | None = None,
    ) -> None:
        if mode not in get_args(Mode):
            raise BuildError(f"mode must be 'insert' or 'upsert', not {mode!r}")
        longest = self._dialect.longest_name
        self._access = access_to(dsn, options)
        columns = (key,) if isinstance(key, str) else tuple(key)
        self._wanted = Wanted(
            parse_table(table, "table", longest=longest), columns, mode == "upsert", create
        )
        self._marker_table = parse_table(marker_table, "marker_table", longest=longest)
        if mode == "upsert" and not columns:
            raise BuildError('mode="upsert" finds rows by a key: pass key=("column", ...)')
        if len(set(columns)) < len(columns):
            raise BuildError(f"key={columns!r} names a column twice")

    def __repr__(self) -> str:
        mode = "upsert" if self._wanted.upsert else "insert"
        key = f", key={self._wanted.key!r}" if self._wanted.key else ""
        return f"{type(self).__name__}({self._access.shown!r}, table={str(self._wanted.table)!r}, mode={mode!r}{key})"

    def validate(self, schema: pa.Schema) -> None:
        """Refuse what no table could take: a key that is not there, changes without a key, nested keys."""
        for name in self._wanted.key:
            field = require_field(schema, name, what="the key of the sink")
            if pa.types.is_nested(field.type) or name == CHANGE:
                raise BuildError(f"{name!r} ({field.type}) cannot be part of a key")
        if CHANGE in schema.names:
            self._check_changes(schema.field(CHANGE).type)
        for field in schema:
            check_name(field.name, "a column", longest=self._dialect.longest_name)
            if self._wanted.create and field.name != CHANGE:
                self._dialect.column_type(field, is_key=field.name in self._wanted.key)

    def _check_changes(self, kind: pa.DataType) -> None:
        kind = kind.value_type if isinstance(kind, pa.DictionaryType) else kind
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise BuildError(
                f"the column {CHANGE!r} is {kind}; it tells sinks what a row is ('+I', '-U', '+U' or '-D'): give"
                " yours another name"
            )
        if not self._wanted.upsert:
            raise BuildError(
                f'the stream changes earlier rows, told by the column {CHANGE!r}, and mode="insert" only adds'
                ' some: use mode="upsert" with a key'
            )

    def stager(self, context: SinkContext, epoch: int, task: str) -> Stager:
        """Rows go through the spool, if a table could take them."""
        wanted = self._wanted
        # A table that is made has the key as its primary key, in both modes.
        key = wanted.key if wanted.upsert or wanted.create else ()
        takes_nul = self._dialect.takes_nul
        return TableStager(context, epoch, task, key=key, takes_nul=takes_nul)

    def publisher(self, context: SinkContext) -> Publisher:
        """Look at the table, make what is missing, and take the marker over from earlier starts."""
        session = Session(self._dialect, self._access, f"{context.job} {context.uid}")
        try:
            marker = make_marker_table(self._dialect, session, self._marker_table)
            target = prepare(self._dialect, session, self._wanted, context.schema)
            row = Marker(self._dialect, marker, context.incarnation, context.uid)
            return TablePublisher(self._dialect, session, target, row, context)
        except BaseException:
            session.close()
            raise


class PostgresSink(TableSink):
    """Write rows into a PostgreSQL table, each exactly once.

    `mode="insert"` adds rows in the order of their arrival. `mode="upsert"` replaces the row with the same `key` or adds
    one; a row whose `change` is "-D" deletes it. The key needs a unique index. `create=True` makes a table that is not
    there, with `key` as its primary key. Columns are found by their names; those of the table that the stream does
    not have get their defaults. Timestamps without a zone are taken for UTC.

    `table` and `marker_table` may be `"schema.table"`. `dsn` and the values of `options` (those of libpq, such as
    `password` or `sslmode`) may be `"env:NAME"` or `"file:PATH"`.

        PostgresSink("postgresql://app@db/shop", table="revenue", mode="upsert", key=("minute",), create=True,
                     options={"password": "env:SHOP_PASSWORD"})
    """

    _dialect = PostgresDialect()


class MySqlSink(TableSink):
    """Write rows into a MySQL or MariaDB table (InnoDB), each exactly once.

    Like `PostgresSink`, with differences of the server. An upsert replaces the row that has the same value under *any*
    unique index of the table. Keys that differ in the stream must differ for the server: if its collation holds 'A' and
    'a' equal, bring them to one case first. In a table that is made, timestamps are `datetime(6)` in UTC, lengths of time
    are microseconds, and texts of a key have at most 500 characters. `options` are PyMySQL's, such as `password` or
    `ssl_ca`.

        MySqlSink("mysql://app@db/shop", table="revenue", mode="upsert", key=("minute",))
    """

    _dialect = MySqlDialect()
