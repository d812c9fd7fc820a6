"""What becomes of a row of a stream with changes, as numbers.

A "-U" says that a row is withdrawn, and mostly another one takes its place: then that one says all. But none need come, if
the row has left a join or a filter, or has another key now.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.changes import CHANGE
from headrace._runtime.joins.matching import Probe
from headrace._runtime.joins.sides import Side

__all__ = ["DELETE", "INSERT", "UPDATE", "WITHDRAW", "kinds_of", "named_kinds", "without_replaced"]

Integers = npt.NDArray[np.int64]

INSERT, WITHDRAW, UPDATE, DELETE = 0, 1, 2, 3
_NAMES = pa.array(["+I", "-U", "+U", "-D"])


def kinds_of(batch: pa.RecordBatch) -> Integers:
    """The numbers of the changes of sent rows."""
    found = pc.index_in(batch.column(CHANGE), _NAMES).fill_null(INSERT)
    kinds: Integers = found.to_numpy().astype(np.int64)
    return kinds


def without_replaced(batch: pa.RecordBatch, side: Side) -> pa.RecordBatch:
    """The rows of a phase but for those that others of the same key replace; a "-U" that stays ends its key, as "-D"."""
    kinds = kinds_of(batch)
    withdrawn = kinds == WITHDRAW
    if not withdrawn.any():
        return batch
    probe = Probe.of(side.key_columns(batch))
    renewed = np.zeros(len(probe.hashes), np.bool_)
    renewed[probe.codes[(kinds == INSERT) | (kinds == UPDATE)]] = True
    place = batch.schema.get_field_index(CHANGE)
    told = named_kinds(np.where(withdrawn, DELETE, kinds))
    batch = batch.set_column(place, batch.schema.field(place), told)
    return batch.filter(pa.array(~(withdrawn & renewed[probe.codes])))


def named_kinds(kinds: Integers) -> pa.Array:
    """The names of changes, for the results."""
    return _NAMES.take(pa.array(kinds))
