"""How many positions a partition may take so that it does not run away from its group. Pure.

    drift 10 s     0         10        20        30
    a              ....max                             may go to 23 + 10
    b              ............................max     none: a has not reached 28 - 10
    c  (idle)      max                                 holds nobody

Each partition may go as far as the slowest of the *others* and the drift. The slowest therefore always may,
so a group never stands still while rows of its slowest member are there. What a position is worth in event
time is measured; a partition of which little is known is read in small steps that grow tenfold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from headrace._watermarks.tracker import PartitionTime, Standing, Strategies, Tracker, is_idle
from headrace.endpoints import Source
from headrace.watermarks import WatermarkStrategy

__all__ = ["PROBE", "Allowances", "allowances"]

#: (source, partition) -> most positions in the next epoch; who is absent is not limited.
Allowances = Mapping[tuple[str, str], int]

#: Rows of a partition of which nothing is known; of a source that counts in files it is one.
PROBE = 100
_GROWTH = 10


class _Member(NamedTuple):
    key: tuple[str, str]
    drift_us: int
    #: What is known of it; None before its first epoch.
    time: PartitionTime | None
    probe: int
    holds: bool

    @property
    def max_us(self) -> int | None:
        """The greatest timestamp that it has shown."""
        return None if self.time is None else self.time.max_us


def allowances(
    tracker: Tracker,
    strategies: Strategies,
    sources: Mapping[str, Source],
    *,
    standings: Mapping[str, Mapping[str, Standing]],
    clock_us: int,
) -> dict[tuple[str, str], int]:
    """The limits that alignment sets."""
    groups: dict[str, list[_Member]] = {}
    for uid, source in sources.items():
        strategy = strategies.get(uid)
        if strategy is not None and strategy.alignment is not None:
            probe = PROBE if source.row_positions else 1
            found = _members(uid, strategy, tracker, standings.get(uid, {}), clock_us, probe)
            groups.setdefault(strategy.alignment.group, []).extend(found)
    return {
        member.key: limit
        for group in groups.values()
        for member in group
        if (limit := _limit(member, group)) is not None
    }


def _members(
    uid: str,
    strategy: WatermarkStrategy,
    tracker: Tracker,
    standings: Mapping[str, Standing],
    clock_us: int,
    probe: int,
) -> Iterator[_Member]:
    assert strategy.alignment is not None
    times = tracker.sources.get(uid, {})
    for name in sorted({*times, *standings}):
        time, standing = times.get(name), standings.get(name, "open")
        # A partition that is not read to its end holds the others, unless it is idle or has shown nothing.
        rests = time is None or time.max_us is None or is_idle(time, strategy, clock_us)
        holds = standing == "waiting" or (standing == "open" and not rests)
        yield _Member((uid, name), strategy.alignment.drift_us, time, probe, holds)


def _limit(member: _Member, group: list[_Member]) -> int | None:
    others = [other.max_us for other in group if other.holds and other.key != member.key]
    if not others:
        return None
    if member.time is None or member.time.max_us is None:
        return member.probe
    shown = [max_us for max_us in others if max_us is not None]
    if len(shown) < len(others):
        # Nobody knows where the other one stands, and it is about to show it.
        return 0
    ahead_us = min(shown) + member.drift_us - member.time.max_us
    if ahead_us < 0:
        return 0
    growth = max(member.probe, _GROWTH * member.time.taken)
    pace_us = member.time.pace_us
    return growth if not pace_us else max(1, min(growth, int(ahead_us / pace_us)))
