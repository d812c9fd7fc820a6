"""One firing of one cell, written down when it happens; what it shows is computed for many together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace._runtime.windows.rows.cells import Cell
    from headrace._runtime.windows.rows.stored import Stored

__all__ = ["Firing"]


class Firing:
    """Which cell, which pane, which number, and which rows."""

    __slots__ = (
        "cell", "clock_us", "fresh", "number", "pane", "position", "run", "stamp", "stored", "watermark_us",
        "withdraws",
    )  # fmt: skip

    def __init__(
        self, cell: Cell, pane: str, number: int, watermark_us: int, clock_us: int
    ) -> None:
        self.cell = cell
        self.pane = pane
        self.number = number
        self.watermark_us = watermark_us
        self.clock_us = clock_us
        #: The timestamp of its results.
        self.stamp = cell.last
        #: Of accumulators: behind how many segments of which run.
        self.run = self.position = -1
        #: Of rows: those in state, then those of this epoch.
        self.stored: Stored | None = None
        self.fresh: list[int] = []
        #: Results that it takes back: their places, below zero those of firings that are evaluated with it.
        self.withdraws: list[int] = []
