"""How a source tells time: where timestamps come from, how much disorder to expect, when to stop waiting.

A strategy is immutable: every `with_` method returns another one, so the order of calls cannot lose a
setting. A watermark W promises that no more rows with a timestamp <= W come. Watermarks are int64
microseconds since 1970 (UTC). Deliberately absent: computing watermarks; `_watermarks` does that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from headrace.config import to_us
from headrace.errors import BuildError
from headrace.expressions import Expression

__all__ = ["END_OF_TIME", "NO_WATERMARK", "Timestamps", "WatermarkStrategy"]

#: The watermark of a source that has shown nothing yet.
NO_WATERMARK = -(2**63)
#: The watermark behind the last row of bounded input: every window fires.
END_OF_TIME = 2**63 - 1

#: A column, an expression over columns, or a function from a row to an aware datetime.
Timestamps: TypeAlias = str | Expression | Callable[[Any], datetime]

_YEAR_US = 365 * 24 * 3600 * 1_000_000


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
        return replace(self, timestamps=timestamps)

    def with_idleness(self, timeout: timedelta) -> WatermarkStrategy:
        """A source partition without rows for `timeout` of wall-clock time no longer holds time back."""
        return replace(self, idleness_us=to_us(timeout, "The timeout of with_idleness"))

    def with_max_ahead(self, limit: timedelta | None) -> WatermarkStrategy:
        """Rows further than `limit` in the future of the clock go to `errors`; None lets them all pass.

        Without the guard one timestamp in the year 9999 would make every row after it late. The default
        is 365 days.
        """
        ahead_us = None if limit is None else to_us(limit, "The limit of with_max_ahead")
        return replace(self, max_ahead_us=ahead_us)
