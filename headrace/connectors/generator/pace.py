"""How many rows of a generator exist by now.

Without a rate limit all of them do. With one, rows come into being by the wall clock, counted from an
anchor that is kept beside the checkpoint: a job that was away finds a backlog, as it would in a log.
Deliberately absent: throttling of reads. A row that exists may be read at any speed.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import CheckpointDamaged

__all__ = ["Clock", "Everything", "Pace", "Paced", "wall_clock_us"]

Clock = Callable[[], int]


def wall_clock_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class Everything:
    """All rows exist from the start."""

    rows: int

    def available(self) -> int:
        """How many rows exist."""
        return self.rows


class Paced:
    """Rows that come into being at a fixed rate; their number never falls, whatever the clock does."""

    def __init__(self, rows: int, rows_per_second: float, directory: Path, clock: Clock) -> None:
        self._rows = rows
        self._rate = rows_per_second
        self._clock = clock
        self._anchor_us = _anchor(directory / "anchor.json", clock())
        self._seen = 0

    def available(self) -> int:
        """How many rows exist by now."""
        elapsed_us = max(self._clock() - self._anchor_us, 0)
        self._seen = max(self._seen, min(self._rows, int(elapsed_us * self._rate / 1_000_000)))
        return self._seen


Pace = Everything | Paced


def _anchor(path: Path, now_us: int) -> int:
    """The moment of the first start, written down the first time it is asked for."""
    if path.exists():
        return _read_anchor(path)
    draft = path.with_suffix(".tmp")
    with draft.open("w", encoding="utf-8") as file:
        json.dump({"anchor_us": now_us}, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    return now_us


def _read_anchor(path: Path) -> int:
    try:
        return int(json.loads(path.read_text(encoding="utf-8"))["anchor_us"])
    except (ValueError, KeyError, TypeError) as error:
        message = f"{path} should hold the start of a rate limited generator and does not: {error}"
        raise CheckpointDamaged(message) from error
