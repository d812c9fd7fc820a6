"""The columns of what a function of keys returns, by its annotation: a mapping of keys to rows."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections import abc
from typing import Any, Union, get_args, get_origin

import pyarrow as pa

from headrace.errors import SchemaError
from headrace.schema import arrow_type, as_schema

__all__ = ["rows_schema"]

_MAPPINGS = (dict, abc.Mapping, abc.MutableMapping)
_NOTHING = (Any, object)


def rows_schema(function: Any) -> pa.Schema | None:
    """The columns of the rows in `-> dict[Key, Row]`; of a single value the column `value`. None if it does not say."""
    returned = _returned(function)
    if get_origin(returned) not in _MAPPINGS or len(get_args(returned)) != 2:
        return None
    row = _without_none(get_args(returned)[1])
    if row in _NOTHING or isinstance(row, typing.TypeVar) or _says_nothing(row):
        return None
    try:
        return as_schema(row)
    except SchemaError:
        return pa.schema([pa.field("value", arrow_type(row))])


def _returned(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function):
        function = getattr(type(function), "__call__", function)  # noqa: B004 - the method itself
    try:
        return typing.get_type_hints(function, include_extras=True).get("return")
    except (NameError, TypeError, AttributeError):
        return None


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation
    inner = [each for each in get_args(annotation) if each is not type(None)]
    return inner[0] if len(inner) == 1 else annotation


def _says_nothing(row: Any) -> bool:
    """A mapping of anything: nobody knows its fields."""
    origin = get_origin(row) or row
    return origin in _MAPPINGS and (not get_args(row) or Any in get_args(row))
