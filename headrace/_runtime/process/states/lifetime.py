"""When what has a TTL was touched, and whether it is over."""

from __future__ import annotations

from headrace._runtime.process.cursor import Cursor
from headrace.errors import EngineError
from headrace.state.ttl import TTL

__all__ = ["Lifetime"]


class Lifetime:
    """How long what is kept in a state with a TTL lives, at the time that the cursor stands on."""

    __slots__ = ("_at", "_in_event_time", "_ttl_us", "by_reading")

    def __init__(self, ttl: TTL, cursor: Cursor) -> None:
        self._at = cursor
        self._in_event_time = ttl.time == "event"
        self._ttl_us = ttl.ttl_us
        #: Whether reading touches it.
        self.by_reading = ttl.update == "read_and_write"

    def now(self) -> int:
        """When what is touched now was touched."""
        if not self._in_event_time:
            return self._at.clock
        if self._at.stamp is None:
            raise EngineError("a row without a timestamp touched state that lives in event time")
        return self._at.stamp

    def is_alive(self, time: int) -> bool:
        """Whether what was touched then has not expired."""
        reached = self._at.watermark if self._in_event_time else self._at.clock
        return reached < time + self._ttl_us
