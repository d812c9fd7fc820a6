"""Checks of what builder calls say of columns: keys, conditions, selections, gaps. They raise on the user's line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from headrace._graph.callables import check_row_function, describe_callable
from headrace._runtime.expressions import result_type
from headrace.errors import BuildError, SchemaError
from headrace.expressions import Column, Expression, col
from headrace.keys import check_key_type
from headrace.schema import describe_fields, require_field, return_type
from headrace.windows import Session

__all__ = ["check_condition", "check_keys", "named_column", "require_gap", "unnamed_column"]


def require_gap(session: Session, schema: pa.Schema) -> None:
    """Refuse a gap of sessions that rows cannot have."""
    gap = session.gap
    if callable(gap):
        check_row_function(gap, "Session.dynamic", schema)
    elif gap is not None:
        kind = result_type(col(gap) if isinstance(gap, str) else gap, schema)
        if not pa.types.is_duration(kind):
            raise SchemaError(
                f"The gap of a session must be a duration (timedelta), but {gap!r} is {kind}; make one with"
                " a function: Session.dynamic(lambda row: timedelta(seconds=row.seconds))."
            )


def check_condition(condition: Any, schema: pa.Schema, verb: str) -> None:
    """Refuse what is neither an expression that is true or false nor a function of a row that says so."""
    if isinstance(condition, Expression):
        kind, what = result_type(condition, schema), repr(condition)
    else:
        check_row_function(condition, verb, schema)
        kind, what = return_type(condition), describe_callable(condition)
    if kind is not None and not pa.types.is_boolean(kind):
        raise SchemaError(f"{verb} needs a condition that is true or false, but {what} is {kind}.")


def unnamed_column(column: Any, schema: pa.Schema) -> tuple[str, Expression]:
    """A column of `select` that keeps its name."""
    if isinstance(column, Column):
        column = column.name
    if isinstance(column, Expression):
        raise BuildError(f"select needs a name for {column!r}: write select(name={column!r}).")
    require_field(schema, column, what="select")
    return column, col(column)


def named_column(name: str, value: Any) -> tuple[str, Expression]:
    """A column of `select` with a name of its own."""
    if isinstance(value, str):
        return name, col(value)
    if not isinstance(value, Expression):
        raise BuildError(
            f"select({name}=...) takes an expression or the name of a column, not {value!r}; a constant"
            f" is hr.lit({value!r})."
        )
    return name, value


def check_keys(keys: Iterable[Any], schema: pa.Schema, what: str = "key_by") -> None:
    """Refuse columns that rows cannot be keyed by; `what` asks for them."""
    keys = tuple(keys)
    if not keys:
        raise BuildError(f"{what} needs columns. The fields are {describe_fields(schema)}.")
    for key in keys:
        if callable(key):
            raise BuildError(f"{what} takes one function alone, or names of columns.")
        kind = require_field(schema, key, what=what).type
        if not check_key_type(kind):
            raise SchemaError(
                f"{what}: '{key}' is {kind}, which cannot be a key; keys are numbers, strings, bytes,"
                " booleans, dates, times and decimals."
            )
        if keys.count(key) > 1:
            raise BuildError(f"{what} names '{key}' twice.")
