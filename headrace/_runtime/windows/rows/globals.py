"""What a function keeps for all windows of a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headrace._runtime.columns import values
from headrace._runtime.state import ShardState
from headrace._runtime.windows.rows.layout import GLOBALS, Layout
from headrace.keys import hash_keys

__all__ = ["GlobalState"]


class GlobalState:
    """By key: a list of values, read when the key is first looked at and written when the epoch is over."""

    def __init__(self, layout: Layout, state: ShardState) -> None:
        self._declared = layout.state
        self._state = state
        self._lists: dict[tuple[Any, ...], list[Any]] = {}
        self._keys: dict[tuple[Any, ...], list[pa.Array]] = {}

    def of(self, keys: Sequence[pa.Array]) -> list[list[Any]]:
        """The values of each key. Equal keys have the same list."""
        if self._declared is None or not len(self._declared):
            return [[] for _ in range(len(keys[0]))]
        names = [_name(key) for key in zip(*map(values, keys), strict=True)]
        missing = {name: row for row, name in enumerate(names) if name not in self._lists}
        if missing:
            self._read(list(missing), list(missing.values()), keys)
        return [self._lists[name] for name in names]

    def write(self, *, ended: bool) -> None:
        """Put everything back; at the end of all time nothing stays."""
        if self._declared is None or not len(self._declared):
            return
        if ended:
            for bucket in self._state.buckets(GLOBALS):
                table = self._state.table(GLOBALS, bucket)
                table.remove(table.live())
            return
        there = [name for name, kept in self._lists.items() if any(v is not None for v in kept)]
        empty = [name for name in self._lists if name not in set(there)]
        if empty and self._state.buckets(GLOBALS):
            self._remove(empty)
        if there:
            self._write(there)

    def _read(self, names: list[Any], rows: list[int], keys: Sequence[pa.Array]) -> None:
        assert self._declared is not None
        columns = [key.take(pa.array(rows)) for key in keys]
        for number, name in enumerate(names):
            self._lists[name] = [None] * len(self._declared)
            self._keys[name] = [column.slice(number, 1) for column in columns]
        if not self._state.buckets(GLOBALS):
            return
        table = self._state.table(GLOBALS, 0)
        slots = table.find(hash_keys(columns), columns)
        there = np.flatnonzero(slots >= 0)
        for number, spec in enumerate(self._declared.specs):
            found = self._declared.read(number, table.arrow(spec.name, slots[there]))
            for place, value in zip(there.tolist(), found, strict=True):
                self._lists[names[place]][number] = value

    def _remove(self, names: list[Any]) -> None:
        columns = self._columns(names)
        table = self._state.table(GLOBALS, 0)
        slots = table.find(hash_keys(columns), columns)
        table.remove(slots[slots >= 0])

    def _write(self, names: list[Any]) -> None:
        assert self._declared is not None
        columns = self._columns(names)
        table = self._state.table(GLOBALS, 0)
        slots, _ = table.upsert(hash_keys(columns), columns)
        for number, spec in enumerate(self._declared.specs):
            objects = [self._lists[name][number] for name in names]
            table.put(spec.name, slots, self._declared.write(number, objects))

    def _columns(self, names: list[Any]) -> list[pa.Array]:
        parts = zip(*(self._keys[name] for name in names), strict=True)
        return [pa.concat_arrays(part) for part in parts]


def _name(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key that a dictionary finds: a NaN is not equal to itself."""
    return tuple("not a number" if part != part else part for part in key)  # noqa: PLR0124 - a NaN
