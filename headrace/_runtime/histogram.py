"""A histogram that is the same however its values are divided among tasks and epochs.

Values are counted in buckets: every power of two is divided into eight of equal width, so a quantile is
wrong by a sixteenth at most. The sum is kept as floats that add up to it exactly, and is rounded once, when
it is read. Nothing here is random, so an epoch that runs again counts the same.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np

from headrace.endpoints import Json

__all__ = ["Distribution", "Histogram"]

#: Beyond it sums of a few million values could leave the range of floats.
_LIMIT = 1e300
#: So many values wait to be counted together.
_WAITING = 4096
_PARTS = 8
#: Makes the number of every bucket of positive values positive; those of negative ones mirror them, 0 is zero.
_SHIFT = 1100 * _PARTS


@dataclass(frozen=True, slots=True)
class Distribution:
    """What a histogram holds: exact count, sum and extremes, and quantiles to within about six percent."""

    count: int
    sum: float
    min: float
    max: float
    #: Number of a bucket -> values in it, from the least bucket to the greatest.
    buckets: Mapping[int, int] = field(repr=False)

    @property
    def mean(self) -> float:
        """The sum divided by the count."""
        return self.sum / self.count

    def quantile(self, q: float) -> float:
        """The value below which a share of `q` of all values lies; 0 gives the least, 1 the greatest."""
        if not 0 <= q <= 1:
            raise ValueError(f"A quantile is asked for by a number from 0 to 1, not {q!r}.")
        rank = q * (self.count - 1)
        reached = accumulate(self.buckets.values())
        number, seen = next(
            (number, seen)
            for number, seen in zip(self.buckets, reached, strict=True)
            if seen > rank
        )
        if q in (0, 1):
            return self.max if q else self.min
        low, high = _bounds(number)
        low, high = max(low, self.min), min(high, self.max)
        inside = self.buckets[number]
        share = min((rank - (seen - inside) + 0.5) / inside, 1.0)
        return low + (high - low) * share


class Histogram:
    """Takes values; `add` brings two together."""

    __slots__ = ("_buckets", "_count", "_greatest", "_least", "_parts", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[float] = []
        self._count = 0
        self._parts: list[float] = []
        self._least = math.inf
        self._greatest = -math.inf
        self._buckets: dict[int, int] = {}

    def update(self, value: float) -> None:
        """Count one value. Whole numbers beyond 2**53 are rounded as floats are."""
        if not -_LIMIT <= value <= _LIMIT:
            raise ValueError(f"A histogram takes numbers between -1e300 and 1e300, not {value!r}.")
        self._waiting.append(value)
        if len(self._waiting) >= _WAITING:
            self._fold()

    def add(self, other: Histogram) -> None:
        """Count all that another one counted."""
        self._fold()
        other._fold()
        self._count += other._count
        self._parts = _exact_sum([*self._parts, *other._parts])
        self._least = min(self._least, other._least)
        self._greatest = max(self._greatest, other._greatest)
        self._fill(other._buckets)

    def reading(self) -> Distribution | None:
        """What there is by now; None without a value."""
        self._fold()
        if not self._count:
            return None
        ordered = dict(sorted(self._buckets.items()))
        total = math.fsum(self._parts)
        return Distribution(self._count, total, self._least, self._greatest, ordered)

    def to_json(self) -> Json:
        """Plain JSON; null without a value."""
        self._fold()
        if not self._count:
            return None
        return {
            "count": self._count,
            "sum": list(self._parts),
            "min": self._least,
            "max": self._greatest,
            "buckets": {str(number): rows for number, rows in sorted(self._buckets.items())},
        }

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> Histogram:
        """The inverse of `to_json`."""
        made = Histogram()
        made._count = fields["count"]
        made._parts = list(fields["sum"])
        made._least, made._greatest = fields["min"], fields["max"]
        made._buckets = {int(number): rows for number, rows in fields["buckets"].items()}
        return made

    def _fold(self) -> None:
        """Count what waits."""
        if not self._waiting:
            return
        values = np.array(self._waiting, dtype=np.float64)
        self._waiting.clear()
        self._count += len(values)
        self._parts = _exact_sum([*self._parts, *values.tolist()])
        self._least = min(self._least, float(values.min()))
        self._greatest = max(self._greatest, float(values.max()))
        fractions, exponents = np.frexp(np.abs(values))
        parts = ((fractions - 0.5) * (2 * _PARTS)).astype(np.int64)
        numbers = np.sign(values).astype(np.int64) * (exponents * _PARTS + parts + _SHIFT)
        found, rows = np.unique(numbers, return_counts=True)
        self._fill(dict(zip(found.tolist(), rows.tolist(), strict=True)))

    def _fill(self, buckets: Mapping[int, int]) -> None:
        for number, rows in buckets.items():
            self._buckets[number] = self._buckets.get(number, 0) + rows


def _exact_sum(values: list[float]) -> list[float]:
    """A few floats whose sum is that of all these, without any rounding."""
    parts: list[float] = []
    try:
        while rest := math.fsum(_without(values, parts)):
            parts.append(rest)
    except OverflowError:
        return [math.copysign(sys.float_info.max, sum(values))]
    return parts


def _without(values: Iterable[float], parts: list[float]) -> Iterable[float]:
    yield from values
    for part in parts:
        yield -part


def _bounds(number: int) -> tuple[float, float]:
    """The least and the greatest value that a bucket may hold."""
    if number == 0:
        return 0.0, 0.0
    exponent, part = divmod(abs(number) - _SHIFT, _PARTS)
    near, far = (math.ldexp(0.5 + p / (2 * _PARTS), exponent) for p in (part, part + 1))
    return (near, far) if number > 0 else (-far, -near)
