"""Rows of a MySQL or MariaDB table by key, for `join_lookup` and `map_async`: many keys to a query, in a thread.

Which rows have a key is for Python to say: the server may hold texts equal that differ in case or in blanks at their end, and
such rows are not the ones that were asked for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from numbers import Number
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from headrace.connectors.databases.access import access_to
from headrace.connectors.databases.lookup_columns import (
    MINUTE,
    check_columns,
    column_names,
    described,
    selection,
    whole_number,
)
from headrace.connectors.databases.mysql import MySqlDialect
from headrace.connectors.databases.names import parse_table
from headrace.connectors.databases.pool import reading
from headrace.errors import InputError
from headrace.lookups import Cache, LookupFunction

__all__ = ["MySqlLookup"]

_DIALECT = MySqlDialect()
_LONGEST = MySqlDialect.longest_name

Row = Mapping[str, Any]


class MySqlLookup(LookupFunction[Any, Row]):
    """Look rows of a table up by a key that is unique in it. Like `PostgresLookup`, with a connection of each call's thread.

    customers = MySqlLookup("mysql://app@db/shop", "customers", key="id", columns=["name", "country"])
    orders.join_lookup(customers, on="customer", uid="with-customer")
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
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._access = access_to(dsn, options)
        self._table = parse_table(table, "table", longest=_LONGEST)
        self.key_columns = column_names("key", (key,) if isinstance(key, str) else key, _LONGEST)
        self._columns = None if columns is None else column_names("columns", columns, _LONGEST)
        self.cache = cache
        self.batch_size = whole_number("batch_size", batch_size)
        #: What rows must fit; None: they are as the driver makes them.
        self._declared: pa.Schema | None = None
        self._values: list[str] | None = None

    def __repr__(self) -> str:
        return (
            f"MySqlLookup({self._access.shown!r}, {str(self._table)!r}, key={self.key_columns!r})"
        )

    def typed(self, schema: pa.Schema | None) -> tuple[MySqlLookup, pa.Schema]:
        """Rows that fit these columns, or those of the table."""
        made = self._anew()
        if schema is None:
            schema = described(_DIALECT, self._access, self._table, self._columns)
        made._declared, made._columns = schema, tuple(schema.names)  # noqa: SLF001 - of this class
        return made, schema

    def lookup(self, keys: Sequence[Any]) -> Mapping[Any, Row]:
        """One query for all keys."""
        asked = {_plain(part): key for key, part in self._parts(keys)}
        if not asked:
            return {}
        doing = f"looking up in {self._table}"
        with (
            reading(_DIALECT, self._access, doing) as connection,
            connection.cursor() as cursor,
        ):
            if self._values is None:
                self._values = self._selected(cursor)
            cursor.execute(self._statement(len(asked)), [value for part in asked for value in part])
            names = [each[0] for each in cursor.description][len(self.key_columns) :]
            rows = cursor.fetchall()
        return self._matched(asked, names, rows)

    def _parts(self, keys: Sequence[Any]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        for key in keys:
            parts = key if isinstance(key, tuple) else (key,)
            if len(parts) != len(self.key_columns):
                raise InputError(
                    f"{self!r}: the key {key!r} does not have {len(self.key_columns)} parts"
                )
            # The server has neither NaN nor infinity, and the driver would refuse the whole query.
            if all(not isinstance(part, float) or math.isfinite(part) for part in parts):
                yield key, parts

    def _statement(self, keys: int) -> str:
        names = [f"t.{_DIALECT.quote(name)}" for name in self.key_columns]
        values = ", ".join([*names, *(self._values or ())])
        place = f"{_DIALECT.place(self._table)} t WHERE ({', '.join(names)})"
        marks = f"({', '.join(['%s'] * len(names))})"
        text = f"SELECT {values} FROM {place} IN ".replace("%", "%%")  # noqa: S608 - quoted
        return f"{text}({', '.join([marks] * keys)})"

    def _selected(self, cursor: Any) -> list[str]:
        """The columns of a row as they stand in a query."""
        if self._declared is None:
            return ["t.*"] if self._columns is None else [_column(n) for n in self._columns]
        there = _DIALECT.describe(cursor, f"SELECT * FROM {_DIALECT.place(self._table)}")  # noqa: S608 - quoted
        found = {column.name: column for column in there}
        check_columns(repr(self), self._declared.names, found)
        return [_column(f.name, selection(_DIALECT, found[f.name], f)) for f in self._declared]

    def _matched(
        self, asked: Mapping[tuple[Any, ...], Any], names: Sequence[str], rows: Sequence[Any]
    ) -> dict[Any, Row]:
        found: dict[Any, Row] = {}
        kinds = [type(part) for part in next(iter(asked))]
        fits = [_fit_of(self._declared, name) for name in names]
        for row in rows:
            mark, values = tuple(row[: len(kinds)]), row[len(kinds) :]
            if mark not in asked:
                self._check_kinds(mark, kinds)
                continue
            if asked[mark] in found:
                raise InputError(
                    f"{self!r}: the table has several rows with the key {asked[mark]!r}; a look-up is by a key that is"
                    " unique"
                )
            fitted = [
                fit(v) if fit and v is not None else v for fit, v in zip(fits, values, strict=True)
            ]
            found[asked[mark]] = MappingProxyType(dict(zip(names, fitted, strict=True)))
        return found

    def _check_kinds(self, mark: tuple[Any, ...], kinds: Sequence[type]) -> None:
        """A row that another key has in the eyes of the server; of another type nothing would ever be found."""
        for part, kind in zip(mark, kinds, strict=True):
            if type(part) is not kind and not (
                isinstance(part, Number) and issubclass(kind, Number)
            ):
                raise InputError(
                    f"{self!r}: the server found a row for {part!r}, but was asked for keys that are {kind.__name__}: give"
                    " keys of the column's own type"
                )


def _column(name: str, how: str = "{}") -> str:
    quoted = _DIALECT.quote(name)
    return f"{how.replace('{}', f't.{quoted}')} AS {quoted}"


def _plain(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key as the server has it: instants are in UTC and do not say so."""
    return tuple(
        part.astimezone(UTC).replace(tzinfo=None)
        if isinstance(part, datetime) and part.tzinfo is not None
        else part
        for part in parts
    )


def _fit_of(schema: pa.Schema | None, name: str) -> Callable[[Any], Any] | None:
    """What makes a value of the driver one that fits the declared type, where it does not."""
    if schema is None:
        return None
    kind = schema.field(name).type
    if pt.is_timestamp(kind) and kind.tz is not None:
        return lambda value: value.replace(tzinfo=UTC)
    if pt.is_nested(kind):
        return json.loads
    return bool if pt.is_boolean(kind) else None
