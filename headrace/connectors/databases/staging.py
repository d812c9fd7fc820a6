"""Stages the rows of a table sink in the spool, and refuses those that no table could take.

What is staged becomes durable and must be written: a row that is refused only by the server would stop the job for good,
whatever its code does by then. Here the epoch can still be run again with other code.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headrace._commit.spool import SpoolStager
from headrace._graph.changes import CHANGE
from headrace.connectors.databases.changes import flaw
from headrace.endpoints import Receipt, SinkContext, Stager
from headrace.errors import InputError

__all__ = ["TableStager"]


class TableStager(Stager):
    """One task's rows of one epoch. `key` must be there in every row; `takes_nul`: so may be the character NUL."""

    def __init__(
        self, context: SinkContext, epoch: int, task: str, *, key: Sequence[str], takes_nul: bool
    ) -> None:
        self._sink = context.uid
        self._spool = SpoolStager(context, epoch, task)
        self._key = key
        self._takes_nul = takes_nul

    def write(self, batch: pa.RecordBatch) -> None:
        """Stage rows that a table can take."""
        change = batch.column(CHANGE) if CHANGE in batch.schema.names else None
        wrong = flaw(batch, self._key, change)
        if wrong is None and not self._takes_nul:
            wrong = _nul(batch)
        if wrong is not None:
            raise InputError(f"sink {self._sink!r}: {wrong}")
        self._spool.write(batch)

    def close(self) -> Sequence[Receipt]:
        """One receipt, or none without rows."""
        return self._spool.close()

    def abort(self) -> None:
        """Remove what was staged."""
        self._spool.abort()


def _nul(batch: pa.RecordBatch) -> str | None:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for texts in _texts(column):
            if pc.any(pc.match_substring(texts, "\0")).as_py():
                return (
                    f"column {name!r}: a text holds the character NUL, which the server refuses; take it out in the"
                    " stream, with map or filter, or make the column binary"
                )
    return None


def _texts(column: pa.Array) -> Iterator[pa.Array]:
    """The texts of a column, at every depth."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield column
    elif pa.types.is_dictionary(kind):
        yield from _texts(column.dictionary_decode())
    elif pa.types.is_struct(kind):
        for part in column.flatten():
            yield from _texts(part)
    elif pa.types.is_map(kind):
        yield from _texts(column.keys)
        yield from _texts(column.items)
    elif pa.types.is_nested(kind):
        yield from _texts(column.flatten())
