"""The tick: what every task of an epoch is told about time. It comes from the epoch's offset alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headrace._epochs.offset import Offset
from headrace._runtime.operator import Moment
from headrace._watermarks.merging import watermark_of
from headrace.watermarks import CLOCK, NO_WATERMARK

__all__ = ["Tick"]


@dataclass(frozen=True, slots=True)
class Tick:
    """One epoch's number, clock, and the watermarks before and in it: of sources, of the clock, of what merges."""

    epoch: int
    clock_us: int
    before: Mapping[str, int]
    watermarks: Mapping[str, int]

    @classmethod
    def of(cls, offset: Offset) -> Tick:
        """The tick of an epoch."""
        return cls(offset.epoch, offset.clock_us, offset.before, offset.watermarks)

    @property
    def clock_before_us(self) -> int:
        """The clock of the epoch before; `NO_WATERMARK` in the birth epoch."""
        before = self.before.get(CLOCK, NO_WATERMARK)
        return before if before == NO_WATERMARK else before + 1

    def at(self, feeds: Iterable[str], *, before: bool) -> int:
        """The watermark of a step: that of what feeds it, the least of those that are not idle."""
        return watermark_of(self.before if before else self.watermarks, feeds)

    def moment(self, feeds: Iterable[str]) -> Moment:
        """The time of a step."""
        feeds = tuple(feeds)
        return Moment(
            self.at(feeds, before=True),
            self.at(feeds, before=False),
            self.clock_before_us,
            self.clock_us,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values for the wire."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Tick:
        """The inverse of `to_json`."""
        return cls(**fields)
