"""Columns of lists, taken apart and put together without a loop over rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["concat_lists", "distinct_lists", "keep_items", "lengths", "lists_of", "owners"]

Integers = npt.NDArray[np.int64]


def lengths(lists: pa.ListArray) -> Integers:
    """How long each list is; null is empty."""
    return np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(), dtype=np.int64)


def owners(lists: pa.ListArray) -> Integers:
    """For each item of `lists.flatten()`, the row of its list."""
    sizes = lengths(lists)
    return np.repeat(np.arange(len(sizes)), sizes)


def keep_items(lists: pa.ListArray, keep: npt.NDArray[np.bool_]) -> pa.ListArray:
    """The lists with only those items of `lists.flatten()` where `keep` is true."""
    items = lists.flatten()
    kept = np.bincount(owners(lists)[keep], minlength=len(lists))
    return lists_of(items.filter(pa.array(keep)), kept, lists.type)


def concat_lists(a: pa.ListArray, b: pa.ListArray) -> pa.ListArray:
    """Row by row, the items of `a` followed by those of `b`."""
    items = pa.concat_arrays([a.flatten(), b.flatten()])
    # A stable sort by row: within a row the items of `a` come first already.
    order = np.argsort(np.concatenate([owners(a), owners(b)]), kind="stable")
    return lists_of(items.take(pa.array(order)), lengths(a) + lengths(b), a.type)


def distinct_lists(lists: pa.ListArray) -> pa.ListArray:
    """The lists without repeated items, each kept where it stood first."""
    items = lists.flatten().dictionary_encode()
    codes = items.indices.to_numpy().astype(np.int64)
    pairs = owners(lists) * max(1, len(items.dictionary)) + codes
    _, firsts = np.unique(pairs, return_index=True)
    keep = np.zeros(len(pairs), np.bool_)
    keep[firsts] = True
    return lists if keep.all() else keep_items(lists, keep)


def lists_of(items: pa.Array, sizes: Integers, kind: pa.DataType) -> pa.ListArray:
    """Lists of these sizes, filled from the items in order."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    made = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), items)
    return made if made.type == kind else made.cast(kind)
