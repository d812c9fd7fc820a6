"""What both halves of a session step agree on: columns of a fed batch, tables of state, the folds.

A fed batch has one row for every *run*: rows of one key that are one session by themselves. It has the key columns,
`__start` and `__end` of the run, the hash, the parts of every aggregate, and `__rows`: the rows themselves, where
the run may turn out to be late, else null. Late rows in windows of their own are wanted as parts, not as rows.

State: table `sessions` by key and number. A key with one session has number 0, which stays as long as the key has
any: it also says how many numbers are in use and when the key is due. Table `due`: keys by the slice of time in
which something happens to them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headrace._graph.nodes import SessionAggregate
from headrace._runtime.aggregates.fold import Fold
from headrace._runtime.aggregates.kinds import Setting, make_fold
from headrace._runtime.arrivals import ARRIVALS
from headrace._runtime.operator import HASH
from headrace._runtime.plain_keys import plain_keys_schema
from headrace._runtime.state import TableSpec, ValueSpec
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = [
    "AT",
    "DUE",
    "END",
    "FIRED",
    "HOLLOW",
    "LONGEST_US",
    "MORE",
    "NUMBER",
    "ROWS",
    "SESSIONS",
    "START",
    "Layout",
    "last_over",
    "session_tables",
]

#: Columns of a fed batch.
START = "__start"
END = "__end"
ROWS = "__rows"
_TIMESTAMP = "__ts"

#: Tables, and their own columns.
SESSIONS = "sessions"
DUE = "due"
NUMBER = "__number"
FIRED = "__fired"
MORE = "__more"
AT = "__at"

#: The end of a number 0 that is no session, but stands for a key with others.
HOLLOW = NO_WATERMARK
#: Gaps and lateness are taken for no longer than this (73,000 years), so that no sum overflows.
LONGEST_US = 2**61


@dataclass(frozen=True)
class Layout:
    """The keys as they are stored, what computes each aggregate, and the columns of late rows."""

    keys: pa.Schema
    folds: tuple[Fold, ...]
    #: Of lists of late rows with their timestamps; None if nobody wants them.
    late: pa.DataType | None

    @classmethod
    def of(cls, node: SessionAggregate) -> Layout:
        """The layout of a step."""
        keys = plain_keys_schema(node.keys, node.input_schema)
        # Sessions are put together like the panes of overlapping windows.
        setting = Setting(
            node.uid, node.input_schema, keys, overlapping=True, weighted=node.weighted
        )
        folds = tuple(make_fold(name, aggregate, setting) for name, aggregate in node.aggregates)
        row = pa.struct([*node.input_schema, (_TIMESTAMP, pa.int64())])
        return cls(keys, folds, None if node.on_late == "own_window" else pa.list_(row))

    @property
    def fed(self) -> pa.Schema:
        """The columns of a fed batch."""
        bounds = [(START, pa.int64()), (END, pa.int64()), (HASH, pa.uint64())]
        parts = [part for fold in self.folds for part in fold.parts]
        rows = [] if self.late is None else [(ROWS, self.late)]
        return pa.schema([*self.keys, *bounds, *parts, *rows])

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        """The tables of state."""
        own = (
            ValueSpec(START, pa.int64(), 0),
            ValueSpec(END, pa.int64(), HOLLOW),
            ValueSpec(FIRED, pa.int64(), 0),
            ValueSpec(MORE, pa.int32(), 0),
            ValueSpec(AT, pa.int64(), END_OF_TIME),
        )
        columns = tuple(column for fold in self.folds for column in fold.columns)
        numbered = self.keys.append(pa.field(NUMBER, pa.int32()))
        due = TableSpec(DUE, self.keys, (ValueSpec(AT, pa.int64(), 0),))
        counters = (ARRIVALS,) if self.keeps_arrival else ()
        return (TableSpec(SESSIONS, numbered, own + columns), due, *counters)

    @property
    def keeps_arrival(self) -> bool:
        """Whether an aggregate needs the order of arrival across sessions."""
        return any(fold.keeps_arrival for fold in self.folds)


def session_tables(node: SessionAggregate) -> tuple[TableSpec, ...]:
    """The state that a session step declares."""
    return Layout.of(node).tables


def last_over(watermark: int, lateness_us: int) -> int:
    """Sessions that end here or before are over: end - 1 + lateness <= watermark."""
    if watermark == NO_WATERMARK:
        return NO_WATERMARK
    return max(NO_WATERMARK, min(watermark + 1, END_OF_TIME) - min(lateness_us, LONGEST_US))
