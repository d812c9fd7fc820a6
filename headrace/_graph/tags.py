"""The side outputs of a function: tags that are said, attributes of its class, and those that its code names.

Tags in the code are found among the globals, the closure and the attributes that the compiled methods refer to.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

import pyarrow as pa

from headrace.errors import BuildError
from headrace.outputs import OutputTag

__all__ = ["checked_tag", "side_outputs_of"]


def side_outputs_of(function: Any, said: Sequence[OutputTag]) -> tuple[tuple[str, pa.Schema], ...]:
    """(name, columns) of every side output; two that differ may not have one name."""
    if not isinstance(said, list | tuple):
        raise BuildError(f"side_outputs= takes a list of hr.OutputTag, not {said!r}.")
    found: dict[str, pa.Schema] = {}
    for tag in [*map(checked_tag, said), *_attributes(function), *_named(function)]:
        if tag.name in found and not found[tag.name].equals(tag.schema):
            raise BuildError(f"There are two side outputs named '{tag.name}' with other columns.")
        found[tag.name] = tag.schema
    return tuple(found.items())


def checked_tag(tag: Any) -> OutputTag:
    """Refuse what is no tag."""
    if not isinstance(tag, OutputTag):
        raise BuildError(f"A side output is an hr.OutputTag(name, schema), not {tag!r}.")
    return tag


def _attributes(function: Any) -> Iterator[OutputTag]:
    for owner in (*reversed(type(function).__mro__), function):
        yield from (v for v in getattr(owner, "__dict__", {}).values() if isinstance(v, OutputTag))


def _named(function: Any) -> Iterator[OutputTag]:
    for method in _methods(function):
        names = set(_names(method.__code__))
        known = {**method.__globals__, **inspect.getclosurevars(method).nonlocals}
        yield from (known[n] for n in sorted(names) if isinstance(known.get(n), OutputTag))


def _methods(function: Any) -> Iterator[FunctionType]:
    plain = getattr(function, "function", None)
    candidates = [v for owner in type(function).__mro__ for v in vars(owner).values()]
    yield from (f for f in [plain, *candidates] if isinstance(f, FunctionType))


def _names(code: CodeType) -> Iterator[str]:
    yield from (*code.co_names, *code.co_freevars)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)
