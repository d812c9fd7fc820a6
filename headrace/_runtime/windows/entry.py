"""What happens to rows at the door of every window: those with a null key leave as dead letters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.nodes import ERRORS_SCHEMA, WindowStep
from headrace._runtime.payload import as_json
from headrace._runtime.rows import Rows
from headrace.errors import EngineError

__all__ = ["dead_letters", "split_null_keys", "timestamps_of"]


def split_null_keys(rows: Rows, node: WindowStep) -> tuple[Rows, Rows | None]:
    """The rows whose keys are all there, and the others as dead letters; None if there is none."""
    with_nulls = [c for c in map(rows.batch.column, node.keys) if c.null_count]
    if not with_nulls:
        return rows, None
    valid = with_nulls[0].is_valid()
    for column in with_nulls[1:]:
        valid = pc.and_(valid, column.is_valid())
    mask: npt.NDArray[np.bool_] = valid.to_numpy(zero_copy_only=False)
    return rows.filter(mask), _null_keys(rows.filter(~mask), node)


def timestamps_of(rows: Rows, node: WindowStep) -> npt.NDArray[np.int64]:
    """The timestamps; the builder has seen to it that there are any."""
    if rows.timestamps is None:
        raise EngineError(f"Rows without timestamps reached the window step '{node.uid}'.")
    return rows.timestamps


def dead_letters(rows: Rows, node: WindowStep, causes: list[str]) -> Rows:
    """These rows as dead letters, each with its cause."""
    origin = rows.origin
    arrays = [
        pa.array([node.uid] * len(rows)),
        pa.array(causes),
        pa.array([None if origin is None else origin.partition] * len(rows), pa.string()),
        pa.nulls(len(rows), pa.int64()) if origin is None else pa.array(origin.offsets),
        pa.array(as_json(rows.batch)),
    ]
    return Rows(pa.RecordBatch.from_arrays(arrays, schema=ERRORS_SCHEMA), rows.timestamps, origin)


def _null_keys(rows: Rows, node: WindowStep) -> Rows:
    columns = [(name, rows.batch.column(name).is_null().to_pylist()) for name in node.keys]
    causes = [
        ", ".join(f"null key '{name}'" for name, nulls in columns if nulls[row])
        for row in range(len(rows))
    ]
    return dead_letters(rows, node, causes)
