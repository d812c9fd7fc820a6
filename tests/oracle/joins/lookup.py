"""Look-up joins by looking at every row of the table for every row of the stream.

A null in any part of a key matches nothing; NaN equals NaN, -0.0 equals 0.0. An inner join has no result for rows without a
partner, and takes those with a null in their key for dead letters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

__all__ = ["lookup_join", "same_key"]

Row = Mapping[str, Any]


def lookup_join(
    rows: Sequence[Row],
    table: Sequence[Row],
    on: Sequence[tuple[str, str]],
    how: Literal["left", "inner"],
) -> tuple[list[tuple[int, int | None]], list[int]]:
    """Pairs of places, None where there is no partner, in the order of the rows; and the places of dead letters.

    `on` are pairs of columns: of the stream, and of the table.
    """
    pairs: list[tuple[int, int | None]] = []
    dead: list[int] = []
    for place, row in enumerate(rows):
        if how == "inner" and any(row[mine] is None for mine, _ in on):
            dead.append(place)
            continue
        found = [
            other
            for other, candidate in enumerate(table)
            if all(same_key(row[mine], candidate[theirs]) for mine, theirs in on)
        ]
        pairs += [(place, other) for other in found]
        if not found and how == "left":
            pairs.append((place, None))
    return pairs, dead


def same_key(one: Any, other: Any) -> bool:
    """Whether two values of keys are the same."""
    if one is None or other is None:
        return False
    both_nan = one != one and other != other
    return bool(both_nan or one == other)
