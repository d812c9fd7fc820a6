"""What firings show: aggregates as result rows, or what a function makes of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import MAIN
from headrace._runtime.aggregates.fold import Flush
from headrace._runtime.columns import row_objects
from headrace._runtime.rows import Rows
from headrace._runtime.unfolded import TIMESTAMP
from headrace._runtime.windows.folding import fold_groups
from headrace._runtime.windows.results import result_rows
from headrace._runtime.windows.rows.contents import Contents
from headrace._runtime.windows.rows.firing import Firing
from headrace._runtime.windows.rows.functions import Functions, Output
from headrace._runtime.windows.rows.layout import ARRIVAL, Layout
from headrace._runtime.windows.rows.shown import Shown
from headrace._runtime.windows.scratch import Scratch

__all__ = ["Showing", "flush_of"]

Integers = npt.NDArray[np.int64]


class Showing:
    """Makes outputs of firings."""

    def __init__(self, layout: Layout, functions: Functions | None, shown: Shown | None) -> None:
        self._layout = layout
        self._node = layout.node
        self._functions = functions
        self._shown = shown

    def folded(
        self, firings: Sequence[Firing], keys: Sequence[pa.Array], values: Sequence[pa.Array]
    ) -> list[Output]:
        """From the aggregates of each firing."""
        if not firings:
            return []
        if self._functions is None:
            return [(MAIN, self._results(firings, keys, values))]
        names = [name for name, _ in self._node.aggregates]
        rows = row_objects(pa.RecordBatch.from_arrays(list(values), names=names))
        return self._functions.call(firings, keys, [[row] for row in rows])

    def kept(
        self, firings: Sequence[Firing], keys: Sequence[pa.Array], contents: Contents
    ) -> list[Output]:
        """From the rows of each firing."""
        if not firings:
            return []
        contents.read([firing.stored for firing in firings if firing.stored is not None])
        places = [
            firing.fresh if firing.stored is None else contents.places(firing.stored, firing.fresh)
            for firing in firings
        ]
        if self._node.aggregates:
            return self.folded(firings, keys, self._aggregated(places, contents))
        assert self._functions is not None
        if self._node.batches is not None:
            return self._functions.call(firings, keys, [self._batch(p, contents) for p in places])
        objects = contents.objects([place for own in places for place in own])
        ends = np.cumsum([len(own) for own in places]).tolist()
        given = [objects[end - len(own) : end] for own, end in zip(places, ends, strict=True)]
        return self._functions.call(firings, keys, given)

    def _batch(self, places: Sequence[int], contents: Contents) -> pa.RecordBatch:
        rows = contents.batch(places)
        arrays = [rows.column(f.name).cast(f.type) for f in self._node.input_schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._node.input_schema)

    def _aggregated(self, places: Sequence[Sequence[int]], contents: Contents) -> list[pa.Array]:
        """The aggregates over these rows, for each firing; none is without rows."""
        rows = contents.batch([place for own in places for place in own])
        owners = np.repeat(np.arange(len(places)), [len(own) for own in places])
        (found,), parts = fold_groups(flush_of(rows), [pa.array(owners)], self._layout.folds)
        scratch = Scratch(self._layout.folds, len(places))
        numbers = np.zeros(len(places), np.int64)
        for fold in self._layout.folds:
            own: Sequence[pa.Array] = parts[: len(fold.parts)]
            parts = parts[len(fold.parts) :]
            if fold.keeps_arrival:
                own = fold.arrive(own, numbers)
            fold.merge(scratch, found.to_numpy(), own)
        return [fold.result(scratch, np.arange(len(places))) for fold in self._layout.folds]

    # Result rows

    def _results(
        self, firings: Sequence[Firing], keys: Sequence[pa.Array], values: Sequence[pa.Array]
    ) -> Rows:
        timed = self._node.window.timed
        lasts = _numbers([f.cell.last if timed else f.stamp for f in firings])
        rows = result_rows(
            self._node,
            keys,
            values,
            starts=_numbers([firing.cell.start for firing in firings]),
            ends=lasts + 1,
            panes=pa.array([firing.pane for firing in firings], pa.string()),
            firings=_numbers([firing.number for firing in firings]),
            changes=pa.array(["+U" if firing.withdraws else "+I" for firing in firings]),
        )
        return rows if self._shown is None else self._with_withdrawn(firings, rows, self._shown)

    def _with_withdrawn(self, firings: Sequence[Firing], rows: Rows, shown: Shown) -> Rows:
        """Before each result those that it takes back."""
        first = shown.add(rows.batch)
        for firing in firings:
            firing.withdraws = [_place(place, first) for place in firing.withdraws]
            firing.cell.shown = [_place(place, first) for place in firing.cell.shown]
        order: list[int] = []
        stamps: list[int] = []
        signs: list[bool] = []
        for number, firing in enumerate(firings):
            order += [*firing.withdraws, first + number]
            stamps += [firing.stamp] * (len(firing.withdraws) + 1)
            signs += [True] * len(firing.withdraws) + [False]
        batch = shown.take(order)
        at = batch.schema.names.index("change")
        withdrawn = pa.array(["-U"] * len(order))
        change = pa.compute.if_else(pa.array(signs), withdrawn, batch.column(at))
        columns = [*batch.columns[:at], change, *batch.columns[at + 1 :]]
        result = pa.RecordBatch.from_arrays(columns, schema=batch.schema)
        return Rows(result, _when(result, _numbers(stamps), signs, timed=self._node.window.timed))


def _when(
    rows: pa.RecordBatch, stamps: Integers, signs: Sequence[bool], *, timed: bool
) -> Integers:
    """What is withdrawn has the time it had: the window behind this one that counted it takes it back."""
    if not timed:
        return stamps
    ends = rows.column("window_end").cast(pa.int64()).to_numpy()
    return np.where(signs, ends - 1, stamps)


def flush_of(rows: pa.RecordBatch) -> Flush:
    """Rows as folds take them."""
    own = (TIMESTAMP, ARRIVAL)
    names = [name for name in rows.schema.names if name not in own]
    timestamps = rows.column(TIMESTAMP).fill_null(0).to_numpy()
    return Flush({name: rows.column(name) for name in names}, timestamps)


def _place(place: int, first: int) -> int:
    """The place of a result that stands; below zero it is counted among those that are shown now."""
    return place if place >= 0 else first - place - 1


def _numbers(values: Sequence[int]) -> Integers:
    return np.array(values, np.int64)
