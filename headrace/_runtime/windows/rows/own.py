"""Rows that are too late for all their windows, in windows of their own: those of an epoch, by key and window.

They go through no trigger and into no state: their cells live for one firing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.plain_keys import number_keys
from headrace._runtime.windows.rows.cells import Cell
from headrace._runtime.windows.rows.layout import END, Layout
from headrace._runtime.windows.rows.placing import Incoming, number_pairs
from headrace._runtime.windows.rows.spans import Pairs, assign
from headrace._runtime.windows.rows.stored import Stored
from headrace._runtime.windows.sessions.intervals import merge_intervals

__all__ = ["Own", "own_cells"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Own:
    """Cells that are none, their keys, and for each pair its cell and its row."""

    cells: list[Cell]
    keys: list[pa.Array]
    codes: Integers
    rows: Integers
    #: Rows that have no window at all.
    left: Integers


def own_cells(layout: Layout, rows: Incoming) -> Own:
    """The windows of these rows, for themselves."""
    pairs = _merged(rows) if layout.merging else _assigned(layout, rows)
    left = np.setdiff1d(np.arange(rows.size), pairs.rows)
    if not len(pairs.rows):
        return Own([], [], pairs.rows, pairs.rows, left)
    codes, firsts = number_pairs(rows.keys, pairs)
    # Windows of one key in their order, as everywhere.
    order = np.lexsort((pairs.lasts[firsts], pairs.starts[firsts]))
    codes, firsts = np.argsort(order)[codes], firsts[order]
    bounds = zip(pairs.starts[firsts].tolist(), pairs.lasts[firsts].tolist(), strict=True)
    cells = [Cell(-1, start, last, []) for start, last in bounds]
    for cell in cells:
        cell.state = [None] * len(layout.state or ())
        cell.stored = Stored(-1, [])
    return Own(cells, _taken(rows.keys, pairs.rows[firsts]), codes, pairs.rows, left)


def _assigned(layout: Layout, rows: Incoming) -> Pairs:
    columns = rows.batch.select(layout.columns.names)
    return assign(layout.node.window, columns, rows.timestamps, layout.node.uid)


def _merged(rows: Incoming) -> Pairs:
    codes, _ = number_keys(rows.keys)
    spans = merge_intervals(codes, rows.timestamps, rows.batch.column(END).to_numpy())
    return Pairs(np.arange(rows.size), spans.starts[spans.of], spans.ends[spans.of] - 1)


def _taken(keys: Sequence[pa.Array], rows: Integers) -> list[pa.Array]:
    return [key.take(pa.array(rows)) for key in keys]
