"""The ranges that a table is read in: computed once, written down, and the same ever after.

    <directory>/ranges.json     for each range: from, below, or that it is the one of the rows without a value

The first and the last range have no end, so every row is in exactly one of them whenever it is read, also rows that
were written after the ranges were computed.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from headrace._commit.files import read_record, write_record
from headrace.endpoints import Enumerator, Json, Span
from headrace.errors import InputError

__all__ = [
    "PARTITION",
    "Bound",
    "Range",
    "RangeEnumerator",
    "equal_ranges",
    "load_ranges",
    "write_ranges",
]

#: A table is one watermark partition, however many ranges it is read in.
PARTITION = "rows"

Bound: TypeAlias = int | Decimal | date | datetime

_FILE = "ranges.json"


@dataclass(frozen=True, slots=True)
class Range:
    """Rows whose value is in `[start, below)`; or those that have none."""

    start: Bound | None = None
    below: Bound | None = None
    nulls: bool = False

    def condition(self, column: str) -> tuple[str, tuple[Bound, ...]]:
        """What a row of this range fulfils; `column` is quoted."""
        if self.nulls:
            return f"{column} IS NULL", ()
        bounds = [(">=", self.start), ("<", self.below)]
        asked = [(sign, bound) for sign, bound in bounds if bound is not None]
        if not asked:
            return f"{column} IS NOT NULL", ()
        text = " AND ".join(f"{column} {sign} %s" for sign, _ in asked)
        return text, tuple(bound for _, bound in asked)


class RangeEnumerator(Enumerator):
    """A position for each range, all of them there from the beginning."""

    def __init__(self, ranges: Sequence[Range]) -> None:
        self._spans = {PARTITION: Span(0, len(ranges), finished=True)}

    def spans(self) -> Mapping[str, Span]:
        """One partition."""
        return self._spans


def equal_ranges(lowest: Any, highest: Any, count: int, column: str) -> list[Range]:
    """So many ranges of equal length between two values, and one of the rows without a value."""
    inner = [] if lowest is None else _cuts(lowest, highest, count, column)
    edges: list[Bound | None] = [None, *inner, None]
    between = itertools.starmap(Range, itertools.pairwise(edges))
    return [*between, Range(nulls=True)]


def load_ranges(directory: Path) -> list[Range] | None:
    """What was written down; None if nothing was."""
    if not (directory / _FILE).exists():
        return None
    return [
        Range(_read(one["from"]), _read(one["below"]), one["nulls"])
        for one in read_record(directory / _FILE)["ranges"]
    ]


def write_ranges(directory: Path, ranges: Sequence[Range]) -> None:
    """Write the ranges down, durably."""
    told: list[Json] = [
        {"from": _told(one.start), "below": _told(one.below), "nulls": one.nulls} for one in ranges
    ]
    write_record(directory / _FILE, {"ranges": told})


def _cuts(lowest: Any, highest: Any, count: int, column: str) -> list[Bound]:
    """Where one range ends and the next begins, each value once."""
    if isinstance(lowest, bool) or not isinstance(lowest, int | Decimal | date):
        raise InputError(
            f"partition_column={column!r} holds {type(lowest).__name__}; ranges are made of whole numbers,"
            " decimals, dates or timestamps"
        )
    if isinstance(lowest, Decimal) and not (lowest.is_finite() and highest.is_finite()):
        raise InputError(f"partition_column={column!r} holds numbers that are not finite")
    whole = isinstance(lowest, int) or not isinstance(lowest, datetime | Decimal)
    length = highest - lowest
    cuts = [
        lowest + (length * step // count if whole else length * step / count)
        for step in range(1, count)
    ]
    return [cut for cut, before in zip(cuts, [lowest, *cuts], strict=False) if cut > before]


def _told(bound: Bound | None) -> Json:
    if bound is None:
        return None
    if isinstance(bound, int):
        return {"int": str(bound)}
    if isinstance(bound, Decimal):
        return {"decimal": str(bound)}
    kind = "timestamp" if isinstance(bound, datetime) else "date"
    return {kind: bound.isoformat()}


def _read(told: Mapping[str, str] | None) -> Bound | None:
    if told is None:
        return None
    ((kind, text),) = told.items()
    readers = {
        "int": int,
        "decimal": Decimal,
        "timestamp": datetime.fromisoformat,
        "date": date.fromisoformat,
    }
    bound: Bound = readers[kind](text)  # type: ignore[operator]
    return bound
