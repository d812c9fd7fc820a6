"""What an epoch does to a table in the end: the last change of each key, and nothing of the ones before it.

At most one row of a key reaches the server, so a merge never meets a key twice. A key is deleted if what is left of it is a
withdrawal ("-D", or a "-U" that nothing replaces). Rows of several shards have no order, so a withdrawal takes back the row
that it describes, wherever that stands: behind a new row, that of an old one says nothing of the new one. What has
nothing but its key takes back whatever came before it. Rows come out in the order of their keys: a server's
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
from headrace.keys import check_key_type, hash_keys

__all__ = ["Effect", "effect", "flaw"]

Places = npt.NDArray[np.int64]

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
    order, ends = _by_key(rows, key)
    if change is None:
        return Effect(rows.take(order[ends]), rows.select(list(key)).slice(0, 0))
    rows, change = rows.take(order), change.take(order)
    last = _deciding(rows, key, change, ends)
    kept = rows.take(last)
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


def _deciding(
    rows: pa.Table, key: Sequence[str], change: pa.ChunkedArray, ends: Places
) -> Places:  # fmt: skip
    """Of rows by key, with the last place of each: the place of the row that says what becomes of the key."""
    minus = pc.is_in(change, _WITHDRAWING).to_numpy()
    if not minus.any() or minus.all():
        return ends
    keys = np.searchsorted(ends, np.arange(len(minus)))
    contents = _contents(rows)
    balance = np.zeros(int(contents.max()) + 1, np.int64)
    np.add.at(balance, contents, np.where(minus, -1, 1))
    places = np.arange(len(minus))
    bare = minus & (balance[contents] < 0) & _has_only_key(rows, key)
    wiped = _greatest(keys[bare], places[bare], len(ends))
    stays = ~minus & (balance[contents] > 0) & (places > wiped[keys])
    found = _greatest(keys[stays], places[stays], len(ends))
    # All cancels out: an update to the same row stays in whichever order it comes, a row that came and went is gone.
    open_keys = np.ones(len(ends), bool)
    open_keys[keys[balance[contents] != 0]] = False
    same = (
        open_keys[keys]
        & pc.equal(change, "+U").to_numpy()
        & pc.equal(change.take(ends[keys]), "-U").to_numpy()
    )
    found = np.maximum(found, _greatest(keys[same], places[same], len(ends)))
    unsettled = np.where(open_keys, ends, _greatest(keys[minus], places[minus], len(ends)))
    return np.where(found >= 0, found, unsettled)


def _contents(rows: pa.Table) -> Places:
    """Numbers of rows, equal where all columns are; of nested ones equal rows have the same."""
    columns = [c.combine_chunks() for c in rows.columns if check_key_type(c.type)]
    hashes = hash_keys(columns)
    codes: Places = np.unique(hashes, return_inverse=True)[1]
    return codes


def _has_only_key(rows: pa.Table, key: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which rows say nothing but their key."""
    others = [name for name in rows.column_names if name not in key]
    null = [rows.column(name).is_null().to_numpy() for name in others]
    found: npt.NDArray[np.bool_] = (
        np.logical_and.reduce(null) if null else np.zeros(len(rows), bool)
    )
    return found


def _greatest(keys: Places, places: Places, many: int) -> Places:
    found = np.full(many, -1)
    np.maximum.at(found, keys, places)
    return found


def _by_key(rows: pa.Table, key: Sequence[str]) -> tuple[Places, Places]:
    """The rows in the order of their keys, and then of their arrival; the places in it of the last of each key."""
    keys = pa.table({name: _comparable(rows.column(name)) for name in key})
    # Stable: rows of one key stay in the order of their arrival.
    order = pc.sort_indices(keys, [(name, "ascending") for name in key])
    ordered = keys.take(order)
    is_last = np.zeros(len(order), bool)
    is_last[-1:] = True
    for column in ordered.columns:
        differs = pc.not_equal(column.slice(0, max(len(column) - 1, 0)), column.slice(1))
        is_last[:-1] |= differs.to_numpy(zero_copy_only=False)
    return order.to_numpy().astype(np.int64), np.flatnonzero(is_last)


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Values that are the same if a server holds them equal: -0.0 is 0.0, and NaN is NaN."""
    if not pa.types.is_floating(column.type):
        return column
    doubles = pc.add(column.cast(pa.float64()), 0.0).to_numpy()
    return pa.array(doubles.view(np.int64))
