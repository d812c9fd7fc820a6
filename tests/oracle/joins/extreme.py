"""The oracle of a semi join with the extreme of each window: all rows of a window are looked at when it is over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.windows.grid import Window, windows_of
from tests.oracle.epochs import instant

__all__ = ["ExtremeOracle"]

Row = dict[str, Any]


class ExtremeOracle:
    """What the rows with the greatest (or least) value of their key and tumbling window are."""

    def __init__(
        self, window: Window, keys: Sequence[str], column: str, *, greatest: bool = True
    ) -> None:
        self._window = window
        self._keys = tuple(keys)
        self._column = column
        self._greatest = greatest
        self._rows: dict[tuple[int, int], list[Row]] = {}
        self.errors: list[Row] = []
        self.late: list[Row] = []

    def epoch(self, epoch: StepEpoch) -> list[Row]:
        """What comes out in one epoch."""
        self._take(epoch.early, epoch.before)
        over = sorted(span for span in self._rows if span[1] - 1 <= epoch.watermark)
        results = [row for span in over for row in self._fired(span)]
        self._take(epoch.rows, epoch.watermark)
        return results

    def _take(self, rows: Sequence[SidedRow], watermark: int) -> None:
        for row in rows:
            ((start, end),) = windows_of(self._window, row.at)
            if any(row.fields[name] is None for name in (*self._keys, self._column)):
                self.errors.append(dict(row.fields))
            elif end - 1 <= watermark:
                self.late.append(dict(row.fields))
            else:
                self._rows.setdefault((start, end), []).append(dict(row.fields))

    def _fired(self, span: tuple[int, int]) -> list[Row]:
        rows = self._rows.pop(span)
        bounds = {"window_start": instant(span[0]), "window_end": instant(span[1])}
        pick = max if self._greatest else min
        return [
            row | bounds
            for row in rows
            if row[self._column]
            == pick(r[self._column] for r in rows if all(r[k] == row[k] for k in self._keys))
        ]
