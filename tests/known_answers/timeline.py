"""Stories with times: rows and epochs written as on a clock, steps built as users build them.

    epochs = story(
        at("12:05:00", "12:02:00", row("12:00:26", 5)),      clock, watermark, rows
        end(),
    )

A watermark "12:02:00" stands for "all rows before 12:02:00 are in", as it is written in most texts: it is one
microsecond less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import headrace as hr
from headrace._graph.nodes import WindowStep
from headrace.connectors.memory import MemorySource
from headrace.testing.epochs import StepEpoch
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["SCHEMA", "at", "clock_time", "end", "row", "step", "story", "us"]

DAY = datetime(2020, 4, 15, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA = {"key": str, "value": int, "gap": timedelta, "at": datetime}

Row = tuple[int, dict[str, Any]]


def us(time: str | datetime) -> int:
    """ "08:05", "12:00:26" of the day of the story, or any instant, in microseconds."""
    if isinstance(time, str):
        parts = [int(part) for part in time.split(":")] + [0, 0]
        time = DAY + timedelta(hours=parts[0], minutes=parts[1], seconds=parts[2])
    return (time - EPOCH) // timedelta(microseconds=1)


def clock_time(moment: datetime) -> str:
    """An instant of the story as text: "08:05", with seconds only if there are any."""
    text = moment.astimezone(UTC).strftime("%H:%M:%S")
    return text.removesuffix(":00")


def row(time: str | datetime, value: int, key: str = "x", gap: timedelta | None = None) -> Row:
    """A row with its timestamp."""
    moment = EPOCH + timedelta(microseconds=us(time))
    return us(time), {"key": key, "value": value, "gap": gap, "at": moment}


def at(
    clock: str | datetime | None,
    watermark: str | datetime | None,
    *rows: Row,
    early: Sequence[Row] = (),
) -> StepEpoch:
    """An epoch: its clock, the watermark in it, its rows. None: as in the epoch before."""
    reached = NO_WATERMARK if watermark is None else us(watermark) - 1
    return StepEpoch(0, reached, rows, early, 0, 0 if clock is None else us(clock))


def end(*early: Row) -> StepEpoch:
    """The last epoch: no more rows can come."""
    return StepEpoch(0, END_OF_TIME, (), early)


def story(*epochs: StepEpoch) -> list[StepEpoch]:
    """Epochs one behind the other: watermarks and clocks go on where they were."""
    told: list[StepEpoch] = []
    reached, clock = NO_WATERMARK, 0
    for epoch in epochs:
        before, clock_before = reached, clock
        reached, clock = max(reached, epoch.watermark), max(clock, epoch.clock)
        told.append(StepEpoch(before, reached, epoch.rows, epoch.early, clock_before, clock))
    return told


def step(build: Callable[[Any], Any]) -> WindowStep:
    """The window step that users get when they build it so on a stream of `SCHEMA`."""
    env = hr.Environment("story")
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(timedelta(0)).with_timestamps("at")
    source = MemorySource(partitions=[[]], schema=SCHEMA)
    build(env.from_source(source, watermarks=strategy, uid="rows"))
    (node,) = [node for node in env.graph.nodes if isinstance(node, WindowStep)]
    return node
