"""Writes the rows of an epoch into a table, in one transaction with the marker that says so.

    lock the marker -> is the epoch there already? -> delete, insert or upsert -> write the marker -> commit

The transaction commits as a whole or not at all, so it does not matter where it was cut off: whoever comes next
locks the marker and knows.
"""

from collections.abc import Sequence

import pyarrow as pa

from headrace._commit.spool import discard_spool, read_spool, remove_spooled
from headrace._graph.changes import CHANGE
from headrace.connectors.databases.changes import Effect, effect
from headrace.connectors.databases.conversion import converted
from headrace.connectors.databases.dialect import Cursor, Dialect, Target
from headrace.connectors.databases.marker import Mark, Marker
from headrace.connectors.databases.session import Session
from headrace.endpoints import Publisher, Receipt, SinkContext
from headrace.errors import SinkRefused
from headrace.schema import describe_fields

__all__ = ["TablePublisher"]


class TablePublisher(Publisher):
    """Shows epochs in one table. Made when its start has taken the marker over."""

    def __init__(
        self,
        dialect: Dialect,
        session: Session,
        target: Target,
        marker: Marker,
        context: SinkContext,
    ) -> None:
        self._dialect = dialect
        self._session = session
        self._target = target
        self._marker = marker
        self._context = context
        self._epoch = self._take_over()

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        """Write the epoch's rows, unless the marker says that they are there."""
        if epoch > self._epoch:
            rows = self._rows(receipts)
            with self._session.transaction(
                f"writing epoch {epoch} to {self._target.table}"
            ) as cursor:
                self._write(cursor, epoch, rows)
            self._epoch = max(self._epoch, epoch)
        remove_spooled(self._context.spool, epoch)

    def published(self) -> int | None:
        """What the marker says."""
        return self._epoch if self._epoch >= 0 else None

    def highest_seen(self) -> int | None:
        """An epoch is there as a whole or not at all."""
        return self.published()

    def discard(self, keep: frozenset[int]) -> None:
        """Remove what is staged for other epochs."""
        discard_spool(self._context.spool, keep)

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _take_over(self) -> int:
        """From here on no earlier start writes, and what it had in flight has ended."""
        with self._session.transaction("taking the marker over") as cursor:
            mark = self._marker.lock(cursor, self._context.fence)
            self._marker.write(cursor, Mark(mark.epoch, self._context.fence))
        return mark.epoch

    def _rows(self, receipts: Sequence[Receipt]) -> pa.Table:
        """All rows of an epoch, in order."""
        ordered = sorted(receipts, key=lambda receipt: receipt.path)
        tables = [read_spool(self._context.spool, receipt) for receipt in ordered]
        schema = self._context.schema
        for table in tables:
            if table.schema != schema:
                raise SinkRefused(
                    f"rows of sink {self._context.uid!r} were staged with other columns ({describe_fields(table.schema)})"
                    f" than it has now ({describe_fields(schema)}); run the job as it was once, so that they are written"
                )
        # `empty_table` cannot make lists of an extension type.
        return pa.concat_tables([pa.Table.from_batches([], schema), *tables])

    def _write(self, cursor: Cursor, epoch: int, rows: pa.Table) -> None:
        mark = self._marker.lock(cursor, self._context.fence)
        if mark.epoch >= epoch:
            return
        if 0 <= mark.epoch < epoch - 1:
            raise SinkRefused(
                f"the database shows epoch {mark.epoch} of sink {self._context.uid!r} and is given epoch {epoch}: the"
                " rows between are not in it. If it was put back from a copy, put back a newer one. If they shall"
                f" be missing, or are somewhere else: {self._marker.removal}"
            )
        if rows.num_rows:
            self._apply(cursor, rows)
        self._marker.write(cursor, Mark(epoch, self._context.fence))

    def _apply(self, cursor: Cursor, rows: pa.Table) -> None:
        done = self._effect(rows)
        if done.deleted.num_rows:
            # First: a value that must be unique may move from a row that goes to one that comes.
            self._dialect.delete(cursor, self._target, done.deleted)
        if done.written.num_rows:
            write = self._dialect.upsert if self._target.key else self._dialect.insert
            write(cursor, self._target, done.written)

    def _effect(self, rows: pa.Table) -> Effect:
        columns = converted(rows, self._target.cells)
        if not self._target.key:
            return Effect(columns, columns.slice(0, 0))
        change = rows.column(CHANGE) if CHANGE in rows.column_names else None
        return effect(columns, self._target.key, change)
