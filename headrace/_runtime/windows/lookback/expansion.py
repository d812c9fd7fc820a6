"""Aggregates that must see every row of every range: ranges are written out, and folded as windows are.

The cost is the sum of the lengths of all ranges, so a key with many rows in its look-back is dear here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.aggregates.fold import Flush, Fold
from headrace._runtime.ordering import ranges as written_out
from headrace._runtime.ordering import stable_order
from headrace._runtime.windows.folding import fold_groups
from headrace._runtime.windows.lookback.measures import Items
from headrace._runtime.windows.lookback.ranges import Ranges
from headrace._runtime.windows.scratch import Scratch

__all__ = ["EXPANDED_ROWS", "expand"]

#: Rows written out at once, but for a range that is longer.
EXPANDED_ROWS = 262_144

Integers = npt.NDArray[np.int64]


def expand(folds: Sequence[Fold], items: Items, ranges: Ranges) -> list[pa.Array]:
    """What each fold makes of each range."""
    ranks = _ranks(items.arrivals)
    parts = [_fold(folds, items, ranks, starts, sizes) for starts, sizes in _pieces(ranges)]
    return [pa.concat_arrays(arrays) for arrays in zip(*parts, strict=True)]


def _fold(
    folds: Sequence[Fold], items: Items, ranks: Integers | None, starts: Integers, sizes: Integers
) -> list[pa.Array]:
    rows = written_out(starts, sizes)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    if ranks is not None:
        order = stable_order(ranks[rows])
        rows, owners = rows[order], owners[order]
    places = pa.array(rows)
    columns = {name: column.take(places) for name, column in items.columns.items()}
    flush = Flush(columns, items.timestamps[rows])
    (found,), parts = fold_groups(flush, [pa.array(owners)], folds)
    scratch = Scratch(folds, len(sizes))
    every = np.arange(len(sizes))
    for fold in folds:
        fold.merge(scratch, found.to_numpy(), parts[: len(fold.parts)])
        parts = parts[len(fold.parts) :]
    return [fold.result(scratch, every) for fold in folds]


def _ranks(arrivals: Integers | None) -> Integers | None:
    """The place of each row in the order of arrival."""
    if arrivals is None:
        return None
    ranks = np.empty(len(arrivals), np.int64)
    ranks[np.argsort(arrivals, kind="stable")] = np.arange(len(arrivals))
    return ranks


def _pieces(ranges: Ranges) -> Iterator[tuple[Integers, Integers]]:
    """Starts and sizes of some ranges at a time."""
    numbers = (np.cumsum(ranges.sizes) - ranges.sizes) // EXPANDED_ROWS
    cuts = np.flatnonzero(np.diff(numbers)) + 1
    yield from zip(np.split(ranges.starts, cuts), np.split(ranges.sizes, cuts), strict=True)
