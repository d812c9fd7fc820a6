"""Which windows a row belongs to, by counting on fingers: try every boundary that could matter.

tumbling     |--------|--------|        hopping     [--------)
                                                        [--------)
cumulating   [--)                       session     row [---gap)   row [---gap) are two,
             [-----)                                row [---gap)[---gap) row is one: what touches, merges
             [--------)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Assigner, Count, Global, Session, Window, WindowAssigner
from tests.oracle.epochs import Span, instant, micros
from tests.oracle.wall import first_shown, shown

__all__ = ["EVERYTHING", "gap_of", "merged", "spans_of", "touching"]

#: The window of `Global`: its last microsecond is the end of time.
EVERYTHING: Span = (NO_WATERMARK, END_OF_TIME + 1)

_DAY_US = 24 * 3_600_000_000


def spans_of(assigner: Assigner, ts_us: int, row: Mapping[str, Any]) -> list[Span]:
    """The windows of a row, earliest first; none if it has no gap."""
    if isinstance(assigner, Window):
        return _cumulated(assigner, ts_us) if assigner.cumulating else _aligned(assigner, ts_us)
    if isinstance(assigner, Session):
        gap_us = gap_of(assigner, row)
        return [] if gap_us is None else [(ts_us, ts_us + gap_us)]
    if isinstance(assigner, WindowAssigner):
        given = assigner.assign(SimpleNamespace(**row), instant(ts_us))
        return sorted({(micros(start), micros(end)) for start, end in given})
    assert isinstance(assigner, Global | Count), assigner
    return [EVERYTHING]


def _aligned(window: Window, ts_us: int) -> list[Span]:
    at = _boundaries(window)
    near, jump = _near(window, ts_us, window.slide_us), _reach(window, window.slide_us)
    numbers = range(near - window.size_us // window.slide_us - jump, near + jump + 1)
    walls = [window.offset_us + number * window.slide_us for number in numbers]
    spans = [(at(wall), at(wall + window.size_us)) for wall in walls]
    return [(start, end) for start, end in spans if start <= ts_us < end]


def _cumulated(window: Window, ts_us: int) -> list[Span]:
    at = _boundaries(window)
    near, jump = _near(window, ts_us, window.size_us), _reach(window, window.size_us)
    spans = set()
    for number in range(near - jump, near + jump + 1):
        first = window.offset_us + number * window.size_us
        if at(first) <= ts_us < at(first + window.size_us):
            ends = range(first + window.slide_us, first + window.size_us + 1, window.slide_us)
            spans |= {(at(first), at(end)) for end in ends}
    return sorted((start, end) for start, end in spans if start <= ts_us < end)


def _boundaries(window: Window) -> Callable[[int], int]:
    """From the time on the wall to the instant; without a zone they are the same."""
    zone = window.zone
    return (lambda wall: wall) if zone is None else (lambda wall: first_shown(zone, wall))


def _near(window: Window, ts_us: int, step_us: int) -> int:
    wall = ts_us if window.zone is None else shown(window.zone, ts_us)
    return (wall - window.offset_us) // step_us


def _reach(window: Window, step_us: int) -> int:
    # The wall clock is never set by more than a day.
    return 0 if window.zone is None else _DAY_US // step_us + 1


def gap_of(session: Session, row: Mapping[str, Any]) -> int | None:
    """The gap of a row: None if it has none that is more than nothing."""
    gap: Any = session.gap_us
    if gap is None:
        gap = row[session.gap] if isinstance(session.gap, str) else _called(session, row)
    gap = gap // timedelta(microseconds=1) if isinstance(gap, timedelta) else gap
    return None if gap is None or gap <= 0 else gap


def _called(session: Session, row: Mapping[str, Any]) -> Any:
    assert callable(session.gap), "give the oracle a column or a function"
    return session.gap(SimpleNamespace(**row))


def touching(one: Span, other: Span) -> bool:
    """Whether two sessions are one: they overlap or touch."""
    return one[0] <= other[1] and one[1] >= other[0]


def merged(spans: list[Span]) -> list[Span]:
    """Sessions that neither overlap nor touch, made of all these.

    >>> merged([(0, 5), (20, 25), (5, 9), (8, 12)])
    [(0, 12), (20, 25)]
    """
    made: list[Span] = []
    for span in sorted(spans):
        if made and touching(made[-1], span):
            made[-1] = (made[-1][0], max(made[-1][1], span[1]))
        else:
            made.append(span)
    assert not any(touching(a, b) for a, b in pairwise(made))
    return made
