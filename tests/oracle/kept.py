"""State of process functions as an oracle keeps it: plain dicts, copied on every way in and out.

    key -> state -> slot -> (value, when it was touched)

A value, a reduced value and an accumulator have one slot, items of a list are numbered, a map has its keys. So a
time to live is one rule for all kinds: a piece is gone when time has reached touched + ttl.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from headrace.state import StateSpec

__all__ = ["KINDS", "Kept", "Now", "expired"]

_ONLY = ""


class Now(NamedTuple):
    """Where the interpreter stands: the key, the time of the row or timer, and what time it is."""

    key: Any
    at: int
    watermark: int
    clock: int


#: slot -> (value, touched)
Pieces = dict[Any, tuple[Any, int]]


def expired(spec: StateSpec, touched: int, now: Now) -> bool:
    """Whether a piece of state has outlived its time."""
    if spec.ttl is None:
        return False
    reached = now.watermark if spec.ttl.time == "event" else now.clock
    return reached >= touched + spec.ttl.ttl_us


class Kept:
    """One state of a function, of whichever key is being processed."""

    def __init__(
        self, spec: StateSpec, pieces: Callable[[], Pieces], now: Callable[[], Now]
    ) -> None:
        self._spec = spec
        self._pieces = pieces
        self._now = now

    def clear(self) -> None:
        """Take all away."""
        self._pieces().clear()

    def _read(self, *only: Any) -> dict[Any, Any]:
        """What can be seen, in all slots or in these, and by that touched if reading touches."""
        found = {
            slot: copy.deepcopy(value)
            for slot, (value, touched) in self._pieces().items()
            if (not only or slot in only) and not expired(self._spec, touched, self._now())
        }
        if self._spec.ttl is not None and self._spec.ttl.update == "read_and_write":
            for slot, value in found.items():
                self._write(slot, value, self._pieces()[slot][1])
        return found

    def _write(self, slot: Any, value: Any, least: int | None = None) -> None:
        in_event_time = self._spec.ttl is None or self._spec.ttl.time == "event"
        touched = self._now().at if in_event_time else self._now().clock
        # To read never shortens a life.
        touched = touched if least is None else max(touched, least)
        self._pieces()[slot] = (copy.deepcopy(value), touched)


class _Value(Kept):
    def value(self) -> Any:
        return self._read().get(_ONLY)

    def update(self, value: Any) -> None:
        self._write(_ONLY, value)


class _List(Kept):
    def get(self) -> list[Any]:
        return list(self._read().values())

    def add(self, value: Any) -> None:
        self._write(max(self._pieces(), default=0) + 1, value)

    def add_all(self, values: Iterable[Any]) -> None:
        for value in values:
            self.add(value)

    def update(self, values: Iterable[Any]) -> None:
        self.clear()
        self.add_all(values)


class _Map(Kept):
    def get(self, key: Any, default: Any = None) -> Any:
        return self._read(key).get(key, default)

    def put(self, key: Any, value: Any) -> None:
        self._write(key, value)

    def put_all(self, entries: Mapping[Any, Any]) -> None:
        for key, value in entries.items():
            self._write(key, value)

    def remove(self, key: Any) -> None:
        self._pieces().pop(key, None)

    def contains(self, key: Any) -> bool:
        return key in self._read(key)

    def keys(self) -> list[Any]:
        return [key for key, _ in self.items()]

    def values(self) -> list[Any]:
        return [value for _, value in self.items()]

    def items(self) -> list[tuple[Any, Any]]:
        return sorted(self._read().items())

    def is_empty(self) -> bool:
        return not len(self)

    __setitem__, __contains__ = put, contains

    def __getitem__(self, key: Any) -> Any:
        return self._read(key)[key]

    def __delitem__(self, key: Any) -> None:
        self[key]
        self.remove(key)

    def __len__(self) -> int:
        # To count is not to read: nothing is touched.
        return sum(
            not expired(self._spec, touched, self._now()) for _, touched in self._pieces().values()
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())


class _Reducing(Kept):
    def get(self) -> Any:
        return self._read().get(_ONLY)

    def add(self, value: Any) -> None:
        there = self._read()
        self._write(_ONLY, self._spec.function(there[_ONLY], value) if there else value)


class _Aggregating(Kept):
    def get(self) -> Any:
        there = self._read()
        return self._spec.function.get_result(there[_ONLY]) if there else None

    def add(self, value: Any) -> None:
        there = self._read()
        before = there[_ONLY] if there else self._spec.function.create_accumulator()
        self._write(_ONLY, self._spec.function.add(value, before))


KINDS: Mapping[str, type[Kept]] = {
    "value": _Value,
    "list": _List,
    "map": _Map,
    "reducing": _Reducing,
    "aggregating": _Aggregating,
    "broadcast": _Map,
}
