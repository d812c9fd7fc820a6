"""What an epoch does to a table in the end: the last change of each key, and nothing of the ones before it.

At most one row of a key reaches the server, so a merge never meets a key twice. A key whose last change is a
withdrawal ("-D", or a "-U" that nothing follows) is deleted. Rows come out in the order of their keys: a server's
index is filled twice as fast that way, and two jobs that write to one table lock its rows in the same order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.changes import CHANGE
from headrace.errors import SinkRefused

__all__ = ["Effect", "effect", "flaw"]

_KNOWN = pa.array(["+I", "-U", "+U", "-D"])
_WITHDRAWING = pa.array(["-U", "-D"])


@dataclass(frozen=True, slots=True)
class Effect:
    """Rows to add or replace, and keys to delete."""

    written: pa.Table
    deleted: pa.Table


def effect(rows: pa.Table, key: Sequence[str], change: pa.ChunkedArray | None) -> Effect:
    """What rows in order of their arrival come to; `change` says what each of them is."""
    wrong = flaw(rows, key, change)
    if wrong is not None:
        raise SinkRefused(wrong)
    last = _last_of_each(rows, key)
    kept = rows.take(last)
    if change is None:
        return Effect(kept, rows.select(list(key)).slice(0, 0))
    gone = pc.is_in(change.take(last), _WITHDRAWING)
    return Effect(kept.filter(pc.invert(gone)), kept.select(list(key)).filter(gone))


def flaw(
    rows: pa.Table | pa.RecordBatch, key: Sequence[str], change: pa.Array | pa.ChunkedArray | None
) -> str | None:
    """What is wrong with rows whatever table they are for; None: nothing."""
    for name in key:
        if rows.column(name).null_count:
            return (
                f"a row has no value for {name!r}, which is part of the key: no later change could find it;"
                " filter such rows, or choose another key"
            )
    if change is None:
        return None
    strange = pc.filter(change, pc.invert(pc.is_in(change, _KNOWN)))
    if len(strange):
        return (
            f"the column {CHANGE!r} holds {strange[0].as_py()!r}; it says what a row is:"
            " '+I', '-U', '+U' or '-D'"
        )
    return None


def _last_of_each(rows: pa.Table, key: Sequence[str]) -> npt.NDArray[np.int64]:
    """The numbers of the rows that no other of the same key follows, in the order of the keys."""
    keys = pa.table({name: _comparable(rows.column(name)) for name in key})
    # Stable: rows of one key stay in the order of their arrival.
    order = pc.sort_indices(keys, [(name, "ascending") for name in key])
    ordered = keys.take(order)
    is_last = np.zeros(len(order), bool)
    is_last[-1:] = True
    for column in ordered.columns:
        differs = pc.not_equal(column.slice(0, max(len(column) - 1, 0)), column.slice(1))
        is_last[:-1] |= differs.to_numpy(zero_copy_only=False)
    found: npt.NDArray[np.int64] = order.to_numpy()[is_last].astype(np.int64)
    return found


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Values that are the same if a server holds them equal: -0.0 is 0.0, and NaN is NaN."""
    if not pa.types.is_floating(column.type):
        return column
    doubles = pc.add(column.cast(pa.float64()), 0.0).to_numpy()
    return pa.array(doubles.view(np.int64))
