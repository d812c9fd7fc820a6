"""What is kept of one side of a window join, by pane, until the last window of the pane is over.

A window is joined once, whole, so nothing has to be found by key before that: rows lie in pieces, those of a key group
that came together, and a piece is one row of a table. Where late rows may come, each piece also has the hashes of its
keys, so that the few rows that they meet are found without reading the others. Of the right of a semi or anti join it
is enough to know which keys there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.join_nodes import WindowJoin
from headrace._runtime.aggregates.lists import lists_of
from headrace._runtime.arrivals import PLACE_BITS, Arrivals
from headrace._runtime.joins.sides import Side
from headrace._runtime.operator import HASH
from headrace._runtime.plain_keys import number_keys
from headrace._runtime.state import ShardState, Table, TableSpec, ValueSpec
from headrace._runtime.unfolded import TIMESTAMP
from headrace.keys import KEY_GROUPS, extend_hashes, key_groups, lowest_hashes

__all__ = ["Kept", "Wanted", "by_pane", "empty", "kept_of", "kept_table", "only_keys"]

Integers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

_PIECE = pa.schema([("group", pa.uint8()), ("number", pa.int64())])
_COUNT = "count"
_ROWS = "rows"
_HASHES = "hashes"
_LEAST_FLAGS = 1 << 12


def only_keys(node: WindowJoin, side: int) -> bool:
    """Whether it is enough to know which keys a side has."""
    return side == 1 and node.how in ("semi", "anti")


def kept_table(node: WindowJoin, number: int) -> TableSpec:
    """The table of one side."""
    side = Side.of(node, number)
    if only_keys(node, number):
        return TableSpec(_name(number), side.keys)
    values = [
        ValueSpec(_COUNT, pa.int64(), 0),
        ValueSpec(_ROWS, pa.list_(pa.struct(list(side.sent)))),
    ]
    if node.lateness_us:
        values.append(ValueSpec(_HASHES, pa.list_(pa.uint64())))
    return TableSpec(_name(number), _PIECE, tuple(values))


def kept_of(node: WindowJoin, number: int, state: ShardState) -> Kept:
    """What is kept of one side."""
    kind = _Keys if only_keys(node, number) else _Pieces
    return kind(node, number, state)


def by_pane(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each pane of a sent batch, earliest first, in each by key group."""
    panes: Integers = batch.column(TIMESTAMP).to_numpy()
    groups = key_groups(batch.column(HASH).to_numpy())
    one_pane = bool((panes == panes[0]).all())
    if not one_pane or (groups[1:] < groups[:-1]).any():
        order = np.argsort(groups, kind="stable")
        if not one_pane:
            order = order[np.argsort(_ranks(batch.column(TIMESTAMP))[order], kind="stable")]
        batch, panes = batch.take(pa.array(order)), panes[order]
    edges = [0, *(np.flatnonzero(np.diff(panes)) + 1).tolist(), len(panes)]
    for start, stop in pairwise(edges):
        yield int(panes[start]), batch.slice(start, stop - start)


def _ranks(panes: pa.Array) -> npt.NDArray[Any]:
    """The place of each pane among them all, as numbers so small that they are sorted in no time."""
    encoded = panes.dictionary_encode()
    distinct = len(encoded.dictionary)
    ranks = np.empty(distinct, np.min_scalar_type(distinct))
    ranks[np.argsort(encoded.dictionary.to_numpy())] = np.arange(distinct)
    found: npt.NDArray[Any] = ranks[encoded.indices.to_numpy()]
    return found


class Wanted:
    """Some hashes, to be looked for among many. Others may seem to be among them: whoever asks compares keys anyway."""

    def __init__(self, hashes: Hashes) -> None:
        size = max(_LEAST_FLAGS, 1 << (8 * len(hashes)).bit_length())
        self._mask = np.uint64(size - 1)
        self._flags = np.zeros(size, np.bool_)
        self._flags[hashes & self._mask] = True
        #: The key groups that they are of.
        self.groups = np.zeros(KEY_GROUPS, np.bool_)
        self.groups[key_groups(hashes)] = True

    def places_in(self, hashes: Hashes) -> Integers:
        """Where they are."""
        return np.flatnonzero(self._flags[hashes & self._mask])


class Kept(ABC):
    """The kept rows of one side, by `columns`. Panes that are not there are as good as empty ones."""

    def __init__(self, node: WindowJoin, number: int, state: ShardState) -> None:
        # Configuration
        self.side = Side.of(node, number)
        self.columns = self.side.keys if only_keys(node, number) else self.side.sent
        self._name = _name(number)
        # Checkpointed
        self._state = state

    @property
    def panes(self) -> list[int]:
        """The panes that have rows, in order."""
        return self._state.buckets(self._name)

    @abstractmethod
    def add(self, pane: int, batch: pa.RecordBatch) -> None:
        """Keep sent rows of one pane, which are in the order of their key groups."""

    @abstractmethod
    def rows(self, pane: int) -> int:
        """How many rows a pane has."""

    @abstractmethod
    def sizes(self, panes: Sequence[int]) -> Integers:
        """How many rows each key group has in these panes."""

    @abstractmethod
    def read(self, panes: Sequence[int], groups: range) -> pa.RecordBatch:
        """The rows of these panes and groups."""

    @abstractmethod
    def read_some(self, pane: int, wanted: Wanted) -> pa.RecordBatch:
        """All rows of a pane with keys of these hashes, and perhaps others."""

    def drop_before(self, pane: int) -> None:
        """Forget earlier panes."""
        panes = self.panes
        if panes and panes[0] < pane:
            self._state.drop_before(self._name, pane)

    def _table(self, pane: int) -> Table:
        return self._state.table(self._name, pane)

    def _tables(self, panes: Sequence[int]) -> list[Table]:
        present = set(self.panes)
        return [self._table(pane) for pane in panes if pane in present]


class _Pieces(Kept):
    """Rows in pieces."""

    def __init__(self, node: WindowJoin, number: int, state: ShardState) -> None:
        super().__init__(node, number, state)
        self._hashed = node.lateness_us > 0
        self._names = self.side.sent.names
        self._rows = pa.list_(pa.struct(list(self.side.sent)))
        self._arrivals = Arrivals(state)

    def add(self, pane: int, batch: pa.RecordBatch) -> None:
        hashes: Hashes = batch.column(HASH).to_numpy()
        sizes = np.bincount(key_groups(hashes), minlength=KEY_GROUPS)
        groups = np.flatnonzero(sizes).astype(np.uint8)
        sizes = sizes[groups]
        owners = lowest_hashes(groups)
        numbers = pa.array(self._arrivals.count(owners) >> PLACE_BITS)
        table = self._table(pane)
        slots, _ = table.upsert(extend_hashes(owners, [numbers]), [pa.array(groups), numbers])
        table.put(_COUNT, slots, sizes)
        rows = batch.select(self._names).to_struct_array()
        table.put(_ROWS, slots, lists_of(rows, sizes, self._rows))
        if self._hashed:
            table.put(_HASHES, slots, lists_of(batch.column(HASH), sizes, pa.list_(pa.uint64())))

    def rows(self, pane: int) -> int:
        return sum(int(table.values(_COUNT)[table.live()].sum()) for table in self._tables([pane]))

    def sizes(self, panes: Sequence[int]) -> Integers:
        sizes = np.zeros(KEY_GROUPS, np.int64)
        for table in self._tables(panes):
            slots = table.live()
            np.add.at(sizes, table.key(0, slots).to_numpy(), table.values(_COUNT)[slots])
        return sizes

    def read(self, panes: Sequence[int], groups: range) -> pa.RecordBatch:
        parts = []
        for table in self._tables(panes):
            slots = table.live()
            whose = table.key(0, slots).to_numpy()
            slots = slots[(whose >= groups.start) & (whose < groups.stop)]
            parts.append(table.items(_ROWS, slots))
        return _batch(parts, self.columns)

    def read_some(self, pane: int, wanted: Wanted) -> pa.RecordBatch:
        parts = []
        for table in self._tables([pane]):
            slots = table.live()
            slots = slots[wanted.groups[table.key(0, slots).to_numpy()]]
            places = wanted.places_in(table.items(_HASHES, slots).to_numpy())
            parts.append(table.items(_ROWS, slots, places))
        return _batch(parts, self.columns)


class _Keys(Kept):
    """Which keys there are."""

    def add(self, pane: int, batch: pa.RecordBatch) -> None:
        # Tasks send each key once, but several may send the same.
        _, firsts = number_keys(self.side.key_columns(batch))
        if len(firsts) < batch.num_rows:
            batch = batch.take(pa.array(firsts))
        hashes: Hashes = batch.column(HASH).to_numpy()
        self._table(pane).upsert(hashes, self.side.key_columns(batch))

    def rows(self, pane: int) -> int:
        return self._state.rows(self._name, pane)

    def sizes(self, panes: Sequence[int]) -> Integers:
        groups = [key_groups(table.hashes(table.live())) for table in self._tables(panes)]
        return np.bincount(np.concatenate([np.empty(0, np.uint8), *groups]), minlength=KEY_GROUPS)

    def read(self, panes: Sequence[int], groups: range) -> pa.RecordBatch:
        parts = []
        for table in self._tables(panes):
            slots = table.live()
            whose = key_groups(table.hashes(slots))
            slots = slots[(whose >= groups.start) & (whose < groups.stop)]
            parts.append(self._struct(table, slots))
        return _batch(parts, self.columns)

    def read_some(self, pane: int, wanted: Wanted) -> pa.RecordBatch:
        parts = []
        for table in self._tables([pane]):
            slots = table.live()
            parts.append(self._struct(table, slots[wanted.places_in(table.hashes(slots))]))
        return _batch(parts, self.columns)

    def _struct(self, table: Table, slots: Integers) -> pa.StructArray:
        return pa.StructArray.from_arrays(table.keys(slots), fields=list(self.side.keys))


def empty(schema: pa.Schema) -> pa.RecordBatch:
    """No rows."""
    return pa.RecordBatch.from_pylist([], schema=schema)


def _batch(parts: Sequence[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    if not parts:
        return empty(schema)
    whole = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    return pa.RecordBatch.from_struct_array(whole)


def _name(number: int) -> str:
    return f"side {number}"
