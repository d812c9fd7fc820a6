"""Rows of one input beside all that they meet in the others: how many, which, and where nothing is there.

What an input shows of a key depends on its role:

    rows        its rows
    optional    its rows, or one row of nulls where it has none
    exists      something, if it has rows                 the right of a semi join
    absent      something, if it has none                 the right of an anti join

What is shown that is no row *stands in* for the input. With that a join is always a product, and all kinds of it are
one rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from headrace._graph.join_nodes import How
from headrace._runtime.joins.matching import PAIRS

__all__ = ["NOTHING", "Role", "Shown", "combine", "roles_of", "shows_rows"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Role: TypeAlias = Literal["rows", "optional", "exists", "absent"]

#: The slot of what stands in for rows.
NOTHING = -1


def roles_of(how: How, inputs: int) -> tuple[Role, ...]:
    """What each input shows."""
    first: Role = "optional" if how in ("right", "full") else "rows"
    others: Mapping[str, Role] = {
        "left": "optional",
        "full": "optional",
        "semi": "exists",
        "anti": "absent",
    }
    return (first, *([others.get(how, "rows")] * (inputs - 1)))


def shows_rows(role: Role) -> bool:
    """Whether its rows are seen in results."""
    return role in ("rows", "optional")


@dataclass(frozen=True)
class Shown:
    """What one input shows to rows of another."""

    #: Slots one key behind the other, where those of each row's key start, and how many there are.
    slots: Integers
    starts: Integers
    counts: Integers
    #: Where something stands in for them; there are none then.
    stands: Mask | None

    @property
    def sizes(self) -> Integers:
        """How much each row meets."""
        return self.counts if self.stands is None else self.counts + self.stands

    def at(self, rows: Integers, places: Integers) -> Integers:
        """The slots that stand at these places of what rows meet."""
        if self.stands is None or not self.stands.any():
            all_rows: Integers = self.slots[self.starts[rows] + places]
            return all_rows
        found = np.full(len(rows), NOTHING)
        there = np.flatnonzero(~self.stands[rows])
        found[there] = self.slots[self.starts[rows[there]] + places[there]]
        return found


def combine(
    shown: Mapping[int, Shown], rows: int, at_once: int = PAIRS
) -> Iterator[tuple[Integers, dict[int, Integers]]]:
    """For so many rows: the place of the row, and the slot in each other input, of every combination.

    They come in portions: memory does not grow with the partners that a row has.
    """
    sizes = np.ones(rows, np.int64)
    for other in shown.values():
        sizes *= other.sizes
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if rows else 0
    for first in range(0, total, at_once):
        last = min(first + at_once, total)
        start = int(np.searchsorted(ends, first, side="right"))
        stop = int(np.searchsorted(ends, last, side="left")) + 1
        begins = ends[start:stop] - sizes[start:stop]
        many = np.minimum(ends[start:stop], last) - np.maximum(begins, first)
        which = np.repeat(np.arange(start, stop), many)
        # The number of a combination among those of its row, of which each input takes a digit.
        rest = np.arange(first, last) - np.repeat(begins, many)
        met: dict[int, Integers] = {}
        for side, other in shown.items():
            at = rest
            if len(shown) > 1:
                rest, at = np.divmod(rest, other.sizes[which])
            met[side] = other.at(which, at)
        yield which, met
