"""What a call of `join_lookup` makes of a table: its columns, how its rows are asked for, and the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace._graph.callables import describe_callable, is_coroutine, require_callable
from headrace._graph.join_columns import check_key_types, joined_columns, result_schema_of
from headrace._graph.join_nodes import LookupJoin
from headrace._graph.nodes import OnError, Port
from headrace._graph.validate import check_columns
from headrace._runtime.plain_keys import plain_key_type
from headrace.errors import BuildError
from headrace.joined import JoinResult, check_choice, sides_of
from headrace.keyed import KeyedStream
from headrace.lookups import Cache, FileTable, LookupFunction
from headrace.lookups.awaited import AwaitedLookup
from headrace.lookups.rows import rows_schema
from headrace.processed import check_on_error
from headrace.schema import as_schema, describe_fields

__all__ = ["add_lookup_join"]


def add_lookup_join(
    left: Any,
    table: Any,
    on: str | Sequence[str] | None,
    *,
    how: Any,
    schema: Any,
    suffix: str,
    on_error: OnError,
    uid: str | None,
) -> JoinResult:
    """Add a look-up join."""
    check_choice("how", how, ("left", "inner"))
    check_on_error(on_error)
    if on is None and not isinstance(left, KeyedStream):
        raise BuildError('join_lookup needs the columns of the key: on="customer".')
    sides = sides_of([left], (on, None, None))
    (rows,), (keys,) = sides.schemas, sides.keys
    found = _table_of(table, None if schema is None else as_schema(schema))
    _check_key(found, rows, keys)
    # Where nobody says what the table's key is called, a column of the name of ours is taken for it.
    schemas, names = (rows, found.shown), (keys, found.key or keys)
    columns = joined_columns(schemas, names, how, suffix=suffix)
    node = sides.graph.add(
        LookupJoin,
        uid=uid,
        inputs=sides.ports,
        schema=result_schema_of(columns, schemas, how=how),
        table=found.table,
        keys=keys,
        how=how,
        table_schema=found.schema,
        columns=columns,
        on_error=on_error,
    )
    return JoinResult(sides.graph, Port(node.id))


@dataclass(frozen=True)
class _Table:
    """A table: what is asked, the columns of its rows, those that a result has of them, and the names of its key."""

    table: Any
    schema: pa.Schema
    shown: pa.Schema
    key: tuple[str, ...] = ()


def _table_of(table: Any, schema: pa.Schema | None) -> _Table:
    if isinstance(table, FileTable):
        return _file_table(table, schema)
    if isinstance(table, LookupFunction):
        _check_function(table)
        asked, found = table.typed(schema)
        return _rows_table(asked, found, f"the {type(table).__name__}", _names(table.key_columns))
    if not callable(table) or isinstance(table, type):
        raise BuildError(
            "join_lookup takes an hr.lookups.LookupFunction such as databases.PostgresLookup(...), an"
            " hr.lookups.FileTable(...), or a function of a list of keys that returns {key: row},"
            f" not {table!r}."
        )
    awaited = is_coroutine(table)
    require_callable(table, "join_lookup", "a list of keys", awaited=awaited)
    asked = AwaitedLookup(table) if awaited else table
    known = rows_schema(table) if schema is None else schema
    return _rows_table(asked, known, describe_callable(table))


def _check_function(function: LookupFunction[Any, Any]) -> None:
    """Refuse settings of a look-up that would only fail in a worker."""
    kind = type(function).__name__
    if not isinstance(function.cache, Cache | None):
        raise BuildError(
            f"{kind}.cache is {function.cache!r}; it takes an hr.lookups.Cache(size=10_000), or None."
        )
    for name in ("batch_size", "concurrency"):
        number = getattr(function, name)
        if not isinstance(number, int) or number < 1:
            raise BuildError(f"{kind}.{name} is {number!r}; it takes a whole number from 1 on.")


def _rows_table(
    asked: Any, schema: pa.Schema | None, what: str, key: tuple[str, ...] = ()
) -> _Table:
    if schema is None:
        raise BuildError(
            f"join_lookup cannot tell the columns of the rows that {what} returns: pass schema=Row, where Row is a"
            " dataclass, a TypedDict or a mapping of names to types; or annotate the function with `-> dict[Key, Row]`;"
            " or give the LookupFunction an attribute `schema`."
        )
    check_columns(schema, f"The rows of {what}")
    return _Table(asked, schema, _nullable(schema), key)


def _names(columns: str | Sequence[str]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _file_table(table: FileTable, schema: pa.Schema | None) -> _Table:
    schema = table.schema if schema is None else schema
    if schema is None:
        # Reads the files, which a job whose columns are declared must not need here.
        from headrace._runtime.joins.lookup.columns import file_schema

        schema = file_schema(table)
    check_columns(schema, f"{table!r}")
    for option, names in (("key", table.key), ("columns", table.columns or ())):
        missing = [name for name in names if name not in schema.names]
        if missing:
            raise BuildError(
                f"{table!r}: {option}= names the column '{missing[0]}', which the table does not have; it has"
                f" {describe_fields(schema)}."
            )
    shown = schema if table.columns is None else pa.schema(map(schema.field, table.columns))
    return _Table(table, schema, _nullable(shown), table.key)


def _check_key(found: _Table, rows: pa.Schema, keys: tuple[str, ...]) -> None:
    if found.key and len(found.key) != len(keys):
        raise BuildError(
            f"join_lookup(on={list(keys)!r}) has {len(keys)} columns, but the key of the table has {len(found.key)}:"
            f" {', '.join(found.key)}."
        )
    if isinstance(found.table, FileTable):
        plain = [
            pa.schema([(name, plain_key_type(schema.field(name).type)) for name in names])
            for schema, names in ((rows, keys), (found.schema, found.key))
        ]
        check_key_types(plain, (keys, found.key))


def _nullable(schema: pa.Schema) -> pa.Schema:
    """A row without a partner has nothing in any of them."""
    return pa.schema([field.with_nullable(True) for field in schema])
