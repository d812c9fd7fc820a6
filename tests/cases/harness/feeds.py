"""A source that shows its rows epoch by epoch as a run prescribes, and watermarks that stand between its rows.

Each time the planner asks for positions, one more epoch of the run becomes visible. A repeated epoch is not planned again,
so a crash changes nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import headrace as hr
from headrace.connectors.memory import MemorySource
from headrace.endpoints import Enumerator, Span
from tests.cases.harness.tables import Input

__all__ = ["Feed", "in_band", "largest_delay", "punctual"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Feed(MemorySource):
    """The rows of one stream; `ends` has the end of each partition in each epoch."""

    def __init__(
        self,
        partitions: Sequence[Sequence[Mapping[str, Any]]],
        schema: Mapping[str, type],
        ends: Sequence[Sequence[int]],
    ) -> None:
        super().__init__(partitions=partitions, schema=schema)
        self.carries_changes = "change" in schema
        self._ends = ends
        #: Shared by the enumerators before and after a crash.
        self._progress = {"epoch": -1}

    def enumerator(self, directory: Path) -> Enumerator:
        """Positions of the epochs that the run has reached."""
        return _Gate(self._ends, self._progress)


class _Gate(Enumerator):
    def __init__(self, ends: Sequence[Sequence[int]], progress: dict[str, int]) -> None:
        self._ends = ends
        self._progress = progress

    def spans(self) -> Mapping[str, Span]:
        """One more epoch with each call."""
        self._progress["epoch"] = min(self._progress["epoch"] + 1, len(self._ends) - 1)
        now = self._ends[self._progress["epoch"]]
        return {
            str(place): Span(0, end, finished=end == last)
            for place, (end, last) in enumerate(zip(now, self._ends[-1], strict=True))
        }


def in_band(promises: Mapping[int, int]) -> hr.WatermarkStrategy:
    """After so many rows with a timestamp, this watermark in microseconds."""

    class Promised(hr.WatermarkGenerator):
        def __init__(self) -> None:
            self.seen = 0

        def on_events(self, timestamps: npt.NDArray[np.datetime64]) -> None:
            self.seen += len(timestamps)

        def on_epoch(self, clock: datetime) -> datetime | None:
            said = [us for count, us in promises.items() if count <= self.seen]
            return _EPOCH + max(said) * _MICROSECOND if said else None

    return hr.WatermarkStrategy.for_generator(Promised)


def punctual(stream: Input) -> dict[int, int]:
    """After each row the greatest watermark that is true of those that follow."""
    times = timestamps(stream.rows, stream.time)
    return {count: min(times[count:]) - 1 for count in range(1, len(times))}


def largest_delay(times: Iterable[int]) -> timedelta:
    """How much earlier than the latest row before it a row is, at most."""
    latest, delay = None, 0
    for time in times:
        latest = time if latest is None else max(latest, time)
        delay = max(delay, latest - time)
    return timedelta(microseconds=delay)


def timestamps(rows: Sequence[Mapping[str, Any]], column: str | None) -> list[int]:
    """In microseconds, without the rows that have none."""
    moments = [row[column] for row in rows if column is not None and row[column] is not None]
    return [(moment - _EPOCH) // _MICROSECOND for moment in moments]
