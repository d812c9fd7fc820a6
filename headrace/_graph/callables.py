"""Checks on a user's function before any job starts: can it be called with one row, and are its fields there?

Two things tell which fields a function reads: the annotation of its parameter, and its compiled code, in
which `row.price` is a load of the parameter followed by a load of the attribute. Reading code can only
reject a function that is certain to fail on every row it reads the field of; where a function tests for
fields itself (`hasattr`, `try`) or rebinds its parameter, nothing is concluded. The function never runs.
"""

import dataclasses
import dis
import inspect
import typing
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import pyarrow as pa

from headrace.errors import BuildError, SchemaError
from headrace.schema import as_schema, require_field

__all__ = ["check_row_function", "describe_callable", "is_coroutine", "require_callable"]

_SUBSCRIPT = frozenset({"BINARY_SUBSCR", "BINARY_OP"})
_ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
#: Instructions that do nothing to the stack.
_SKIPPED = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "RESUME", "PRECALL"})
_GUARDS = frozenset({"hasattr", "getattr", "vars", "dir"})


def require_callable(function: Any, verb: str, takes: str, *, awaited: bool = False) -> None:
    """Refuse what cannot be called with one argument; `takes` says what that argument is."""
    if not callable(function):
        raise BuildError(
            f"{verb} takes a function of {takes}, not {function!r} ({type(function).__name__})."
        )
    if is_coroutine(function) and not awaited:
        raise BuildError(
            f"{describe_callable(function)} is a coroutine function; {verb} calls plain functions."
            " Use map_async, which awaits it."
        )
    if awaited and not is_coroutine(function):
        raise BuildError(
            f"{verb} awaits its function, but {describe_callable(function)} is a plain one; write"
            " `async def`, or use map."
        )
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return  # a builtin that does not say its parameters
    try:
        signature.bind(None)
    except TypeError:
        raise BuildError(
            f"{verb} calls its function with one argument, {takes}, but"
            f" {describe_callable(function)} takes {signature}."
        ) from None


def check_row_function(
    function: Any, verb: str, schema: pa.Schema, *, may_yield: bool = False, awaited: bool = False
) -> None:
    """Refuse a function of a row that cannot be called, or that reads fields the rows do not have."""
    require_callable(function, verb, "one row", awaited=awaited)
    bare = inspect.unwrap(function)
    if not may_yield and (inspect.isgeneratorfunction(bare) or inspect.isasyncgenfunction(bare)):
        raise BuildError(
            f"{describe_callable(function)} yields, so it makes any number of rows of one; {verb}"
            " needs one result a row. Use flat_map, or return instead of yield."
        )
    _check_annotation(function, verb, schema)
    code = _code_of(function)
    if code is not None:
        what = f"{verb} with {describe_callable(function)}"
        for name in _fields_read(*code):
            require_field(schema, name, what=what)


def describe_callable(function: Callable[..., Any]) -> str:
    """What to call a function in a message."""
    name = getattr(function, "__name__", None)
    if name == "<lambda>":
        return "the lambda"
    return f"'{name}'" if name else f"the {type(function).__name__}"


def is_coroutine(function: Any) -> bool:
    """Whether what it returns must be awaited."""
    called = function if inspect.isroutine(function) else getattr(type(function), "__call__", None)  # noqa: B004 - the method itself
    tests = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(test(each) for test in tests for each in (function, called))


def _check_annotation(function: Any, verb: str, schema: pa.Schema) -> None:
    declared = _row_annotation(function)
    if declared is None:
        return
    what = f"{verb} with {describe_callable(function)}"
    for field in as_schema(declared):
        found = require_field(schema, field.name, what=what)
        if not found.type.equals(field.type):
            raise SchemaError(
                f"{what}: {declared.__name__} says that '{field.name}' is {field.type}, but the stream"
                f" has {found.type}."
            )


def _row_annotation(function: Any) -> Any:
    """The class that the parameter is annotated with, if it declares fields."""
    try:
        hints = typing.get_type_hints(function)
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError, NameError, AttributeError):
        return None
    annotation = hints.get(next(iter(parameters), ""))
    if not isinstance(annotation, type):
        return None
    declares = dataclasses.is_dataclass(annotation) or typing.is_typeddict(annotation)
    return annotation if declares else None


def _code_of(function: Any) -> tuple[CodeType, str] | None:
    """The code that will see the row, and the name of the row in it."""
    place = 0
    if inspect.ismethod(function):
        function, place = function.__func__, 1
    # A wrapper decides itself what it hands on, so only a bare function is read.
    if not isinstance(function, FunctionType):
        return None
    code = function.__code__
    if code.co_argcount <= place:
        return None
    return code, code.co_varnames[place]


def _fields_read(code: CodeType, row: str) -> Iterator[str]:
    if not _GUARDS.isdisjoint(code.co_names) or _catches(code):
        return
    steps = [step for step in dis.get_instructions(code) if step.opname not in _SKIPPED]
    if any(_rebinds(step, row) for step in steps):
        return
    for place, step in enumerate(steps[:-1]):
        following = steps[place + 1]
        if not _loads(step, row):
            continue
        if following.opname in _ATTRIBUTE and not str(following.argval).startswith("_"):
            yield str(following.argval)
        elif (name := _subscript(following, steps[place + 2 : place + 3])) is not None:
            yield name
    # Comprehensions (before 3.12) and inner functions see the row as a free variable.
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and row in inner.co_freevars:
            yield from _fields_read(inner, row)


def _loads(step: dis.Instruction, row: str) -> bool:
    """The row is on top of the stack after this instruction."""
    if "LOAD_FAST" not in step.opname and not step.opname.startswith("LOAD_DEREF"):
        return False
    top = step.argval[-1] if isinstance(step.argval, tuple) else step.argval
    return bool(top == row)


def _subscript(key: dis.Instruction, after: list[dis.Instruction]) -> str | None:
    """The name in `row["name"]`."""
    if key.opname != "LOAD_CONST" or not isinstance(key.argval, str) or not after:
        return None
    operation = after[0]
    if operation.opname not in _SUBSCRIPT:
        return None
    # From 3.14 on a subscript is a BINARY_OP, told apart from `row + "text"` by its sign.
    if operation.opname == "BINARY_OP" and "[" not in operation.argrepr:
        return None
    return key.argval


def _rebinds(step: dis.Instruction, row: str) -> bool:
    if "STORE_FAST" not in step.opname and not step.opname.startswith(("STORE_DEREF", "DELETE_")):
        return False
    if isinstance(step.argval, tuple):
        # STORE_FAST_LOAD_FAST stores its first name, STORE_FAST_STORE_FAST both.
        stored = step.argval if step.opname.count("STORE_FAST") == 2 else step.argval[:1]
        return row in stored
    return bool(step.argval == row)


def _catches(code: CodeType) -> bool:
    """The function has a handler that could answer a missing field."""
    handlers = {"CHECK_EXC_MATCH", "POP_EXCEPT"}
    return any(step.opname in handlers for step in dis.get_instructions(code))
