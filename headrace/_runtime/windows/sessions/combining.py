"""Parts of the same session folded into one, whatever their number, by pairs.

A table takes one part a slot and call. Merging one after the other would take as many calls as a session has
parts, and copy growing lists as often; by pairs it takes the logarithm. Neighbours are merged, so the order of
parts stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace._runtime.aggregates.fold import Fold
from headrace._runtime.windows.scratch import Scratch
from headrace._runtime.windows.sessions.intervals import Integers, openings

__all__ = ["Combined", "Parts", "combine", "join_parts", "merge_parts", "take_parts"]

#: For each fold its parts.
Parts = Sequence[Sequence[pa.Array]]


@dataclass(frozen=True, slots=True)
class Combined:
    """One part a group: columns, the slots in them, and the groups, in order."""

    columns: Scratch
    slots: Integers
    groups: Integers

    def parts(self, folds: Sequence[Fold]) -> Parts:
        """What they would be as parts."""
        return [fold.export(self.columns, self.slots) for fold in folds]


def combine(folds: Sequence[Fold], parts: Parts, groups: Integers) -> Combined:
    """Parts of the same group as one; `groups[i]` is the group of part i."""
    order = np.argsort(groups, kind="stable")
    groups = groups[order]
    firsts = openings(groups)
    sizes = np.diff(firsts, append=len(groups))
    ranks = np.arange(len(groups)) - np.repeat(firsts, sizes)
    left = np.repeat(sizes, sizes) - ranks
    scratch = Scratch(folds, len(groups))
    merge_parts(folds, scratch, np.arange(len(groups)), take_parts(parts, order))
    heads, step = np.arange(len(groups)), 1
    while step < int(sizes.max(initial=0)):
        heads = heads[ranks[heads] % (2 * step) == 0]
        pairs = heads[left[heads] > step]
        for fold in folds:
            fold.merge(scratch, pairs, fold.export(scratch, pairs + step))
        step *= 2
    return Combined(scratch, firsts, groups[firsts])


def merge_parts(folds: Sequence[Fold], into: object, slots: Integers, parts: Parts) -> None:
    """Merge the parts of all folds into distinct slots."""
    for fold, own in zip(folds, parts, strict=True):
        fold.merge(into, slots, own)  # type: ignore[arg-type]


def take_parts(parts: Parts, rows: Integers) -> Parts:
    """The parts at these places."""
    places = pa.array(rows)
    return [[part.take(places) for part in own] for own in parts]


def join_parts(folds: Sequence[Fold], first: Parts, second: Parts) -> Parts:
    """Both, one after the other."""
    return [
        [
            pa.concat_arrays([_as_type(one, field.type), _as_type(two, field.type)])
            for field, one, two in zip(fold.parts, *pair, strict=True)
        ]
        for fold, pair in zip(folds, zip(first, second, strict=True), strict=True)
    ]


def _as_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)
