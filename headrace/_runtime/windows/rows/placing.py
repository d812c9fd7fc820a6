"""Rows of a batch and the cells that they go into, or late for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.operator import HASH
from headrace._runtime.plain_keys import key_columns, number_keys
from headrace._runtime.unfolded import TIMESTAMP
from headrace._runtime.windows.rows.cells import Cell, Cells
from headrace._runtime.windows.rows.layout import Layout
from headrace._runtime.windows.rows.machine import Machine
from headrace._runtime.windows.rows.spans import Pairs, assign
from headrace.keys import extend_hashes
from headrace.watermarks import NO_WATERMARK

__all__ = ["Incoming", "Placed", "late_limit", "number_pairs", "place_rows"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Placed:
    """Pairs of a cell and the number of a row, in order of arrival; and the rows that are late."""

    cells: list[Cell]
    rows: Integers
    late: Integers


class Incoming:
    """A fed batch and what is read from it."""

    def __init__(self, layout: Layout, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.size = int(batch.num_rows)
        self.hashes: npt.NDArray[np.uint64] = batch.column(HASH).to_numpy()
        #: Rows without timestamps count as of 1970, where nobody looks.
        self.timestamps: Integers = batch.column(TIMESTAMP).fill_null(0).to_numpy()
        self.timed = not batch.column(TIMESTAMP).null_count
        named = dict(zip(batch.schema.names, batch.columns, strict=True))
        self.keys = key_columns(layout.node.keys, named, self.size)


def late_limit(watermark: int, lateness_us: int) -> int:
    """Windows whose last microsecond is not behind this are over."""
    return max(watermark - lateness_us, NO_WATERMARK)


def place_rows(
    layout: Layout, cells: Cells, machine: Machine, rows: Incoming, watermark: int
) -> Placed:
    """For windows that do not merge."""
    node = layout.node
    columns = rows.batch.select(layout.columns.names)
    pairs = assign(node.window, columns, rows.timestamps, node.uid)
    if not layout.counts:
        pairs = pairs.at(pairs.lasts > late_limit(watermark, node.lateness_us))
    missed = np.ones(rows.size, np.bool_)
    missed[pairs.rows] = False
    if not len(pairs.rows):
        return Placed([], pairs.rows, np.flatnonzero(missed))
    codes, firsts = number_pairs(rows.keys, pairs)
    own, starts, lasts = pairs.rows[firsts], pairs.starts[firsts], pairs.lasts[firsts]
    hashes = extend_hashes(rows.hashes[own], [pa.array(starts), pa.array(lasts)])
    taken = [key.take(pa.array(own)) for key in rows.keys]
    found, fresh = cells.touch(hashes, taken, starts, lasts)
    machine.start(fresh)
    return Placed([found[code] for code in codes.tolist()], pairs.rows, np.flatnonzero(missed))


def number_pairs(keys: Sequence[pa.Array], pairs: Pairs) -> tuple[Integers, Integers]:
    """A number for each pair, equal for equal keys and windows; and the first pair of each number."""
    codes, firsts = number_keys(keys)
    once = len(pairs.rows) == len(codes) and bool((pairs.rows[1:] > pairs.rows[:-1]).all())
    same = bool((pairs.starts == pairs.starts[0]).all() and (pairs.lasts == pairs.lasts[0]).all())
    if once and same:
        return codes, firsts
    spans, _ = number_keys([pa.array(pairs.starts), pa.array(pairs.lasts)])
    return number_keys([pa.array(codes[pairs.rows]), pa.array(spans)])
