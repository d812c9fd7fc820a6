"""Joins with a broadcast table: a list of rows, looked through for each row.

In each phase of an epoch, early rows and others, the rows of the table come first, in the order of their sources. Each replaces the
one of its key; if the table carries changes, "-D" takes it away, and so does a "-U" if no row of the
phase takes its place. A result has the time of its row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from headrace._graph.changes import CHANGE
from headrace._graph.join_nodes import BroadcastJoin
from headrace._graph.nodes import ERRORS, MAIN
from headrace.testing.epochs import SidedRow, StepEpoch, TimedRow
from tests.oracle.joins.regular import frozen
from tests.oracle.joins.rows import joined, null_key_letter, same_keys
from tests.oracle.process import Said

__all__ = ["BroadcastOracle"]


class BroadcastOracle:
    """What such a join must say."""

    def __init__(self, node: BroadcastJoin) -> None:
        self.node = node
        self.table: list[SidedRow] = []
        self.null_keys = 0
        self._said: dict[str, list[TimedRow]] = defaultdict(list)

    def epoch(self, epoch: StepEpoch) -> Said:
        """One epoch."""
        return Said(self._phase(epoch.early), self._phase(epoch.rows))

    def _phase(self, rows: Sequence[Any]) -> dict[str, list[TimedRow]]:
        self._said = defaultdict(list)
        sided = [SidedRow(*row) for row in rows]
        changes = sorted((row for row in sided if row.side == 1), key=lambda row: row.place)
        changes = [row for row in changes if not self._is_dead(row)]
        for row in changes:
            if not self._is_replaced(row, changes):
                self._change(row)
        for row in sided:
            if row.side == 0 and not self._is_dead(row):
                self._beside(row)
        return self._said

    def _change(self, row: SidedRow) -> None:
        change = row.fields[CHANGE] if self.node.changing else "+I"
        self.table = [kept for kept in self.table if not same_keys(self.node, row, kept)]
        self.table += [row] if change[0] == "+" else []

    def _is_replaced(self, row: SidedRow, rows: Sequence[SidedRow]) -> bool:
        key = [row.fields[name] for name in self.node.keys[1]]
        return (
            self.node.changing
            and row.fields[CHANGE] == "-U"
            and any(
                other.fields[CHANGE][0] == "+"
                and frozen([other.fields[name] for name in self.node.keys[1]]) == frozen(key)
                for other in rows
            )
        )

    def _beside(self, row: SidedRow) -> None:
        self.null_keys += null_key_letter(self.node, row) is not None
        found = [kept for kept in self.table if same_keys(self.node, row, kept)]
        for kept in found:
            both = joined(self.node, {0: row.fields, 1: kept.fields})
            self._said[MAIN].append((row.at, both))
        if not found and self.node.preserves(0):
            self._said[MAIN].append((row.at, joined(self.node, {0: row.fields})))

    def _is_dead(self, row: SidedRow) -> bool:
        letter = None if self.node.preserves(row.side) else null_key_letter(self.node, row)
        if letter is not None:
            self._said[ERRORS].append((row.at, letter))
        return letter is not None
