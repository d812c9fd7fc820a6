"""Results in the memory of the program that runs the job, for tests and notebooks.

Workers stage rows in the spool; the publisher brings them into this process. The last epochs stay staged, so
a program that starts the job again gets their rows too. Earlier ones are gone with the program that got them:
a job may run for ever, its checkpoint must not grow with its age.
"""

import secrets
import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import pyarrow as pa

from headrace._commit.spool import SpoolStager, discard_spool, read_spool, remove_spooled
from headrace.endpoints import Publisher, Receipt, Sink, SinkContext, Stager

__all__ = ["MemorySink"]

#: So many epochs of earlier runs a new process is given again.
KEPT_EPOCHS = 16


class MemorySink(Sink):
    """Keep all rows that come while this program runs, each exactly once, in the order of their epochs.

    A program that starts the job again also gets the rows of the 16 epochs before, not of all of them.

    result = MemorySink()
    stream.sink_to(result, uid="result")
    env.execute()
    result.to_arrow()
    """

    def __init__(self) -> None:
        self._attach(secrets.token_hex(8))

    def to_arrow(self) -> pa.Table:
        """What has been published by now."""
        return self._results.table()

    def to_pylist(self) -> list[dict[str, Any]]:
        """What has been published by now, a dictionary a row."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def __len__(self) -> int:
        return int(self.to_arrow().num_rows)

    def __bool__(self) -> bool:
        return True

    def __getstate__(self) -> str:
        """Only the name travels; rows stay where they are."""
        return self._name

    def __setstate__(self, name: str) -> None:
        self._attach(name)

    def validate(self, schema: pa.Schema) -> None:
        """Remember the columns, so that no rows are an empty table with the right ones."""
        self._results.declare(schema)

    def stager(self, context: SinkContext, epoch: int, task: str) -> Stager:
        """Rows go through the spool."""
        return SpoolStager(context, epoch, task)

    def publisher(self, context: SinkContext) -> Publisher:
        """The side that lives in the program."""
        self._results.begin(context)
        return _MemoryPublisher(self._results, context)

    def _attach(self, name: str) -> None:
        self._name = name
        self._results = _KNOWN.setdefault(name, _Results())


class _MemoryPublisher(Publisher):
    def __init__(self, results: "_Results", context: SinkContext) -> None:
        self._results = results
        self._context = context
        self._last = -1

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        # What was settled behind the epoch before is noted by now: no crash asks for it.
        remove_spooled(self._context.spool, self.settled())
        self._last = epoch
        key = (self._context.uid, epoch)
        if self._results.has(key):
            return
        ordered = sorted(receipts, key=lambda receipt: receipt.path)
        tables = [read_spool(self._context.spool, receipt) for receipt in ordered]
        self._results.add(key, tables)

    def settled(self) -> int:
        """Some epochs late: a run in another process shows the last ones again."""
        return max(self._last - KEPT_EPOCHS, -1)

    def discard(self, keep: frozenset[int]) -> None:
        discard_spool(self._context.spool, keep)


class _Results:
    """Published tables by sink and epoch; read by the user's thread while the publisher adds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._incarnation = ""
        self._schema = pa.schema([])
        self._tables: dict[tuple[str, int], list[pa.Table]] = {}

    def declare(self, schema: pa.Schema) -> None:
        with self._lock:
            self._schema = schema

    def begin(self, context: SinkContext) -> None:
        """Another checkpoint is another job: its rows do not mix with those that are here."""
        with self._lock:
            if self._incarnation != context.incarnation:
                self._tables = {}
            self._incarnation = context.incarnation
            self._schema = context.schema

    def has(self, key: tuple[str, int]) -> bool:
        with self._lock:
            return key in self._tables

    def add(self, key: tuple[str, int], tables: list[pa.Table]) -> None:
        with self._lock:
            self._tables[key] = tables

    def table(self) -> pa.Table:
        with self._lock:
            epochs = sorted(self._tables.items(), key=lambda entry: (entry[0][1], entry[0][0]))
            tables = [table for _, part in epochs for table in part]
            return pa.concat_tables(tables) if tables else self._schema.empty_table()


#: The results of every memory sink of this process: a copy of a sink that went through a pickle finds
#: those of the original, and they go with the last copy.
_KNOWN: WeakValueDictionary[str, _Results] = WeakValueDictionary()
