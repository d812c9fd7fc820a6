"""What one task of an epoch tells the driver. Reports travel in band, so the driver learns each once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace._watermarks.generators import State
from headrace.endpoints import Receipt

__all__ = ["TaskReport"]


@dataclass(slots=True)
class TaskReport:
    """The counts, receipts and stamps of one task.

    `attempt` is random: if two consumers saw different attempts of one producer, Spark has run it twice and
    the epoch must not count. `consumed` holds what this task saw, as "stage/task" -> attempt.
    """

    stage: int
    task: int
    tasks: int
    attempt: str
    consumed: dict[str, str] = field(default_factory=dict)
    maxima: dict[str, dict[str, int]] = field(default_factory=dict)
    minima: dict[str, dict[str, int]] = field(default_factory=dict)
    #: By source and partition: what the user's watermark generator remembers.
    generators: dict[str, dict[str, State]] = field(default_factory=dict)
    #: By source, rows that were read; and their bytes in memory.
    rows: dict[str, int] = field(default_factory=dict)
    size: int = 0
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    receipts: list[Receipt] = field(default_factory=list)
    #: uid of a keyed step -> (stamp before the epoch, stamp after it)
    stamps: dict[str, tuple[str, str]] = field(default_factory=dict)
    #: uid of a keyed step -> (fires_at, keys, due), see `Outlook`
    outlooks: dict[str, tuple[int | None, int, int | None]] = field(default_factory=dict)
    #: uid of a keyed step -> its heaviest keys, as JSON -> rows
    heavy: dict[str, dict[str, int]] = field(default_factory=dict)
    elapsed_us: int = 0

    def count(self, uid: str, what: str, rows: int) -> None:
        """Add to one of a step's counts."""
        if rows:
            counts = self.counts.setdefault(uid, {})
            counts[what] = counts.get(what, 0) + rows

    def weigh(self, uid: str, rows: Mapping[str, int]) -> None:
        """Add to the rows of a step's heaviest keys."""
        for key, count in rows.items():
            weights = self.heavy.setdefault(uid, {})
            weights[key] = weights.get(key, 0) + count

    def read(self, source: str, rows: int, size: int) -> None:
        """Add to what was read."""
        self.rows[source] = self.rows.get(source, 0) + rows
        self.size += size

    def observe(self, source: str, partition: str, least_us: int, greatest_us: int) -> None:
        """Remember the least and the greatest timestamp of a partition."""
        minima = self.minima.setdefault(source, {})
        minima[partition] = min(least_us, minima.get(partition, least_us))
        maxima = self.maxima.setdefault(source, {})
        maxima[partition] = max(greatest_us, maxima.get(partition, greatest_us))

    def to_json(self) -> dict[str, Any]:
        """Plain values for the wire."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> TaskReport:
        """The inverse of `to_json`."""
        values = dict(fields)
        values["receipts"] = [Receipt(**receipt) for receipt in values["receipts"]]
        values["stamps"] = {uid: (old, new) for uid, (old, new) in values["stamps"].items()}
        return cls(**values)
