"""How long state lives."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, get_args

from headrace.config import to_us
from headrace.errors import BuildError

__all__ = ["TTL"]

_Time = Literal["event", "processing"]
_Update = Literal["write", "read_and_write"]
_Visibility = Literal["never_expired", "until_cleaned"]


@dataclass(frozen=True)
class TTL:
    """State that is forgotten when it was not touched for a while.

    In event time it is touched at the timestamp of the row (or timer) and gone when the watermark has come that
    much further; in processing time the clock of epochs tells both. `update` says whether reading touches too.
    Entries of maps and items of lists live one by one. What has expired is taken away at the start of an epoch, found by
    an index on time, so "until_cleaned" shows it no longer than "never_expired" does.

        last: hr.state.Value[float] = hr.state.TTL(timedelta(minutes=5))
    """

    ttl: timedelta
    time: _Time = "event"
    update: _Update = "write"
    visibility: _Visibility = "never_expired"
    ttl_us: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ttl_us", to_us(self.ttl, "ttl"))
        for name, allowed in (("time", _Time), ("update", _Update), ("visibility", _Visibility)):
            if getattr(self, name) not in get_args(allowed):
                known = " or ".join(map(repr, get_args(allowed)))
                raise BuildError(f"TTL({name}={getattr(self, name)!r}): it must be {known}.")
