"""Rows that are due, beside what each of them sees when it looks back.

Keys are handled some at a time, so that what is looked at stays in the caches. Of these keys the rows of the history and
the due ones are put in one row, key by key in order of time; then what a row sees is a range of places:

    key a                     key b
    h h h h h h | d d d       h h | d
          [-----------]                    the second d of key a, with the third, which has the same time
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import LookBackAggregate
from headrace._runtime.plain_keys import key_columns, number_keys
from headrace._runtime.windows.lookback.expansion import expand
from headrace._runtime.windows.lookback.history import Found, History
from headrace._runtime.windows.lookback.layout import ARRIVAL, Layout
from headrace._runtime.windows.lookback.measures import Items, measure
from headrace._runtime.windows.lookback.ranges import Ranges
from headrace._runtime.windows.ordering import ranges, stable_order, starts_of
from headrace._runtime.windows.unfolded import TIMESTAMP
from headrace.keys import hash_keys

__all__ = ["LOOKED_AT", "Looking"]

#: Rows looked at at once, but for a key that has more of them.
LOOKED_AT = 65_536

_WORD = 2**63

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Keys:
    """The keys of the due rows, some of them, and how many due rows each has."""

    hashes: npt.NDArray[np.uint64]
    columns: Sequence[pa.Array]
    sizes: Integers

    def at(self, places: Integers) -> tuple[npt.NDArray[np.uint64], list[pa.Array]]:
        rows = pa.array(places)
        return self.hashes[places], [column.take(rows) for column in self.columns]


@dataclass(frozen=True)
class _View:
    """The rows of some keys, history and due ones, and where the due ones stand."""

    columns: list[pa.Array]
    timestamps: Integers
    #: The key of each row, a number from 0, and the places of the due rows.
    owners: Integers
    due: Integers


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
        names = key_columns(self._keys, columns, rows.num_rows)
        codes, firsts = number_keys(names)
        places = pa.array(firsts)
        distinct = [column.take(places) for column in names]
        keys = _Keys(hash_keys(distinct), distinct, np.bincount(codes, minlength=len(firsts)))
        order = stable_order(codes)
        due = [columns[name].take(pa.array(order)) for name in self._kept]
        earliest = int(columns[TIMESTAMP][0].as_py())
        found = self._history.find(earliest, keys.hashes, keys.columns)
        parts = [
            self._look(some, _some(keys, some), [c[rows_] for c in due], found, watermark)
            for some, rows_ in _chunks(keys.sizes, found)
        ]
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        joined = [pa.concat_arrays(arrays) for arrays in zip(*parts, strict=True)]
        return [array.take(pa.array(back)) for array in joined]

    def _look(
        self, which: slice, keys: _Keys, due: Sequence[pa.Array], found: Sequence[Found],
        watermark: int,
    ) -> list[pa.Array]:  # fmt: skip
        view = _view(which, keys, due, found)
        named = dict(zip(self._kept, view.columns, strict=True))
        del named[TIMESTAMP]
        arrivals = named.pop(ARRIVAL).to_numpy() if ARRIVAL in named else None
        items = Items(named, view.timestamps, arrivals)
        self._remember(which, keys, view, found, watermark)
        return self._measure(items, self._ranges(view))

    def _measure(self, items: Items, seen: Ranges) -> list[pa.Array]:
        results = [measure(aggregate, items, seen) for aggregate in self._aggregates]
        missing = [place for place, result in enumerate(results) if result is None]
        if missing:
            folded = expand([self._folds[place] for place in missing], items, seen)
            for place, result in zip(missing, folded, strict=True):
                results[place] = result
        return results

    def _ranges(self, view: _View) -> Ranges:
        """What each due row sees: from `size` before it up to the last row of its own time."""
        times, owners = view.timestamps[view.due], view.owners[view.due]
        words, wanted = _comparable(view, owners, times - self._size_us)
        # Due rows of one key and time stand together.
        is_last = np.ones(len(times), np.bool_)
        is_last[:-1] = (np.diff(times) != 0) | (np.diff(owners) != 0)
        ends = np.flatnonzero(is_last)
        peers: Integers = np.cumsum(is_last) - is_last
        return Ranges(np.searchsorted(words, wanted), view.due[ends[peers]] + 1)

    def _remember(
        self, which: slice, keys: _Keys, view: _View, found: Sequence[Found], watermark: int
    ) -> None:
        """Write the lists of the slices that due rows lie in."""
        slices, owners = self._history.slices(view.timestamps[view.due]), view.owners[view.due]
        kept = slices >= self._history.first_needed(watermark)
        slices, owners, places = slices[kept], owners[kept], view.due[kept]
        before = {slice_.number: slice_.counts[which] for slice_ in found}
        for number in np.unique(slices).tolist():
            mine = np.flatnonzero(slices == number)
            present, firsts, sizes = np.unique(owners[mine], return_index=True, return_counts=True)
            # Right before the first due row of the slice stand those that it had already.
            there = (
                before[number][present] if number in before else np.zeros(len(present), np.int64)
            )
            rows = pa.array(ranges(places[mine[firsts]] - there, sizes + there))
            columns = [column.take(rows) for column in view.columns]
            self._history.write(number, *keys.at(present), sizes + there, columns)


def _chunks(sizes: Integers, found: Sequence[Found]) -> Iterator[tuple[slice, slice]]:
    """Some keys at a time, and their due rows."""
    totals = sum((slice_.counts for slice_ in found), sizes)
    numbers = (np.cumsum(totals) - totals) // LOOKED_AT
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(sizes)]
    rows = np.concatenate([[0], np.cumsum(sizes)])
    for start, end in pairwise(edges):
        yield slice(start, end), slice(int(rows[start]), int(rows[end]))


def _some(keys: _Keys, which: slice) -> _Keys:
    columns = [column[which] for column in keys.columns]
    return _Keys(keys.hashes[which], columns, keys.sizes[which])


def _view(which: slice, keys: _Keys, due: Sequence[pa.Array], found: Sequence[Found]) -> _View:
    sources = [*(slice_.items(which) for slice_ in found), due]
    # For each source the rows of each key, and where they start when sources stand one behind the other.
    sizes = np.stack([*(slice_.counts[which] for slice_ in found), keys.sizes])
    starts = starts_of(sizes.ravel()).reshape(sizes.shape)
    order = pa.array(ranges(starts.T.ravel(), sizes.T.ravel()))
    joined = [pa.concat_arrays(parts) for parts in zip(*sources, strict=True)]
    columns = [column.take(order) for column in joined]
    totals = sizes.sum(axis=0)
    ends = np.cumsum(totals)
    owners = np.repeat(np.arange(len(totals)), totals)
    return _View(columns, columns[0].to_numpy(), owners, ranges(ends - keys.sizes, keys.sizes))


def _comparable(view: _View, owners: Integers, times: Integers) -> tuple[Integers, Integers]:
    """(key, time) of all rows, and of those asked for, as words in order."""
    least = min(int(view.timestamps.min()), int(times.min()))
    span = max(int(view.timestamps.max()), int(times.max())) - least + 1
    if span * (int(view.owners[-1]) + 1) < _WORD:
        return view.owners * span + (view.timestamps - least), owners * span + (times - least)
    # Too long a time for one word: its places among the times there are will do.
    moments = np.unique(view.timestamps)
    ranks, wanted = np.searchsorted(moments, view.timestamps), np.searchsorted(moments, times)
    span = len(moments) + 1
    return view.owners * span + ranks, owners * span + wanted
