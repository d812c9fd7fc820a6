"""The watermarks of the next epoch, and whether time alone is a reason for it. Pure.

A vector has an entry for every source and every step that assigns timestamps, one for the clock, and one for
every set of them that feeds a step together (`_watermarks.merging`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace._epochs.facts import Facts
from headrace._epochs.offset import Offset, Ranges
from headrace._epochs.settings import WHOLE_STEP, PlannerSettings, partition_name
from headrace._watermarks.generators import Generated, speak
from headrace._watermarks.merging import merged_name, merged_watermark, watermark_of
from headrace._watermarks.tracker import Standing, Tracker, advance, resting
from headrace.watermarks import CLOCK, END_OF_TIME, NO_WATERMARK

__all__ = ["Standings", "Vectors", "final_vectors", "is_stirred", "next_due_us", "next_vectors"]

#: source uid -> partition -> whether rows of it wait
Standings = Mapping[str, Mapping[str, Standing]]


@dataclass(frozen=True, slots=True)
class Vectors:
    """The time of an epoch."""

    before: Mapping[str, int]
    watermarks: Mapping[str, int]
    #: What the users' generators say, by source and partition.
    generators: Mapping[str, Mapping[str, Generated]] = field(default_factory=dict)


def next_vectors(
    start: Offset,
    facts: Facts,
    here: Ranges,
    standings: Standings,
    *,
    clock_us: int,
    settings: PlannerSettings,
) -> Vectors:
    """The vectors of the epoch behind `start`; `here` has its partitions."""
    before = _before(start, settings)
    spoken = _spoken(facts.tracker, here, standings, clock_us, settings)
    tracker = facts.tracker.saying(spoken)
    known = {**standings, **_assigned_standings(standings, settings)}
    marks = {
        **advance(tracker, before, settings.strategies, standings=known, clock_us=clock_us),
        CLOCK: max(before[CLOCK], clock_us - 1),
    }
    idle = resting(tracker, settings.strategies, standings=known, clock_us=clock_us)
    for uid, step in settings.assigned.items():
        if all(marks[feed] == END_OF_TIME for feed in step.feeds):
            marks[uid] = END_OF_TIME
    for feeds in settings.merges:
        name = merged_name(feeds)
        marks[name] = merged_watermark(feeds, before=before[name], watermarks=marks, resting=idle)
    return Vectors(before, marks, spoken)


def final_vectors(start: Offset, settings: PlannerSettings) -> Vectors:
    """Everything at the end of time."""
    before = _before(start, settings)
    return Vectors(before, dict.fromkeys(before, END_OF_TIME))


def is_stirred(
    start: Offset, facts: Facts, vectors: Vectors, *, clock_us: int, settings: PlannerSettings
) -> bool:
    """Whether an epoch is due for the sake of time: a watermark moved, or a step waits for this clock.

    What follows the clock moves all the time, which would keep an idle job busy for ever. So it is a reason
    only if a step fires by it, or if it has come to its end; what a generator says is one too right behind an
    epoch with rows.
    """
    if facts.due_us is not None and clock_us >= facts.due_us:
        return True
    moved = {uid for uid, mark in vectors.watermarks.items() if mark != vectors.before[uid]}
    by_clock = _with_merges(settings.by_clock, settings)
    generated = _with_merges(settings.generated, settings)
    if moved - by_clock - generated or (start.positions and moved & generated):
        return True
    if any(vectors.watermarks[uid] == END_OF_TIME for uid in moved):
        return True
    return any(
        watermark_of(vectors.before, feeds) < at <= watermark_of(vectors.watermarks, feeds)
        for at, feeds in _waiting(facts, settings)
    )


def next_due_us(facts: Facts, settings: PlannerSettings) -> int | None:
    """The clock at which an epoch is due though nothing comes, as far as it is known."""
    fires = [at + 1 for at, feeds in _waiting(facts, settings) if settings.by_clock >= {*feeds}]
    wishes = [] if facts.due_us is None else [facts.due_us]
    return min([*fires, *wishes], default=None)


def _before(start: Offset, settings: PlannerSettings) -> dict[str, int]:
    names = [*settings.strategies, CLOCK, *map(merged_name, settings.merges)]
    return {name: start.watermarks.get(name, NO_WATERMARK) for name in names}


def _spoken(
    tracker: Tracker,
    here: Ranges,
    standings: Standings,
    clock_us: int,
    settings: PlannerSettings,
) -> dict[str, dict[str, Generated]]:
    spoken: dict[str, dict[str, Generated]] = {}
    for source in sorted(settings.generated & here.keys()):
        strategy = settings.strategies[source]
        assert strategy is not None
        spoken[source] = {
            name: speak(source, name, strategy, tracker.generated(source, name), clock_us)
            for name in here[source]
            if standings.get(source, {}).get(name) != "finished"
        }
    return spoken


def _assigned_standings(
    standings: Standings, settings: PlannerSettings
) -> dict[str, dict[str, Standing]]:
    return {
        uid: {
            partition_name(source, name): standing
            for source in step.sources
            for name, standing in standings.get(source, {}).items()
        }
        or {WHOLE_STEP: "open"}
        for uid, step in settings.assigned.items()
    }


def _with_merges(entries: frozenset[str], settings: PlannerSettings) -> frozenset[str]:
    return entries | {merged_name(feeds) for feeds in settings.merges if entries & {*feeds}}


def _waiting(facts: Facts, settings: PlannerSettings) -> list[tuple[int, tuple[str, ...]]]:
    """(watermark that lets it fire, what it goes by) for every step that waits for one."""
    return [
        (at, settings.feeds[uid])
        for uid, (at, _, _) in facts.outlooks.items()
        if at is not None and at < END_OF_TIME and uid in settings.feeds
    ]
