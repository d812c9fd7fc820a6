"""A table of state: one bucket's rows by key, in slots.

A slot is a row's number for as long as its epoch lasts. Rows that changed are remembered by slot until
`take_changes`, so that writing them down costs what was touched and not what exists. A removed row keeps
its slot, marked dead, until its key comes back or `tidy` renumbers the table between two epochs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.state.arrays import Arrays, Block
from headrace._runtime.state.columns import (
    VarColumn,
    open_column,
    plain,
    same_keys,
    to_numpy,
    write_initial,
)
from headrace._runtime.state.groups import Groups
from headrace._runtime.state.index import (
    ABSENT,
    Hashes,
    Mask,
    Same,
    Slots,
    claim,
    distinct,
    look_up,
    rebuild,
)
from headrace._runtime.state.spec import TableSpec
from headrace.keys import hash_keys

__all__ = ["Table"]

_FIRST_SLOTS = 256
_PROBE_ROWS = 32_768
_USED, _DEAD = 0, 1
_NO_ROWS: Slots = np.empty(0, dtype=np.int64)


class Table:
    """Rows of one bucket by key. `blocks` names the buffers of a replica; without it the table is new."""

    def __init__(self, spec: TableSpec, arrays: Arrays, blocks: Sequence[str] = ()) -> None:
        self.spec = spec
        self._arrays = arrays
        names = list(blocks[1:])
        self.groups = Groups(arrays, names.pop(0) if names else None) if spec.grouped else None
        self.key_columns = [
            open_column(f"k{i}", field.type, arrays, names) for i, field in enumerate(spec.keys)
        ]
        self._values = {
            value.name: open_column(f"v{i}", value.type, arrays, names)
            for i, value in enumerate(spec.values)
        }
        self.block = self._open_block(blocks[0] if blocks else None, _FIRST_SLOTS)
        self._changes: list[Slots] = []

    def _open_block(self, name: str | None, slots: int) -> Block:
        dtypes: dict[str, np.dtype[Any]] = {
            "cells": np.dtype(np.int32),
            "hash": np.dtype(np.uint64),
            "live": np.dtype(np.bool_),
        }
        for column in (*self.key_columns, *self._values.values()):
            dtypes |= column.dtypes(key=column in self.key_columns)
        if name is not None:
            return Block(self._arrays, dtypes, name=name)
        sizes = dict.fromkeys(dtypes, slots) | {"cells": 2 * slots}
        return Block.create(self._arrays, dtypes, sizes)

    @property
    def size(self) -> int:
        """How many rows are live."""
        return self._used - int(self.block.counters[_DEAD])

    @property
    def blocks(self) -> list[str]:
        """The buffers that hold this table, for the header of a replica."""
        groups = [] if self.groups is None else [self.groups.block]
        arenas = [column.arena.block for column in self._var_columns()]
        return [block.name for block in (self.block, *groups, *arenas)]

    def upsert(
        self, hashes: Hashes, keys: Sequence[pa.Array], groups: Hashes | None = None
    ) -> tuple[Slots, Mask]:
        """The slot of each key, and which of them are new. Keys are distinct within a call.

        `groups` are the hashes of the groups of a grouped table, if the caller has them.
        """
        self._arrays.mark_dirty()
        prepared = self._prepare(keys)
        slots = np.empty(len(hashes), dtype=np.int64)
        is_new = np.zeros(len(hashes), dtype=np.bool_)
        # All of them will be there, so it is known at least how large the table gets.
        self._reserve(len(hashes) - self._used)
        for start in range(0, len(hashes), _PROBE_ROWS):
            part = slice(start, start + _PROBE_ROWS)
            slots[part] = self._claim(hashes[part], prepared, start, is_new[part])
        if self.groups is not None and is_new.any():
            new = np.flatnonzero(is_new)
            own = [column.take(plain(new)) for column in keys[:-1]]
            numbers = hash_keys(own) if groups is None else groups[new]
            self.groups.join(slots[new], numbers, self.same_as(own))
        return slots, is_new

    def find(self, hashes: Hashes, keys: Sequence[pa.Array]) -> Slots:
        """The slot of each key, -1 where there is none."""
        prepared = self._prepare(keys)
        slots = np.empty(len(hashes), dtype=np.int64)
        for start in range(0, len(hashes), _PROBE_ROWS):
            part = slice(start, start + _PROBE_ROWS)
            same = self._same(prepared, start)
            slots[part] = look_up(self.block["cells"], self.block["hash"], hashes[part], same)
        if self.block.counters[_DEAD]:
            slots[~self.block["live"][slots]] = ABSENT
        return slots

    def members(
        self, hashes: Hashes, keys: Sequence[pa.Array], *, at_most: int | None = None
    ) -> tuple[Slots, Slots]:
        """The slots of the members of distinct groups, one group behind the other, and how many each has.

        `hashes` and `keys` are the groups' own. Of groups with more members than `at_most` no slots are read.
        """
        assert self.groups is not None
        return self.groups.members(hashes, self.same_as(keys), at_most=at_most)

    def runs(self, hashes: Hashes, keys: Sequence[pa.Array]) -> tuple[Slots, Slots]:
        """Where the members of each row's group start, and how many there are; rows may share groups.

        They stand one behind the other, and `slots_at` tells which they are, until the table changes.
        """
        assert self.groups is not None
        prepared = self._prepare(keys)
        starts, counts = np.empty(len(hashes), np.int64), np.empty(len(hashes), np.int64)
        for start in range(0, len(hashes), _PROBE_ROWS):
            part = slice(start, start + _PROBE_ROWS)
            same = self._same(prepared, start)
            starts[part], counts[part] = self.groups.runs(hashes[part], same)
        return starts, counts

    def slots_at(self, places: Slots) -> Slots:
        """The slots at some places of `runs`."""
        assert self.groups is not None
        return self.groups.slots_at(places)

    def get(self, column: str, slots: Slots) -> npt.NDArray[Any] | pa.Array:
        """A copy of the values in these slots: numpy for fixed-width types, else Arrow."""
        kept = self._values[column]
        if isinstance(kept, VarColumn):
            return kept.gather(self.block, slots)
        return self.block[kept.field][slots]

    def arrow(self, column: str, slots: Slots) -> pa.Array:
        """A copy of the values in these slots as an Arrow array of the declared type."""
        return self._values[column].gather(self.block, slots)

    def items(self, column: str, slots: Slots, places: Slots | None = None) -> pa.Array:
        """A copy of what the lists in these slots hold, one list behind the other; none of them is null.

        With `places`, only of what stands there.
        """
        kept = self._values[column]
        assert isinstance(kept, VarColumn)
        return kept.gather_items(self.block, slots, places)

    def put(self, column: str, slots: Slots, values: npt.NDArray[Any] | pa.Array) -> None:
        """Write values to these slots."""
        self._arrays.mark_dirty()
        kept = self._values[column]
        if isinstance(kept, VarColumn):
            if not isinstance(values, pa.Array):
                values = pa.array(values, type=kept.type)
            kept.write(self.block, slots, values)
        else:
            self.block[kept.field][slots] = to_numpy(values, kept.type)
        self.touch(slots)

    def values(self, column: str) -> npt.NDArray[Any]:
        """The array of a fixed-width column by slot, to change in place; then `touch` the slots.

        It is a view: stale after the next `upsert`, `drop_before` or commit.
        """
        self._arrays.mark_dirty()
        return self.block[self._values[column].field]

    def touch(self, slots: Slots) -> None:
        """These slots changed."""
        if not self._changes or self._changes[-1] is not slots:
            self._changes.append(slots)

    def live(self) -> Slots:
        """The slots of all live rows."""
        if self.block.counters[_DEAD] == 0:
            return np.arange(self._used)
        return np.flatnonzero(self.block["live"][: self._used])

    def keys(self, slots: Slots) -> list[pa.Array]:
        """The key columns of these slots."""
        return [self.key(place, slots) for place in range(len(self.key_columns))]

    def key(self, place: int, slots: Slots) -> pa.Array:
        """One key column of these slots."""
        return self.key_columns[place].gather(self.block, slots)

    def hashes(self, slots: Slots) -> Hashes:
        """The key hashes of these slots."""
        found: Hashes = self.block["hash"][slots]
        return found

    def is_live(self, slots: Slots) -> Mask:
        """Whether the rows of these slots were not removed."""
        flags: Mask = self.block["live"][slots]
        return flags

    def remove(self, slots: Slots) -> None:
        """Remove the rows of these distinct slots."""
        self._arrays.mark_dirty()
        dying = slots[self.block["live"][slots]]
        self.block["live"][dying] = False
        self.block.counters[_DEAD] += dying.size
        if self.groups is not None and dying.size:
            self.groups.leave(dying)
        self.touch(dying)

    def take_changes(self) -> Slots:
        """The slots that changed since the last call, each once, in order."""
        changes, self._changes = self._changes, []
        touched = sum(slots.size for slots in changes)
        if touched * 16 < self._used:
            return distinct(np.concatenate([_NO_ROWS, *changes]))
        mask = np.zeros(self._used, dtype=np.bool_)
        for slots in changes:
            mask[slots] = True
        return np.flatnonzero(mask)

    def tidy(self) -> None:
        """Between epochs: drop dead values and, when half the slots are dead, renumber the rest."""
        dead = int(self.block.counters[_DEAD])
        if dead > _FIRST_SLOTS and 2 * dead > self._used:
            self._arrays.mark_dirty()
            self._renumber()
        for column in self._var_columns():
            if column.is_wasteful(self.size):
                self._arrays.mark_dirty()
                column.compact(self.block, self.live())

    def release(self) -> None:
        """Give all buffers back."""
        for name in self.blocks:
            self._arrays.release(name)

    @property
    def _used(self) -> int:
        return int(self.block.counters[_USED])

    def _var_columns(self) -> list[VarColumn]:
        columns = [*self.key_columns, *self._values.values()]
        return [column for column in columns if isinstance(column, VarColumn)]

    def same_as(self, keys: Sequence[pa.Array]) -> Same:
        """Whether rows with these keys are those of slots; keys of groups lack the last column."""
        return self._same(self._prepare(keys), 0)

    def _prepare(self, keys: Sequence[pa.Array]) -> list[Any]:
        return [key.prepare(values) for key, values in zip(self.key_columns, keys, strict=False)]

    def _same(self, prepared: list[Any], start: int) -> Same:
        return same_keys(self.key_columns, self.block, prepared, start)

    def _claim(self, hashes: Hashes, prepared: list[Any], start: int, is_new: Mask) -> Slots:
        self._reserve(len(hashes))
        used = self._used
        slots, fresh = claim(
            self.block["cells"], self.block["hash"], used, hashes, self._same(prepared, start)
        )
        if fresh.size:
            new = np.arange(used, used + fresh.size)
            for key, values in zip(self.key_columns, prepared, strict=True):
                key.store(self.block, new, values, fresh + start)
            self.block.counters[_USED] = used + fresh.size
            is_new[fresh] = True
            self._begin(new)
        if self.block.counters[_DEAD]:
            self._revive(slots, is_new)
        return slots

    def _begin(self, slots: Slots) -> None:
        """Give rows their initial values."""
        self.block["live"][slots] = True
        for value in self.spec.values:
            write_initial(self.block, self._values[value.name], value, slots)
        self.touch(slots)

    def _revive(self, slots: Slots, is_new: Mask) -> None:
        back = np.flatnonzero(~self.block["live"][slots])
        if back.size:
            is_new[back] = True
            self.block.counters[_DEAD] -= back.size
            self._begin(slots[back])

    def _reserve(self, rows: int) -> None:
        """Make room for so many more slots; cells stay at least twice the slots."""
        slots = len(self.block["hash"])
        if self._used + rows <= slots:
            return
        while slots < self._used + rows:
            slots *= 2
        sizes = dict.fromkeys(self.block, slots) | {"cells": 2 * slots}
        self.block.grow(sizes, blank=frozenset({"cells"}))
        rebuild(self.block["cells"], self.block["hash"][: self._used])

    def _renumber(self) -> None:
        """Copy the live rows into a block of their own."""
        live, old = self.live(), self.block
        new = self._open_block(None, max(_FIRST_SLOTS, 1 << int(live.size - 1).bit_length()))
        for field in old:
            if field != "cells":
                new[field][: live.size] = old[field][live]
        new.counters[:] = old.counters
        new.counters[_USED], new.counters[_DEAD] = live.size, 0
        rebuild(new["cells"], new["hash"][: live.size])
        self.block = new
        old.release()
        if self.groups is not None:
            self.groups.renumber(live)
