"""The last row of each key of an input whose rows are also withdrawn.

Rows that a step before has made come from several shards, and then their order says nothing: of a row that moved from one
key of a join to another, what withdraws the old one may arrive behind the new one. So what is withdrawn is told by content.

    +U new   -U old       new stays: the other one withdraws what was there before
    +U new   -D new       none stays
    -U same  +U same      nothing has happened, if the key had this row
    +U new   -D key       none stays: what has nothing but its key ends whatever was there, and order counts
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.joins.regular.content import cancelled, content_codes
from headrace._runtime.joins.regular.store import KeptRows

__all__ = ["last_rows"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def last_rows(
    kept: KeptRows, batch: pa.RecordBatch, codes: Integers, old: Integers, minus: Mask
) -> Integers:
    """The place of the row that decides each key, for better or worse; keys of which nothing changes have none.

    `codes` are the numbers of the keys of rows, `old` the slot of each key's row or -1, `minus` which rows withdraw.
    """
    keys = len(old)
    come, gone = np.flatnonzero(~minus), np.flatnonzero(minus)
    mixed = (_last(codes, come, keys) >= 0) & (_last(codes, gone, keys) >= 0)
    same = np.empty(0, np.int64)
    if mixed.any():
        staying, same = _of_mixed(kept, batch, codes, old, minus, mixed)
        come = np.concatenate([come[~mixed[codes[come]]], staying])
    found = _last(codes, come, keys)
    ended = found < 0
    found[ended] = _last(codes, gone, keys)[ended]
    found[same] = -1
    decided: Integers = found[found >= 0]
    return decided


def _of_mixed(
    kept: KeptRows, batch: pa.RecordBatch, codes: Integers, old: Integers, minus: Mask, mixed: Mask
) -> tuple[Integers, Integers]:  # fmt: skip
    """Of keys with rows of both signs: the places of rows that may stay, and the keys that stay as they are."""
    keys, rows, had = len(old), np.flatnonzero(mixed[codes]), np.flatnonzero(mixed & (old >= 0))
    own, stored = content_codes(kept.side, [kept.side.columns(batch, rows), kept.rows(old[had])])
    come, gone = (rows[places] for places in cancelled(own, minus[rows]))
    wiped = _last(codes, gone[_has_only_key(kept, batch, gone)], keys)
    # Where all rows cancel out, a key that had one of them has it still; of any other the last row decides.
    nothing = mixed.copy()
    nothing[codes[np.concatenate([come, gone])]] = False
    same = had[np.isin(stored, own) & nothing[had]]
    nothing[same] = False
    last = _last(codes, rows, keys)[nothing]
    return np.concatenate([come[come > wiped[codes[come]]], last[~minus[last]]]), same


def _last(codes: Integers, places: Integers, keys: int) -> Integers:
    """The greatest of these places of each key, -1 where it has none."""
    found = np.full(keys, -1)
    np.maximum.at(found, codes[places], places)
    return found


def _has_only_key(kept: KeptRows, batch: pa.RecordBatch, rows: Integers) -> Mask:
    """Which rows say nothing but their key."""
    columns = kept.side.columns(batch, rows)
    null = [columns[n].is_null().to_numpy(zero_copy_only=False) for n in kept.side.carried.names]
    found: Mask = np.logical_and.reduce(null) if null else np.zeros(len(rows), np.bool_)
    return found
