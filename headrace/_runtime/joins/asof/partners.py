"""Which right row a left row gets: the last of its key before it, for all left rows at once.

Rows are put in order by key and time, so what comes last before a left row is found by bisection:

    key a                          key b
    r1   r2     r3   r3'     r4    r1                   r3 and r3' have one time, r3' came later
         l gets r2  ^l gets r3'    ^l at the same time gets r1, or nothing if exact matches do not count

The first one behind a row is the last before it when time runs backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.joins.sides import Columns
from headrace._runtime.ordering import stable_order

__all__ = ["Moments", "Partners", "distinct", "last_before", "last_of_each", "latest_of_each"]

Integers = npt.NDArray[np.int64]

_WORD_BITS = 62


@dataclass(frozen=True)
class Moments:
    """Rows by the numbers of their keys and their times; of rows of one key and time, the last one counts."""

    codes: Integers
    times: Integers

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, places: slice | Integers) -> Moments:
        return Moments(self.codes[places], self.times[places])

    def mirrored(self) -> Moments:
        """The same with time running backwards."""
        return Moments(self.codes, -self.times)


@dataclass(frozen=True)
class Partners:
    """Right rows, and which of them each left row gets; -1: none."""

    columns: Columns
    places: Integers

    @classmethod
    def of(cls, names: Sequence[str], parts: Sequence[Columns], places: Integers) -> Partners:
        """These columns of right rows in several parts, numbered one part behind the other."""
        if not parts:
            return cls({}, places)
        if len(parts) == 1:
            return cls({name: parts[0][name] for name in names}, places)
        return cls({n: pa.concat_arrays([part[n] for part in parts]) for n in names}, places)

    @property
    def row_bytes(self) -> int:
        """How large a right row is on average."""
        size = sum(column.nbytes for column in self.columns.values())
        rows = max((len(column) for column in self.columns.values()), default=0)
        return int(size // max(1, rows))

    def take(self, places: Integers) -> Columns:
        """The columns of the right rows with these numbers, null where there is none."""
        missing = places < 0
        taken = pa.array(places, mask=missing) if missing.any() else pa.array(places)
        return {name: column.take(taken) for name, column in self.columns.items()}


def last_before(left: Moments, right: Moments, *, exact: bool = True) -> Integers:
    """For each left row the place of the last right row of its key at or before it; -1 if there is none.

    Without `exact` it is strictly before it.
    """
    if not len(left) or not len(right):
        return np.full(len(left), -1)
    wanted, present, bits = _words(left, right)
    order = stable_order(present)
    present = present[order]
    # In order they are looked for three times as fast.
    asked = stable_order(wanted)
    wanted = wanted[asked]
    at = np.searchsorted(present, wanted, side="right" if exact else "left") - 1
    same_key = (at >= 0) & (present[at] >> bits == wanted >> bits)
    places = np.empty(len(left), np.int64)
    places[asked] = np.where(same_key, order[at], -1)
    return places


def latest_of_each(rows: Moments) -> Integers:
    """The place of the last row of each key."""
    words, _, bits = _words(rows, rows)
    return _lasts(words, words >> bits)


def last_of_each(rows: Moments) -> Integers:
    """The place of the row that counts, for each key and time."""
    words, _, _ = _words(rows, rows)
    return _lasts(words, words)


def distinct(numbers: Integers) -> tuple[Integers, Integers]:
    """Each number once, in order, and the place of each of those given among them."""
    order = stable_order(numbers)
    ordered = numbers[order]
    first = np.append(True, ordered[1:] != ordered[:-1])
    places = np.empty(len(numbers), np.int64)
    places[order] = np.cumsum(first) - 1
    return ordered[first], places


def _lasts(words: Integers, classes: Integers) -> Integers:
    order = stable_order(words)
    classes = classes[order]
    return order[np.flatnonzero(np.append(classes[1:] != classes[:-1], True))]


def _words(left: Moments, right: Moments) -> tuple[Integers, Integers, int]:
    """Key and time of each row in one word, and how many bits of it are the time."""
    least = min(int(left.times.min()), int(right.times.min()))
    most = max(int(left.times.max()), int(right.times.max()))
    bits = (most - least).bit_length()
    left_times, right_times = left.times, right.times
    keys = max(int(left.codes.max()), int(right.codes.max()))
    if keys.bit_length() + bits > _WORD_BITS:
        # Only their order counts.
        both = np.concatenate([left_times, right_times])
        ranks = np.unique(both, return_inverse=True)[1]
        left_times, right_times = ranks[: len(left)], ranks[len(left) :]
        least, bits = 0, len(both).bit_length()
    return (
        (left.codes << bits) + (left_times - least),
        (right.codes << bits) + (right_times - least),
        bits,
    )
