"""Rows of a PostgreSQL table by key, for `map_async` and `join_lookup`: many keys to a query, over asynchronous connections.

A key of one plain column is asked for with `= ANY`; other keys are joined, each with its number, because the server may hold a
key equal that Python does not (text for a uuid, blanks behind a char). Rows come as read-only mappings. After an error the
connection is dropped; one that broke while nobody used it is replaced without a word.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from headrace.connectors.databases.access import access_to
from headrace.connectors.databases.dialect import Column
from headrace.connectors.databases.lookup_columns import (
    MINUTE,
    check_columns,
    column_names,
    described,
    selection,
    whole_number,
)
from headrace.connectors.databases.names import parse_table
from headrace.connectors.databases.pool import translated
from headrace.connectors.databases.postgres import PostgresDialect
from headrace.connectors.databases.postgres_driver import connection_settings, driver
from headrace.errors import HeadraceError, InputError
from headrace.lookups import Cache, LookupFunction

__all__ = ["PostgresLookup"]

_DIALECT = PostgresDialect()
_LONGEST = PostgresDialect.longest_name

#: Types whose values come back as Python holds them: what was asked for is found again by equality.
_PLAIN = frozenset("int2 int4 int8 numeric text varchar bool".split())

# Without a length `character` would be one character long, and `bit` one bit. A domain is what it is a domain of.
_TYPES = """
SELECT a.attname, t.typname,
       CASE t.typname WHEN 'bpchar' THEN 'bpchar' WHEN 'bit' THEN 'varbit' ELSE format_type(a.atttypid, NULL) END,
       COALESCE(b.typname, t.typname), e.typname
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type b ON t.typtype = 'd' AND b.oid = t.typbasetype
LEFT JOIN pg_type e ON t.typcategory = 'A' AND e.oid = t.typelem
WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""

Row = Mapping[str, Any]


class PostgresLookup(LookupFunction[Any, Row]):
    """Look rows of a table up by a key that is unique in it.

        customers = PostgresLookup("postgresql://app@db/shop", "customers", key="id", columns=["name", "country"])

        async def enrich(order) -> Enriched:
            customer = await customers.get(order.customer)
            return Enriched(order.id, customer["name"] if customer else None)

        orders.join_lookup(customers, on="customer", uid="with-customer")     # the same as columns

    A key of several columns is a tuple: `key=("country", "number")` and `get(("NO", 7))`. Without `columns` a row has all of
    them. `join_lookup` asks the server for their types, unless it is told a schema. `connections` is how many each worker process opens at most. Rows that change in the table are seen when the
    cache has let go of them: one minute by default.
    """

    def __init__(
        self,
        dsn: str,
        table: str,
        *,
        key: str | Sequence[str],
        columns: Sequence[str] | None = None,
        cache: Cache | None = MINUTE,
        batch_size: int = 1000,
        connections: int = 2,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._access = access_to(dsn, options)
        self._table = parse_table(table, "table", longest=_LONGEST)
        self.key_columns = column_names("key", (key,) if isinstance(key, str) else key, _LONGEST)
        self._columns = None if columns is None else column_names("columns", columns, _LONGEST)
        self.cache = cache
        self.batch_size = whole_number("batch_size", batch_size)
        self.concurrency = whole_number("connections", connections)
        #: What rows must fit; None: they are as the driver makes them.
        self._declared: pa.Schema | None = None

    def __repr__(self) -> str:
        return f"PostgresLookup({self._access.shown!r}, {str(self._table)!r}, key={self.key_columns!r})"

    def typed(self, schema: pa.Schema | None) -> tuple[PostgresLookup, pa.Schema]:
        """Rows that fit these columns, or those of the table. Texts stand for what Arrow has no type for."""
        made = self._anew()
        if schema is None:
            schema = described(_DIALECT, self._access, self._table, self._columns)
        made._declared, made._columns = schema, tuple(schema.names)  # noqa: SLF001 - of this class
        return made, schema

    async def open(self) -> None:
        """Nothing is opened before it is needed."""
        self._room = asyncio.Semaphore(self.concurrency)
        self._idle: list[Any] = []
        self._statement: str | None = None
        self._joined = False

    async def close(self) -> None:
        """Close the connections."""
        while self._idle:
            with contextlib.suppress(Exception):
                await self._idle.pop().close()

    async def fetch(self, keys: Sequence[Any]) -> Mapping[Any, Row]:
        """One query for all keys."""
        async with self._room:
            try:
                return await self._answered(keys)
            except driver().Error as error:
                raise self._told(error) from None

    async def _answered(self, keys: Sequence[Any]) -> Mapping[Any, Row]:
        while self._idle:
            try:
                return await self._asked(self._idle.pop(), keys)
            except driver().OperationalError:
                continue  # it may have broken since it was used last; a new one tells more
        return await self._asked(await self._connected(), keys)

    async def _connected(self) -> Any:
        settings = connection_settings(self._access, "lookup")
        connect = driver().AsyncConnection.connect
        connection = await connect(**settings, prepare_threshold=None, autocommit=True)
        await connection.execute("SET TIME ZONE 'UTC'")
        return connection

    async def _asked(self, connection: Any, keys: Sequence[Any]) -> Mapping[Any, Row]:
        try:
            if self._statement is None:
                await self._prepare(connection)
            values = [list(part) for part in zip(*map(self._parts, keys), strict=True)]
            cursor = await connection.execute(self._statement, values)
            names = [column.name for column in cursor.description]
            rows = await cursor.fetchall()
        except BaseException:
            # Also behind a time-out: nobody knows what is still on its way through this one.
            with contextlib.suppress(Exception):
                await connection.close()
            raise
        self._idle.append(connection)
        return self._matched(keys, names, rows)

    async def _prepare(self, connection: Any) -> None:
        cursor = await connection.execute(_TYPES, (_DIALECT.place(self._table),))
        found = await cursor.fetchall()
        types = {name: (kind, sql) for name, kind, sql, *_ in found}
        if not types:
            raise InputError(f"{self!r}: there is no table {self._table} that this user may see")
        wanted = self._columns or tuple(types)
        check_columns(repr(self), (*self.key_columns, *wanted), tuple(types))
        columns = [Column(name, kind, sql, element) for name, _, sql, kind, element in found]
        selected = {column.name: self._selected(column) for column in columns}
        self._joined = len(self.key_columns) > 1 or types[self.key_columns[0]][0] not in _PLAIN
        self._statement = self._query(
            [selected[name] for name in wanted], [types[name][1] for name in self.key_columns]
        )

    def _selected(self, column: Column) -> str:
        name = _quoted(column.name)
        if self._declared is None or column.name not in self._declared.names:
            return f"t.{name}"
        how = selection(_DIALECT, column, self._declared.field(column.name))
        return f"{how.replace('{}', f't.{name}')} AS {name}"

    def _query(self, selected: Sequence[str], types: Sequence[str]) -> str:
        table = _DIALECT.place(self._table).replace("%", "%%")
        columns = "".join(f", {value}" for value in selected)
        if not self._joined:
            key = _quoted(self.key_columns[0])
            return f"SELECT t.{key}{columns} FROM {table} t WHERE t.{key} = ANY(%s::{types[0]}[])"  # noqa: S608 - quoted
        arrays = ", ".join(f"%s::{kind}[]" for kind in types)
        names = ", ".join(f"k{number}" for number in range(len(types)))
        same = " AND ".join(
            f"t.{_quoted(name)} = k.k{n}" for n, name in enumerate(self.key_columns)
        )
        return (
            f"SELECT k.place - 1{columns} FROM unnest({arrays}) WITH ORDINALITY AS k({names}, place)"  # noqa: S608
            f" JOIN {table} t ON {same}"
        )

    def _parts(self, key: Any) -> tuple[Any, ...]:
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) != len(self.key_columns):
            raise InputError(
                f"{self!r}: the key {key!r} does not have {len(self.key_columns)} parts"
            )
        return parts

    def _matched(
        self, keys: Sequence[Any], names: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> dict[Any, Row]:
        # Equal keys may be of other types: what was asked for is what `get` looks under.
        asked = {key: key for key in keys} if not self._joined else dict(enumerate(keys))
        found: dict[Any, Row] = {}
        for mark, *values in rows:
            if mark not in asked:
                raise InputError(
                    f"{self!r}: the server found a row for {mark!r}, but was asked for keys such as"
                    f" {keys[0]!r}: give keys of the column's own type"
                )
            if asked[mark] in found:
                raise InputError(
                    f"{self!r}: the table has several rows with the key {asked[mark]!r}; a look-up is by a key"
                    " that is unique"
                )
            found[asked[mark]] = MappingProxyType(dict(zip(names[1:], values, strict=True)))
        return found

    def _told(self, error: Exception) -> HeadraceError:
        return translated(_DIALECT, self._access, error, f"looking up in {self._table}")


def _quoted(name: str) -> str:
    # The driver takes a percent sign for the beginning of a parameter.
    return _DIALECT.quote(name).replace("%", "%%")
