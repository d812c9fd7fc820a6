"""What a job did, in numbers that add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Summary"]


@dataclass(frozen=True)
class Summary:
    """The counts of a job since its checkpoint began, and how this run ended."""

    job: str
    #: The last epoch; -1 if there was none.
    epoch: int
    #: Bounded input is exhausted or the job was drained: there is nothing left to do.
    finished: bool
    #: Rows that this run read, and how long it took.
    rows: int
    seconds: float
    #: uid -> "in", "out", "late", "filtered", "dead", "held" (taken into state) -> rows, since the checkpoint began.
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: There was nothing to do: an earlier run had finished the job.
    was_finished: bool = False
    #: The job goes on; these are its counts so far.
    is_running: bool = False

    @property
    def late(self) -> int:
        """Rows that came too late for all their windows, or for a join."""
        both = ("late", "late_right")
        return sum(counts.get(name, 0) for counts in self.counts.values() for name in both)

    @property
    def dead(self) -> int:
        """Rows that could not be used: malformed, without a key or a timestamp, or code failed on them."""
        return sum(counts.get("dead", 0) for counts in self.counts.values())

    def __str__(self) -> str:
        if self.was_finished:
            return f"{self.job}: finished in an earlier run, nothing was read"
        end = "finished" if self.finished else "running" if self.is_running else "stopped"
        return (
            f"{self.job}: {end} behind epoch {self.epoch}, {self.rows:,} rows in {self.seconds:.1f} s; "
            f"since the first run {self.late:,} late, {self.dead:,} dead-lettered"
        )
