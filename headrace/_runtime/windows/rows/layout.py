"""What both halves of the step agree on: the columns that are sent, the tables of state, what runs.

A *cell* is one window of one key. State:

    cells       by key and window: what the trigger remembers, counters, accumulators, what was shown
    due         the same cells by the time at which something is to be done about them, see `schedule`
    contents    rows of cells, one entry for each epoch that brought some, where rows must be kept
    sessions    by key: the bounds of its live sessions, where windows merge
    globals     by key: what a function keeps for all windows of a key
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from headrace import evictors
from headrace._graph.nodes import WindowProcess
from headrace._runtime.aggregates.fold import Fold
from headrace._runtime.aggregates.kinds import Setting, make_fold
from headrace._runtime.arrivals import ARRIVALS
from headrace._runtime.plain_keys import plain_keys_schema
from headrace._runtime.state import TableSpec, ValueSpec
from headrace._runtime.unfolded import TIMESTAMP, plain_columns
from headrace._runtime.windows.rows.tree import Tree
from headrace._runtime.windows.rows.values import Declared
from headrace.evictors import Evictor
from headrace.triggers import Trigger, count, end_of_input, event_time, purging
from headrace.triggers.builtin import NONE
from headrace.windows import Count, Global

__all__ = ["CELLS", "CONTENTS", "DUE", "GLOBALS", "SESSIONS", "Layout", "rows_tables"]
__all__ += ["ARRIVAL", "END", "SPAN"]

CELLS = "cells"
DUE = "due"
CONTENTS = "contents"
SESSIONS = "sessions"
GLOBALS = "globals"

#: The column of a fed batch that holds the end of a row's session.
END = "__end"
#: The column of kept rows that says in which order they arrived, where windows merge.
ARRIVAL = "__arrival"
#: Bounds of sessions: a start and a last microsecond.
SPAN = pa.struct([("start", pa.int64()), ("last", pa.int64())])

_PART = pa.struct([("start", pa.int64()), ("last", pa.int64()), ("segments", pa.int64())])
_BOUNDS = [pa.field("__start", pa.int64()), pa.field("__last", pa.int64())]


@dataclass(frozen=True)
class Layout:
    """One step."""

    node: WindowProcess

    @cached_property
    def keys(self) -> pa.Schema:
        """The key columns as they are stored."""
        return plain_keys_schema(self.node.keys, self.node.input_schema)

    @cached_property
    def columns(self) -> pa.Schema:
        """The columns of a row as they are sent and kept."""
        schema = self.node.input_schema
        return plain_columns(schema, schema.names)

    @cached_property
    def sent(self) -> pa.Schema:
        """The columns of a fed batch, before timestamp and hash."""
        return self.columns.append(pa.field(END, pa.int64())) if self.merging else self.columns

    @cached_property
    def kept(self) -> pa.Schema:
        """The columns of a row in `contents`."""
        more = [pa.field(TIMESTAMP, pa.int64())]
        if self.merging:
            more.append(pa.field(ARRIVAL, pa.int64()))
        return pa.schema([*self.columns, *more])

    @cached_property
    def merging(self) -> bool:
        """Windows may grow together."""
        return self.node.window.merging

    @cached_property
    def counts(self) -> bool:
        """Windows of numbers of rows, by their own trigger: never late, and every result is on time."""
        return isinstance(self.node.window, Count) and self.node.trigger is None

    @cached_property
    def evictor(self) -> Evictor | None:
        """That of the user, or the one that makes count windows slide."""
        window = self.node.window
        if self.node.evictor is None and isinstance(window, Count) and window.slide:
            return evictors.count(window.size)
        return self.node.evictor

    @cached_property
    def keeps_rows(self) -> bool:
        """Rows are kept; otherwise accumulators are enough."""
        return self.evictor is not None or not self.node.aggregates

    @cached_property
    def folds(self) -> tuple[Fold, ...]:
        """What computes the aggregates."""
        return tuple(make_fold(name, a, self._setting(a.kind)) for name, a in self.node.aggregates)

    @cached_property
    def accumulators(self) -> tuple[ValueSpec, ...]:
        """The columns of cells that hold aggregates."""
        if self.keeps_rows:
            return ()
        return tuple(column for fold in self.folds for column in fold.columns)

    @property
    def numbers_rows(self) -> bool:
        """The order of arrival must be written down."""
        folded = not self.keeps_rows and any(fold.keeps_arrival for fold in self.folds)
        return folded or (self.merging and self.keeps_rows)

    @cached_property
    def state(self) -> Declared | None:
        """What the function keeps for a window, and the same for a key."""
        function = self.node.function
        return None if function is None else Declared(type(function), "state.", self.node.uid)

    @cached_property
    def shown(self) -> pa.Schema | None:
        """The columns of results that a retracting step remembers: all but the key and the change."""
        if self.node.accumulation != "retracting":
            return None
        left = {*self.node.keys, "change"}
        return pa.schema([field for field in self.node.schema if field.name not in left])

    def tree(self) -> Tree:
        """The trigger, ready to run."""
        on_clock = self.node.window.time == "processing"
        return Tree(_trigger(self.node), self.node.uid, ends_on_clock=on_clock)

    def tables(self) -> tuple[TableSpec, ...]:
        """The tables of state."""
        keys, cell = self.keys, pa.schema([*self.keys, *_BOUNDS])
        specs = [
            TableSpec(CELLS, cell, self._cell_columns()),
            TableSpec(DUE, cell, (_number("time", NONE), _number("timer", NONE))),
        ]
        if self.keeps_rows:
            segment = pa.schema([*cell, ("__segment", pa.int64())])
            rows = ValueSpec("rows", pa.list_(pa.struct(list(self.kept))), None)
            specs.append(TableSpec(CONTENTS, segment, (rows,)))
        if self.merging:
            specs.append(TableSpec(SESSIONS, keys, (ValueSpec("live", pa.list_(SPAN), None),)))
        if self.state is not None and len(self.state):
            specs.append(TableSpec(GLOBALS, keys, self.state.specs))
        if self.numbers_rows:
            specs.append(ARRIVALS)
        return tuple(specs)

    def _cell_columns(self) -> tuple[ValueSpec, ...]:
        columns = [_number("#rows"), _number("#firings"), ValueSpec("#past", pa.bool_(), False)]
        if not self.node.window.timed:
            columns.append(_number("#greatest", NONE))
        if self.keeps_rows:
            parts = ValueSpec("#parts", pa.list_(_PART), None)
            columns.append(parts if self.merging else _number("#segments"))
        if self.shown is not None:
            columns.append(ValueSpec("#shown", pa.list_(pa.struct(list(self.shown))), None))
        if self.state is not None:
            columns += self.state.specs
        columns += [spec for _, spec in self.tree().stored]
        return (*columns, *self.accumulators)

    def _setting(self, kind: str) -> Setting:
        # Parts of one window come in order, unless windows merge; values that count once lie in lists, since
        # the members of a table cannot be told apart by window.
        overlapping = self.merging or kind == "count_distinct"
        return Setting(
            self.node.uid,
            self.columns,
            self.keys,
            overlapping=overlapping,
            weighted=self.node.weighted,
        )


def rows_tables(node: WindowProcess) -> tuple[TableSpec, ...]:
    """The state that a step declares."""
    return Layout(node).tables()


def _trigger(node: WindowProcess) -> Trigger:
    if node.trigger is not None:
        return node.trigger
    window: Any = node.window
    if isinstance(window, Count):
        return count(window.slide) if window.slide else purging(count(window.size))
    return end_of_input() if isinstance(window, Global) else event_time()


def _number(name: str, initial: int = 0) -> ValueSpec:
    return ValueSpec(name, pa.int64(), initial)
