"""What look-ups in tables of databases share: their options, and the columns of tables, with what makes values fit them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

import pyarrow as pa
import pyarrow.types as pt

from headrace.connectors.databases.access import Access
from headrace.connectors.databases.dialect import Column, Dialect
from headrace.connectors.databases.names import TableName, check_name
from headrace.connectors.databases.pool import reading
from headrace.errors import BuildError, InputError
from headrace.lookups import Cache

__all__ = ["MINUTE", "check_columns", "column_names", "described", "selection", "whole_number"]

#: What is kept if nobody says.
MINUTE = Cache(ttl=timedelta(minutes=1))


def column_names(option: str, names: Sequence[str], longest: int) -> tuple[str, ...]:
    """Checked names of columns."""
    if isinstance(names, str) or not names or not all(isinstance(name, str) for name in names):
        raise BuildError(f"{option}={names!r}: it takes names of columns, such as ['id'].")
    if len(set(names)) != len(names):
        raise BuildError(f"{option}={names!r} names a column twice.")
    for name in names:
        check_name(name, option, longest=longest)
    return tuple(names)


def whole_number(option: str, number: int) -> int:
    """A checked number of 1 or more."""
    if type(number) is not int or number < 1:
        raise BuildError(f"{option}={number!r}: it is a whole number of 1 or more.")
    return number


def described(
    dialect: Dialect, access: Access, table: TableName, names: Sequence[str] | None
) -> pa.Schema:
    """The types in which these columns of a table, or all, are read. Asks the server."""
    with reading(dialect, access, f"looking at {table}") as connection:
        found = dialect.describe(connection.cursor(), f"SELECT * FROM {dialect.place(table)}")  # noqa: S608 - quoted
    columns = {column.name: column for column in found}
    wanted = names or tuple(columns)
    check_columns(f"{dialect.name} at {access.shown}, {table}", wanted, columns)
    return pa.schema([(name, dialect.read_type(columns[name])[0]) for name in wanted])


def check_columns(where: str, wanted: Sequence[str], there: Collection[str]) -> None:
    """`InputError` names the columns that a table lacks."""
    missing = [name for name in wanted if name not in there]
    if missing:
        raise InputError(
            f"{where}: the table has no column {', '.join(missing)}; it has {', '.join(there)}"
        )


def selection(dialect: Dialect, column: Column, field: pa.Field) -> str:
    """What makes of a column a value that Python holds and that fits the declared type; `{}` is the column."""
    natural, how = dialect.read_type(column)
    if pt.is_string(field.type) and natural != field.type:
        return dialect.as_text
    if pt.is_floating(field.type) and pt.is_decimal(natural):
        return dialect.as_double
    if pt.is_nested(field.type) and column.kind in ("json", "jsonb"):
        return "{}"  # the driver takes it apart
    return how
