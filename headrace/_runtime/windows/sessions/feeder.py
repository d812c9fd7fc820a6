"""The half of a session step before the shuffle: rows become runs.

A run is what the rows of one key in one fold are as sessions; which sessions they belong to in the end, and so
whether they are late, is known behind the shuffle. Only a run that is over by itself can turn out late, so only
such a run takes its rows along.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from headrace._graph.nodes import ERRORS, SessionAggregate
from headrace._runtime.aggregates.fold import Flush, Request
from headrace._runtime.aggregates.lists import lists_of
from headrace._runtime.dead_letters import split_null_keys
from headrace._runtime.heavy import HeavyKeys
from headrace._runtime.operator import Feeder, Outputs
from headrace._runtime.plain_keys import key_columns, number_keys
from headrace._runtime.rows import Rows
from headrace._runtime.windows.entry import timestamps_of
from headrace._runtime.windows.folding import RowBuffer, fold_groups
from headrace._runtime.windows.sessions.gaps import split_ends
from headrace._runtime.windows.sessions.intervals import Integers, merge_intervals
from headrace._runtime.windows.sessions.layout import Layout, last_over
from headrace.keys import hash_keys
from headrace.watermarks import NO_WATERMARK

__all__ = ["SessionFeeder"]


class SessionFeeder(Feeder):
    """Folds the rows of one task for one session step."""

    def __init__(self, node: SessionAggregate) -> None:
        self._node = node
        self._layout = Layout.of(node)
        self._buffer = RowBuffer(node, self._layout.folds)
        self._over = NO_WATERMARK
        # Rows that are over by themselves, with their places in the buffer.
        self._behind: list[tuple[Integers, pa.StructArray]] = []
        self._folded: list[pa.RecordBatch] = []
        self._heavy = HeavyKeys(node.keys)

    def feed(self, rows: Rows, watermark: int) -> Outputs:
        """Take rows in; yields those without a key or a gap as errors."""
        rows, dead = split_null_keys(rows, self._node.uid, self._node.keys)
        if dead is not None:
            yield ERRORS, dead
        rows, ends, dead = split_ends(rows, self._node)
        if dead is not None:
            yield ERRORS, dead
        if self._layout.late is not None:
            self._over = last_over(watermark, self._node.lateness_us)
            self._keep_behind(rows, ends)
        self._buffer.add(rows, ends)
        if self._buffer.full:
            self._folded.append(self._fold())

    def flush(self) -> Iterator[pa.RecordBatch]:
        """One batch for every fold."""
        if self._buffer.rows:
            self._folded.append(self._fold())
        folded, self._folded = self._folded, []
        yield from folded

    def heavy(self) -> Mapping[str, int]:
        """The heaviest keys of the folds."""
        return self._heavy.found

    def _keep_behind(self, rows: Rows, ends: Integers) -> None:
        behind = np.flatnonzero(ends <= self._over)
        if not behind.size:
            return
        assert self._layout.late is not None
        kept = rows.take(behind)
        columns = [*kept.batch.columns, pa.array(timestamps_of(kept, self._node))]
        structs = pa.StructArray.from_arrays(columns, fields=list(self._layout.late.value_type))
        self._behind.append((behind + self._buffer.rows, structs))

    def _fold(self) -> pa.RecordBatch:
        """One row for every run."""
        flush, (ends,) = self._buffer.take()
        behind, self._behind = self._behind, []
        keys = key_columns(self._node.keys, flush.columns, len(ends))
        times = flush.timestamps
        # Rows that lie closer than the least gap are one run a key: grouping finds it without a sort.
        if not behind and int(times.max()) - int(times.min()) <= int((ends - times).min()):
            return self._fold_keys(flush, keys, ends)
        numbers, firsts = number_keys(keys)
        counts, heads = np.bincount(numbers), pa.array(firsts)
        self._heavy.see([key.take(heads) for key in keys], pa.array(counts))
        runs = merge_intervals(numbers, times, ends)
        (groups,), parts = fold_groups(flush, [pa.array(runs.of)], self._layout.folds)
        order = groups.to_numpy()
        rows = pa.array(runs.firsts[order])
        bounds = [pa.array(runs.starts[order]), pa.array(runs.ends[order])]
        late = self._lists(behind, runs.of, order, runs.ends)
        return self._batch([key.take(rows) for key in keys], bounds, parts, late)

    def _fold_keys(self, flush: Flush, keys: list[pa.Array], ends: Integers) -> pa.RecordBatch:
        also = (Request(pa.array(flush.timestamps), "min"), Request(pa.array(ends), "max"))
        groups, parts = fold_groups(flush, keys, self._layout.folds, self._heavy, also)
        return self._batch(groups, parts[:2], parts[2:], None)

    def _batch(
        self, keys: list[pa.Array], bounds: Sequence[pa.Array], parts: Sequence[pa.Array],
        late: pa.Array | None,
    ) -> pa.RecordBatch:  # fmt: skip
        arrays = [*keys, *bounds, pa.array(hash_keys(keys)), *parts]
        if self._layout.late is not None:
            arrays.append(pa.nulls(len(keys[0]), self._layout.late) if late is None else late)
        return pa.RecordBatch.from_arrays(arrays, schema=self._layout.fed)

    def _lists(
        self, behind: Sequence[tuple[Integers, pa.StructArray]], run_of: Integers, order: Integers,
        ends: Integers,
    ) -> pa.Array | None:  # fmt: skip
        """For the runs in this order, the rows of those that are over; in order of arrival."""
        if not behind:
            return None
        assert self._layout.late is not None
        places = np.concatenate([part[0] for part in behind])
        rows = pa.concat_arrays([part[1] for part in behind])
        at = np.empty(len(order), np.int64)
        at[order] = np.arange(len(order))
        owners = at[run_of[places]]
        over = ends[order] <= self._over
        chosen = np.flatnonzero(over[owners])
        chosen = chosen[np.argsort(owners[chosen], kind="stable")]
        sizes = np.bincount(owners[chosen], minlength=len(order))
        # A run that is over has all its rows here; the others have empty lists, which nobody reads.
        return lists_of(rows.take(pa.array(chosen)), sizes, self._layout.late)
