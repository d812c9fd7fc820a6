"""A sink that takes rows and forgets them, like Flink's blackhole."""

from collections.abc import Sequence

import pyarrow as pa

from headrace.endpoints import Publisher, Receipt, Sink, SinkContext, Stager

__all__ = ["Discard"]


class Discard(Sink, Publisher):
    """Takes rows and forgets them."""

    def stager(self, context: SinkContext, epoch: int, task: str) -> Stager:
        """Counts, because the ledger wants to know where rows went."""
        return _Forgetting(context.uid)

    def publisher(self, context: SinkContext) -> Publisher:
        """Itself: there is nothing to show."""
        return self

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        """Nothing to show."""


class _Forgetting(Stager):
    def __init__(self, uid: str) -> None:
        self._uid = uid
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows

    def close(self) -> Sequence[Receipt]:
        return [Receipt(self._uid, "", self._rows, 0, 0)]

    def abort(self) -> None:
        pass
