"""The table a sink writes to: made if asked, and compared with the stream before the first row is written."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from headrace._graph.changes import CHANGE
from headrace.connectors.databases.dialect import Column, Cursor, Dialect, Target
from headrace.connectors.databases.names import TableName
from headrace.connectors.databases.session import Session
from headrace.errors import SinkRefused

__all__ = ["Wanted", "prepare"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user said about the table."""

    table: TableName
    key: tuple[str, ...]
    upsert: bool
    create: bool


def prepare(dialect: Dialect, session: Session, wanted: Wanted, schema: pa.Schema) -> Target:
    """The table as it is, fit for the stream. `SinkRefused` says what does not fit."""
    written = [field for field in schema if field.name != CHANGE]
    if wanted.create:
        _create(dialect, session, wanted, written)
    with session.transaction(f"looking at the table {wanted.table}") as cursor:
        found = dialect.find_table(cursor, wanted.table)
        if found is None:
            raise SinkRefused(
                f"there is no table {str(wanted.table)!r} in the database; make it, or pass create=True"
            )
        columns = {column.name: column for column in dialect.columns(cursor, found)}
        _check_columns(found, columns, written)
        if wanted.upsert:
            _check_key(dialect, cursor, found, wanted.key)
    cells = tuple(dialect.cell(field, columns[field.name]) for field in written)
    return Target(found, cells, wanted.key if wanted.upsert else ())


def _create(dialect: Dialect, session: Session, wanted: Wanted, written: list[pa.Field]) -> None:
    with session.transaction(f"looking for the table {wanted.table}") as cursor:
        if dialect.find_table(cursor, wanted.table) is not None:
            return
    columns = [
        f"{dialect.quote(field.name)} {dialect.column_type(field, is_key=field.name in wanted.key)}"
        for field in written
    ]
    if wanted.key:
        columns.append(f"PRIMARY KEY ({', '.join(map(dialect.quote, wanted.key))})")
    statement = f"CREATE TABLE IF NOT EXISTS {dialect.place(wanted.table)} ({', '.join(columns)}){dialect.table_options}"
    try:
        with session.transaction(f"making the table {wanted.table}") as cursor:
            cursor.execute(statement)
    except SinkRefused:
        # Somebody else may have made it at the same moment.
        with session.transaction(f"looking for the table {wanted.table}") as cursor:
            if dialect.find_table(cursor, wanted.table) is None:
                raise


def _check_columns(
    table: TableName, columns: Mapping[str, Column], written: list[pa.Field]
) -> None:
    names = {field.name for field in written}
    missing = sorted(names - columns.keys())
    if missing:
        raise SinkRefused(
            f"the table {str(table)!r} has no column {_listed(missing)}; add it, or leave it out of the"
            f" stream with .select(...) (the table has {_listed(columns)})"
        )
    made = sorted(name for name in names if columns[name].generated)
    if made:
        raise SinkRefused(
            f"the server makes the values of {_listed(made)} in {str(table)!r} itself; drop it from the stream"
        )
    needed = sorted(c.name for c in columns.values() if c.required and c.name not in names)
    if needed:
        raise SinkRefused(
            f"the table {str(table)!r} wants a value for {_listed(needed)}, which the stream does not have;"
            " add it to the stream, or give it a default"
        )


def _check_key(dialect: Dialect, cursor: Cursor, table: TableName, key: tuple[str, ...]) -> None:
    if frozenset(key) in dialect.unique_keys(cursor, table):
        return
    columns = ", ".join(map(dialect.quote, key))
    raise SinkRefused(
        f"an upsert into {str(table)!r} finds rows by {_listed(key)}, which nothing keeps unique there:"
        f" create unique index on {dialect.place(table)} ({columns}), or choose another key"
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
