"""What is known of event time: the greatest timestamp of every partition. Pure, and plain JSON.

A step that assigns timestamps in the middle of a graph is a source here, with partitions of its own.

The watermark of a source is the minimum over its partitions that are neither finished nor idle:

    partition a   ........max                 own watermark: max - bound - 1 us
    partition b   .....max                    the minimum: the source's watermark
    partition c   max        (idle)           does not count until it has rows again
    partition d   new                         joins at the source's watermark and holds it there

It never falls. If all that is left is idle, no row is on its way that we know of, so the watermark goes up
to the greatest of the partitions' own and stays there. If all are finished it is the end of time. A source
without a strategy has no watermark before the job's final epoch; ingestion time follows the clock alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from headrace._watermarks.generators import Generated
from headrace.endpoints import Json
from headrace.watermarks import END_OF_TIME, NO_WATERMARK, WatermarkStrategy

__all__ = [
    "PartitionTime",
    "Standing",
    "Strategies",
    "Tracker",
    "advance",
    "is_idle",
    "observe",
    "resting",
]

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
    #: What the user's generator has promised and remembers, if there is one.
    generated: Generated | None = None
    #: How much event time a position covers, and how many positions were read last.
    pace_us: float | None = None
    taken: int = 0

    def watermark(self, strategy: WatermarkStrategy) -> int:
        """What this partition alone promises."""
        promised = self._promised(strategy)
        # One below the end: only a finished source may be there.
        return self.joined_us if promised is None else max(promised, self.joined_us)

    def after(
        self, seen_us: int, clock_us: int, *, taken: int = 0, least_us: int | None = None
    ) -> PartitionTime:
        """The same behind an epoch that had rows of it, from `least_us` to `seen_us` in `taken` positions."""
        greatest = seen_us if self.max_us is None else max(self.max_us, seen_us)
        return replace(
            self,
            active_us=max(self.active_us, clock_us),
            max_us=greatest,
            pace_us=self._pace(greatest, taken, least_us),
            taken=taken,
        )

    def _promised(self, strategy: WatermarkStrategy) -> int | None:
        if strategy.kind == "generator":
            return None if self.generated is None else self.generated.promised_us
        if self.max_us is None:
            return None
        return min(self.max_us - strategy.bound_us - 1, END_OF_TIME - 1)

    def _pace(self, greatest_us: int, taken: int, least_us: int | None) -> float | None:
        began_us = least_us if self.max_us is None else self.max_us
        if began_us is None or not taken:
            return self.pace_us
        # It rises at once and falls by half at most: to be too careful costs an epoch, too bold the drift.
        return max((greatest_us - began_us) / taken, (self.pace_us or 0.0) / 2)


@dataclass(frozen=True, slots=True)
class Tracker:
    """All source partitions."""

    sources: Mapping[str, Mapping[str, PartitionTime]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Json]:
        """source -> partition -> [joined, active, max, [promised, attributes], pace, taken]."""
        return {
            source: {name: _listed(part) for name, part in parts.items()}
            for source, parts in self.sources.items()
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Tracker:
        """The tracker again."""
        return Tracker(
            {
                source: {name: _unlisted(fields) for name, fields in parts.items()}
                for source, parts in document.items()
            }
        )

    def generated(self, source: str, partition: str) -> Generated | None:
        """What the generator of a partition has said and remembers."""
        known = self.sources.get(source, {}).get(partition)
        return None if known is None else known.generated

    def saying(self, generated: Mapping[str, Mapping[str, Generated]]) -> Tracker:
        """With the news of generators, for those partitions that are known."""
        sources = {
            source: {
                name: replace(part, generated=generated.get(source, {}).get(name, part.generated))
                for name, part in parts.items()
            }
            for source, parts in self.sources.items()
        }
        return Tracker(sources)


def observe(
    tracker: Tracker,
    maxima: Mapping[str, Mapping[str, int]],
    *,
    partitions: Mapping[str, Collection[str]],
    watermarks: Mapping[str, int],
    clock_us: int,
    minima: Mapping[str, Mapping[str, int]] | None = None,
    taken: Mapping[str, Mapping[str, int]] | None = None,
) -> Tracker:
    """What an epoch taught: it had these `partitions`, was judged by `watermarks`, and saw `maxima`.

    `taken` tells how many positions it had of each partition, `minima` the least timestamps in them.
    """
    sources: dict[str, dict[str, PartitionTime]] = {
        source: dict(parts) for source, parts in tracker.sources.items()
    }
    for source, names in partitions.items():
        known = sources.setdefault(source, {})
        joined_us = watermarks.get(source, NO_WATERMARK)
        for name in names:
            before = known.get(name) or PartitionTime(joined_us, clock_us)
            seen = maxima.get(source, {}).get(name)
            if seen is not None:
                before = before.after(
                    seen,
                    clock_us,
                    taken=(taken or {}).get(source, {}).get(name, 0),
                    least_us=(minima or {}).get(source, {}).get(name),
                )
            known[name] = before
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


def resting(
    tracker: Tracker,
    strategies: Strategies,
    *,
    standings: Mapping[str, Mapping[str, Standing]],
    clock_us: int,
) -> frozenset[str]:
    """The sources of which every partition that is not finished is idle."""
    found = set()
    for source, strategy in strategies.items():
        parts, outside = tracker.sources.get(source, {}), standings.get(source, {})
        names = _unfinished(parts, outside)
        if strategy is not None and names and names <= parts.keys():
            active = _active(names, parts, outside, strategy=strategy, clock_us=clock_us)
            if not active and strategy.kind != "ingestion":
                found.add(source)
    return frozenset(found)


def is_idle(part: PartitionTime, strategy: WatermarkStrategy, clock_us: int) -> bool:
    """Whether a partition without unread rows has been silent for too long."""
    return strategy.idleness_us is not None and clock_us - part.active_us >= strategy.idleness_us


def _of_source(
    parts: Mapping[str, PartitionTime],
    standings: Mapping[str, Standing],
    *,
    strategy: WatermarkStrategy,
    clock_us: int,
) -> int:
    names = _unfinished(parts, standings)
    if standings and not names:
        return END_OF_TIME
    if strategy.kind == "ingestion":
        return clock_us - 1
    if strategy.kind == "none" or not names or not names <= parts.keys():
        # A partition that was in no epoch yet is about to join; until then the source stays.
        return NO_WATERMARK
    own = {name: parts[name].watermark(strategy) for name in names}
    active = _active(names, parts, standings, strategy=strategy, clock_us=clock_us)
    return min(own[name] for name in active) if active else max(own.values())


def _unfinished(
    parts: Mapping[str, PartitionTime], standings: Mapping[str, Standing]
) -> frozenset[str]:
    finished = {name for name, standing in standings.items() if standing == "finished"}
    return frozenset({*parts, *standings} - finished)


def _active(
    names: Collection[str],
    parts: Mapping[str, PartitionTime],
    standings: Mapping[str, Standing],
    *,
    strategy: WatermarkStrategy,
    clock_us: int,
) -> list[str]:
    """Those that count: rows of them wait, or they are not idle."""
    return [
        name
        for name in names
        if standings.get(name) == "waiting" or not is_idle(parts[name], strategy, clock_us)
    ]


def _listed(part: PartitionTime) -> list[Json]:
    said = None if part.generated is None else [part.generated.promised_us, part.generated.state]
    return [part.joined_us, part.active_us, part.max_us, said, part.pace_us, part.taken]


def _unlisted(fields: Any) -> PartitionTime:
    joined_us, active_us, max_us, said, pace_us, taken = fields
    generated = None if said is None else Generated(*said)
    return PartitionTime(joined_us, active_us, max_us, generated, pace_us, taken)
