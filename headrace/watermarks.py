"""How a source tells time: where timestamps come from, how much disorder to expect, when to stop waiting.

A strategy is immutable: every `with_` method returns another one, so the order of calls cannot lose a
setting. A watermark W promises that no more rows with a timestamp <= W come. Watermarks are int64
microseconds since 1970 (UTC). Deliberately absent: computing watermarks; `_watermarks` does that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from headrace.config import to_us
from headrace.errors import BuildError
from headrace.expressions import Expression

__all__ = [
    "CLOCK",
    "END_OF_TIME",
    "NO_WATERMARK",
    "Alignment",
    "Timestamps",
    "WatermarkGenerator",
    "WatermarkStrategy",
]

#: The watermark of a source that has shown nothing yet.
NO_WATERMARK = -(2**63)
#: The watermark behind the last row of bounded input: every window fires.
END_OF_TIME = 2**63 - 1

#: The entry of the clock among the watermarks of an epoch: what steps in processing time are judged by.
CLOCK = "@clock"

#: A column, an expression over columns, or a function from a row to an aware datetime.
Timestamps: TypeAlias = str | Expression | Callable[[Any], datetime]

_YEAR_US = 365 * 24 * 3600 * 1_000_000


class WatermarkGenerator(ABC):
    """Watermarks of your own. There is one instance for every source partition.

    The attributes of an instance are its state: they go into the checkpoint, so they hold what JSON can (numbers,
    texts, booleans, None, lists, dicts with texts as keys), aware `datetime`s, `timedelta`s and numpy scalars.
    Define `on_event`, or `on_events` for speed. An epoch's timestamps come in order of arrival, in the worker
    that reads them; `on_epoch` is called beside the driver when the next epoch is planned, and what it changes
    counts only if that epoch takes place.

    >>> class Punctual(WatermarkGenerator):
    ...     def __init__(self):
    ...         self.latest = None
    ...     def on_event(self, timestamp):
    ...         self.latest = max(self.latest or timestamp, timestamp)
    ...     def on_epoch(self, clock):
    ...         return self.latest
    >>> WatermarkStrategy.for_generator(Punctual).with_timestamps("at").kind
    'generator'
    """

    def on_event(self, timestamp: datetime) -> None:
        """A row with this timestamp was read."""
        raise NotImplementedError(f"{type(self).__name__} defines neither on_event nor on_events")

    def on_events(self, timestamps: npt.NDArray[np.datetime64]) -> None:
        """The timestamps that an epoch has read of this partition, as `datetime64[us]` in UTC; at least one."""
        for timestamp in timestamps.tolist():
            self.on_event(timestamp.replace(tzinfo=UTC))

    @abstractmethod
    def on_epoch(self, clock: datetime) -> datetime | None:
        """The time up to which, itself included, all rows have come; None if there is nothing to say.

        A time below an earlier one changes nothing: watermarks never fall.
        """


@dataclass(frozen=True, slots=True)
class Alignment:
    """Sources that move through event time together, and how far apart they may be."""

    group: str
    drift_us: int


@dataclass(frozen=True)
class WatermarkStrategy:
    """Event time of one source: timestamps, the bound of disorder, idleness and the future-skew guard.

    >>> strategy = WatermarkStrategy.bounded_out_of_orderness(timedelta(seconds=4))
    >>> strategy.with_timestamps("date_time").bound_us
    4000000
    """

    bound_us: int
    timestamps: Timestamps | None = None
    idleness_us: int | None = None
    max_ahead_us: int | None = _YEAR_US
    kind: Literal["bounded", "none", "ingestion", "generator"] = "bounded"
    #: Timestamps are those that the source itself has for each record.
    record_timestamps: bool = False
    generator: Callable[[], WatermarkGenerator] | None = None
    alignment: Alignment | None = None

    @classmethod
    def bounded_out_of_orderness(cls, bound: timedelta) -> WatermarkStrategy:
        """Rows come at most `bound` behind the latest one seen: W = latest - bound - 1 us.

        A row that is further behind is late; windows say what happens to it.
        """
        return cls(to_us(bound, "The bound of bounded_out_of_orderness", positive=False))

    @classmethod
    def monotonous(cls) -> WatermarkStrategy:
        """Timestamps never fall within a source partition: W = latest - 1 us."""
        return cls(0)

    @classmethod
    def no_watermarks(cls) -> WatermarkStrategy:
        """Rows have timestamps, but no watermark comes before the end of the source.

        Windows wait for the end of bounded input, for a drain, or for triggers that do not ask for a watermark.
        """
        return cls(0, kind="none")

    @classmethod
    def ingestion_time(cls) -> WatermarkStrategy:
        """The timestamp of a row is the clock of the epoch that reads it: W = clock - 1 us.

        No row is ever late, and no partition holds time back. The clock is part of the epoch, so that an epoch
        that is run again gives the same timestamps.
        """
        return cls(0, kind="ingestion")

    @classmethod
    def for_generator(cls, factory: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """Watermarks by a class of yours; `factory` is the class, or a function that makes an instance."""
        if not callable(factory):
            raise BuildError(f"for_generator takes a class or a function, not {factory!r}.")
        if isinstance(factory, type):
            _check_generator(factory)
        return cls(0, kind="generator", generator=factory)

    def with_timestamps(self, timestamps: Timestamps) -> WatermarkStrategy:
        """Where the timestamp of a row is: a column's name, an expression, or a function of the row.

        Columns and expressions must be timestamps with a time zone; a function returns an aware
        `datetime`. A row whose timestamp is null goes to the source's `errors` output.
        """
        if isinstance(timestamps, str) and not timestamps:
            raise BuildError("with_timestamps needs the name of a column, but it is empty.")
        if not isinstance(timestamps, str | Expression) and not callable(timestamps):
            raise BuildError(
                "with_timestamps takes a column's name, an expression or a function of the row,"
                f" not {timestamps!r}."
            )
        self._refuse_ingestion("with_timestamps")
        return replace(self, timestamps=timestamps, record_timestamps=False)

    def with_record_timestamps(self) -> WatermarkStrategy:
        """The timestamps that the source has for its records, beside their columns."""
        self._refuse_ingestion("with_record_timestamps")
        return replace(self, timestamps=None, record_timestamps=True)

    def with_idleness(self, timeout: timedelta) -> WatermarkStrategy:
        """A source partition without rows for `timeout` of wall-clock time no longer holds time back.

        A source whose partitions are all idle does not hold back a step that other sources feed too. When a
        partition wakes, its rows are judged by the watermark that the others have reached meanwhile.
        """
        self._refuse_ingestion("with_idleness")
        return replace(self, idleness_us=to_us(timeout, "The timeout of with_idleness"))

    def with_max_ahead(self, limit: timedelta | None) -> WatermarkStrategy:
        """Rows further than `limit` in the future of the clock go to `errors`; None lets them all pass.

        Without the guard one timestamp in the year 9999 would make every row after it late. The default
        is 365 days.
        """
        ahead_us = None if limit is None else to_us(limit, "The limit of with_max_ahead")
        return replace(self, max_ahead_us=ahead_us)

    def with_alignment(self, group: str, max_drift: timedelta) -> WatermarkStrategy:
        """No source partition of the group runs ahead of the slowest one by more than `max_drift`.

        The faster ones are read less, or not at all, until the others have caught up. How many rows cover how
        much time is measured, so the drift is kept about and not to the microsecond. Partitions that are
        finished or idle hold nobody; one that has shown nothing does while rows of it wait to be read.
        """
        named: Any = group
        if not isinstance(named, str) or not named:
            raise BuildError(f"with_alignment takes the name of a group of sources, not {named!r}.")
        self._refuse_ingestion("with_alignment")
        drift_us = to_us(max_drift, "The max_drift of with_alignment")
        return replace(self, alignment=Alignment(group, drift_us))

    def _refuse_ingestion(self, setting: str) -> None:
        if self.kind == "ingestion":
            raise BuildError(
                f"ingestion_time takes timestamps and watermarks from the clock, so {setting} has no"
                " meaning for it; leave it out, or use another strategy."
            )


def _check_generator(kind: type) -> None:
    if not issubclass(kind, WatermarkGenerator):
        raise BuildError(
            f"for_generator takes a subclass of headrace.WatermarkGenerator, not {kind.__name__}."
        )
    base = WatermarkGenerator
    if kind.on_event is base.on_event and kind.on_events is base.on_events:
        raise BuildError(
            f"{kind.__name__} sees no rows: define on_event(self, timestamp), or"
            " on_events(self, timestamps) with an array."
        )
