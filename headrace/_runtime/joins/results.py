"""Result rows of a join from the columns of its sides; a side that is not there is a row of nulls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.join_nodes import JoinStep
from headrace._runtime.joins.sides import Columns, Side
from headrace._runtime.rows import Rows
from headrace._runtime.unfolded import TIMESTAMP

__all__ = ["joined_rows", "null_keys", "split_nulls", "timestamps_in"]

Integers = npt.NDArray[np.int64]


def joined_rows(
    node: JoinStep,
    sides: Mapping[int, Columns],
    timestamps: Integers | None,
    rows: int,
    added: Sequence[pa.Array] = (),
) -> Rows:
    """So many results. `sides` that are absent are null; `added` are the columns behind those of the inputs."""
    schema = node.schema
    arrays = [*_columns(node, sides, rows), *added]
    fitted = [
        array if array.type == field.type else array.cast(field.type)
        for array, field in zip(arrays, schema, strict=True)
    ]
    return Rows(pa.RecordBatch.from_arrays(fitted, schema=schema), timestamps)


def split_nulls(side: Side, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """Rows that can match, and those with a null in their key; None if there are none."""
    null = null_keys(batch, side.key_names)
    if null is None:
        return batch, None
    return batch.filter(pa.array(~null)), batch.filter(pa.array(null))


def null_keys(batch: pa.RecordBatch, keys: Sequence[str]) -> npt.NDArray[np.bool_] | None:
    """Which rows have a null in their key; None if there are none."""
    null: npt.NDArray[np.bool_] | None = None
    for name in keys:
        column = batch.column(name)
        if column.null_count:
            mine = column.is_null().to_numpy(zero_copy_only=False)
            null = mine if null is None else null | mine
    return null


def timestamps_in(batch: pa.RecordBatch) -> Integers | None:
    """The timestamps of sent rows; None if they have none."""
    column = batch.column(TIMESTAMP)
    if column.null_count:
        return None
    stamps: Integers = column.to_numpy()
    return stamps


def _columns(node: JoinStep, sides: Mapping[int, Columns], rows: int) -> Iterator[pa.Array]:
    for place, column in enumerate(node.columns):
        found = [sides[side][name] for side, name in column.origins if side in sides]
        if not found:
            yield pa.nulls(rows, node.schema.types[place])
        elif len(found) == 1 or not found[0].null_count:
            yield found[0]
        else:
            yield pc.coalesce(*found)
