"""Drives one aggregate through its life: rows are folded, parts merged into panes, panes into a result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace._runtime.aggregates.fold import Flush, Fold
from headrace._runtime.aggregates.kinds import Setting, make_fold
from headrace._runtime.windows.folding import fold_groups
from headrace._runtime.windows.scratch import Scratch
from headrace.aggregates import Aggregate

#: Of a batch: the key of each row, a number from 0.
KEY = "key"


def fold_of(aggregate: Aggregate, schema: pa.Schema, *, weighted: bool = False) -> Fold:
    """What computes the aggregate over rows of this schema."""
    keys = pa.schema([schema.field(KEY)])
    setting = Setting("per-key", schema, keys, overlapping=True, weighted=weighted)
    return make_fold("out", aggregate, setting)


def compute(
    aggregate: Aggregate, panes: Sequence[Sequence[pa.RecordBatch]], *, keys: int,
    weighted: bool = False,
) -> pa.Array:  # fmt: skip
    """The result for each key. Every batch of every pane is folded by itself."""
    schema = next(batch.schema for batches in panes for batch in batches)
    fold = fold_of(aggregate, schema, weighted=weighted)
    every = np.arange(keys)
    whole = Scratch([fold], keys)
    for batches in panes:
        pane = Scratch([fold], keys)
        for batch in batches:
            slots, parts = folded(fold, batch)
            fold.merge(pane, slots, parts)
        fold.merge(whole, every, fold.export(pane, every))
    result = fold.result(whole, every)
    result.validate(full=True)
    return result


def folded(fold: Fold, batch: pa.RecordBatch) -> tuple[np.ndarray, list[pa.Array]]:
    """The keys of a batch and the parts of each."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    flush = Flush(columns, np.arange(batch.num_rows))
    (distinct,), parts = fold_groups(flush, [columns[KEY]], [fold])
    for part, field in zip(parts, fold.parts, strict=True):
        assert part.type == field.type
    return distinct.to_numpy(), parts
