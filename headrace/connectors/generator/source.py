"""The Nexmark auction house as three sources: persons, auctions and bids.

Every value is a pure function of the seed and the number of the event, so any range of rows can be read
again, anywhere, with the same result. With several partitions the rows are dealt out in turn; each
partition is in order and all of them move through event time together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from headrace.connectors.generator.dealing import DealtRows
from headrace.connectors.generator.draws import Draws
from headrace.connectors.generator.events import SCHEMAS, World, columns_of
from headrace.connectors.generator.options import (
    check_at_least,
    check_instant,
    check_rate_limit,
    check_share,
    check_span,
)
from headrace.connectors.generator.pace import Clock, Everything, Paced, wall_clock_us
from headrace.connectors.generator.timeline import AUCTIONS, BIDS, PERSONS, Kind, Timeline
from headrace.endpoints import Enumerator, Json, Source, SourceBatch
from headrace.errors import BuildError, SchemaError

__all__ = ["Nexmark", "NexmarkSource"]

_BATCH_ROWS = 65_536
_ENDLESS_EVENTS = 2**40
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Nexmark:
    """A seeded stream of auction events: of every 50, one person, 3 auctions and 46 bids.

    `event_rate` is events per second of event time. `disorder` moves every event back in time by less
    than that, `late` is the share of events that are 5 to 60 seconds older on top. `rate_limit` is rows
    per second of wall clock that a source brings forth; without it all rows are there at once.
    `events=None` never ends.

        bids = Nexmark(events=1_000_000, disorder=timedelta(seconds=3)).bids()
    """

    events: int | None
    seed: int = 7
    event_rate: int = field(default=100_000, kw_only=True)
    disorder: timedelta = field(default=timedelta(0), kw_only=True)
    late: float = field(default=0.0, kw_only=True)
    partitions: int = field(default=1, kw_only=True)
    rate_limit: float | None = field(default=None, kw_only=True)
    start: datetime = field(default=datetime(2025, 1, 1, tzinfo=UTC), kw_only=True)

    def __post_init__(self) -> None:
        """Refuse options that cannot work."""
        if self.events is not None:
            check_at_least("events", self.events, 0)
        check_at_least("seed", self.seed, 0)
        check_at_least("event_rate", self.event_rate, 1)
        check_at_least("partitions", self.partitions, 1)
        check_rate_limit(self.rate_limit)
        check_span("disorder", self.disorder)
        check_share("late", self.late)
        check_instant("start", self.start)

    def bids(self, columns: Sequence[str] | None = None) -> Source:
        """Bids, with these columns of theirs or all of them."""
        return NexmarkSource(self, BIDS, _chosen(BIDS, columns))

    def auctions(self, columns: Sequence[str] | None = None) -> Source:
        """Auctions, with these columns of theirs or all of them."""
        return NexmarkSource(self, AUCTIONS, _chosen(AUCTIONS, columns))

    def persons(self, columns: Sequence[str] | None = None) -> Source:
        """Persons, with these columns of theirs or all of them."""
        return NexmarkSource(self, PERSONS, _chosen(PERSONS, columns))

    @property
    def world(self) -> World:
        """What the values of all events follow from."""
        start_us = (self.start - _EPOCH) // _MICROSECOND
        disorder_us = self.disorder // _MICROSECOND
        return World(Draws(self.seed), Timeline(start_us, self.event_rate, disorder_us, self.late))


@dataclass(frozen=True)
class NexmarkSource(Source):
    """One kind of event of a `Nexmark` stream; `Nexmark.bids()` and its siblings make it.

    The record's own timestamp is that of the event before disorder and lateness moved it.
    """

    has_record_timestamps = True

    stream: Nexmark
    kind: Kind
    columns: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        """The chosen columns."""
        full = SCHEMAS[self.kind.name]
        return pa.schema([full.field(name) for name in self.columns])

    def signature(self) -> dict[str, Json]:
        """The options that values follow from; how many events there are is not one of them."""
        timeline = self.stream.world.timeline
        return {
            "source": "nexmark",
            "kind": self.kind.name,
            "seed": self.stream.seed,
            "event_rate": timeline.event_rate,
            "disorder_us": timeline.disorder_us,
            "late": timeline.late,
            "start_us": timeline.start_us,
            "partitions": self.stream.partitions,
        }

    def enumerator(self, directory: Path, clock: Clock = wall_clock_us) -> Enumerator:
        """Count the rows that exist."""
        events, limit = self.stream.events, self.stream.rate_limit
        rows = self.kind.rows_in(_ENDLESS_EVENTS if events is None else events)
        pace = Everything(rows) if limit is None else Paced(rows, limit, directory, clock)
        return DealtRows(pace, rows, self.stream.partitions, deal=_dealt, endless=events is None)

    def read(self, partition: str, start: int, end: int, directory: Path) -> Iterator[SourceBatch]:
        """Make the rows anew."""
        world, makers, schema = self.stream.world, columns_of(self.kind), self.schema
        for first in range(start, end, _BATCH_ROWS):
            offsets = np.arange(first, min(first + _BATCH_ROWS, end), dtype=np.int64)
            events = self.kind.events(offsets * self.stream.partitions + int(partition))
            arrays = [makers[name](world, events) for name in self.columns]
            batch = pa.record_batch(arrays, schema=schema)
            records = world.timeline.on_time_us(events)
            yield SourceBatch(batch, offsets, partition, timestamps=records)


def _dealt(rows: int, partitions: int, place: int) -> int:
    """How many of `rows` rows, dealt out in turn, the partition at this place got."""
    return (rows - place + partitions - 1) // partitions


def _chosen(kind: Kind, columns: Sequence[str] | None) -> tuple[str, ...]:
    known = SCHEMAS[kind.name].names
    if columns is None:
        return tuple(known)
    if isinstance(columns, str) or not columns or len(set(columns)) != len(columns):
        raise BuildError(f"columns must be a sequence of different names, not {columns!r}")
    for name in columns:
        if name not in known:
            raise SchemaError(f"{kind.name} have no column {name!r}; they have {', '.join(known)}")
    return tuple(columns)
