"""Rows that are due, beside what each of them sees when it looks back.

Keys are handled some at a time, so that what is looked at stays in the caches. Of these keys the rows of the history and
the due ones are put in one row; then what a due row sees is a range of places:

    key a                     key b
    h h h h h h | d d d       h h | d
          [-----------]                    the second d of key a, with the third, which has the same time
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import LookBackAggregate
from headrace._runtime.ordering import ranges, stable_order
from headrace._runtime.pending import ARRIVAL
from headrace._runtime.plain_keys import key_columns, number_keys
from headrace._runtime.unfolded import TIMESTAMP
from headrace._runtime.windows.lookback.expansion import expand
from headrace._runtime.windows.lookback.history import Found, History
from headrace._runtime.windows.lookback.layout import Layout
from headrace._runtime.windows.lookback.measures import Items, measure
from headrace._runtime.windows.lookback.ranges import Ranges
from headrace._runtime.windows.lookback.view import View, chunks
from headrace.keys import hash_keys

__all__ = ["Looking"]

Integers = npt.NDArray[np.int64]


class Looking:
    """Looks back for one step in one shard."""

    def __init__(self, node: LookBackAggregate, layout: Layout, history: History) -> None:
        self._keys = node.keys
        self._aggregates = [aggregate for _, aggregate in node.aggregates]
        self._folds = layout.folds
        self._size_us = layout.size_us
        self._kept = layout.kept.names
        self._history = history

    def results(self, rows: pa.RecordBatch, watermark: int) -> list[pa.Array]:
        """The aggregates of rows in order of time, for whom nobody looked back yet; they become history."""
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        named = key_columns(self._keys, columns, rows.num_rows)
        codes, firsts = number_keys(named)
        order = stable_order(codes)
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        keys = [column.take(pa.array(firsts)) for column in named]
        due = [columns[name].take(pa.array(order)) for name in self._kept]
        sizes = np.bincount(codes, minlength=len(firsts))
        parts = self._look(keys, sizes, due, int(columns[TIMESTAMP][0].as_py()), watermark)
        joined = [pa.concat_arrays(arrays) for arrays in zip(*parts, strict=True)]
        return [array.take(pa.array(back)) for array in joined]

    def _look(
        self, keys: Sequence[pa.Array], sizes: Integers, due: Sequence[pa.Array], earliest: int,
        watermark: int,
    ) -> list[list[pa.Array]]:  # fmt: skip
        """The results of some keys at a time. Due rows stand key by key, so many for each."""
        hashes = hash_keys(keys)
        found = self._history.find(earliest, hashes, keys)
        results = []
        for which, rows in chunks(sizes, found):
            view = View.of(which, sizes[which], [column[rows] for column in due], found)
            results.append(self._measure(view))
            self._note(which.start, view, [part.of(which) for part in found], watermark)
        self._history.write(hashes, keys)
        return results

    def _measure(self, view: View) -> list[pa.Array]:
        named = dict(zip(self._kept, view.columns, strict=True))
        del named[TIMESTAMP]
        arrivals = named.pop(ARRIVAL).to_numpy() if ARRIVAL in named else None
        items, seen = Items(named, view.timestamps, arrivals), self._ranges(view)
        results = [measure(aggregate, items, seen) for aggregate in self._aggregates]
        missing = [place for place, result in enumerate(results) if result is None]
        if missing:
            folded = expand([self._folds[place] for place in missing], items, seen)
            for place, result in zip(missing, folded, strict=True):
                results[place] = result
        return results

    def _ranges(self, view: View) -> Ranges:
        """What each due row sees: from `size` before it up to the last row of its own time."""
        times, owners = view.timestamps[view.due], view.owners[view.due]
        words, wanted = view.comparable(owners, times - self._size_us)
        # Due rows of one key and time stand together.
        is_last = np.ones(len(times), np.bool_)
        is_last[:-1] = (np.diff(times) != 0) | (np.diff(owners) != 0)
        ends = np.flatnonzero(is_last)
        peers: Integers = np.cumsum(is_last) - is_last
        return Ranges(np.searchsorted(words, wanted), view.due[ends[peers]] + 1)

    def _note(self, first_key: int, view: View, found: Sequence[Found], watermark: int) -> None:
        """Note the lists of the slices that due rows lie in, if anybody will see them."""
        slices, owners = self._history.slices(view.timestamps[view.due]), view.owners[view.due]
        kept = slices >= self._history.first_needed(watermark)
        slices, owners, places = slices[kept], owners[kept], view.due[kept]
        before = {part.number: part.counts for part in found}
        for number in np.unique(slices).tolist():
            mine = np.flatnonzero(slices == number)
            firsts = np.flatnonzero(np.diff(owners[mine], prepend=-1))
            keys, sizes = owners[mine[firsts]], np.diff(firsts, append=len(mine))
            # Right before the first due row of the slice stand those that it had already.
            there = before[number][keys] if number in before else np.zeros_like(keys)
            rows = pa.array(ranges(places[mine[firsts]] - there, sizes + there))
            columns = [column.take(rows) for column in view.columns]
            self._history.note(number, first_key + keys, sizes + there, columns)
