"""Why has a window not fired? Pure: from what is known of time to the partition that holds a step back.

A step waits for the source with the least watermark among those that feed it and are not idle; that source for
the least of its partitions. A partition below its source's watermark does not count: it is idle or finished.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headrace._watermarks.merging import watermark_of
from headrace._watermarks.tracker import PartitionTime, Strategies, Tracker, is_idle
from headrace.watermarks import CLOCK, END_OF_TIME, NO_WATERMARK, WatermarkStrategy

__all__ = ["Known", "Waiting", "Why", "instant", "waiting_steps"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Waiting:
    """One step that waits, and what it waits for."""

    step: str
    #: The watermark of the step; None before the first.
    watermark: datetime | None
    #: The watermark that lets its next window fire, and how many rows would come out, at most.
    fires_at: datetime | None
    keys: int
    #: What holds it back: a source or a step that assigns timestamps, and one of its partitions. The clock is "@clock".
    source: str
    partition: str | None = None
    #: Of that partition: the latest timestamp seen, its own watermark, and how long no row came.
    last_event: datetime | None = None
    partition_watermark: datetime | None = None
    silent: timedelta | None = None
    #: A row with this timestamp in that partition would let the step fire, if no other partition is behind.
    needs: datetime | None = None
    #: After so much silence the partition stops to count; None: never.
    idle_after: timedelta | None = None

    def __str__(self) -> str:
        return "\n".join(_sentences(self))


@dataclass(frozen=True, slots=True)
class Why:
    """The steps that wait, the one whose next window ends first before the others."""

    steps: tuple[Waiting, ...]

    def __str__(self) -> str:
        if not self.steps:
            return "No step waits: no window holds rows."
        return "\n".join(map(str, self.steps))


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a job's time behind its last epoch."""

    tracker: Tracker
    watermarks: Mapping[str, int]
    strategies: Strategies
    #: uid of a keyed step -> the entries of `watermarks` that it goes by
    feeds: Mapping[str, Sequence[str]]
    #: uid of a keyed step -> [watermark at which it fires next, rows that would fire, clock it waits for]
    outlooks: Mapping[str, Sequence[int | None]]


def waiting_steps(known: Known, clock_us: int) -> Why:
    """Every keyed step that holds rows which have not fired."""
    found = []
    for uid, (fires_at, keys, due) in known.outlooks.items():
        if fires_at is not None or due is not None:
            found.append(
                (fires_at or due or 0, _waiting(known, uid, fires_at, keys or 0, clock_us))
            )
    return Why(tuple(step for _, step in sorted(found, key=lambda pair: pair[0])))


def instant(us: int | None) -> datetime | None:
    """A moment that users can read; None for the ends of time."""
    if us is None or us in (NO_WATERMARK, END_OF_TIME):
        return None
    try:
        return _EPOCH + timedelta(microseconds=us)
    except OverflowError:
        return None


def _waiting(known: Known, uid: str, fires_at: int | None, keys: int, clock_us: int) -> Waiting:
    feeds = known.feeds.get(uid, ())
    marks = {feed: known.watermarks.get(feed, NO_WATERMARK) for feed in feeds}
    counting = [feed for feed in feeds if not _is_resting(known, feed, clock_us)]
    source = min(counting or feeds, key=lambda feed: (marks[feed], feed), default=CLOCK)
    mark = marks.get(source, NO_WATERMARK)
    waiting = Waiting(
        uid,
        instant(watermark_of({**marks, **known.watermarks}, feeds)),
        instant(fires_at),
        keys,
        source,
    )
    strategy = known.strategies.get(source)
    parts = known.tracker.sources.get(source, {})
    holder = None if strategy is None else _holder(parts, strategy, mark, clock_us)
    if holder is None or strategy is None:
        return waiting
    part = parts[holder]
    needs = (
        None if fires_at is None or strategy.kind != "bounded" else fires_at + strategy.bound_us + 1
    )
    return Waiting(
        uid,
        waiting.watermark,
        waiting.fires_at,
        keys,
        source,
        holder,
        instant(part.max_us),
        instant(part.watermark(strategy)),
        timedelta(microseconds=max(0, clock_us - part.active_us)),
        instant(needs),
        None if strategy.idleness_us is None else timedelta(microseconds=strategy.idleness_us),
    )


def _is_resting(known: Known, source: str, clock_us: int) -> bool:
    strategy, parts = known.strategies.get(source), known.tracker.sources.get(source, {})
    if strategy is None or not parts:
        return False
    return all(is_idle(part, strategy, clock_us) for part in parts.values())


def _holder(
    parts: Mapping[str, PartitionTime], strategy: WatermarkStrategy, mark: int, clock_us: int
) -> str | None:
    own = {name: part.watermark(strategy) for name, part in parts.items()}
    counting = [name for name, watermark in own.items() if watermark >= mark]
    active = [name for name in counting if not is_idle(parts[name], strategy, clock_us)]
    return min(active or counting, key=lambda name: (own[name], name), default=None)


def _sentences(waiting: Waiting) -> list[str]:
    fires = "" if waiting.fires_at is None else f" for the watermark {_text(waiting.fires_at)}"
    lines = [
        (
            f"'{waiting.step}' waits{fires}: then up to {waiting.keys:,} rows come out."
            f" Its watermark is {_text(waiting.watermark)}."
        )
    ]
    if waiting.source == CLOCK:
        lines.append("  It goes by the clock, so it fires by itself.")
    elif waiting.partition is None:
        lines.append(
            f"  It goes by '{waiting.source}', which has no watermark before its input ends."
        )
    else:
        lines += _held(waiting)
    return lines


def _held(waiting: Waiting) -> list[str]:
    partition = f"partition '{waiting.partition}' of '{waiting.source}'"
    if waiting.last_event is None:
        lines = [f"  It is held back by {partition}, which has shown no row yet."]
    else:
        lines = [
            (
                f"  It is held back by {partition}: its last event is {_text(waiting.last_event)}, its"
                f" watermark {_text(waiting.partition_watermark)}, and it has been silent for {waiting.silent}."
            )
        ]
    if waiting.needs is not None:
        lines.append(f"  A row there with the timestamp {_text(waiting.needs)} would move it.")
    if waiting.idle_after is None:
        lines.append("  It is waited for without end; with_idleness(...) would set a limit.")
    else:
        lines.append(f"  After {waiting.idle_after} of silence it is waited for no longer.")
    return lines


def _text(moment: datetime | None) -> str:
    return "not there yet" if moment is None else moment.isoformat()
