"""What an operator is: a function (batch, state, watermark) -> batches.

A stateless step is one object. A keyed step is two halves with a shuffle between them: a `Feeder` where
the rows arise (tells late rows apart, folds what it can, computes the key's hash) and a `KeyedOperator`
where all rows of a key group meet. In one epoch a keyed operator is called in this order:

    restore-or-catch-up -> [merge ...] rows that come before the tick -> tick -> [merge ...] -> settle -> outlook

Neither half knows of Spark, of epochs' numbers or of sinks, and a step in processing time does not know that
it is: its rows have the clock as their timestamp, and its watermark is the clock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from headrace._runtime.metrics import Metrics
from headrace._runtime.rows import Rows

__all__ = [
    "HASH",
    "Feeder",
    "KeyedOperator",
    "Moment",
    "Outlook",
    "Outputs",
    "StatelessOperator",
    "Surroundings",
]

#: The column of every fed batch that holds the 64-bit hash of the key (`headrace.keys.hash_keys`).
HASH = "__hash"

#: (output, rows) pairs; `headrace._graph.nodes` names the outputs.
Outputs = Iterator[tuple[str, Rows]]


@dataclass(frozen=True, slots=True)
class Moment:
    """The time of an epoch as one step sees it, in microseconds.

    The watermark moves from `before` to `watermark`, the clock from `clock_before` to `clock`.
    """

    before: int
    watermark: int
    clock_before: int
    clock: int


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a step waits for when an epoch is over."""

    #: The watermark that lets the next window fire, and how many rows would come out at most.
    fires_at: int | None = None
    keys: int = 0
    #: The clock at which it wants an epoch, though no row may come.
    due: int | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where and when a step runs that asks for it, in microseconds: its watermark, the clock, the task."""

    watermark: int
    clock: int
    task: int
    metrics: Metrics


class StatelessOperator(ABC):
    """A step that looks at one batch at a time."""

    def enter(self, around: Surroundings) -> None:
        """Called first, if the step has a time of its own in the plan; most look at their rows alone."""

    @abstractmethod
    def process(self, rows: Rows) -> Outputs:
        """What these rows become."""

    def left_out(self) -> int:
        """How many rows it has filtered since this was last asked, if their number does not follow from its outputs."""
        return 0


class Feeder(ABC):
    """The half of a keyed step that runs before the shuffle, for one input."""

    #: What is fed goes to every shard, not to the one that owns the key.
    everywhere: ClassVar[bool] = False
    #: Rows of a shard stay in the order in which they were fed, also those of different key groups.
    in_order: ClassVar[bool] = False

    @abstractmethod
    def feed(self, rows: Rows, watermark: int) -> Outputs:
        """Take rows in. `watermark` is the one they are judged by. Yields late rows and dead letters."""

    @abstractmethod
    def flush(self) -> Iterator[pa.RecordBatch]:
        """What goes to the shards so far, with the column `HASH`; the feeder is empty afterwards."""

    def heavy(self) -> Mapping[str, int]:
        """The heaviest keys of all that was flushed, as JSON, and their rows; none if nobody counts them."""
        return {}


class KeyedOperator(ABC):
    """The half of a keyed step that runs behind the shuffle and owns state."""

    def equip(self, metrics: Metrics, shard: int) -> None:
        """Before the first row: where the user's function counts, and which shard it is."""

    @abstractmethod
    def merge(self, batch: pa.RecordBatch, side: int = 0) -> None:
        """Fold a fed batch of one input into the state."""

    @abstractmethod
    def tick(self, moment: Moment) -> Outputs:
        """Time moves: rows that this releases."""

    @abstractmethod
    def settle(self) -> Outputs:
        """The epoch's rows are all in: rows that follow from them, and late ones if they are told apart here."""

    def outlook(self) -> Outlook:
        """What it waits for now. Called behind `settle`; costs no more than an epoch without rows."""
        return Outlook()
