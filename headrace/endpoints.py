"""What a source and a sink must be able to do; connectors implement it, the engine calls it.

A source partition is a line of integer positions. A position keeps its meaning for ever: reading
`[start, end)` again gives the same rows, which is what makes replay exact. A sink stages rows in the
workers where nobody sees them and publishes them in the driver once their epoch is durable.

Deliberately absent: watermarks, epochs and retries. The engine owns those.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = [
    "DeadLetter",
    "DeliveryGuarantee",
    "Enumerator",
    "Json",
    "Publisher",
    "Receipt",
    "Sink",
    "SinkContext",
    "Source",
    "SourceBatch",
    "Span",
    "Spread",
    "Stager",
]

Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | Mapping[str, Json]"

#: Calls a function of an importable module with each argument, side by side; the results in order.
Spread: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


class DeliveryGuarantee(Enum):
    """What a sink promises about the rows of a job that fails and goes on."""

    #: Every row is there once, whatever fails.
    EXACTLY_ONCE = "exactly_once"
    #: Every row is there; after a failure some are there again.
    AT_LEAST_ONCE = "at_least_once"
    #: Rows may be missing and may be there again.
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Span:
    """What one source partition offers at this moment: the positions `[first, end)`.

    `finished` promises that nothing will ever follow `end`. `cuts` are positions that an epoch may not
    cross: it ends there and the next one begins there. `begin` is where a job that does not know the partition
    starts to read, if that is not `first`. With `firm` an end before what was read means that this is another
    partition than the one that the job began with. With `stale` nobody could be asked of late: rows may wait that are
    not known of, so the partition is not idle.
    """

    first: int
    end: int
    finished: bool = False
    cuts: tuple[int, ...] = ()
    begin: int | None = None
    firm: bool = False
    stale: bool = False

    @property
    def start(self) -> int:
        """Where a job that does not know the partition starts to read."""
        return self.first if self.begin is None else self.begin


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not become a row: where it stood, why, and what it was."""

    partition: str
    offset: int
    cause: str
    payload: str
    #: The record as it came, where it has a form beside its text; and its key.
    raw: bytes | None = None
    raw_key: bytes | None = None


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """Rows of one partition in arrival order, with the offset of each for error messages.

    `timestamps` are the records' own, in microseconds since 1970 (UTC), if the source has them. `skipped` records
    became no rows because the user said so.
    """

    batch: pa.RecordBatch
    offsets: npt.NDArray[np.int64]
    partition: str
    dead: tuple[DeadLetter, ...] = ()
    timestamps: npt.NDArray[np.int64] | None = None
    skipped: int = 0


class Enumerator(ABC):
    """Tells which positions exist. One lives beside the driver for as long as a job runs."""

    @abstractmethod
    def spans(self) -> Mapping[str, Span]:
        """The partitions known now. Called often and from one thread: it must return at once."""

    def durable(self, positions: Mapping[str, int]) -> None:
        """All rows before these positions are in durable epochs. Called behind each epoch; it must return at once."""

    def close(self) -> None:
        """Release what `spans` needed."""


class Source(ABC):
    """Where rows come from. Instances are immutable and travel to the workers."""

    #: One position is one row, so an epoch can be cut at any row.
    row_positions: bool = True
    #: A range of positions may be read by several tasks, each a part of it.
    splittable: bool = True
    #: At most so many positions of a partition in an epoch, whatever the engine would like.
    max_positions: int | None = None
    #: At most so many rows of all its partitions in an epoch; for sources whose positions are rows.
    max_rows: int | None = None
    #: No rows are taken while there are fewer than these, unless `patience_us` went by since it last gave some.
    min_rows: int = 0
    patience_us: int = 0
    #: Every batch has the records' own timestamps, which `with_record_timestamps` asks for.
    has_record_timestamps: bool = False
    #: Rows withdraw earlier ones, as their column `change` says.
    carries_changes: bool = False

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of a row."""

    @abstractmethod
    def signature(self) -> dict[str, Json]:
        """What must stay the same between two runs for positions to keep their meaning."""

    @abstractmethod
    def enumerator(self, directory: Path) -> Enumerator:
        """Start to look for positions. `directory` is durable and this source's alone."""

    def narrowed(self, columns: Sequence[str], *, timestamps: bool) -> "Source":
        """The same source for a job that looks at these columns only, and at the records' own timestamps or not.

        It may leave the others out of its batches, or not, as it likes; there is always a column in a batch.
        """
        return self

    @abstractmethod
    def read(self, partition: str, start: int, end: int, directory: Path) -> Iterator[SourceBatch]:
        """The rows of `[start, end)`, the same ones every time, a few ten thousand to a batch."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that rows are staged: enough for a publisher in another process to find and check them."""

    sink: str
    path: str
    rows: int
    size: int
    crc: int
    details: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SinkContext:
    """Whose rows these are. Names made from it never collide with another job's or run's."""

    job: str
    incarnation: str
    uid: str
    schema: pa.Schema
    #: A durable directory of this checkpoint for sinks that have no staging area of their own.
    spool: Path
    #: The number of this start; every later one has a higher one.
    fence: int = 0
    #: How a publisher has large work done by the workers; None: there are none.
    spread: Spread | None = field(default=None, compare=False)


class Stager(ABC):
    """Takes one task's rows of one epoch. Lives in a worker; never reused."""

    #: Rows that were taken and are not in any receipt, because the sink's mode does not write them.
    left_out: int = 0

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; nobody may see them yet."""

    @abstractmethod
    def close(self) -> Sequence[Receipt]:
        """Make what was written durable and say what it is. No rows: no receipt."""

    @abstractmethod
    def abort(self) -> None:
        """Forget what was written; the attempt failed."""


class Publisher(ABC):
    """Makes staged rows visible. Lives in the driver; called from one thread, epochs in order."""

    @abstractmethod
    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        """Show the rows of `epoch`, or do nothing if they are shown already (idempotent).

        Staged data that is missing or altered raises `CheckpointDamaged` with the file's name. `SinkError` means that
        the system outside is away: the epoch is tried again. `SinkRefused` means that it will not take these rows.
        """

    def published(self) -> int | None:
        """The last epoch known to be visible, if the system outside records it."""
        return None

    def highest_seen(self) -> int | None:
        """The last epoch of which anything is visible, whole or in part, if that can be seen.

        Asked at a start: a job refuses to run epochs again whose rows are there already.
        """
        return None

    def flush(self) -> None:
        """Show what was held back to be merged; called when the job ends or stops."""

    def settled(self) -> int | None:
        """The last epoch whose staged data is no longer needed; None: everything published."""
        return None

    def discard(self, keep: frozenset[int]) -> None:
        """Remove data staged by this incarnation for epochs that are not in `keep`."""

    def close(self) -> None:
        """Release connections."""


class Sink(ABC):
    """Where rows go. Instances are immutable and travel to the workers."""

    @abstractmethod
    def stager(self, context: SinkContext, epoch: int, task: str) -> Stager:
        """Begin to stage one task's rows. `task` is unique to the attempt and safe in a file name."""

    @abstractmethod
    def publisher(self, context: SinkContext) -> Publisher:
        """The side that shows rows. Made once when a job starts."""

    def validate(self, schema: pa.Schema) -> None:
        """Raise `BuildError` if rows of this schema cannot be written."""
