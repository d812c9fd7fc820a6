"""The end of each row's interval: its timestamp and the gap, one for all or one of each row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from headrace._graph.nodes import WindowStep
from headrace._runtime.columns import row_objects
from headrace._runtime.dead_letters import dead_letters
from headrace._runtime.expressions import evaluate
from headrace._runtime.rows import Rows
from headrace._runtime.usercode import calling
from headrace._runtime.windows.entry import timestamps_of
from headrace._runtime.windows.sessions.intervals import Integers, Mask
from headrace._runtime.windows.sessions.layout import LONGEST_US
from headrace.expressions import Expression, col
from headrace.windows import Session

__all__ = ["split_ends"]

_MICROSECOND = timedelta(microseconds=1)
_UNIT_US = {"s": 1_000_000, "ms": 1_000, "us": 1}
_NS_PER_US = 1_000


def split_ends(rows: Rows, node: WindowStep) -> tuple[Rows, Integers, Rows | None]:
    """The rows that have a gap, where their intervals end, and the others as dead letters."""
    session = node.window
    assert isinstance(session, Session)
    if session.gap_us is not None:
        return rows, timestamps_of(rows, node) + min(session.gap_us, LONGEST_US), None
    gaps, missing = _gaps(rows, node.uid, session)
    good = gaps > 0
    if good.all():
        return rows, timestamps_of(rows, node) + gaps, None
    causes = [
        "gap is null" if missing[row] else f"gap of {int(gaps[row])} us is not longer than zero"
        for row in np.flatnonzero(~good)
    ]
    kept = rows.filter(good)
    letters = dead_letters(rows.filter(~good), node.uid, causes)
    return kept, timestamps_of(kept, node) + gaps[good], letters


def _gaps(rows: Rows, uid: str, session: Session) -> tuple[Integers, Mask]:
    """Microseconds, 0 where there are none; and where there are none."""
    gap: Any = session.gap
    if not isinstance(gap, str | Expression):
        return _called(rows, uid, gap)
    with calling(uid, rows):
        return _microseconds(evaluate(col(gap) if isinstance(gap, str) else gap, rows.batch))


def _called(rows: Rows, uid: str, function: Callable[[Any], Any]) -> tuple[Integers, Mask]:
    found: list[int | None] = []
    with calling(uid, rows, lambda: len(found)):
        for row in row_objects(rows.batch):
            gap = function(row)
            if gap is not None and not isinstance(gap, timedelta):
                raise TypeError(f"the gap of a session must be a timedelta or None, not {gap!r}")
            found.append(None if gap is None else min(gap // _MICROSECOND, LONGEST_US))
    missing = np.array([gap is None for gap in found], np.bool_)
    return np.array([max(gap or 0, -LONGEST_US) for gap in found], np.int64), missing


def _microseconds(column: pa.Array) -> tuple[Integers, Mask]:
    missing: Mask = column.is_null().to_numpy(zero_copy_only=False)
    numbers = column.view(pa.int64()).fill_null(0).to_numpy()
    if column.type.unit == "ns":
        return np.minimum(numbers // _NS_PER_US, LONGEST_US), missing
    factor = _UNIT_US[column.type.unit]
    return np.clip(numbers, -LONGEST_US // factor, LONGEST_US // factor) * factor, missing
