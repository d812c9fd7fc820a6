"""Which windows the rows of a batch belong to: for each pair of row and window its bounds, rows in order.

A window is known by its start and its last microsecond, since the end of the global window is no number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.columns import row_objects
from headrace._runtime.ordering import ranges
from headrace._runtime.usercode import calling
from headrace._runtime.windows.rows.context import instant, micros
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Assigner, TimeWindow, Window, WindowAssigner

__all__ = ["EVERYTHING", "Pairs", "assign"]

Integers = npt.NDArray[np.int64]

#: The bounds of the one window of all rows.
EVERYTHING = (NO_WATERMARK, END_OF_TIME)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows and their windows: the number of the row, the bounds of the window."""

    rows: Integers
    starts: Integers
    lasts: Integers

    def at(self, mask: npt.NDArray[np.bool_]) -> Pairs:
        """Some of them."""
        if mask.all():
            return self
        return Pairs(self.rows[mask], self.starts[mask], self.lasts[mask])


def assign(window: Assigner, batch: pa.RecordBatch, timestamps: Integers, uid: str) -> Pairs:
    """The windows of each row, earliest first."""
    if isinstance(window, Window):
        return _aligned(window, timestamps)
    if isinstance(window, WindowAssigner):
        return _written(window, batch, timestamps, uid)
    count = len(timestamps)
    return Pairs(np.arange(count), *(np.full(count, bound, np.int64) for bound in EVERYTHING))


def _aligned(window: Window, timestamps: Integers) -> Pairs:
    panes, numbers = np.unique(window.pane_starts(timestamps), return_inverse=True)
    spans = [_spans(window, pane) for pane in panes.tolist()]
    sizes = np.array([len(own) for own in spans], np.int64)
    bounds = np.array([span for own in spans for span in own], np.int64).reshape(-1, 2)
    places = ranges((np.cumsum(sizes) - sizes)[numbers], sizes[numbers])
    rows = np.repeat(np.arange(len(timestamps)), sizes[numbers])
    return Pairs(rows, bounds[places, 0], bounds[places, 1] - 1)


def _spans(window: Window, pane: int) -> list[tuple[int, int]]:
    return [window.span(end) for end in window.ends_of(pane, pane, window.last_end(pane))]


def _written(
    window: WindowAssigner, batch: pa.RecordBatch, timestamps: Integers, uid: str
) -> Pairs:
    found: list[tuple[int, int, int]] = []
    with calling(uid):
        for row, (shown, ts) in enumerate(
            zip(row_objects(batch), timestamps.tolist(), strict=True)
        ):
            spans = {_bounds(window, pair) for pair in window.assign(shown, instant(ts))}
            found += [(row, start, last) for start, last in sorted(spans)]
    rows, starts, lasts = np.array(found, np.int64).reshape(-1, 3).T
    return Pairs(rows.copy(), starts.copy(), lasts.copy())


def _bounds(window: WindowAssigner, pair: Any) -> tuple[int, int]:
    try:
        start, end = (pair.start, pair.end) if isinstance(pair, TimeWindow) else pair
        bounds = micros(start), micros(end)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{window.name}.assign must give pairs (start, end) of datetimes with a time zone, not {pair!r}"
        ) from error
    if bounds[0] >= bounds[1]:
        raise ValueError(f"{window.name}.assign gave a window that ends before it starts: {pair!r}")
    return bounds[0], bounds[1] - 1
