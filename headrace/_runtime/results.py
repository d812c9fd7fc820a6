"""What a user's function returned, as Arrow columns of the schema that was declared.

A row may be returned as a dataclass instance, a dict, a row object or, where the only column is `value`,
as the plain value. Nothing is guessed and nothing is dropped: a field that is missing, unknown, of another
type or a naive datetime is a `UserCodeError` that names the field and the value.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter, itemgetter
from typing import Any, NoReturn

import pyarrow as pa

from headrace.errors import UserCodeError
from headrace.schema import Row

__all__ = ["Wrong", "build_batch", "build_column", "fields_of"]

#: Adds the step and the row's origin to a complaint about the result at an index.
Wrong = Callable[[int, str], UserCodeError]

_VALUE = "value"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INSTANT = pa.timestamp("us", "UTC")


def build_batch(results: Sequence[Any], schema: pa.Schema, wrong: Wrong) -> pa.RecordBatch:
    """One row a result."""
    lists = _columns(results, schema, wrong)
    arrays = [
        build_column(column, field, wrong) for column, field in zip(lists, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def build_column(column: Sequence[Any], field: pa.Field, wrong: Wrong) -> pa.Array:
    """Values of one field as an array of its type."""
    try:
        array = _array(column, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        _find_wrong_value(column, field, wrong)
    if array.null_count and not field.nullable:
        index = array.is_null().index(pa.scalar(value=True)).as_py()
        raise wrong(index, f"the field '{field.name}' may not be null")
    return array


def fields_of(result: Any, schema: pa.Schema, index: int, wrong: Wrong) -> list[Any]:
    """The values of one result in the order of the schema."""
    names = schema.names
    if isinstance(result, Mapping) and not (names == [_VALUE] and set(result) != {_VALUE}):
        unknown = [name for name in result if name not in names]
        if unknown:
            raise wrong(
                index, f"it returned the field {unknown[0]!r}, but {_declared(schema)}: {result!r}"
            )
        missing = [name for name in names if name not in result]
        found = result
    elif _is_record(type(result)) and not isinstance(result, Mapping):
        found = result._asdict() if isinstance(result, Row) else _attributes(result, names)
        missing = [name for name in names if name not in found]
    elif names == [_VALUE]:
        return [result]
    else:
        raise wrong(
            index,
            f"it returned {result!r} ({type(result).__name__}); return a dict, a dataclass or a row"
            f" where {_declared(schema)}",
        )
    if missing:
        kind = schema.field(missing[0]).type
        raise wrong(
            index,
            f"the field '{missing[0]}' ({kind}) is missing from {result!r}; {_declared(schema)}",
        )
    return [found[name] for name in names]


def _columns(results: Sequence[Any], schema: pa.Schema, wrong: Wrong) -> list[Sequence[Any]]:
    kinds = set(map(type, results))
    if schema.names == [_VALUE] and not any(_is_record(kind) for kind in kinds):
        return [results]
    if len(kinds) == 1:
        uniform = _uniform_columns(results, next(iter(kinds)), schema)
        if uniform is not None:
            return uniform
    rows = [fields_of(result, schema, index, wrong) for index, result in enumerate(results)]
    return [list(map(itemgetter(place), rows)) for place in range(len(schema))]


def _uniform_columns(
    results: Sequence[Any], kind: type, schema: pa.Schema
) -> list[Sequence[Any]] | None:
    # The fast way for results of one type; None sends them down the slow way, which finds the mistake.
    if not _is_record(kind):
        return None
    try:
        if issubclass(kind, Row):
            # Rows are tuples: turning them on their side beats looking fields up by name.
            sides = dict(zip(kind._fields, zip(*results, strict=True), strict=True))
            return [sides[name] for name in schema.names]
        if issubclass(kind, Mapping):
            if set(map(len, results)) != {len(schema)}:
                return None
            return [list(map(itemgetter(name), results)) for name in schema.names]
        return [list(map(attrgetter(name), results)) for name in schema.names]
    except (KeyError, AttributeError):
        return None


def _attributes(result: Any, names: Sequence[str]) -> Mapping[str, Any]:
    return {name: getattr(result, name) for name in names if hasattr(result, name)}


def _is_record(kind: type) -> bool:
    return issubclass(kind, Mapping) or dataclasses.is_dataclass(kind) or hasattr(kind, "_asdict")


def _declared(schema: pa.Schema) -> str:
    fields = ", ".join(f"{field.name}: {field.type}" for field in schema)
    return f"the declared fields are {fields}"


def _find_wrong_value(column: Sequence[Any], field: pa.Field, wrong: Wrong) -> NoReturn:
    for index, value in enumerate(column):
        try:
            _array([_plain(value, field.type)], field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise wrong(
                index,
                f"the field '{field.name}' must be {field.type}, but it is {value!r}"
                f" ({type(value).__name__}): {error}",
            ) from None
    raise wrong(0, f"the field '{field.name}' cannot be stored as {field.type}")


def _array(column: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        # The subtraction refuses naive datetimes and numbers, and beats Arrow's own conversion.
        since = [None if moment is None else moment - _EPOCH for moment in column]
        instants = pa.array(since, pa.duration("us")).cast(pa.int64()).cast(_INSTANT)
        return instants.cast(kind, safe=kind.unit == "ns")
    if pa.types.is_nested(kind):
        column = [_plain(value, kind) for value in column]
    return pa.array(column, type=kind)


def _plain(value: Any, kind: pa.DataType) -> Any:
    """A value as Arrow takes it: structs as dicts, maps as pairs, no naive datetimes."""
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return _instant(value, kind)
    if pa.types.is_struct(kind):
        return {field.name: _plain(_member(value, field.name), field.type) for field in kind}
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(_plain(k, kind.key_type), _plain(v, kind.item_type)) for k, v in pairs]
    if pa.types.is_nested(kind) and isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, kind.value_type) for item in value]
    return value


def _instant(value: Any, kind: pa.DataType) -> datetime:
    if not isinstance(value, datetime):
        raise TypeError("a datetime is needed")
    if kind.tz is not None and value.tzinfo is None:
        # Arrow would take it for UTC in silence, whatever the user's clock meant.
        raise ValueError("a naive datetime has no time zone; use datetime(..., tzinfo=UTC)")
    return value


def _member(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        if name not in value:
            raise ValueError(f"the field '{name}' is missing")
        return value[name]
    try:
        return getattr(value, name)
    except AttributeError:
        raise ValueError(f"the field '{name}' is missing") from None
