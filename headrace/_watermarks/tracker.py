"""What is known of event time: the greatest timestamp of every source partition. Pure, and plain JSON.

The watermark of a source is the minimum over its partitions that are neither finished nor idle:

    partition a   ........max                 own watermark: max - bound - 1 us
    partition b   .....max                    the minimum: the source's watermark
    partition c   max        (idle)           does not count until it has rows again
    partition d   new                         joins at the source's watermark and holds it there

It never falls. If all that is left is idle, no row is on its way that we know of, so the watermark goes up
to the greatest of the partitions' own and stays there. If all are finished it is the end of time. A source
without a strategy has no watermark before the job's final epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from headrace.endpoints import Json
from headrace.watermarks import END_OF_TIME, NO_WATERMARK, WatermarkStrategy

__all__ = ["PartitionTime", "Standing", "Tracker", "advance", "observe"]

Strategies = Mapping[str, WatermarkStrategy | None]
#: Has rows to be read (so it cannot be idle); is read to its end for ever; neither.
Standing = Literal["waiting", "finished", "open"]


@dataclass(frozen=True, slots=True)
class PartitionTime:
    """Time in one source partition."""

    #: The source's watermark when the partition joined: its own is never below it.
    joined_us: int
    #: The clock of the last epoch that had rows of it, or in which it joined.
    active_us: int
    #: The greatest timestamp seen.
    max_us: int | None = None

    def watermark(self, bound_us: int) -> int:
        """What this partition alone promises."""
        if self.max_us is None:
            return self.joined_us
        # One below the end: only a finished source may be there.
        promised = min(self.max_us - bound_us - 1, END_OF_TIME - 1)
        return max(promised, self.joined_us)


@dataclass(frozen=True, slots=True)
class Tracker:
    """All source partitions."""

    sources: Mapping[str, Mapping[str, PartitionTime]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Json]:
        """source -> partition -> [joined, active, max]."""
        return {
            source: {name: [p.joined_us, p.active_us, p.max_us] for name, p in parts.items()}
            for source, parts in self.sources.items()
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Tracker:
        """The tracker again."""
        return Tracker(
            {
                source: {name: PartitionTime(*times) for name, times in parts.items()}
                for source, parts in document.items()
            }
        )


def observe(
    tracker: Tracker,
    maxima: Mapping[str, Mapping[str, int]],
    *,
    partitions: Mapping[str, Collection[str]],
    watermarks: Mapping[str, int],
    clock_us: int,
) -> Tracker:
    """What an epoch taught: it had these `partitions`, was judged by `watermarks`, and saw `maxima`."""
    sources: dict[str, dict[str, PartitionTime]] = {
        source: dict(parts) for source, parts in tracker.sources.items()
    }
    for source, names in partitions.items():
        known = sources.setdefault(source, {})
        joined_us = watermarks.get(source, NO_WATERMARK)
        for name in names:
            before = known.get(name) or PartitionTime(joined_us, clock_us)
            seen = maxima.get(source, {}).get(name)
            known[name] = before if seen is None else _seen(before, seen, clock_us)
    return Tracker(sources)


def advance(
    tracker: Tracker,
    before: Mapping[str, int],
    strategies: Strategies,
    *,
    standings: Mapping[str, Mapping[str, Standing]],
    clock_us: int,
) -> dict[str, int]:
    """The watermark of every source at this clock; `before` is the vector it must not fall below.

    `standings` tells of every partition outside whether rows of it wait to be read.
    """
    return {
        source: before.get(source, NO_WATERMARK)
        if strategy is None
        else max(
            before.get(source, NO_WATERMARK),
            _of_source(
                tracker.sources.get(source, {}),
                standings.get(source, {}),
                strategy=strategy,
                clock_us=clock_us,
            ),
        )
        for source, strategy in strategies.items()
    }


def _seen(before: PartitionTime, seen_us: int, clock_us: int) -> PartitionTime:
    greatest = seen_us if before.max_us is None else max(before.max_us, seen_us)
    return PartitionTime(before.joined_us, max(before.active_us, clock_us), greatest)


def _of_source(
    parts: Mapping[str, PartitionTime],
    standings: Mapping[str, Standing],
    *,
    strategy: WatermarkStrategy,
    clock_us: int,
) -> int:
    unfinished = {*parts, *standings} - {n for n, s in standings.items() if s == "finished"}
    if not unfinished:
        return END_OF_TIME if standings else NO_WATERMARK
    if not unfinished <= parts.keys():
        # A partition that was in no epoch yet is about to join; until then the source stays.
        return NO_WATERMARK
    own = {name: parts[name].watermark(strategy.bound_us) for name in unfinished}
    active = [
        own[name]
        for name in unfinished
        if standings.get(name) == "waiting" or not _is_idle(parts[name], strategy, clock_us)
    ]
    return min(active) if active else max(own.values())


def _is_idle(part: PartitionTime, strategy: WatermarkStrategy, clock_us: int) -> bool:
    return strategy.idleness_us is not None and clock_us - part.active_us >= strategy.idleness_us
