"""The epoch planner: (last offset, its facts, positions outside, clock, settings) -> next offset. Pure.

The same arguments always give the same offset. The planner reads no clock, no file and no system outside,
and it keeps nothing between calls. How many rows an epoch takes is `allotment`; what is due is decided here:

    birth      epoch 0 always happens, with or without rows: Spark runs it whatever we answer
    rows       something can be read
    time       a watermark moved, be it only because a partition went idle; or a step waits for this clock
    end        every source is finished and read, or a drain was asked for: once, with all watermarks
               at the end of time and no rows
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace._commit.control import Request
from headrace._epochs.allotment import allot
from headrace._epochs.facts import Facts
from headrace._epochs.offset import Offset, Ranges
from headrace._epochs.settings import PlannerSettings
from headrace._epochs.vectors import Standings, final_vectors, is_stirred, next_vectors
from headrace._watermarks.alignment import allowances
from headrace._watermarks.tracker import Standing
from headrace.config import Epochs
from headrace.endpoints import Span
from headrace.errors import InputError

__all__ = ["PlannerSettings", "Spans", "plan", "unread"]

#: source uid -> partition -> what it offers.
Spans = Mapping[str, Mapping[str, Span]]


def plan(
    start: Offset,
    facts: Facts,
    spans: Spans,
    *,
    clock_us: int,
    settings: PlannerSettings,
    request: Request = "run",
    unpublished: int = 0,
    unpublished_bytes: int = 0,
) -> Offset | None:
    """The next epoch, or None if there is nothing to do now.

    `unpublished` epochs, with so many bytes staged, are not shown by every sink yet.
    """
    clock_us = max(clock_us, start.clock_us)
    birth = start.epoch < 0
    if start.final:
        return None
    if not birth and (
        _is_full(settings.epochs, unpublished, unpublished_bytes)
        or _must_wait(start, settings.epochs, clock_us, request)
    ):
        return None
    spans = _known(spans, settings)
    _check(start, spans)
    here = _positions(start, spans)
    if request == "drain" or _exhausted(here, spans, settings):
        return _final(start, here, settings, clock_us)
    standings = _standings(start, spans)
    vectors = next_vectors(start, facts, here, standings, clock_us=clock_us, settings=settings)
    offset = Offset(
        start.epoch + 1,
        _ranges(here, spans, facts, standings, clock_us, settings),
        vectors.watermarks,
        vectors.before,
        clock_us,
        generators=vectors.generators,
    )
    if birth or offset.positions > 0:
        return offset
    stirred = is_stirred(start, facts, vectors, clock_us=clock_us, settings=settings)
    return offset if stirred else None


def unread(start: Offset, spans: Spans) -> dict[str, int]:
    """By source: positions that exist outside and were never read. A finished job may ask."""
    found = {
        source: sum(
            max(0, span.end - _position(start, source, name, span)) for name, span in parts.items()
        )
        for source, parts in spans.items()
    }
    return {source: positions for source, positions in found.items() if positions}


def _is_full(epochs: Epochs, unpublished: int, unpublished_bytes: int) -> bool:
    """Whether what waits to be shown is all that may wait."""
    return (
        unpublished >= epochs.max_unpublished or unpublished_bytes >= epochs.max_unpublished_bytes
    )


def _must_wait(start: Offset, epochs: Epochs, clock_us: int, request: Request) -> bool:
    if request == "stop":
        return True
    return request == "run" and clock_us - start.clock_us < epochs.min_interval_us


def _known(spans: Spans, settings: PlannerSettings) -> Spans:
    return {source: spans.get(source, {}) for source in settings.sources}


def _check(start: Offset, spans: Spans) -> None:
    """A position that we must read but that is gone is an error, never a gap."""
    for source, parts in spans.items():
        for name, span in parts.items():
            position = start.position(source, name)
            if position is None:
                continue
            if span.first > position:
                raise InputError(
                    f"source {source!r}, partition {name!r}: the positions {position} to"
                    f" {span.first - 1} were not read yet and are gone"
                )
            if (span.finished or span.firm) and span.end < position:
                raise InputError(
                    f"source {source!r}, partition {name!r} ends at {span.end}, but the checkpoint has"
                    f" read up to {position}: this is not the input that the job began with, or it is told"
                    " to end before what was read"
                )


def _positions(start: Offset, spans: Spans) -> Ranges:
    """Every partition we know, as an empty range where it stands."""
    here: dict[str, dict[str, tuple[int, int]]] = {}
    for source in {*start.ranges, *spans}:
        known = {name: (to, to) for name, (_, to) in start.ranges.get(source, {}).items()}
        new = {name: (s.start, s.start) for name, s in spans.get(source, {}).items()}
        here[source] = {**new, **known}
    return here


def _position(start: Offset, source: str, partition: str, span: Span) -> int:
    known = start.position(source, partition)
    return span.start if known is None else known


def _exhausted(here: Ranges, spans: Spans, settings: PlannerSettings) -> bool:
    return all(
        here[source]
        and all(
            _standing(spans[source].get(name), position) == "finished"
            for name, (position, _) in here[source].items()
        )
        for source in settings.sources
    )


def _standing(span: Span | None, position: int) -> Standing:
    if span is None:
        return "open"
    if span.end > position:
        return "waiting"
    if span.finished:
        return "finished"
    return "waiting" if span.stale else "open"


def _standings(start: Offset, spans: Spans) -> Standings:
    return {
        source: {
            name: _standing(span, _position(start, source, name, span))
            for name, span in parts.items()
        }
        for source, parts in spans.items()
    }


def _ranges(
    here: Ranges,
    spans: Spans,
    facts: Facts,
    standings: Standings,
    clock_us: int,
    settings: PlannerSettings,
) -> Ranges:
    allowed = allowances(
        facts.tracker,
        settings.strategies,
        settings.sources,
        standings=standings,
        clock_us=clock_us,
    )
    return allot(
        here,
        spans,
        facts,
        settings.epochs,
        settings.sources,
        allowed,
        clock_us=clock_us,
    )


def _final(start: Offset, here: Ranges, settings: PlannerSettings, clock_us: int) -> Offset:
    vectors = final_vectors(start, settings)
    return Offset(start.epoch + 1, here, vectors.watermarks, vectors.before, clock_us, final=True)
