"""State that nothing ever takes away, found when a step is built.

A state of a key needs a time to live, or code that clears it, or the word that it is meant to stay. Clearing is looked
for in the compiled code of all methods of the function's class: `self.x.clear()`, `self.x.remove(k)`,
`del self.x[k]`, `self.x.update([])`. A handle that goes elsewhere (another name, an argument) may be cleared there, so
nothing is concluded then: a warning is for what is certain to grow with the keys. The code never runs.
"""

from __future__ import annotations

import dis
import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from headrace._graph.nodes import KeyedProcess
from headrace._graph.places import calling_depth
from headrace.errors import UnboundedStateWarning
from headrace.state import StateSpec

__all__ = [
    "has_few_values",
    "warn_of_unbounded",
    "warn_of_unbounded_join",
    "warn_of_unbounded_reduce",
    "warn_of_unbounded_rows",
]

#: Of keys that may come and go; the other kinds belong to the step as a whole.
_OF_KEYS = frozenset({"value", "list", "map", "reducing", "aggregating"})
_CLEARS = frozenset({"clear", "remove"})
_ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_SKIPPED = frozenset(
    {"CACHE", "EXTENDED_ARG", "NOP", "RESUME", "PRECALL", "PUSH_NULL", "COPY_FREE_VARS"}
)
#: Functions that look at a map and leave it as it is.
_READERS = frozenset(
    "all any bool dict iter len list max min print set sorted str sum tuple".split()
)


def warn_of_unbounded(node: KeyedProcess, attributes: Mapping[str, str]) -> None:
    """Warn once of all states of a step that only grow. `attributes` says where their handles are."""
    keys = node.keys[0]
    if not keys or all(has_few_values(node.input_schemas[0].field(key).type) for key in keys):
        return
    growing = [
        spec
        for spec in node.states
        if spec.kind in _OF_KEYS
        and spec.ttl is None
        and not spec.forever
        and spec.name in attributes
        and not _is_cleared(node.function, attributes[spec.name], spec)
    ]
    if growing:
        owner = type(node.function)
        _warn(
            f"'{node.uid}' ({node.where}) keeps {_listed(growing)} for every {_key(keys)} that ever comes: there is"
            f" no TTL, and nothing in {owner.__name__} clears {_it(growing)}. Give {_it(growing)} a time to live"
            f" (hr.state.TTL(...)), clear {_it(growing)}, for example in on_timer, or say that it is meant:"
            f" {_ways_to_say_so(growing, owner)}."
        )


def warn_of_unbounded_reduce(uid: str, where: str, keys: Iterable[tuple[str, pa.DataType]]) -> None:
    """Warn of a rolling reduce, which has a row for every key that ever came."""
    keys = tuple(keys)
    if not all(has_few_values(kind) for _, kind in keys):
        _warn(
            f"'{uid}' ({where}) keeps a row for every {_key([name for name, _ in keys])} that ever comes. Reduce in a"
            " window, or say that it is meant: reduce(..., forever=True)."
        )


def warn_of_unbounded_rows(
    uid: str, where: str, keys: Iterable[tuple[str, pa.DataType]], rule: str
) -> None:
    """Warn of a step that keeps a row for every key that ever came."""
    keys = tuple(keys)
    if not all(has_few_values(kind) for _, kind in keys):
        _warn(
            f"'{uid}' ({where}) keeps a row for every {_key([name for name, _ in keys])} that ever comes. Give it a time"
            f" to live, {rule}(..., ttl=timedelta(...)), or say that it is meant: {rule}(..., forever=True)."
        )


def warn_of_unbounded_join(
    uid: str, where: str, inputs: Iterable[str], once: Iterable[str] = ()
) -> None:
    """Warn of a regular join that keeps all rows of some inputs, or of each key of some `once` a row."""
    named = [f"every row of {_key(inputs)}"] if (inputs := tuple(inputs)) else []
    named += [f"a row for every key of {_key(once)}"] if (once := tuple(once)) else []
    if named:
        _warn(
            f"The join '{uid}' ({where}) keeps {' and '.join(named)} for ever, because a partner may always come. Give rows a"
            " time to live, join(..., ttl=timedelta(...)); if both have event time take interval_join or window_join,"
            " which forget; or say that it is meant: join(..., forever=True)."
        )


def has_few_values(kind: pa.DataType) -> bool:
    """Whether a key column of this type can have a few hundred values at most."""
    if pt.is_dictionary(kind):
        return kind.index_type.bit_width == 8 or has_few_values(kind.value_type)
    return bool(pt.is_boolean(kind) or pt.is_int8(kind) or pt.is_uint8(kind) or pt.is_null(kind))


def _warn(sentence: str) -> None:
    warnings.warn(sentence, UnboundedStateWarning, stacklevel=calling_depth())


def _key(keys: Iterable[str]) -> str:
    return " and ".join(f"'{key}'" for key in keys)


def _it(specs: list[StateSpec]) -> str:
    return "it" if len(specs) == 1 else "them"


def _listed(specs: list[StateSpec]) -> str:
    names = ", ".join(f"'{spec.name}'" for spec in specs)
    return f"the state {names}" if len(specs) == 1 else f"the states {names}"


def _ways_to_say_so(specs: list[StateSpec], owner: type) -> str:
    ways = []
    for spec in specs:
        if spec.name not in inspect.get_annotations(owner) and not hasattr(owner, spec.name):
            ways.append(
                f'{spec.kind.capitalize()}StateDescriptor("{spec.name}", ..., forever=True)'
            )
        elif spec.kind in ("reducing", "aggregating"):
            fold = "reduce" if spec.kind == "reducing" else "aggregate"
            ways.append(f"{spec.name}: ... = hr.state.keep({fold}=..., forever=True)")
        else:
            ways.append(f"{spec.name}: ... = hr.state.FOREVER")
    return "; ".join(ways)


def _is_cleared(function: Any, attribute: str, spec: StateSpec) -> bool:
    return any(_clears(code, self, attribute, spec) for code, self in _codes(function))


def _codes(function: Any) -> Iterator[tuple[CodeType, str]]:
    """The code of every method of a class, and what the instance is called in it."""
    for owner in type(function).__mro__:
        if not owner.__module__.startswith("headrace."):
            for member in vars(owner).values():
                for method in _functions(member):
                    code = method.__code__
                    yield from _nested(code, code.co_varnames[0] if code.co_argcount else "self")


def _functions(member: Any) -> Iterator[FunctionType]:
    """A member as functions: what it is, what it wraps, what a decorator holds on to."""
    if isinstance(member, property):
        yield from _functions(member.fget)
    member = inspect.unwrap(getattr(member, "__func__", member))
    if isinstance(member, FunctionType):
        yield member
        for cell in member.__closure__ or ():
            if isinstance(cell.cell_contents, FunctionType) and cell.cell_contents is not member:
                yield cell.cell_contents


def _nested(code: CodeType, self: str) -> Iterator[tuple[CodeType, str]]:
    yield code, self
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and self in inner.co_freevars:
            yield from _nested(inner, self)


def _clears(code: CodeType, self: str, attribute: str, spec: StateSpec) -> bool:
    steps = [step for step in dis.get_instructions(code) if step.opname not in _SKIPPED]
    deletes = any(s.opname == "DELETE_SUBSCR" for s in steps) or not _CLEARS.isdisjoint(
        code.co_names
    )
    for place, step in enumerate(steps[:-2]):
        if not _loads(step, self):
            continue
        if not _is_attribute(steps[place + 1]):
            if _is_handed_on(steps[place + 1]):
                return True
        elif steps[place + 1].argval == attribute:
            before = steps[place - 1] if place else None
            if _may_clear(before, steps[place + 2 :], spec, deletes=deletes):
                return True
    return False


def _may_clear(
    before: dis.Instruction | None, after: list[dis.Instruction], spec: StateSpec, *, deletes: bool
) -> bool:
    """What becomes of a handle, by the instruction before it was loaded and those behind."""
    if _is_attribute(after[0]):
        return after[0].argval in _CLEARS or _updates_to_nothing(after, spec)
    if spec.kind != "map":
        # Other kinds have methods only, so this is a handle that goes elsewhere.
        return True
    return deletes or _is_handed_on(after[0], before)


def _updates_to_nothing(after: list[dis.Instruction], spec: StateSpec) -> bool:
    """Other items may be none; a value of None is no value."""
    if after[0].argval != "update":
        return False
    return spec.kind == "list" or (after[1].opname == "LOAD_CONST" and after[1].argval is None)


def _is_handed_on(after: dis.Instruction, before: dis.Instruction | None = None) -> bool:
    """It gets another name, or goes into a call that may do anything with it."""
    if after.opname.startswith(("CALL", "KW_NAMES")):
        return before is None or before.argval not in _READERS
    return after.opname.startswith(("STORE_FAST", "STORE_DEREF", "BUILD_", "RETURN_VALUE"))


def _is_attribute(step: dis.Instruction) -> bool:
    return step.opname in _ATTRIBUTE


def _loads(step: dis.Instruction, self: str) -> bool:
    if "LOAD_FAST" not in step.opname and not step.opname.startswith("LOAD_DEREF"):
        return False
    top = step.argval[-1] if isinstance(step.argval, tuple) else step.argval
    return bool(top == self)
