"""Values on their way into state and out of it.

`detacher` makes of what a user gives the form in which a stored value is read back (rows, lists, dicts, plain
values): checked on the user's line, and nobody else's to change afterwards. `attacher` makes of that form what
the annotation promises. A state is thus the same object's worth before a restart and after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from headrace._runtime.aggregates.rebuild import rebuilder
from headrace._runtime.columns import values
from headrace._runtime.results import Wrong, build_column
from headrace.errors import UserCodeError
from headrace.schema import row_class
from headrace.state import Codec

__all__ = ["attacher", "detacher", "detacher_or_none", "exact_type", "is_nested"]

Change = Callable[[Any], Any]

_PLAIN: dict[pa.DataType, type] = {
    pa.float64(): float,
    pa.string(): str,
    pa.large_string(): str,
    pa.binary(): bytes,
    pa.bool_(): bool,
    pa.date32(): date,
}
_INSTANT = pa.timestamp("us", "UTC")
_LEAST, _GREATEST = -(2**63), 2**63 - 1


def is_nested(kind: pa.DataType) -> bool:
    """Whether values can be changed behind our back."""
    return bool(pt.is_nested(kind))


def detacher(kind: pa.DataType, name: str, uid: str, codec: Codec | None = None) -> Change:
    """A function from what a user gives to the stored form; what does not fit is a `UserCodeError`."""

    def wrong(_: int, what: str) -> UserCodeError:
        return UserCodeError(f"The state '{name}' of step '{uid}' does not take this: {what}.")

    detach = _detacher(kind, name, wrong)
    if codec is None:
        return detach
    encode = codec.encode
    return lambda value: detach(encode(value))


def exact_type(kind: pa.DataType) -> type | None:
    """The class whose values all fit as they are, if there is one."""
    return None if kind == pa.date32() else _PLAIN.get(kind)


def detacher_or_none(field: pa.Field, wrong: Wrong) -> Change:
    """The same for a field of a result, which may be null."""
    return _or_none(_detacher(field.type, field.name, wrong))


def attacher(annotation: Any, kind: pa.DataType, codec: Codec | None = None) -> Change | None:
    """A function from the stored form to what the annotation promises; None if they are the same."""
    again = rebuilder(annotation) if is_nested(kind) else None
    if codec is None:
        return again
    decode = codec.decode
    return decode if again is None else lambda value: decode(again(value))


def _detacher(kind: pa.DataType, name: str, wrong: Wrong) -> Change:
    slow = _by_arrow(pa.field(name, kind), wrong)
    if kind == pa.int64():
        return lambda value: (
            value if type(value) is int and _LEAST <= value <= _GREATEST else slow(value)
        )
    if kind == _INSTANT:
        return lambda value: (
            value if type(value) is datetime and value.tzinfo is UTC else slow(value)
        )
    if kind in _PLAIN:
        plain = _PLAIN[kind]
        return lambda value: value if type(value) is plain else slow(value)
    if pt.is_struct(kind):
        return _struct(kind, name, wrong, slow)
    if pt.is_list(kind):
        item = _or_none(_detacher(kind.value_type, name, wrong))
        return lambda value: (
            [item(part) for part in value] if isinstance(value, list | tuple) else slow(value)
        )
    if pt.is_map(kind):
        key = _detacher(kind.key_type, name, wrong)
        item = _or_none(_detacher(kind.item_type, name, wrong))
        return lambda value: (
            {key(k): item(v) for k, v in value.items()}
            if isinstance(value, Mapping)
            else slow(value)
        )
    return slow


def _struct(kind: pa.DataType, name: str, wrong: Wrong, slow: Change) -> Change:
    make = row_class(pa.schema(list(kind)))._make
    parts = [(f.name, _or_none(_detacher(f.type, f"{name}.{f.name}", wrong))) for f in kind]

    def detach(value: Any) -> Any:
        if isinstance(value, Mapping):
            return slow(value)
        try:
            return make([part(getattr(value, field)) for field, part in parts])
        except AttributeError:
            return slow(value)

    return detach


def _or_none(detach: Change) -> Change:
    return lambda value: None if value is None else detach(value)


def _by_arrow(field: pa.Field, wrong: Wrong) -> Change:
    """What Arrow makes of a value: it converts what it can without loss."""
    is_integer = pt.is_integer(field.type)

    def change(value: Any) -> Any:
        made = values(build_column([value], field, wrong))[0]
        if is_integer and made != value:
            # Arrow cuts fractions off.
            raise wrong(0, f"the field '{field.name}' must be {field.type}, but it is {value!r}")
        return made

    return change
