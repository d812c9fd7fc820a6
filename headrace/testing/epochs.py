"""What one step is given in one epoch: its times and its rows, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["SidedRow", "StepEpoch", "TimedRow"]

#: A row and its timestamp, in microseconds since 1970.
TimedRow = tuple[int, Mapping[str, Any]]


class SidedRow(NamedTuple):
    """A row of a step with two inputs, or one whose place decides between rows of one timestamp."""

    at: int
    fields: Mapping[str, Any]
    #: Which input it is of.
    side: int = 0
    #: Source, partition and offset.
    place: tuple[str, str, int] = ("", "", 0)


class StepEpoch(NamedTuple):
    """One epoch: the watermark before it, the one in it, its rows in order of arrival, and its clock.

    `early` rows come before the tick: a step downstream of another one gets what that one fired because of it.
    Rows are `TimedRow`s, or `SidedRow`s for a step with two inputs.
    """

    before: int
    watermark: int
    rows: Sequence[Any] = ()
    early: Sequence[Any] = ()
    clock_before: int = 0
    clock: int = 0
