"""What a file format must be able to do: Arrow batches into a file and out of it again.

Reading tells every record's line, so that an error can say where; writing streams, and files of the same
schema can be combined into one without going through rows. Formats know nothing of sources and sinks.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["BadRecord", "BatchWriter", "ByteSink", "Decoded", "Format"]


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that does not fit the schema."""

    line: int
    cause: str
    text: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """Rows of a file in order, the line (or row) each begins at, and the records that are none.

    Lines count from 1, with the header of a file that has one.
    """

    batch: pa.RecordBatch
    lines: npt.NDArray[np.int64]
    bad: tuple[BadRecord, ...] = ()


class ByteSink(Protocol):
    """Where the bytes of a file go."""

    def write(self, content: bytes | memoryview, /) -> int:
        """Append."""


class BatchWriter(ABC):
    """Turns batches into the bytes of one file. Does not own the file."""

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch."""

    @abstractmethod
    def close(self) -> None:
        """Write what the format needs at the end; the file stays open."""


class Format(ABC):
    """One file format."""

    #: How users call it.
    name: str
    #: How names of its files end.
    suffix: str
    #: The endings of files that are taken to be of this format.
    read_suffixes: tuple[str, ...]

    @abstractmethod
    def check_writable(self, schema: pa.Schema) -> None:
        """Raise `BuildError` if the format cannot hold these columns."""

    @abstractmethod
    def writer(self, file: ByteSink, schema: pa.Schema) -> BatchWriter:
        """Begin a file."""

    @abstractmethod
    def combine(self, parts: Sequence[Path], file: ByteSink) -> None:
        """Write the rows of several files of one schema, in order, as one."""

    @abstractmethod
    def read(self, path: Path, schema: pa.Schema) -> Iterator[Decoded]:
        """The rows of a file. `InputError` if the file as a whole cannot be what it should."""
