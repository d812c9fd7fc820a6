"""Streams to build a step from: of columns alone, since a harness gives rows and watermarks to the step itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import headrace as hr
from headrace.connectors.memory import MemorySource

__all__ = ["timed_stream"]

_TIMED = hr.WatermarkStrategy.monotonous().with_timestamps(lambda _: timedelta(0))


def timed_stream(
    env: hr.Environment, columns: Any, uid: str, *, changes: bool = False
) -> hr.Stream:
    """A stream with event time, of changes if its rows have a column `change`."""
    source = MemorySource([], columns)
    source.carries_changes = changes
    return env.from_source(source, watermarks=_TIMED, uid=uid)
