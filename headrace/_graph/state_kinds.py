"""Which kinds of state a function may have: those of keys need keys, those of the step as a whole need none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from headrace.errors import BuildError
from headrace.state import StateKind, StateSpec

__all__ = ["check_kinds"]

_OF_KEYS: Collection[StateKind] = ("value", "list", "map", "reducing", "aggregating")
_OF_STEPS: Collection[StateKind] = ("operator_list", "operator_union")
_ONE_VALUE: Collection[StateKind] = ("value", "reducing", "aggregating")
#: Which of them a key has is stored as the bits of one number.
_MOST_VALUES = 63
_WORDS: Mapping[StateKind, str] = {
    "operator_list": "OperatorList",
    "operator_union": "OperatorUnion",
}


def check_kinds(
    function: Any, states: Iterable[StateSpec], kind: str, keys: tuple[tuple[str, ...], ...]
) -> None:
    """Refuse a state that a step of this kind and with these keys (see `KeyedProcess`) cannot have."""
    allowed = {
        *(_OF_KEYS if keys[0] else _OF_STEPS),
        *(("broadcast",) if kind == "broadcast" else ()),
    }
    states = tuple(states)
    _check_many(function, [spec for spec in states if spec.kind in _ONE_VALUE])
    for spec in states:
        if spec.kind not in allowed:
            word = _WORDS.get(spec.kind, spec.kind.capitalize())
            raise BuildError(
                f"{type(function).__name__}.{spec.name}: hr.state.{word} cannot be used here: {_why(spec)}."
            )


def _check_many(function: Any, values: Sequence[StateSpec]) -> None:
    if len(values) > _MOST_VALUES:
        raise BuildError(
            f"{type(function).__name__} declares {len(values)} states of one value, and a step can have"
            f" {_MOST_VALUES}; put some together as the fields of a dataclass, or use an hr.state.Map."
        )


def _why(spec: StateSpec) -> str:
    if spec.kind == "broadcast":
        return (
            "it is written by broadcast rows; derive from hr.BroadcastProcessFunction or"
            " hr.KeyedBroadcastProcessFunction and connect a stream.broadcast()"
        )
    if spec.kind in _OF_STEPS:
        return "it belongs to a step without keys; take it out, or use the function on a stream without key_by"
    return "it belongs to a key, and these rows have none; call key_by(...) first"
