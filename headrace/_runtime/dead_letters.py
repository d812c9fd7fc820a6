"""Dead letters: rows of the `errors` output, with what they were, where they came from and why they are there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.nodes import ERRORS_SCHEMA
from headrace._runtime.payload import as_json
from headrace._runtime.rows import Rows
from headrace.endpoints import DeadLetter

__all__ = ["dead_letters", "refused_records", "split_null_keys"]


def dead_letters(
    rows: Rows, uid: str, causes: Sequence[str], tracebacks: Sequence[str | None] | None = None
) -> Rows:
    """These rows as dead letters, each with its cause."""
    origin = rows.origin
    none = [None] * len(rows)
    arrays = [
        pa.array([uid] * len(rows), pa.string()),
        pa.array(causes, pa.string()),
        pa.array(none if tracebacks is None else tracebacks, pa.string()),
        pa.array(none if origin is None else [origin.source] * len(rows), pa.string()),
        pa.array(none if origin is None else [origin.partition] * len(rows), pa.string()),
        pa.array(none if origin is None else origin.offsets, pa.int64()),
        pa.array(as_json(rows.batch), pa.string()),
        pa.array(none, pa.binary()),
        pa.array(none, pa.binary()),
    ]
    return Rows(pa.RecordBatch.from_arrays(arrays, schema=ERRORS_SCHEMA), rows.timestamps, origin)


def split_null_keys(rows: Rows, uid: str, keys: Sequence[str]) -> tuple[Rows, Rows | None]:
    """The rows whose keys are all there, and the others as dead letters; None if there is none."""
    with_nulls = [c for c in map(rows.batch.column, keys) if c.null_count]
    if not with_nulls:
        return rows, None
    valid = with_nulls[0].is_valid()
    for column in with_nulls[1:]:
        valid = pc.and_(valid, column.is_valid())
    mask: npt.NDArray[np.bool_] = valid.to_numpy(zero_copy_only=False)
    return rows.filter(mask), _null_keys(rows.filter(~mask), uid, keys)


def refused_records(uid: str, dead: Sequence[DeadLetter], clock_us: int) -> Rows:
    """Records that never became rows, as rows of the `errors` output; their time is the epoch's clock."""
    batch = pa.RecordBatch.from_pydict(
        {
            "uid": [uid] * len(dead),
            "cause": [letter.cause for letter in dead],
            "traceback": [None] * len(dead),
            "source": [uid] * len(dead),
            "partition": [letter.partition for letter in dead],
            "offset": [letter.offset for letter in dead],
            "payload": [letter.payload for letter in dead],
            "raw": [letter.raw for letter in dead],
            "raw_key": [letter.raw_key for letter in dead],
        },
        schema=ERRORS_SCHEMA,
    )
    return Rows(batch, np.full(len(dead), clock_us, np.int64))


def _null_keys(rows: Rows, uid: str, keys: Sequence[str]) -> Rows:
    columns = [(name, rows.batch.column(name).is_null().to_pylist()) for name in keys]
    causes = [
        ", ".join(f"null key '{name}'" for name, nulls in columns if nulls[row])
        for row in range(len(rows))
    ]
    return dead_letters(rows, uid, causes)
