"""What both halves of a window step agree on: columns of a fed batch, tables of state, the folds.

A fed batch has the key columns, `__pane` (the start of the pane), the hash, then the parts of every aggregate.

State, beside one table of members for aggregates that need it and the counters of arrival:

    panes      by the start of the pane     accumulators of each key
    running    by the start of the window   the panes of a cumulating window that are done with, as one
    firings    by the end of the window     keys that fired other than once, on time: how often so far
    dirty      by the start of the pane     keys that changed since the last early firing
    shown      by the end of the window     what early firings said, to be withdrawn
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headrace._graph.nodes import WindowAggregate
from headrace._runtime.aggregates.fold import Fold
from headrace._runtime.aggregates.kinds import Setting, make_fold
from headrace._runtime.arrivals import ARRIVALS
from headrace._runtime.operator import HASH
from headrace._runtime.plain_keys import plain_keys_schema
from headrace._runtime.state import TableSpec, ValueSpec
from headrace.triggers import EarlyLate

__all__ = [
    "CORRECTED",
    "DIRTY",
    "FIRINGS",
    "NUMBER",
    "PANE",
    "PANES",
    "RESULT",
    "RUNNING",
    "SHOWN",
    "Layout",
    "early_every",
    "window_tables",
]

#: The column of a fed batch that holds the start of the pane.
PANE = "__pane"
PANES = "panes"
RUNNING = "running"
FIRINGS = "firings"
DIRTY = "dirty"
SHOWN = "shown"
#: Columns of `firings`: how often a key fired, and whether the last time was a correction.
NUMBER = "number"
CORRECTED = "corrected"
#: The column of `shown`: the results of all aggregates.
RESULT = "result"


@dataclass(frozen=True)
class Layout:
    """The keys as they are stored, what computes each aggregate, and the tables."""

    keys: pa.Schema
    folds: tuple[Fold, ...]
    #: The results of all aggregates, as one column.
    result: pa.DataType
    tables: tuple[TableSpec, ...]

    @classmethod
    def of(cls, node: WindowAggregate) -> Layout:
        """The layout of a step."""
        keys = plain_keys_schema(node.keys, node.input_schema)
        # Members of a table cannot be forgotten key by key, as a firing that discards must, nor moved to
        # the running total of a cumulating window, be it one of a single step.
        merged = node.window.panes > 1 or node.window.cumulating
        merged = merged or node.accumulation == "discarding"
        setting = Setting(
            node.uid, node.input_schema, keys, overlapping=merged, weighted=node.weighted
        )
        folds = tuple(make_fold(name, aggregate, setting) for name, aggregate in node.aggregates)
        result = pa.struct([node.schema.field(name) for name, _ in node.aggregates])
        return cls(keys, folds, result, tuple(_tables(node, keys, folds, result)))

    @property
    def fed(self) -> pa.Schema:
        """The columns of a fed batch."""
        parts = [part for fold in self.folds for part in fold.parts]
        return pa.schema([*self.keys, (PANE, pa.int64()), (HASH, pa.uint64()), *parts])

    @property
    def keeps_arrival(self) -> bool:
        """Whether an aggregate needs the order of arrival across panes."""
        return any(fold.keeps_arrival for fold in self.folds)


def window_tables(node: WindowAggregate) -> tuple[TableSpec, ...]:
    """The state that a window step declares."""
    return Layout.of(node).tables


def early_every(node: WindowAggregate) -> int | None:
    """How often the step fires before windows end; None: never."""
    return node.trigger.early_every_us if isinstance(node.trigger, EarlyLate) else None


def _tables(
    node: WindowAggregate, keys: pa.Schema, folds: tuple[Fold, ...], result: pa.DataType
) -> list[TableSpec]:
    accumulators = tuple(column for fold in folds for column in fold.columns)
    counts = (ValueSpec(NUMBER, pa.int64(), 1), ValueSpec(CORRECTED, pa.bool_(), False))
    tables = [TableSpec(PANES, keys, accumulators), TableSpec(FIRINGS, keys, counts)]
    if node.window.cumulating:
        tables.append(TableSpec(RUNNING, keys, accumulators))
    if early_every(node) is not None and node.accumulation != "discarding":
        tables.append(TableSpec(DIRTY, keys))
        if node.accumulation == "retracting":
            tables.append(TableSpec(SHOWN, keys, (ValueSpec(RESULT, result),)))
    tables += [fold.members for fold in folds if fold.members is not None]
    return [*tables, ARRIVALS] if any(fold.keeps_arrival for fold in folds) else tables
