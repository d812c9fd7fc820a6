"""What both halves of a window step agree on: columns of a fed batch, tables of state, the folds.

A fed batch has the key columns, `__pane` (the start of the pane), the hash, then the parts of every
aggregate. State: table `panes`, bucketed by the start of the pane; table `refirings`, bucketed by the start of
the window, with the keys that fired again; one table of members for aggregates that need it; counters
of arrival for those whose result depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headrace._graph.nodes import WindowAggregate
from headrace._runtime.aggregates.fold import Fold
from headrace._runtime.aggregates.kinds import Setting, make_fold
from headrace._runtime.operator import HASH
from headrace._runtime.plain_keys import plain_keys_schema
from headrace._runtime.state import TableSpec, ValueSpec
from headrace._runtime.windows.arrivals import ARRIVALS

__all__ = ["FIRINGS", "PANE", "PANES", "REFIRINGS", "Layout", "window_tables"]

#: The column of a fed batch that holds the start of the pane.
PANE = "__pane"
PANES = "panes"
REFIRINGS = "refirings"
FIRINGS = "firings"


@dataclass(frozen=True)
class Layout:
    """The keys as they are stored, and what computes each aggregate."""

    keys: pa.Schema
    folds: tuple[Fold, ...]

    @classmethod
    def of(cls, node: WindowAggregate) -> Layout:
        """The layout of a step."""
        keys = plain_keys_schema(node.keys, node.input_schema)
        setting = Setting(
            node.uid,
            node.input_schema,
            keys,
            overlapping=node.window.panes > 1,
            weighted=node.weighted,
        )
        folds = tuple(make_fold(name, aggregate, setting) for name, aggregate in node.aggregates)
        return cls(keys, folds)

    @property
    def fed(self) -> pa.Schema:
        """The columns of a fed batch."""
        parts = [part for fold in self.folds for part in fold.parts]
        return pa.schema([*self.keys, (PANE, pa.int64()), (HASH, pa.uint64()), *parts])

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        """The tables of state."""
        columns = tuple(column for fold in self.folds for column in fold.columns)
        members = tuple(fold.members for fold in self.folds if fold.members is not None)
        refirings = TableSpec(REFIRINGS, self.keys, (ValueSpec(FIRINGS, pa.int64(), 0),))
        counters = (ARRIVALS,) if self.keeps_arrival else ()
        return (TableSpec(PANES, self.keys, columns), refirings, *members, *counters)

    @property
    def keeps_arrival(self) -> bool:
        """Whether an aggregate needs the order of arrival across panes."""
        return any(fold.keeps_arrival for fold in self.folds)


def window_tables(node: WindowAggregate) -> tuple[TableSpec, ...]:
    """The state that a window step declares."""
    return Layout.of(node).tables
