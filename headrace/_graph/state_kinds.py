"""Which kinds of state a function may have: those of keys need keys, those of the step as a whole need none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from headrace.errors import BuildError
from headrace.state import StateKind, StateSpec

__all__ = ["check_kinds"]

_OF_KEYS: Collection[StateKind] = ("value", "list", "map", "reducing", "aggregating")
_OF_STEPS: Collection[StateKind] = ("operator_list", "operator_union")
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
    for spec in states:
        if spec.kind not in allowed:
            word = _WORDS.get(spec.kind, spec.kind.capitalize())
            raise BuildError(
                f"{type(function).__name__}.{spec.name}: hr.state.{word} cannot be used here: {_why(spec)}."
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
