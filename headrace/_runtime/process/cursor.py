"""Where the loop over rows and timers stands: what every handle and the context look at."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from headrace.watermarks import NO_WATERMARK

__all__ = ["Cursor", "Journal"]

#: What undoes the changes of the row at hand, last first: (function, its arguments). None: nobody will ask.
Journal = list[tuple[Any, ...]] | None


class Cursor:
    """The key, the time and the domain of the call that is being made."""

    __slots__ = ("clock", "code", "domain", "moment", "stamp", "watermark")

    def __init__(self) -> None:
        #: The number of the key in this epoch. Anything else than a number refuses to be an index.
        self.code: Any = -1
        #: The timestamp of the row or timer, in microseconds.
        self.stamp: int | None = None
        #: The same as functions see it, if somebody has made it already.
        self.moment: datetime | None = None
        self.watermark = NO_WATERMARK
        self.clock = 0
        #: "event" or "processing" in `on_timer`, None elsewhere.
        self.domain: str | None = None
