"""A sink for systems that take a batch with a number: Headrace stages the rows, the user writes one method.

Rows lie in the spool beside the checkpoint until their epoch is published. What is left to the user is to show a table
of rows under the number of its epoch so that doing it twice is doing it once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import pyarrow as pa

from headrace._commit.spool import SpoolStager, discard_spool, read_spool, remove_spooled
from headrace.connectors.twophase.blame import blamed
from headrace.connectors.twophase.sink import working_copy
from headrace.endpoints import Publisher, Receipt, Sink, SinkContext, Stager

__all__ = ["SpooledSink"]


class SpooledSink(Sink):
    """A sink with one method to write: `publish(epoch, rows)`.

    An epoch's rows are in the driver's memory while they are published; for more than fits there, use `TwoPhaseSink`.
    `headrace.testing.check_sink` proves that it neither loses nor doubles rows, whatever is killed.
    """

    #: Whose rows these are: job, incarnation, uid, schema, spool, fence.
    context: SinkContext

    def open(self, context: SinkContext) -> None:
        """Called first, in the driver, on the copy that publishes. Connect here, not in `__init__`."""

    @abstractmethod
    def publish(self, epoch: int, rows: pa.Table) -> None:
        """Show the rows of a durable epoch, or do nothing if they are shown already.

        Epochs come in order; those without rows too. After a crash epochs come again whose rows are visible: show the
        rows and note their epoch in one step, under `self.context.incarnation` and `self.context.uid`.
        """

    def recover(self) -> int | None:
        """The last epoch of this incarnation and uid that is visible, if the system outside knows; else None."""
        return None

    def close(self) -> None:
        """Called last."""

    def stager(self, context: SinkContext, epoch: int, task: str) -> Stager:
        """Rows go through the spool."""
        return SpoolStager(context, epoch, task)

    def publisher(self, context: SinkContext) -> Publisher:
        """The copy that publishes."""
        return _SpoolPublisher(working_copy(self, context))


class _SpoolPublisher(Publisher):
    def __init__(self, sink: SpooledSink) -> None:
        self._sink = sink
        self._context = sink.context
        self._last: int | None = None

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        spool = self._context.spool
        if self._last is not None and self._last != epoch:
            # That it is published is noted by now: no crash asks for its rows.
            remove_spooled(spool, self._last)
        ordered = sorted(receipts, key=lambda receipt: receipt.path)
        tables = [read_spool(spool, receipt) for receipt in ordered]
        tables = tables or [pa.Table.from_batches([], self._context.schema)]
        rows = pa.concat_tables(tables)
        with blamed(self._sink, "publish", self._context.uid):
            self._sink.publish(epoch, rows)
        self._last = epoch

    def published(self) -> int | None:
        with blamed(self._sink, "recover", self._context.uid):
            return self._sink.recover()

    def discard(self, keep: frozenset[int]) -> None:
        discard_spool(self._context.spool, keep)

    def close(self) -> None:
        with blamed(self._sink, "close", self._context.uid):
            self._sink.close()
