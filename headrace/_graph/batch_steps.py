"""What a function on columns cannot have, told when its step is built."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.errors import BuildError
from headrace.process_functions import KeyedBatchFunction
from headrace.state import StateSpec

__all__ = ["check_batch_step"]


def check_batch_step(
    function: Any, states: Iterable[StateSpec], keys: Sequence[str], on_error: str, *, ordered: bool
) -> None:
    """Refuse what needs one row or one key at a time."""
    name = type(function).__name__
    if on_error != "fail":
        raise BuildError(
            f'{name} gets all rows at once, and nobody can tell on which of them it fails: on_error="dead_letter" needs'
            " an hr.KeyedProcessFunction."
        )
    if ordered:
        raise BuildError(
            f"{name} gets all rows at once: ordered=True, where timers come between rows, needs an"
            " hr.KeyedProcessFunction. Sort the batch by ctx.timestamps if their order is all that matters."
        )
    if "time" in keys and type(function).on_timers is not KeyedBatchFunction.on_timers:
        raise BuildError(
            f"{name}.on_timers gets the columns of the key and 'time', so no key can have that name; rename it with"
            " select(...) before key_by."
        )
    for spec in states:
        _check_state(name, spec)


def _check_state(owner: str, spec: StateSpec) -> None:
    if spec.kind != "value":
        raise BuildError(
            f"{owner}.{spec.name}: an hr.KeyedBatchFunction reads and writes state as columns, which only hr.state.Value"
            f" has, and this is a {spec.kind}; use Values, or derive from hr.KeyedProcessFunction, row by row."
        )
    if spec.codec is not None:
        raise BuildError(
            f"{owner}.{spec.name}: a codec works on one object at a time, and an hr.KeyedBatchFunction on columns; declare"
            f" what is stored ({spec.type}), or derive from hr.KeyedProcessFunction, row by row."
        )
