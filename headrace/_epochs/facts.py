"""What the planner knows of the epochs so far: part of every manifest, so recovery finds it.

`Facts.after` is called once an epoch, where its counts arrive; everything the planner steers by is computed
there, from the previous epoch's facts and this epoch's measurements alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace._epochs.offset import Offset
from headrace._watermarks.generators import Generated, State
from headrace._watermarks.tracker import Tracker, observe
from headrace.endpoints import Json
from headrace.errors import CheckpointDamaged

__all__ = ["FIRST_LIMIT", "TARGET_US", "Facts"]

#: Rows in an epoch before anything is measured.
FIRST_LIMIT = 50_000
#: How long an epoch should take while a job is behind, if nobody says otherwise: below it much of the time is what every
#: epoch costs.
TARGET_US = 1_000_000
_LEAST_LIMIT = 10_000
#: Beyond any `Epochs.max_rows` that makes sense; keeps the product finite.
_GREATEST_LIMIT = 2**40


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Measurements of the epochs up to one."""

    tracker: Tracker = field(default_factory=Tracker)
    #: Rows that the next epoch may have, as far as its duration is concerned.
    limit: int = FIRST_LIMIT
    #: Of the last epoch that had rows; 0 before.
    bytes_per_row: float = 0.0
    #: By source: rows a position, of sources whose positions are not rows.
    rows_per_position: Mapping[str, float] = field(default_factory=dict)
    #: By source: the clock of the last epoch that took something of it.
    taken_us: Mapping[str, int] = field(default_factory=dict)
    #: uid of a keyed step -> [watermark at which it fires next, rows that would fire, clock it waits for]
    outlooks: Mapping[str, Sequence[int | None]] = field(default_factory=dict)
    #: Of the last epoch, for those who look.
    rows: int = 0
    size: int = 0
    duration_us: int = 0

    @property
    def due_us(self) -> int | None:
        """The earliest clock at which a step wants an epoch, though nothing may come."""
        return min((due for _, _, due in self.outlooks.values() if due is not None), default=None)

    def after(
        self,
        offset: Offset,
        *,
        maxima: Mapping[str, Mapping[str, int]],
        rows: Mapping[str, int],
        size: int,
        duration_us: int | None,
        minima: Mapping[str, Mapping[str, int]] | None = None,
        outlooks: Mapping[str, Sequence[int | None]] | None = None,
        generators: Mapping[str, Mapping[str, State]] | None = None,
        assigned: Mapping[str, Collection[str]] | None = None,
        target_us: int = TARGET_US,
    ) -> Facts:
        """The facts behind `offset`, from those before it.

        `maxima`: source -> partition -> greatest timestamp, partitions without rows left out; `minima`: the
        least ones. `rows`: rows read by source. `size`: their bytes in memory. `duration_us`: how long the epoch took; None if
        unknown, as in an epoch that was planned by an earlier run. `outlooks`: what keyed steps wait for.
        `generators`: what the users' generators remember, of partitions with rows. `assigned`: the partitions
        of steps that assign timestamps; `maxima` has theirs too. `target_us`: how long an epoch should take.
        """
        total = sum(rows.values())
        tracker = observe(
            self.tracker,
            maxima,
            partitions={**offset.ranges, **(assigned or {})},
            watermarks=offset.watermarks,
            clock_us=offset.clock_us,
            minima=minima,
            taken=_taken(offset),
        )
        return Facts(
            tracker=tracker.saying(_remembered(offset, generators or {})),
            limit=_steer(self.limit, total, duration_us, target_us),
            bytes_per_row=size / total if total else self.bytes_per_row,
            rows_per_position={**self.rows_per_position, **_densities(offset, rows)},
            taken_us={**self.taken_us, **dict.fromkeys(_giving(offset), offset.clock_us)},
            outlooks=outlooks or {},
            rows=total,
            size=size,
            duration_us=duration_us or 0,
        )

    def to_json(self) -> dict[str, Json]:
        """Plain JSON, for the manifest."""
        return {
            "tracker": self.tracker.to_json(),
            "limit": self.limit,
            "bytes_per_row": self.bytes_per_row,
            "rows_per_position": dict(self.rows_per_position),
            "taken_us": dict(self.taken_us),
            "outlooks": {uid: list(outlook) for uid, outlook in self.outlooks.items()},
            "rows": self.rows,
            "size": self.size,
            "duration_us": self.duration_us,
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Facts:
        """The facts again; the manifest they came in has a checksum."""
        try:
            return Facts(**{**document, "tracker": Tracker.from_json(document["tracker"])})
        except (KeyError, TypeError, AttributeError) as error:
            raise CheckpointDamaged(f"the facts of a manifest are not readable: {error}") from error


def _steer(limit: int, rows: int, duration_us: int | None, target_us: int) -> int:
    """Grow towards the target, shrink far beyond it; an epoch that was not full proves nothing of growth."""
    if duration_us is None or duration_us <= 0:
        return limit
    if duration_us > 3 * target_us and rows > 0:
        return max(_LEAST_LIMIT, min(limit, rows) // 2)
    if duration_us < target_us and rows >= limit * 0.9:
        # Much of a short epoch is what every epoch costs, so more rows take less than in proportion.
        is_short = duration_us < 3 * target_us // 4
        growth = min(2 * target_us / duration_us, 4.0) if is_short else 1.0
        return min(int(limit * growth), _GREATEST_LIMIT)
    return limit


def _taken(offset: Offset) -> dict[str, dict[str, int]]:
    return {
        source: {name: to - start for name, (start, to) in parts.items()}
        for source, parts in offset.ranges.items()
    }


def _giving(offset: Offset) -> list[str]:
    """The sources that the epoch takes something of."""
    return [uid for uid, parts in _taken(offset).items() if any(parts.values())]


def _remembered(
    offset: Offset, heard: Mapping[str, Mapping[str, State]]
) -> dict[str, dict[str, Generated]]:
    """What generators said when the epoch was planned, and remember behind its rows."""
    return {
        source: {
            name: said._replace(state=heard.get(source, {}).get(name, said.state))
            for name, said in parts.items()
        }
        for source, parts in offset.generators.items()
    }


def _densities(offset: Offset, rows: Mapping[str, int]) -> dict[str, float]:
    found = {}
    for source, parts in offset.ranges.items():
        positions = sum(to - start for start, to in parts.values())
        if positions:
            found[source] = rows.get(source, 0) / positions
    return found
