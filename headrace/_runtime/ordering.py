"""Orders of rows that keep arrival among equals, several times faster than a stable sort of numpy's.

A number and a place are put into one word where both fit, and words are sorted by the machine's vectors.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["first_places", "places_within", "ranges", "stable_order", "starts_of"]

Integers = npt.NDArray[np.int64]

_WORD_BITS = 62


def stable_order(numbers: Integers) -> Integers:
    """The places of the rows from the least number to the greatest, among equals in order."""
    if not len(numbers):
        return np.empty(0, np.int64)
    least = int(numbers.min())
    place_bits = len(numbers).bit_length()
    if (int(numbers.max()) - least).bit_length() + place_bits > _WORD_BITS:
        return np.argsort(numbers, kind="stable")
    words = numbers - least
    words <<= place_bits
    words |= np.arange(len(numbers))
    words.sort()
    words &= (1 << place_bits) - 1
    return words


def starts_of(sizes: Integers) -> Integers:
    """Where each group starts when groups of these sizes stand one behind the other."""
    starts = np.cumsum(sizes)
    starts -= sizes
    return starts


def first_places(groups: Integers, many: int) -> Integers:
    """The place of the first row of each of so many groups, -1 where there is none."""
    places = np.full(many, -1)
    places[groups[::-1]] = np.arange(len(groups))[::-1]
    return places


def places_within(groups: Integers, sizes: Integers) -> Integers:
    """For each row its place among the rows of its group, in order; `sizes` counts the rows of each."""
    places = np.empty(len(groups), np.int64)
    places[stable_order(groups)] = ranges(np.zeros(len(sizes), np.int64), sizes)
    return places


def ranges(starts: Integers, sizes: Integers) -> Integers:
    """start, start + 1, ... for every start, so many as its size, one behind the other."""
    numbers = np.repeat(starts - starts_of(sizes), sizes)
    numbers += np.arange(len(numbers))
    return numbers
