"""Windows that follow the rows and not the calendar: a look-back for each row, and a number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from headrace.config import to_us
from headrace.errors import BuildError
from headrace.windows.assigner import Assigner, TimeDomain, check_time

__all__ = ["Count", "LookBack"]


@dataclass(frozen=True, init=False)
class LookBack(Assigner):
    """Each row sees the rows of its key from `size` before its timestamp up to it, itself among them.

    One result a row, when the watermark has passed it: the row, and beside it the aggregates. Rows with the
    same timestamp see each other.

    >>> str(LookBack(timedelta(minutes=10)))
    'look-back of 0:10:00'
    """

    timed: ClassVar[bool] = False

    size_us: int
    time: TimeDomain

    def __init__(self, size: timedelta, *, time: TimeDomain = "event") -> None:
        check_time(time)
        object.__setattr__(self, "size_us", to_us(size, "The size of a look-back"))
        object.__setattr__(self, "time", time)

    def signature(self) -> dict[str, Any]:
        """The size."""
        return {"kind": "look-back", "size_us": self.size_us, "time": self.time}

    def __str__(self) -> str:
        return f"look-back of {timedelta(microseconds=self.size_us)}"


@dataclass(frozen=True)
class Count(Assigner):
    """Every `size` rows of a key; with `slide`, the last `size` rows after every `slide` rows.

    Rows count in the order in which they arrive. Rows that never fill a window never fire.

    >>> str(Count(100, 10))
    'the last 100 rows, every 10'
    """

    timed: ClassVar[bool] = False
    needs_event_time: ClassVar[bool] = False

    size: int
    slide: int | None = None
    time: TimeDomain = "event"

    def __post_init__(self) -> None:
        check_time(self.time)
        _require_rows(self.size, "size")
        if self.slide is not None:
            _require_rows(self.slide, "slide")
            if self.slide > self.size:
                raise BuildError(
                    f"The slide ({self.slide}) of a count window is more than its size ({self.size}), so"
                    " rows between two windows would be lost; make the slide at most the size."
                )

    def signature(self) -> dict[str, Any]:
        """Size and slide."""
        return {"kind": "count", "size": self.size, "slide": self.slide or self.size}

    def __str__(self) -> str:
        if self.slide is None:
            return f"every {self.size} rows"
        return f"the last {self.size} rows, every {self.slide}"


def _require_rows(number: object, name: str) -> None:
    if type(number) is not int or number < 1:
        raise BuildError(
            f"Count({name}={number!r}): the {name} of a count window is a whole number of rows, 1 or more."
        )
