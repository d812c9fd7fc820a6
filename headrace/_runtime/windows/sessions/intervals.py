"""Intervals put together: what overlaps or touches becomes one span, for all keys in one pass.

    key 0    [---)  [----)             key 1       [---)
               [----)                                  [--)
    spans    [-----------)                         [------)

Key and time are packed into one integer, so that one sort orders both and one running maximum serves all keys:
a key's times lie beyond all of the key before. Where the years are too many for that, times become ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Integers", "Mask", "Spans", "distinct", "merge_intervals", "openings"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Packed numbers stay below.
_ROOM = 2**63


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans in order of their keys, then of time."""

    #: For each interval the number of its span.
    of: Integers
    starts: Integers
    ends: Integers
    #: For each span the interval that starts first.
    firsts: Integers


def merge_intervals(keys: Integers, starts: Integers, ends: Integers) -> Spans:
    """The spans of intervals [start, end) of the same key. Keys are numbers from 0 on, with or without holes."""
    if not len(keys):
        return Spans(keys, starts, ends, keys)
    low, width = int(starts.min()), int(ends.max()) - int(starts.min()) + 1
    if (int(keys.max()) + 1) * width < _ROOM:
        return _merge(keys, starts - low, ends - low, width, starts, ends)
    times = distinct(np.concatenate([starts, ends]))
    ranks = np.searchsorted(times, starts), np.searchsorted(times, ends)
    return _merge(keys, *ranks, len(times), starts, ends)


def _merge(
    keys: Integers, low: Integers, high: Integers, width: int, starts: Integers, ends: Integers
) -> Spans:
    """`low` and `high` are starts and ends in an order-preserving form, from 0 to below `width`."""
    bases = keys * width
    packed = bases + low
    order = np.argsort(packed)
    reached = np.maximum.accumulate((bases + high)[order])
    opens = np.ones(len(keys), np.bool_)
    opens[1:] = packed[order[1:]] > reached[:-1]
    places = np.flatnonzero(opens)
    of = np.empty(len(keys), np.int64)
    of[order] = np.cumsum(opens) - 1
    firsts = order[places]
    # The greatest end of a span, wherever in it: of intervals in order, none after the place is in the span.
    greatest = np.maximum.reduceat(ends[order], places)
    return Spans(of, starts[firsts], greatest, firsts)


def openings(ordered: Integers) -> Integers:
    """Where in an ordered array another value begins."""
    opens = np.ones(len(ordered), np.bool_)
    opens[1:] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(opens)


def distinct(values: Integers) -> Integers:
    """The different values, in order. (`np.unique` hashes first, which is many times slower.)"""
    ordered = np.sort(values)
    return ordered[openings(ordered)]
