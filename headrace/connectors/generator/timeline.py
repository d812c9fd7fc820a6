"""Which event a row is and when it happened.

Events of all kinds share one numbered line: of every 50, the first is a person, the next 3 are auctions
and the other 46 are bids. A row of a kind is numbered within its kind, and both numbers determine each
other, so a position of a source stands for one row for ever.

    event    0 | 1 2 3 | 4 5 6 ... 49 | 50 | 51 52 53 | 54 ...
    person   0                          1
    auction      0 1 2                       3  4  5
    bid                  0 1 2 ... 45                   46 ...
"""

from dataclasses import dataclass

import numpy as np

from headrace.connectors.generator.draws import Draws, Int64s

__all__ = ["AUCTIONS", "BIDS", "PERSONS", "Kind", "Timeline"]

_CYCLE = 50
_LATE_FROM_MS, _LATE_TO_MS = 5_000, 60_000
_JITTER, _IS_LATE, _LATENESS = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of event: its place in each cycle of 50 events."""

    name: str
    first: int
    share: int

    def events(self, rows: Int64s) -> Int64s:
        """The event numbers of rows of this kind."""
        return rows // self.share * _CYCLE + self.first + rows % self.share

    def rows_in(self, events: int) -> int:
        """How many of the first `events` events are of this kind."""
        cycles, rest = divmod(events, _CYCLE)
        return cycles * self.share + min(max(rest - self.first, 0), self.share)


PERSONS = Kind("persons", first=0, share=1)
AUCTIONS = Kind("auctions", first=1, share=3)
BIDS = Kind("bids", first=4, share=46)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Event numbers to event times, in whole milliseconds as Nexmark has them.

    `disorder_us` moves each event back by less than that. `late` is the share of events that are 5 to
    60 seconds older still.
    """

    start_us: int
    event_rate: int
    disorder_us: int
    late: float

    def times_us(self, draws: Draws, events: Int64s) -> Int64s:
        """When the events happened, as their rows say."""
        times = self.on_time_us(events)
        if self.disorder_us:
            jitter = draws.fractions(_JITTER, events) * self.disorder_us
            times -= jitter.astype(np.int64) // 1000 * 1000
        if self.late:
            late = np.flatnonzero(draws.chance(_IS_LATE, events, self.late))
            span = _LATE_TO_MS - _LATE_FROM_MS
            delays_ms = _LATE_FROM_MS + draws.below(_LATENESS, events[late], span + 1)
            times[late] -= delays_ms * 1000
        return times

    def duration_ms(self, events: int) -> int:
        """How long so many events take."""
        return events * 1000 // self.event_rate

    def on_time_us(self, events: Int64s) -> Int64s:
        """When the events happened before disorder and lateness moved them: they never fall."""
        return (self.start_us + events * 1_000_000 // self.event_rate) // 1000 * 1000
