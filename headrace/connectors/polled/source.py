"""A source that users write with two functions: where each partition ends now, and the rows of a range.

One position is one row. What is asked of the system outside is asked in a thread of its own, every `poll_every`, so the
engine never waits for it. A system that is away (an `OSError`) offers nothing new meanwhile; any other error ends the job's
attempt. For gaps between positions, dead letters or record timestamps, write a `Source` instead.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from headrace.config import to_us
from headrace.endpoints import Enumerator, Json, Source, SourceBatch, Span
from headrace.errors import InputError

__all__ = ["PolledSource"]

_BATCH_ROWS = 1 << 15


class PolledSource(Source):
    """A source of numbered rows.

        class Readings(PolledSource):
            schema = pa.schema([("sensor", pa.string()), ("value", pa.float64())])

            def ends(self): ...                           # {"sensor-1": 1200}: rows 0 to 1199 are there
            def rows(self, partition, start, end): ...    # those rows, the same ones every time

    `headrace.testing.check_source` proves that positions keep their meaning.
    """

    #: How often `ends` is asked; give the class or the object another one.
    poll_every: timedelta = timedelta(seconds=1)
    #: What is there at the start is all that there is: the job ends behind it.
    bounded: bool = False

    @abstractmethod
    def ends(self) -> Mapping[str, int | Span]:
        """The partitions, and the position behind the last row of each; a `Span` says more."""

    @abstractmethod
    def rows(self, partition: str, start: int, end: int) -> pa.Table | pa.RecordBatch:
        """The rows `[start, end)` of a partition, one for each position."""

    def signature(self) -> dict[str, Json]:
        """The class; add what decides which rows a position stands for."""
        return {"source": type(self).__qualname__}

    def enumerator(self, directory: Path) -> Enumerator:
        """Ask once, and then in a thread."""
        return _Poller(self)

    def read(self, partition: str, start: int, end: int, directory: Path) -> Iterator[SourceBatch]:
        """The rows of a range, some ten thousand at a time."""
        for first in range(start, end, _BATCH_ROWS):
            last = min(first + _BATCH_ROWS, end)
            batch = self._batch(partition, first, last)
            yield SourceBatch(batch, np.arange(first, last, dtype=np.int64), partition)

    def _batch(self, partition: str, first: int, last: int) -> pa.RecordBatch:
        rows = self.rows(partition, first, last)
        if not isinstance(rows, pa.Table | pa.RecordBatch):
            raise InputError(f"{self._name}.rows must return an Arrow table, not {rows!r:.80}")
        if rows.num_rows != last - first:
            raise InputError(
                f"{self._name}.rows({partition!r}, {first}, {last}) returned {rows.num_rows} rows instead of"
                f" {last - first}: one position is one row"
            )
        if rows.schema.names != self.schema.names:
            raise InputError(
                f"{self._name}.rows returned the columns {rows.schema.names}, not {self.schema.names}"
            )
        table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        batch: pa.RecordBatch = table.cast(self.schema).combine_chunks().to_batches()[0]
        return batch

    @property
    def _name(self) -> str:
        return type(self).__name__


class _Poller(Enumerator):
    def __init__(self, source: PolledSource) -> None:
        self._source = source
        self._pause_s = to_us(source.poll_every, "poll_every") / 1_000_000
        self._spans = self._asked()
        self._error: Exception | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        if not source.bounded:
            self._thread = threading.Thread(target=self._run, name="headrace-poller", daemon=True)
            self._thread.start()

    def spans(self) -> Mapping[str, Span]:
        if self._error is not None:
            raise self._error
        return self._spans

    def close(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=5.0)  # it may wait for a system that does not answer

    def _run(self) -> None:
        while not self._ended.wait(self._pause_s):
            try:
                self._spans = self._asked()
            except OSError:
                continue
            except Exception as error:  # noqa: BLE001 - told by the next call of `spans`
                self._error = error
                return

    def _asked(self) -> dict[str, Span]:
        return {name: self._span(end) for name, end in self._source.ends().items()}

    def _span(self, end: int | Span) -> Span:
        if isinstance(end, Span):
            return end
        return Span(0, int(end), finished=self._source.bounded)
