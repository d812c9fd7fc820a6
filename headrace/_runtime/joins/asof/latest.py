"""For joins that look backward: of each key the last version up to the watermark, and all that are to come.

    versions of a key     v1      v2     |  v3      v4              W: every left row up to here is out
                                  kept   W  coming                  so nobody asks for v1 any more

A version waits, in pieces, until the watermark reaches it. Left rows that are due by then see it and the one kept
before; then it replaces that one. So the state is one version a key, and what an epoch costs does not depend on
how many there are.

With a tolerance, versions go when no row to come can reach them: they are kept in slices of time, which are dropped
whole. A key may then have a version in several slices, and the last one counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.join_nodes import AsOfJoin
from headrace._runtime.joins.asof.partners import Moments, Partners, last_before, latest_of_each
from headrace._runtime.joins.asof.rights import (
    Rights,
    Stretches,
    ends,
    right_side,
    settled,
    shown_columns,
)
from headrace._runtime.joins.matching import Probe
from headrace._runtime.joins.sides import Side, read_rows, row_values, write_rows
from headrace._runtime.pending import Pending, pending_table
from headrace._runtime.state import ShardState, Table, TableSpec, ValueSpec
from headrace._runtime.unfolded import TIMESTAMP
from headrace.watermarks import END_OF_TIME

__all__ = ["LatestVersions", "latest_tables"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_KEPT = "latest"
_COMING = "coming"
_AT = "at"
_ENDED = "ended"


def latest_tables(node: AsOfJoin) -> tuple[TableSpec, ...]:
    """The state of a join that looks backward."""
    side = right_side(node)
    values = [ValueSpec(_AT, pa.int64(), 0)]
    if _marks_ends(node):
        values.append(ValueSpec(_ENDED, pa.bool_(), 0))
    kept = TableSpec(_KEPT, side.keys, (*values, *row_values(side)))
    return kept, pending_table(_COMING, _coming(side))


class LatestVersions(Rights):
    """The versions of one shard."""

    def __init__(self, node: AsOfJoin, state: ShardState) -> None:
        # Configuration
        self._left, self._right = Side.of(node, 0), right_side(node)
        self._shown = shown_columns(node)
        self._exact = node.exact
        self._tolerance_us = node.tolerance_us
        self._slices = None if node.tolerance_us is None else Stretches(node.tolerance_us)
        self._end = node.versions_end
        self._marks_ends = _marks_ends(node)
        # Checkpointed
        self._state = state
        self._coming = Pending(_COMING, _coming(self._right), state)

    @property
    def are_waiting(self) -> bool:
        """Whether any version is still to come."""
        return not self._coming.is_empty

    def add(self, arrived: Sequence[pa.RecordBatch]) -> None:
        """Let versions wait for the watermark."""
        self._coming.add(settled(arrived, self._right) if self._end else arrived)

    def meet(
        self, left: pa.RecordBatch | None, arrived: Sequence[pa.RecordBatch], watermark: int
    ) -> Partners | None:
        """The versions valid at the times of left rows; of those up to the watermark one of each key is kept."""
        arrived = settled(arrived, self._right) if self._end else arrived
        passed = self._coming.release(arrived, watermark)
        partners = None
        if left is not None or passed is not None:
            probe, lefts, versions = self._numbered(left, passed)
            if left is not None:
                partners = self._partners(probe, lefts, versions, passed)
            if passed is not None and watermark != END_OF_TIME:
                self._keep(probe, versions, passed, watermark)
        if self._slices is not None:
            self._slices.drop(self._state, _KEPT, watermark)
        elif watermark == END_OF_TIME and self._state.buckets(_KEPT):
            self._state.drop_before(_KEPT, END_OF_TIME)
        return partners

    def _numbered(
        self, left: pa.RecordBatch | None, passed: pa.RecordBatch | None
    ) -> tuple[Probe, Moments, Moments]:
        """Rows of both sides by key and time."""
        present = [(s, b) for s, b in ((self._left, left), (self._right, passed)) if b is not None]
        keys = zip(*(side.key_columns(batch) for side, batch in present), strict=True)
        probe = Probe.of([pa.concat_arrays(columns) for columns in keys])
        times = np.concatenate([batch.column(TIMESTAMP).to_numpy() for _, batch in present])
        both, own = Moments(probe.codes, times), 0 if left is None else left.num_rows
        return probe, both[:own], both[own:]

    def _partners(
        self, probe: Probe, lefts: Moments, versions: Moments, passed: pa.RecordBatch | None
    ) -> Partners:
        """The versions that are valid: of those that the watermark passes now, else the ones kept before."""
        places = last_before(lefts, versions, exact=self._exact)
        rows, times, over = [], [versions.times], [np.zeros(0, np.bool_)]
        if passed is not None:
            rows.append(self._right.columns(passed))
            over.append(ends(passed) if self._end else np.zeros(len(versions), np.bool_))
        missing = np.zeros(len(probe.hashes), np.bool_)
        missing[lefts.codes[places < 0]] = True
        older, size = np.full(len(missing), -1), len(versions)
        for table, codes, slots in self._kept(probe, np.flatnonzero(missing)):
            older[codes] = size + np.arange(len(codes))
            size += len(codes)
            rows.append(read_rows(table, self._right, slots))
            times.append(table.values(_AT)[slots])
            over.append(
                table.values(_ENDED)[slots] if self._marks_ends else np.zeros(len(slots), np.bool_)
            )
        places = np.where(places < 0, older[lefts.codes], places)
        found = np.flatnonzero(places >= 0)
        useless = np.concatenate(over)[places[found]]
        if self._tolerance_us is not None:
            distances = lefts.times[found] - np.concatenate(times)[places[found]]
            useless |= distances > self._tolerance_us
        places[found[useless]] = -1
        return Partners.of(self._shown, rows, places)

    def _kept(self, probe: Probe, codes: Integers) -> Iterator[tuple[Table, Integers, Integers]]:
        """Where the last version of each of these keys is kept, if there is one: table, keys, slots."""
        for number in reversed(self._state.buckets(_KEPT)):
            if not len(codes):
                return
            table = self._state.table(_KEPT, number)
            slots = table.find(probe.hashes[codes], probe.keys_of(codes))
            there = slots >= 0
            if there.any():
                yield table, codes[there], slots[there]
            codes = codes[~there]

    def _keep(
        self, probe: Probe, versions: Moments, passed: pa.RecordBatch, watermark: int
    ) -> None:
        """Keep the last version of each key in place of the one before."""
        latest = latest_of_each(versions)
        if self._slices is None:
            self._write(0, probe, versions[latest], passed.take(pa.array(latest)))
            return
        latest = latest[versions.times[latest] > self._slices.useless_before(watermark)]
        slices = self._slices.of(versions.times[latest])
        for number in np.unique(slices).tolist():
            mine = latest[slices == number]
            self._write(number, probe, versions[mine], passed.take(pa.array(mine)))

    def _write(self, number: int, probe: Probe, versions: Moments, rows: pa.RecordBatch) -> None:
        table = self._state.table(_KEPT, number)
        slots, _ = table.upsert(probe.hashes[versions.codes], probe.keys_of(versions.codes))
        table.put(_AT, slots, versions.times)
        write_rows(table, self._right, rows, slots)
        if self._marks_ends:
            table.put(_ENDED, slots, ends(rows))
        elif self._end:
            table.remove(slots[ends(rows)])


def _marks_ends(node: AsOfJoin) -> bool:
    """Whether the end of a key is kept: it hides a version in an earlier slice."""
    return node.versions_end and node.tolerance_us is not None


def _coming(side: Side) -> pa.Schema:
    """The columns of a version that waits."""
    return side.sent.append(pa.field(TIMESTAMP, pa.int64()))
