"""For joins that look forward, or both ways: all right rows that a left row may still be nearest to.

                t - tolerance        t         t + tolerance = W: now l is due
    right   ------|--r1--------r2----l----r3-------|-----r4-->

Rows are kept by key and time, each once, in slices of time that are dropped whole. A left row looks into all that its tolerance
reaches, and takes what is nearest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.join_nodes import AsOfJoin
from headrace._runtime.joins.asof.partners import (
    Moments,
    Partners,
    distinct,
    last_before,
    last_of_each,
)
from headrace._runtime.joins.asof.rights import (
    Rights,
    ends,
    right_side,
    settled,
    shown_columns,
)
from headrace._runtime.joins.matching import Probe
from headrace._runtime.joins.sides import Side, add_rows, read_rows, rows_table
from headrace._runtime.joins.slices import Slices
from headrace._runtime.operator import HASH
from headrace._runtime.ordering import stable_order
from headrace._runtime.state import ShardState, Table, TableSpec, ValueSpec
from headrace._runtime.unfolded import TIMESTAMP, join_batches
from headrace.keys import extend_hashes
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["NearRows", "near_tables"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_NEAR = "near"
_ENDED = "ended"
_FAR = np.iinfo(np.int64).max


def near_tables(node: AsOfJoin) -> tuple[TableSpec, ...]:
    """The state of a join that looks forward. The number that tells the rows of a key apart is their time."""
    values = [ValueSpec(_ENDED, pa.bool_(), 0)] if node.versions_end else []
    return (rows_table(_NEAR, right_side(node), values),)


@dataclass(frozen=True)
class _Found:
    """For each left row: the slice and slot of a right row (-1: none), and how far away it is."""

    slices: Integers
    slots: Integers
    distances: Integers

    @classmethod
    def nothing(cls, rows: int) -> _Found:
        return cls(*(np.full(rows, value, np.int64) for value in (0, -1, _FAR)))

    def note(self, rows: Integers, number: int, slots: Integers, distances: Integers) -> None:
        self.slices[rows], self.slots[rows], self.distances[rows] = number, slots, distances

    def unless_nearer(self, other: _Found) -> _Found:
        """These, but where the others are nearer."""
        nearer = other.distances < self.distances
        return _Found(
            np.where(nearer, other.slices, self.slices),
            np.where(nearer, other.slots, self.slots),
            np.where(nearer, other.distances, self.distances),
        )


class NearRows(Rights):
    """The right rows of one shard."""

    def __init__(self, node: AsOfJoin, state: ShardState) -> None:
        # Configuration
        assert node.tolerance_us is not None
        self._left, self._right = Side.of(node, 0), right_side(node)
        self._direction = node.direction
        self._shown = shown_columns(node)
        self._exact = node.exact
        self._tolerance_us = node.tolerance_us
        # A left row is `wait_us` behind the watermark when it looks, and then as far back as it may.
        back_us = node.tolerance_us if node.direction == "nearest" else 0
        self._reach_us = node.wait_us + back_us
        self._slices = Slices(self._reach_us)
        self._end = node.versions_end
        # Checkpointed
        self._state = state

    @property
    def are_waiting(self) -> bool:
        """Their order of arrival is of no use once they are kept."""
        return False

    def add(self, arrived: Sequence[pa.RecordBatch]) -> None:
        """Keep rows; one of a time that is taken replaces the one there."""
        arrived = settled(arrived, self._right) if self._end else arrived
        if not arrived:
            return
        batch = join_batches(arrived)
        rows = Moments(
            Probe.of(self._right.key_columns(batch)).codes, batch.column(TIMESTAMP).to_numpy()
        )
        kept = last_of_each(rows)
        kept = kept[stable_order(rows.times[kept])]
        batch, times = batch.take(pa.array(kept)), rows.times[kept]
        self._forget_same(batch, times)
        live = len(self._state.buckets(_NEAR))
        for bucket, part in self._slices.parts(times, live):
            table = self._state.table(_NEAR, bucket)
            slots = add_rows(table, self._right, batch[part], times[part])
            if self._end:
                table.put(_ENDED, slots, ends(batch[part]))

    def _forget_same(self, batch: pa.RecordBatch, times: Integers) -> None:
        """Remove rows of the same keys and times, wherever they are: the one that comes is put where it fits now."""
        keys = [*self._right.key_columns(batch), pa.array(times)]
        hashes = extend_hashes(batch.column(HASH).to_numpy(), keys[-1:])
        for bucket in self._state.buckets(_NEAR):
            first, last = self._slices.span(bucket)
            part = slice(*np.searchsorted(times, [first, last + 1]).tolist())
            if part.stop > part.start:
                table = self._state.table(_NEAR, bucket)
                found = table.find(hashes[part], [column[part] for column in keys])
                if (found >= 0).any():
                    table.remove(found[found >= 0])

    def meet(
        self, left: pa.RecordBatch | None, arrived: Sequence[pa.RecordBatch], watermark: int
    ) -> Partners | None:
        """The rows nearest to left ones; those that are of no use any more go."""
        self.add(arrived)
        partners = None if left is None else self._partners(left)
        self._drop(watermark)
        return partners

    def _drop(self, watermark: int) -> None:
        """Forget slices that no left row to come can reach."""
        if watermark != NO_WATERMARK:
            last = watermark if watermark == END_OF_TIME else watermark - self._reach_us
            horizon, live = self._slices.horizon(last), self._state.buckets(_NEAR)
            # A horizon that moves over nothing would be one more write an epoch.
            if live and live[0] < horizon:
                self._state.drop_before(_NEAR, horizon)

    def _partners(self, left: pa.RecordBatch) -> Partners:
        probe = Probe.of(self._left.key_columns(left))
        lefts = Moments(probe.codes, left.column(TIMESTAMP).to_numpy())
        found = self._search(probe, lefts, behind=True)
        if self._direction == "nearest":
            found = self._search(probe, lefts, behind=False).unless_nearer(found)
        places, rows, size = np.full(len(lefts), -1), [], 0
        for number in np.unique(found.slices[found.slots >= 0]).tolist():
            mine = np.flatnonzero((found.slices == number) & (found.slots >= 0))
            table = self._state.table(_NEAR, number)
            slots, which = distinct(found.slots[mine])
            rows.append(read_rows(table, self._right, slots))
            places[mine] = size + which
            size += len(slots)
        return Partners.of(self._shown, rows, places)

    def _search(self, probe: Probe, lefts: Moments, *, behind: bool) -> _Found:
        """The first row behind each left row, or the last before it."""
        found, ended = _Found.nothing(len(lefts)), np.zeros(len(lefts), np.bool_)
        for number in self._state.buckets(_NEAR):
            rows = np.flatnonzero(self._reaches(lefts.times, number, behind=behind))
            if len(rows):
                table = self._state.table(_NEAR, number)
                hit, slots, distances = self._look(table, probe, lefts[rows], behind=behind)
                nearer = distances < found.distances[rows[hit]]
                rows, slots = rows[hit][nearer], slots[nearer]
                found.note(rows, number, slots, distances[nearer])
                if self._end:
                    ended[rows] = table.values(_ENDED)[slots]
        # Nothing is valid any more where the key has ended.
        useless = np.flatnonzero(ended | (found.distances > self._tolerance_us))
        found.note(useless, 0, np.full(len(useless), -1), np.full(len(useless), _FAR))
        return found

    def _reaches(self, times: Integers, number: int, *, behind: bool) -> Mask:
        """Which left rows may have a partner in a slice."""
        first, last = self._slices.span(number)
        if behind:
            near: Mask = (times <= last) & (times >= first - self._tolerance_us)
        else:
            near = (times >= first) & (times <= last + self._tolerance_us)
        return near

    def _look(
        self, table: Table, probe: Probe, lefts: Moments, *, behind: bool
    ) -> tuple[Integers, Integers, Integers]:
        """Which left rows find a row in a slice, its slot and how far away it is."""
        present = np.flatnonzero(np.bincount(lefts.codes, minlength=len(probe.hashes)))
        slots, counts = table.members(probe.hashes[present], probe.keys_of(present))
        codes = np.repeat(present, counts)
        if self._end and behind:
            valid = ~table.values(_ENDED)[slots]
            slots, codes = slots[valid], codes[valid]
        rights = Moments(codes, table.key(len(self._right.keys), slots).to_numpy())
        if behind:
            places = last_before(lefts.mirrored(), rights.mirrored(), exact=self._exact)
        else:
            places = last_before(lefts, rights, exact=self._exact)
        hit = np.flatnonzero(places >= 0)
        return hit, slots[places[hit]], np.abs(rights.times[places[hit]] - lefts.times[hit])
