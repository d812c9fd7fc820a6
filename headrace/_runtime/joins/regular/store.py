"""The rows of one input of a regular join by key, for ever or until they have lived long enough.

What a row is found by when it is withdrawn is its content: a hash of it lies beside the row, and whoever has the hash is
compared. Rows that live for a time are also noted in slices of time, so what has run out is found without a search.

Rows that run out are not withdrawn, nor are the results they are in. So where a side shows something in place of rows that
may run out, it is of no use to look which are left: every row on the other side knows with how many it was shown.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.join_nodes import RegularJoin
from headrace._runtime.arrivals import Arrivals
from headrace._runtime.joins.matching import Probe
from headrace._runtime.joins.sides import NUMBER, Columns, Side, add_rows, read_rows, rows_table
from headrace._runtime.operator import HASH
from headrace._runtime.process.timing.slices import LEVELS, Slices
from headrace._runtime.state import ShardState, Table, TableSpec, ValueSpec
from headrace.keys import extend_hashes, hash_keys

__all__ = ["KeptRows", "kept_tables"]

Integers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

_BUCKET = 0
_CONTENT = "content"
_PARTNERS = "partners"
_ENDS = pa.field("__ends", pa.int64())


def kept_tables(node: RegularJoin, number: int) -> Iterator[TableSpec]:
    """The tables of one input."""
    side = Side.of(node, number, changing=node.changing[number])
    values = [ValueSpec(_CONTENT, pa.uint64(), 0)] if _is_compared(node, number) else []
    if _counts_partners(node, number):
        values.append(ValueSpec(_PARTNERS, pa.int64(), 0))
    yield rows_table(_name(number), side, values)
    if node.ttls_us[number] is not None:
        for level in range(LEVELS):
            yield TableSpec(f"{_ends(number)}:{level}", pa.schema([*side.keys, NUMBER, _ENDS]))


class KeptRows:
    """The rows of one input in one shard."""

    def __init__(self, node: RegularJoin, number: int, state: ShardState) -> None:
        # Configuration
        self.side = Side.of(node, number, changing=node.changing[number])
        #: Rows know with how many of the other input they were shown.
        self.counts_partners = _counts_partners(node, number)
        self._ttl_us = node.ttls_us[number]
        self._is_compared = _is_compared(node, number)
        # Checkpointed
        self._state = state
        self._name = _name(number)
        self._arrivals = Arrivals(state)
        self._ends = Slices(_ends(number), state)

    def members(self, probe: Probe) -> tuple[Integers, Integers]:
        """The slots of all rows with these keys, one key behind the other, and how many each key has."""
        if not self._state.buckets(self._name):
            return np.empty(0, np.int64), np.zeros(len(probe.hashes), np.int64)
        return probe.members(self._table)

    def count(self, probe: Probe) -> Integers:
        """How many rows each key has."""
        if not self._state.buckets(self._name):
            return np.zeros(len(probe.hashes), np.int64)
        return self._table.members(probe.hashes, probe.keys, at_most=0)[1]

    def rows(self, slots: Integers) -> Columns:
        """The columns of rows."""
        return read_rows(self._table, self.side, slots)

    def hashes(self, slots: Integers) -> Hashes:
        """The hashes of their contents, where rows can be withdrawn."""
        found: Hashes = self._table.values(_CONTENT)[slots]
        return found

    def numbers(self, slots: Integers) -> Integers:
        """Numbers that grow with the arrival of rows of one key."""
        found: Integers = self._table.key(len(self.side.key_names), slots).to_numpy()
        return found

    def partners(self, slots: Integers) -> Integers:
        """With how many rows of the other input each was shown, where that is counted."""
        found: Integers = self._table.values(_PARTNERS)[slots]
        return found

    def meet(self, slots: Integers, more: Integers) -> None:
        """Distinct rows are shown with so many more, or fewer, than before."""
        if len(slots):
            self._table.values(_PARTNERS)[slots] += more
            self._table.touch(slots)

    def add(
        self,
        batch: pa.RecordBatch,
        clock: int,
        *,
        contents: Hashes | None = None,
        partners: Integers | None = None,
    ) -> None:
        """Keep rows, from now on; with the hashes of their contents and the number of partners where these are kept."""
        if not batch.num_rows:
            return
        numbers = self._arrivals.count(batch.column(HASH).to_numpy()) + np.arange(batch.num_rows)
        slots = add_rows(self._table, self.side, batch, numbers)
        if self._is_compared:
            assert contents is not None
            self._table.put(_CONTENT, slots, contents)
        if self.counts_partners:
            assert partners is not None
            self._table.put(_PARTNERS, slots, partners)
        if self._ttl_us is not None:
            self._note(batch, numbers, clock)

    def remove(self, slots: Integers) -> None:
        """Forget rows."""
        if len(slots):
            self._table.remove(slots)

    def expire(self, before: int, clock: int) -> None:
        """Forget the rows whose time has run out since."""
        if self._ttl_us is None or clock <= before or self._ends.are_gone():
            return
        last = len(self.side.key_names)
        for table in self._ends.until(clock):
            slots = table.live()
            ends = table.key(last + 1, slots).to_numpy()
            slots = slots[(ends > before) & (ends <= clock)]
            if len(slots):
                keys = table.keys(slots)[: last + 1]
                hashes = extend_hashes(hash_keys(keys[:last]), [keys[last]])
                found = self._table.find(hashes, keys)
                # A row that was withdrawn is gone already.
                self.remove(found[found >= 0])
        self._ends.forget(clock)

    @property
    def _table(self) -> Table:
        return self._state.table(self._name, _BUCKET)

    def _note(self, batch: pa.RecordBatch, numbers: Integers, clock: int) -> None:
        assert self._ttl_us is not None
        ends = np.full(batch.num_rows, clock + self._ttl_us)
        own = [*self.side.key_columns(batch), pa.array(numbers), pa.array(ends)]
        keys: Hashes = batch.column(HASH).to_numpy()
        hashes = extend_hashes(keys, own[-2:])
        for table, start, stop in self._ends.choose(ends, clock):
            table.upsert(hashes[start:stop], [column[start:stop] for column in own])


def _is_compared(node: RegularJoin, number: int) -> bool:
    """Whether rows are withdrawn one by one; one row a key needs no comparing."""
    return node.changing[number] and node.keeps[number] is None


def _counts_partners(node: RegularJoin, number: int) -> bool:
    """Whether it matters if a row ever had a partner, and partners run out; rows that are spent had none."""
    matters = node.preserves(number) or (node.how == "semi" and number == 0)
    others = [ttl for other, ttl in enumerate(node.ttls_us) if other != number]
    return matters and any(ttl is not None for ttl in others) and not node.spends(number)


def _name(number: int) -> str:
    return f"side {number}"


def _ends(number: int) -> str:
    return f"ends {number}"
