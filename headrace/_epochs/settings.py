"""What the planner knows of a job, and what does not change while it runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from headrace.config import Epochs
from headrace.endpoints import Source
from headrace.watermarks import CLOCK, WatermarkStrategy

__all__ = ["WHOLE_STEP", "Assigned", "PlannerSettings", "partition_name"]

#: The only partition of a step that assigns timestamps where nobody knows a row's origin.
WHOLE_STEP = "*"


def partition_name(source: str, partition: str) -> str:
    """The partition of an assigning step that has the rows of this source partition."""
    return f"{source}/{partition}"


@dataclass(frozen=True)
class Assigned:
    """A step in the middle of the graph that assigns timestamps and watermarks."""

    #: What it is fed by: at the end of time when all of these are.
    feeds: tuple[str, ...]
    #: The sources whose partitions it tells apart; none if it is one partition as a whole.
    sources: tuple[str, ...] = ()

    def partitions(self, ranges: Mapping[str, Collection[str]]) -> list[str]:
        """Its partitions, given those of the sources."""
        if not self.sources:
            return [WHOLE_STEP]
        return [partition_name(uid, name) for uid in self.sources for name in ranges.get(uid, ())]


@dataclass(frozen=True)
class PlannerSettings:
    """The settings of one job."""

    epochs: Epochs
    sources: Mapping[str, Source]
    #: Of the sources, and of the steps that assign timestamps.
    strategies: Mapping[str, WatermarkStrategy | None]
    #: The steps that assign timestamps, each behind those that feed it.
    assigned: Mapping[str, Assigned] = field(default_factory=dict)
    #: uid of a keyed step -> the entries of the watermark vector that it goes by
    feeds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def merges(self) -> frozenset[tuple[str, ...]]:
        """What feeds a step together."""
        fed = [*self.feeds.values(), *(step.feeds for step in self.assigned.values())]
        return frozenset(tuple(sorted(feeds)) for feeds in fed if len(feeds) > 1)

    @cached_property
    def by_clock(self) -> frozenset[str]:
        """The entries that move with the clock, whatever comes."""
        return frozenset({CLOCK, *self._of_kind("ingestion")})

    @cached_property
    def generated(self) -> frozenset[str]:
        """The sources with a generator of the user's; their partitions are read by one task each."""
        return frozenset(self._of_kind("generator"))

    def _of_kind(self, kind: str) -> list[str]:
        return [uid for uid, s in self.strategies.items() if s is not None and s.kind == kind]
