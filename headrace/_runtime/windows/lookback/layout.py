"""What both halves of a look-back step agree on: columns of a fed batch and tables of state.

    rows that wait for the watermark        W        rows that later ones may look back on
    `pending`: pieces of rows, by time      |        `history`: one list for each key and slice of time

A fed batch has all columns of the input. Table `pending` has one row for some rows of a key group, so that waiting
costs little; table `history` is bucketed by slices of an eighth of the look-back, and holds of each row its timestamp and
the columns that aggregates read. Counters of arrival number the pieces, and the rows where their order shows.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headrace._graph.nodes import LookBackAggregate
from headrace._runtime.aggregates.fold import Fold
from headrace._runtime.arrivals import ARRIVALS
from headrace._runtime.pending import ARRIVAL, pending_table
from headrace._runtime.plain_keys import plain_keys_schema
from headrace._runtime.state import TableSpec, ValueSpec
from headrace._runtime.unfolded import TIMESTAMP, plain_columns
from headrace._runtime.windows.in_order import folds_in_order

__all__ = ["COUNT", "HISTORY", "ITEMS", "PENDING", "Layout", "look_back_tables"]

PENDING = "pending"
HISTORY = "history"
#: How many rows a list has, and the rows themselves.
COUNT = "count"
ITEMS = "items"

#: More slices are more tables to look a key up in; fewer are longer lists to be written again.
_SLICES = 8
#: Aggregates that depend on the order in which rows arrived, beyond that of their times.
_ORDERED = ("min_by", "max_by", "collect", "function", "reduce")


@dataclass(frozen=True)
class Layout:
    """The columns as they are kept, what computes each aggregate, and the slices of time."""

    keys: pa.Schema
    #: All columns of the input.
    columns: pa.Schema
    #: What is kept of a row in the history.
    kept: pa.Schema
    folds: tuple[Fold, ...]
    keeps_arrival: bool
    size_us: int
    slice_us: int

    @classmethod
    def of(cls, node: LookBackAggregate) -> Layout:
        """The layout of a step."""
        columns = plain_columns(node.input_schema, node.input_schema.names)
        folds = folds_in_order(node)
        keeps_arrival = any(a.kind in _ORDERED for _, a in node.aggregates)
        own = [pa.field(TIMESTAMP, pa.int64())]
        if keeps_arrival:
            own.append(pa.field(ARRIVAL, pa.int64()))
        read = _read(folds, columns)
        return cls(
            plain_keys_schema(node.keys, node.input_schema),
            columns,
            pa.schema([*own, *(columns.field(name) for name in read)]),
            folds,
            keeps_arrival,
            node.window.size_us,
            -(-node.window.size_us // _SLICES),
        )

    @property
    def waiting(self) -> pa.Schema:
        """The columns of a row that waits."""
        own = [field for field in self.kept if field.name in (TIMESTAMP, ARRIVAL)]
        return pa.schema([*self.columns, *own])

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        """The tables of state."""
        kept = (
            ValueSpec(COUNT, pa.int64(), 0),
            ValueSpec(ITEMS, pa.list_(pa.struct(list(self.kept))), None),
        )
        return (
            pending_table(PENDING, self.waiting),
            TableSpec(HISTORY, self.keys, kept),
            ARRIVALS,
        )


def look_back_tables(node: LookBackAggregate) -> tuple[TableSpec, ...]:
    """The state that a look-back step declares."""
    return Layout.of(node).tables


def _read(folds: tuple[Fold, ...], columns: pa.Schema) -> list[str]:
    if any(fold.reads is None for fold in folds):
        return list(columns.names)
    wanted = {name for fold in folds for name in fold.reads or ()}
    return [name for name in columns.names if name in wanted]
