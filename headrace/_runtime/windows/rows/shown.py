"""What a retracting step has shown and may have to take back: result rows, known by their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headrace._graph.nodes import WindowProcess

if TYPE_CHECKING:
    from headrace._runtime.windows.rows.cells import Cell

__all__ = ["Shown"]


class Shown:
    """Results of earlier epochs that were read, and those of this one, in one row of places."""

    def __init__(self, node: WindowProcess, kept: pa.Schema) -> None:
        self._node = node
        self._kept = kept
        self._list = pa.list_(pa.struct(list(kept)))
        self._batches: list[pa.RecordBatch] = []
        self._size = 0

    def read(self, cells: Sequence[Cell], lists: pa.ListArray, keys: Sequence[pa.Array]) -> None:
        """Results that these cells have shown, as they lie in state."""
        sizes = np.diff(lists.offsets.to_numpy())
        owners = np.repeat(np.arange(len(cells)), sizes)
        first = self._add_columns(
            lists.flatten().flatten(), [key.take(pa.array(owners)) for key in keys]
        )
        for place, owner in enumerate(owners.tolist(), first):
            cells[owner].shown.append(place)

    def add(self, results: pa.RecordBatch) -> int:
        """Results that go out now; the place of the first."""
        self._batches.append(results)
        self._size += results.num_rows
        return self._size - int(results.num_rows)

    def take(self, places: Sequence[int]) -> pa.RecordBatch:
        """Results as they were shown."""
        self._batches = [_joined(self._batches)]
        return self._batches[0].take(pa.array(places, pa.int64()))

    def write(self, cells: Sequence[Cell]) -> pa.ListArray:
        """For each cell the results that stand."""
        sizes = [len(cell.shown) for cell in cells]
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
        if not sum(sizes):
            items = pa.array([], pa.struct(list(self._kept)))
        else:
            rows = self.take([place for cell in cells for place in cell.shown])
            columns = [rows.column(field.name) for field in self._kept]
            items = pa.StructArray.from_arrays(columns, fields=list(self._kept))
        return pa.ListArray.from_arrays(offsets, items).cast(self._list)

    def _add_columns(self, columns: Sequence[pa.Array], keys: Sequence[pa.Array]) -> int:
        """Columns of the kept schema and of the key, as results."""
        named = dict(zip(self._kept.names, columns, strict=True))
        named |= dict(zip(self._node.keys, keys, strict=False))
        count = len(columns[0])
        named["change"] = pa.nulls(count, pa.string())
        arrays = [_as_type(named[field.name], field.type) for field in self._node.schema]
        return self.add(pa.RecordBatch.from_arrays(arrays, schema=self._node.schema))


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    columns = zip(*(batch.columns for batch in batches), strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.concat_arrays(parts) for parts in columns], schema=batches[0].schema
    )


def _as_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)
