"""What a message format must be able to do: the bytes of many messages to one Arrow batch, and back.

A message is what a log such as Kafka holds: bytes, or nothing (a tombstone). Whole batches are turned at once; what
cannot be read is told by its place, and the others are rows all the same. Formats know nothing of topics and offsets.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.errors import BuildError

__all__ = [
    "BadMessage",
    "DecodedMessages",
    "MessageDecoder",
    "MessageEncoder",
    "MessageFormat",
    "Mismatch",
]


@dataclass(frozen=True, slots=True)
class BadMessage:
    """A message that is no row: its place in the batch, and why."""

    place: int
    cause: str


class Mismatch(ValueError):
    """A field that was written as one type and is read as another."""

    def __init__(self, path: str, wrote: str, reads: str) -> None:
        super().__init__(f"{path} was written as {wrote} and is read as {reads}")
        self.path = path
        self.wrote = wrote
        self.reads = reads


@dataclass(frozen=True, slots=True)
class DecodedMessages:
    """The rows of a batch of messages in order, and the place of the message that each came from.

    A message may be several rows (an update is two) or none (a tombstone of a change log).
    """

    batch: pa.RecordBatch
    places: npt.NDArray[np.int64]
    bad: tuple[BadMessage, ...] = ()


MessageDecoder: TypeAlias = Callable[[Sequence[bytes | None]], DecodedMessages]
#: As many messages as rows, a binary column; null is a tombstone.
MessageEncoder: TypeAlias = Callable[[pa.RecordBatch], pa.Array]


class MessageFormat(ABC):
    """One message format. Instances are immutable and travel to the workers; decoders and encoders stay there."""

    #: How users call it.
    name: ClassVar[str]
    #: Rows have a column `change` ("+I", "-U", "+U", "-D"), so the stream withdraws earlier rows.
    changes: ClassVar[bool] = False
    #: A decoder for some of the columns is quicker than one for all of them.
    narrows: ClassVar[bool] = False

    def row_schema(self, declared: pa.Schema | None) -> pa.Schema:
        """The columns of a row, given those that the user declared; `BuildError` if that does not do."""
        if not declared:
            raise BuildError(f"format {self.name!r} needs schema=: the columns of a row")
        return declared

    def for_topic(self, topic: str, *, key: bool = False) -> "MessageFormat":
        """The format for values (or keys) of this topic; one that asks a schema registry learns its subject here."""
        return self

    @abstractmethod
    def decoder(self, schema: pa.Schema) -> MessageDecoder:
        """Bytes to rows of `row_schema`. Made once a process and kept."""

    @abstractmethod
    def encoder(self, schema: pa.Schema) -> MessageEncoder:
        """Rows of this schema to bytes. Made once a process and kept."""

    def check_writable(self, schema: pa.Schema) -> None:
        """Raise `BuildError` if the format cannot hold these columns."""
