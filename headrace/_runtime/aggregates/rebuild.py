"""From stored values back to the objects that a user's annotation promises.

Arrow keeps a dataclass as a struct; the user's code expects an instance of its class, also inside lists,
dicts and other dataclasses.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Union, get_args, get_origin

__all__ = ["rebuilder"]

Rebuild = Callable[[Any], Any]


def rebuilder(annotation: Any) -> Rebuild:
    """A function from a stored value to an object of the annotated type."""
    inner = _rebuilder(annotation)
    return lambda value: None if value is None else inner(value)


def _rebuilder(annotation: Any) -> Rebuild:
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return _record(annotation)
    if typing.is_typeddict(annotation):
        return _typed_dict(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return rebuilder(next(a for a in arguments if a is not type(None)))
    if origin is typing.Annotated:
        return rebuilder(arguments[0])
    if origin is tuple:
        item = rebuilder(arguments[0])
        return lambda value: tuple(map(item, value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, item = map(rebuilder, arguments)
        return lambda value: {key(k): item(v) for k, v in value.items()}
    if origin is not None and arguments and origin is not typing.Literal:
        item = rebuilder(arguments[0])
        return lambda value: list(map(item, value))
    return lambda value: value


def _record(kind: Any) -> Rebuild:
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    made = [(f.name, rebuilder(hints[f.name])) for f in fields if f.init]
    late = [(f.name, rebuilder(hints[f.name])) for f in fields if not f.init]

    def rebuild(value: Any) -> Any:
        instance = kind(**{name: again(getattr(value, name)) for name, again in made})
        for name, again in late:
            object.__setattr__(instance, name, again(getattr(value, name)))
        return instance

    return rebuild


def _typed_dict(kind: Any) -> Rebuild:
    items = [(name, rebuilder(hint)) for name, hint in typing.get_type_hints(kind).items()]
    return lambda value: {name: again(getattr(value, name)) for name, again in items}
