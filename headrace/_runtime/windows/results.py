"""Result rows of windows: the columns that every window adds, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import WindowStep
from headrace._runtime.rows import Rows

__all__ = ["EARLY", "LATE_PANE", "ON_TIME", "OWN", "result_rows", "shown_bounds"]

#: The values of the column `pane`.
EARLY = "early"
ON_TIME = "on_time"
LATE_PANE = "late"
OWN = "own"

Integers = npt.NDArray[np.int64]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_US = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_LAST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def result_rows(
    node: WindowStep,
    keys: Sequence[pa.Array],
    values: Sequence[pa.Array],
    *,
    starts: Integers | int,
    ends: Integers | int,
    panes: pa.Array | str,
    firings: Integers | int,
    changes: pa.Array | str | None = None,
) -> Rows:
    """Rows of the step's schema. A single number or word stands for all rows; timestamps are `ends` - 1 us."""
    count = len(values[0]) if values else len(keys[0])
    arrays = list(keys) if node.keys else []
    if node.window.timed:
        arrays += [pa.array(shown_bounds(starts, count)), pa.array(shown_bounds(ends, count))]
    arrays.append(_repeat(panes, count))
    arrays.append(pa.array(_spread(firings, count)))
    if node.accumulation == "retracting":
        assert changes is not None
        arrays.append(_repeat(changes, count))
    arrays += values
    fitted = [_as_type(a, field.type) for a, field in zip(arrays, node.schema, strict=True)]
    batch = pa.RecordBatch.from_arrays(fitted, schema=node.schema)
    return Rows(batch, _spread(ends, count) - 1)


def shown_bounds(times: Integers | int, count: int) -> Integers:
    """Bounds of windows, where no `datetime` can hold them the nearest one that there is."""
    return _spread(np.clip(np.asarray(times, np.int64), _FIRST_US, _LAST_US), count)


def _spread(numbers: Integers | int, count: int) -> Integers:
    return np.broadcast_to(np.asarray(numbers, np.int64), (count,))


def _repeat(words: pa.Array | str, count: int) -> pa.Array:
    return pa.repeat(words, count) if isinstance(words, str) else words


def _as_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)
