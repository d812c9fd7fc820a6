"""What one task of an epoch tells the driver. Reports travel in band, so the driver learns each once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from headrace._runtime.metrics import Metrics
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
    #: uid of a step -> what its function counts
    metrics: dict[str, Metrics] = field(default_factory=dict)
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

    def metrics_of(self, uid: str) -> Metrics:
        """Where the function of a step counts."""
        if uid not in self.metrics:
            self.metrics[uid] = Metrics(uid)
        return self.metrics[uid]

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
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        counted = {uid: metrics.to_json() for uid, metrics in self.metrics.items()}
        return {
            **plain,
            "receipts": [asdict(receipt) for receipt in self.receipts],
            "metrics": {uid: found for uid, found in counted.items() if found},
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TaskReport:
        """The inverse of `to_json`."""
        values = dict(document)
        values["receipts"] = [Receipt(**receipt) for receipt in values["receipts"]]
        values["stamps"] = {uid: (old, new) for uid, (old, new) in values["stamps"].items()}
        values["metrics"] = {
            uid: Metrics.from_json(uid, found) for uid, found in values["metrics"].items()
        }
        return cls(**values)
