"""Schemas from what Python users write: dataclasses, typed dicts, mappings, annotations, Arrow schemas.

All fields are nullable: a declared type says what a value is when there is one. Every failure is a
`SchemaError` whose sentence names the fields or the types that would do. Python functions see rows as
instances of `row_class(schema)`. Deliberately absent: turning columns into rows and rows into columns.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import types
import typing
from collections import _tuplegetter, abc  # type: ignore[attr-defined]
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from keyword import iskeyword
from typing import Annotated, Any, ClassVar, Literal, NoReturn, Union, get_args, get_origin

import pyarrow as pa

from headrace.errors import SchemaError

__all__ = [
    "Row",
    "arrow_type",
    "as_schema",
    "describe_fields",
    "require_field",
    "return_schema",
    "return_type",
    "row_class",
]

_SCALARS: dict[Any, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    datetime: pa.timestamp("us", tz="UTC"),
    date: pa.date32(),
    time: pa.time64("us"),
    timedelta: pa.duration("us"),
    Decimal: pa.decimal128(38, 18),
}
_SEQUENCES = (list, tuple, abc.Sequence, abc.MutableSequence)
_MAPPINGS = (dict, abc.Mapping, abc.MutableMapping)
_STREAMS = (abc.Iterator, abc.Iterable, abc.Generator, abc.Collection, *_SEQUENCES)
#: Wrappers of a field's type that say nothing about the value.
_QUALIFIERS = tuple(
    getattr(typing, name)
    for name in ("Required", "NotRequired", "ReadOnly")
    if hasattr(typing, name)
)


def as_schema(declaration: Any) -> pa.Schema:
    """The Arrow schema of a dataclass, a `TypedDict`, a mapping of names to types, or an Arrow schema.

    >>> as_schema({"auction": int, "price": float}).names
    ['auction', 'price']
    """
    if isinstance(declaration, pa.Schema):
        return _distinct(declaration.remove_metadata())
    if isinstance(declaration, Mapping):
        return _distinct(pa.schema([_field(n, t, "the schema") for n, t in declaration.items()]))
    if _is_record(declaration):
        return pa.schema(_record_fields(declaration))
    hint = " (pass the class, not an instance)" if dataclasses.is_dataclass(declaration) else ""
    raise SchemaError(
        f"{_show(declaration)} does not declare a schema{hint}; use a dataclass, a TypedDict, a"
        " mapping of names to types, or a pyarrow.Schema."
    )


def arrow_type(annotation: Any) -> pa.DataType:
    """The Arrow type of an annotation: scalars, `list[T]`, `dict[K, V]`, `T | None`, dataclasses.

    `Annotated[int, pa.int32()]` chooses an Arrow type where Python has only one; a `pyarrow.DataType`
    stands for itself. A `datetime` is in UTC with microseconds, a `Decimal` has 18 digits behind the point.

    >>> arrow_type(list[int])
    ListType(list<item: int64>)
    """
    if isinstance(annotation, pa.DataType):
        return annotation
    if isinstance(annotation, type) and annotation in _SCALARS:
        return _SCALARS[annotation]
    if isinstance(annotation, typing.NewType):
        return arrow_type(annotation.__supertype__)
    if _is_record(annotation):
        return pa.struct(_record_fields(annotation))
    return _generic_type(annotation)


def require_field(schema: pa.Schema, name: str, *, what: str) -> pa.Field:
    """The field of this name; `what` says in the error who asked for it, such as `key_by`."""
    if not isinstance(name, str):
        raise SchemaError(f"{what} needs the name of a field, not {name!r}.")
    if schema.get_field_index(name) < 0:
        raise SchemaError(
            f"{what}: there is no field {name!r}{_suggest(name, schema.names)}."
            f" The fields are {describe_fields(schema)}."
        )
    return schema.field(name)


def describe_fields(schema: pa.Schema) -> str:
    """The fields with their types, for a sentence: `auction (int64), price (double)`."""
    return ", ".join(f"{field.name} ({field.type})" for field in schema) or "none at all"


def return_schema(function: Callable[..., Any], *, many: bool = False) -> pa.Schema | None:
    """The columns that a function's return annotation declares; None if it does not declare any.

    With `many` the function returns several rows, and the annotation is `Iterator[X]`, `list[X]` or alike.
    """
    annotation = _result_annotation(function, many=many)
    inner = _without_none(annotation)
    if not _is_record(inner):
        return None
    if inner is not annotation:
        raise SchemaError(
            f"{_show(function)} says that it returns {_show(annotation)}, but every row must become a"
            " row; use flat_map to return none, or filter first."
        )
    return as_schema(inner)


def return_type(function: Callable[..., Any], *, many: bool = False) -> pa.DataType | None:
    """The type of the single value that a function's return annotation declares, or None."""
    annotation = _result_annotation(function, many=many)
    return None if annotation is None else arrow_type(annotation)


class Row(tuple[Any, ...]):
    """A row as Python functions see it: fields as attributes or `row["field"]`, read-only.

    `Row` itself has no fields; `row_class` makes the class for a schema. A field whose name is no Python
    name, or that of one of the methods below, is reached as `row["field"]` only.
    """

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    _places: Mapping[str, int] = types.MappingProxyType({})

    #: The fast way to many rows, unchecked: `list(map(row_class(schema)._make, zip(*columns)))`.
    _make: ClassVar[Callable[[Iterable[Any]], Row]] = classmethod(tuple.__new__)  # type: ignore[assignment]

    def _asdict(self) -> dict[str, Any]:
        """The fields by name, in order."""
        return dict(zip(self._fields, self, strict=True))

    def _replace(self, **changes: Any) -> Row:
        """A copy with other values for some fields."""
        _refuse_unknown(changes, self._fields)
        return type(self)._make(changes.get(n, v) for n, v in zip(self._fields, self, strict=True))

    def __getitem__(self, field: Any) -> Any:
        if not isinstance(field, str):
            return tuple.__getitem__(self, field)
        place = self._places.get(field)
        if place is None:
            raise KeyError(_no_field(field, self._fields))
        return tuple.__getitem__(self, place)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(_no_field(name, self._fields))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(
            f"rows are read-only; return a new row instead, for example row._replace({name}=...)"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return False
        return self._fields == other._fields and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{n}={v!r}' for n, v in zip(self._fields, self, strict=True))})"

    def __reduce__(self) -> tuple[Callable[..., Row], tuple[tuple[str, ...], tuple[Any, ...]]]:
        return _rebuild, (self._fields, tuple(self))


def row_class(schema: pa.Schema) -> type[Row]:
    """The class of rows with these fields, the same one for the same names.

    >>> row = row_class(as_schema({"auction": int, "price": int}))(7, 100)
    >>> row.price, row["auction"], row
    (100, 7, Row(auction=7, price=100))
    """
    return _row_class(tuple(schema.names))


@functools.lru_cache(maxsize=4096)
def _row_class(names: tuple[str, ...]) -> type[Row]:
    namespace: dict[str, Any] = {
        "__slots__": (),
        "_fields": names,
        "_places": {name: place for place, name in enumerate(names)},
        "__new__": _constructor(names),
        "__module__": Row.__module__,
    }
    # Without this `row.count` would be a method of tuple instead of an error that names the fields.
    namespace |= {name: property() for name in ("count", "index")}
    for place, name in enumerate(names):
        if name not in vars(Row) and not (name.startswith("__") and name.endswith("__")):
            namespace[name] = _tuplegetter(place, f"The field {name!r}.")
    return type("Row", (Row,), namespace)


def _constructor(names: tuple[str, ...]) -> Callable[..., Row]:
    """`__new__` with the fields as parameters: written out it is twice as fast as a loop over them."""
    parameters = [
        # Python folds letters such as the ligature of f and i in names; two fields must not become one.
        name
        if name.isascii() and name.isidentifier() and name[0] != "_" and not iskeyword(name)
        else f"_{place}"
        for place, name in enumerate(names)
    ]
    values = "".join(f"{parameter}, " for parameter in parameters)
    # Only identifiers reach this text, and the namespace holds a single name.
    function: Callable[..., Row] = eval(  # noqa: S307
        f"lambda _row_type, {values}: _new(_row_type, ({values}))",
        {"_new": tuple.__new__, "__builtins__": {}},
    )
    function.__name__ = function.__qualname__ = "Row"
    return function


def _rebuild(names: tuple[str, ...], values: tuple[Any, ...]) -> Row:
    return _row_class(names)._make(values)


def _no_field(name: str, names: Iterable[str]) -> str:
    fields = list(names)
    known = ", ".join(fields) or "none at all"
    return f"the row has no field {name!r}{_suggest(name, fields)}; the fields are {known}"


def _refuse_unknown(named: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for name in named:
        if name not in names:
            raise TypeError(_no_field(name, names))


def _suggest(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _distinct(schema: pa.Schema) -> pa.Schema:
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        raise SchemaError(
            f"The schema has more than one field named {', '.join(map(repr, twice))}."
        )
    return schema


def _is_record(annotation: Any) -> bool:
    return isinstance(annotation, type) and (
        dataclasses.is_dataclass(annotation) or typing.is_typeddict(annotation)
    )


def _record_fields(record: type) -> list[pa.Field]:
    hints = _hints(record)
    if dataclasses.is_dataclass(record):
        names = [field.name for field in dataclasses.fields(record)]
    else:
        names = list(hints)
    return [_field(name, hints[name], record.__name__) for name in names]


def _field(name: Any, annotation: Any, owner: str) -> pa.Field:
    if not isinstance(name, str) or not name:
        raise SchemaError(f"A field's name must be a string that is not empty, not {name!r}.")
    try:
        return pa.field(name, arrow_type(annotation))
    except SchemaError as error:
        raise SchemaError(f"Field {name!r} of {owner}: {error}") from None
    except RecursionError:
        raise SchemaError(f"Field {name!r} of {owner} contains its own class.") from None


def _generic_type(annotation: Any) -> pa.DataType:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        chosen = [extra for extra in arguments[1:] if isinstance(extra, pa.DataType)]
        return chosen[0] if chosen else arrow_type(arguments[0])
    if origin in _QUALIFIERS:
        return arrow_type(arguments[0])
    if origin in _SEQUENCES and (origin is not tuple or arguments[1:] == (...,)):
        return pa.list_(arrow_type(arguments[0]))
    if origin in _MAPPINGS:
        return pa.map_(arrow_type(arguments[0]), arrow_type(arguments[1]))
    if origin is Literal and len({type(value) for value in arguments}) == 1:
        return arrow_type(type(arguments[0]))
    inner = _without_none(annotation)
    if inner is not annotation:
        return arrow_type(inner)
    raise SchemaError(
        f"{_show(annotation)} is not a type that a column can have; use int, float, str, bytes, bool,"
        " datetime, date, time, timedelta, Decimal, list[...], dict[..., ...], a dataclass, one of these"
        " with `| None`, or a pyarrow type."
    )


def _without_none(annotation: Any) -> Any:
    """`T` for `T | None`; anything else as it is."""
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation
    inner = [argument for argument in get_args(annotation) if argument is not type(None)]
    return inner[0] if len(inner) == 1 else annotation


def _result_annotation(function: Callable[..., Any], *, many: bool) -> Any:
    """What a function says it returns, or None where it says nothing that declares columns."""
    annotation = _return_annotation(function)
    if annotation is type(None):
        raise SchemaError(
            f"{_show(function)} says that it returns None, so it makes no rows; annotate what it yields, or pass schema=."
        )
    if many:
        annotation = _element(function, annotation)
    vague = annotation in (None, Any, object, Row, *_MAPPINGS)
    loose = get_origin(annotation) in _MAPPINGS and Any in get_args(annotation)
    return None if vague or loose else annotation


def _return_annotation(function: Callable[..., Any]) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type):
        return function if _is_record(function) or function in _SCALARS else None
    if not isinstance(function, types.FunctionType | types.MethodType | types.BuiltinFunctionType):
        function = getattr(type(function), "__call__", function)  # noqa: B004 - the method itself
    if not getattr(function, "__annotations__", None):
        return None
    return _hints(function).get("return")


def _element(function: Callable[..., Any], annotation: Any) -> Any:
    if annotation in (None, Any, object, *_STREAMS):
        return None
    if get_origin(annotation) not in _STREAMS:
        raise SchemaError(
            f"{_show(function)} says that it returns {_show(annotation)}, but here a function makes any number"
            f" of rows: write Iterator[{_show(annotation)}] and yield them, or Iterable[...], list[...]."
        )
    return get_args(annotation)[0]


def _hints(owner: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(owner, include_extras=True)
    except NameError as error:
        raise SchemaError(
            f"The annotations of {_show(owner)} cannot be resolved: {error}. Define the class at the top"
            " of the module, or pass schema=... instead."
        ) from None


def _show(thing: Any) -> str:
    """A class or function by its name, anything else by its repr."""
    if get_origin(thing) is not None:
        return str(thing).replace("typing.", "")
    name = getattr(thing, "__name__", None)
    return name if isinstance(name, str) else repr(thing)
