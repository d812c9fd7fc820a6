"""The tick: what every task of an epoch is told about time. It comes from the epoch's offset alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headrace.watermarks import END_OF_TIME

__all__ = ["Tick"]


@dataclass(frozen=True, slots=True)
class Tick:
    """One epoch's number, clock, and the watermark of each source before and in it."""

    epoch: int
    clock_us: int
    before: Mapping[str, int]
    watermarks: Mapping[str, int]

    def at(self, feeds: Iterable[str], *, before: bool) -> int:
        """The watermark of a step: the minimum over the sources that feed it."""
        vector = self.before if before else self.watermarks
        return min((vector[uid] for uid in feeds), default=END_OF_TIME)

    def to_json(self) -> dict[str, Any]:
        """Plain values for the wire."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Tick:
        """The inverse of `to_json`."""
        return cls(**fields)
