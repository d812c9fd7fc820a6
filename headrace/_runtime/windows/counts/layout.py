"""What both halves of a count step agree on: columns of a fed batch, tables of state, panes of rows.

The rows of a key are numbered from 0 in order of arrival and cut into panes of g rows, where g is the greatest number
that divides size and slide. Windows that do not overlap are one pane, kept with the number of the key's rows in
table `counts`. Otherwise table `panes` holds the panes that a window may still need, at their number modulo the
panes of a window: when a pane comes, the one that had its place is in no window any more.

    count(6, 4), g = 2     rows      0 1 2 3 4 5 6 7 8 9
                           panes     [0] [1] [2] [3] [4]
                           windows   ------|                after 4 rows: panes 0 and 1
                                         ----------|        after 8 rows: panes 1, 2 and 3
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import pyarrow as pa

from headrace._graph.nodes import CountAggregate
from headrace._runtime.aggregates.extremes import Extreme
from headrace._runtime.aggregates.fold import Fold
from headrace._runtime.plain_keys import plain_keys_schema
from headrace._runtime.state import TableSpec, ValueSpec
from headrace._runtime.unfolded import TIMESTAMP, plain_columns
from headrace._runtime.windows.folding import columns_read
from headrace._runtime.windows.in_order import folds_in_order

__all__ = ["BUCKET", "COUNTS", "PANES", "PLACE", "ROWS", "Layout", "count_tables"]

COUNTS = "counts"
PANES = "panes"
#: Both tables have this one bucket: rows of a key count, however far apart they are.
BUCKET = 0
#: How many rows of the key there were, ever.
ROWS = "rows"
#: Where a pane is kept.
PLACE = pa.field("__place", pa.int64())


@dataclass(frozen=True)
class Layout:
    """The keys as they are stored, what computes each aggregate, and how windows are made of panes."""

    keys: pa.Schema
    #: The columns of the input that are read.
    columns: pa.Schema
    #: The aggregates, and behind them the greatest timestamp.
    folds: tuple[Fold, ...]
    #: Rows in a pane, panes in a window, panes from one window to the next.
    pane: int
    size: int
    slide: int

    @classmethod
    def of(cls, node: CountAggregate) -> Layout:
        """The layout of a step."""
        size, slide = node.window.size, node.window.slide or node.window.size
        pane = gcd(size, slide)
        latest = Extreme("__latest", TIMESTAMP, pa.int64(), greatest=True)
        folds = folds_in_order(node)
        return cls(
            plain_keys_schema(node.keys, node.input_schema),
            plain_columns(node.input_schema, columns_read(node, folds)),
            (*folds, latest),
            pane,
            size // pane,
            slide // pane,
        )

    @property
    def overlapping(self) -> bool:
        """Whether windows share rows."""
        return self.size > self.slide

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        """The tables of state."""
        rows = ValueSpec(ROWS, pa.int64(), 0)
        columns = tuple(column for fold in self.folds for column in fold.columns)
        if not self.overlapping:
            return (TableSpec(COUNTS, self.keys, (rows, *columns)),)
        panes = TableSpec(PANES, self.keys.append(PLACE), columns)
        return (TableSpec(COUNTS, self.keys, (rows,)), panes)


def count_tables(node: CountAggregate) -> tuple[TableSpec, ...]:
    """The state that a count step declares."""
    return Layout.of(node).tables
