"""The tables of a shard by name and bucket, opened from the replica when they are first asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from headrace._runtime.state.arrays import Arrays
from headrace._runtime.state.deltas import apply_rows, rows_of, split_buckets
from headrace._runtime.state.index import Slots
from headrace._runtime.state.spec import TableSpec
from headrace._runtime.state.table import Table
from headrace.endpoints import Json
from headrace.keys import key_groups

__all__ = ["Tables"]


class Tables:
    """Buckets of tables. A bucket without a live row is as good as absent."""

    def __init__(self, specs: Sequence[TableSpec], arrays: Arrays) -> None:
        self.specs = {spec.name: spec for spec in specs}
        self._arrays = arrays
        self._open: dict[str, dict[int, Table]] = {name: {} for name in self.specs}
        # Buckets of the replica that nobody asked for yet: their live rows and buffers.
        self._closed: dict[str, dict[int, tuple[int, list[str]]]] = {n: {} for n in self.specs}

    def restore(self, catalog: Mapping[str, Sequence[Sequence[Json]]]) -> None:
        """Take over the buckets that a header lists; none is opened yet."""
        for name, rows in catalog.items():
            for bucket, size, *blocks in rows:
                self._closed[name][int(bucket)] = (int(size), [str(b) for b in blocks])  # type: ignore[arg-type]

    def catalog(self) -> dict[str, list[list[Json]]]:
        """What `restore` takes."""
        listed: dict[str, list[list[Json]]] = {}
        for name in self.specs:
            closed = self._closed[name].items()
            listed[name] = [[bucket, size, *blocks] for bucket, (size, blocks) in closed]
            for bucket, table in self._open[name].items():
                listed[name].append([bucket, table.size, *table.blocks])
        return listed

    def get(self, name: str, bucket: int) -> Table:
        """The table of a bucket; a new one if there is none."""
        opened = self._open[name]
        if bucket not in opened:
            _, blocks = self._closed[name].pop(bucket, (0, []))
            if not blocks:
                self._arrays.mark_dirty()
            opened[bucket] = Table(self.specs[name], self._arrays, blocks)
        return opened[bucket]

    def buckets(self, name: str) -> list[int]:
        """The buckets that have rows, in order."""
        closed = [bucket for bucket, (size, _) in self._closed[name].items() if size]
        return sorted([*closed, *(b for b, table in self._open[name].items() if table.size)])

    def rows(self, name: str, bucket: int) -> int:
        """How many rows a bucket has."""
        if bucket in self._open[name]:
            return self._open[name][bucket].size
        return self._closed[name].get(bucket, (0, []))[0]

    def drop_before(self, name: str, horizon: int) -> None:
        """Forget the buckets below the horizon."""
        opened, closed = self._open[name], self._closed[name]
        blocks = [block for b in _below(opened, horizon) for block in opened.pop(b).blocks]
        blocks += [block for b in _below(closed, horizon) for block in closed.pop(b)[1]]
        if blocks:
            self._arrays.mark_dirty()
        for block in blocks:
            self._arrays.release(block)

    @property
    def size(self) -> int:
        """Live rows in all tables."""
        closed = sum(size for rows in self._closed.values() for size, _ in rows.values())
        return closed + sum(table.size for table in self._opened())

    def changes(self) -> dict[str, pa.RecordBatch]:
        """The rows that changed since the last call, by table."""
        changed = {}
        for name, opened in self._open.items():
            parts = [(bucket, table, table.take_changes()) for bucket, table in opened.items()]
            changed[name] = rows_of(self.specs[name], parts)
        return {name: rows for name, rows in changed.items() if rows is not None}

    def forget_changes(self) -> None:
        """What was loaded is not a change."""
        for table in self._opened():
            table.take_changes()

    def in_groups(self, groups: range) -> dict[str, pa.RecordBatch]:
        """Every live row of a range of key groups, by table."""
        found = {}
        for name in self.specs:
            tables = [(bucket, self.get(name, bucket)) for bucket in self.buckets(name)]
            parts = [(bucket, table, _slots_in(table, groups)) for bucket, table in tables]
            found[name] = rows_of(self.specs[name], parts)
        return {name: rows for name, rows in found.items() if rows is not None}

    def clear_groups(self, groups: range) -> None:
        """Remove every row of a range of key groups."""
        for name in self.specs:
            for bucket in self.buckets(name):
                table = self.get(name, bucket)
                table.remove(_slots_in(table, groups))

    def apply(self, name: str, rows: pa.RecordBatch, *, tombstones: bool = False) -> None:
        """Fold a chunk's rows of one table in."""
        for bucket, part in split_buckets(rows) if rows.num_rows else []:
            apply_rows(self.get(name, bucket), part, tombstones=tombstones)

    def tidy(self) -> None:
        """Between epochs: give back buckets without rows and room that dead rows hold."""
        for name, opened in self._open.items():
            for bucket in [b for b, table in opened.items() if table.size == 0]:
                self._arrays.mark_dirty()
                opened.pop(bucket).release()
            for table in self._open[name].values():
                table.tidy()

    def _opened(self) -> Iterator[Table]:
        return (table for opened in self._open.values() for table in opened.values())


def _below(buckets: Iterable[int], horizon: int) -> list[int]:
    return [bucket for bucket in buckets if bucket < horizon]


def _slots_in(table: Table, groups: range) -> Slots:
    live = table.live()
    found = key_groups(table.hashes(live))
    slots: Slots = live[(found >= groups.start) & (found < groups.stop)]
    return slots
