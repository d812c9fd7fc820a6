"""The oracle of versioned and as-of joins: every left row looks at every right row of its key.

right rows of a key     3     5  5'    -D 8     12         5' arrived behind 5
backward    at 4: 3     at 5: 5'     at 9: nothing, the key has ended
forward     at 4: 5'    at 6: 12     what ends a key is no row to be found
nearest     at 4: 3, the earlier of two that are as near
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace._graph.join_nodes import AsOfJoin
from headrace.testing.epochs import SidedRow, StepEpoch
from tests.oracle.computing import key_of

__all__ = ["AsOfAnswer", "AsOfOracle"]

Row = dict[str, Any]
Key = tuple[Any, ...]


@dataclass
class AsOfAnswer:
    """What an epoch gives: results and their timestamps, with the tick and behind it, and the other outputs."""

    ticked: list[tuple[int, Row]] = field(default_factory=list)
    settled: list[tuple[int, Row]] = field(default_factory=list)
    late_left: list[Row] = field(default_factory=list)
    late_right: list[Row] = field(default_factory=list)
    #: Rows with a null in their key that need a partner.
    errors: list[Row] = field(default_factory=list)


class AsOfOracle:
    """What a versioned or as-of join must say; of the step it reads what the user said, and nothing is ever forgotten."""

    def __init__(self, node: AsOfJoin) -> None:
        self._said = node
        self._waiting: list[tuple[Key, SidedRow]] = []
        #: In order of arrival.
        self._rights: list[tuple[Key, SidedRow]] = []

    def run(self, epochs: Iterable[tuple[Any, ...]]) -> list[AsOfAnswer]:
        """The answers of these epochs; call it again to go on."""
        return [self.epoch(StepEpoch(*epoch)) for epoch in epochs]

    def epoch(self, epoch: StepEpoch) -> AsOfAnswer:
        """One epoch: rows before the tick, the tick, rows behind it."""
        answer = AsOfAnswer()
        answer.ticked += self._take(epoch.early, epoch.before, answer)
        due = [w for w in self._waiting if w[1].at + self._said.wait_us <= epoch.watermark]
        self._waiting = [waiting for waiting in self._waiting if waiting not in due]
        for key, row in due:
            partner = self._partner(key, row.at)
            if partner is not None or self._said.how == "left":
                answer.ticked.append(self._result(row, partner))
        answer.settled += self._take(epoch.rows, epoch.watermark, answer)
        return answer

    def _take(
        self, rows: Sequence[Any], watermark: int, answer: AsOfAnswer
    ) -> list[tuple[int, Row]]:
        """Take rows in; left ones that never have a partner come out at once."""
        alone = []
        mine = [SidedRow(*row) for row in rows]
        for row in self._without_replaced(mine, watermark) if self._said.versions_end else mine:
            key = key_of((row.at, row.fields), self._said.keys[row.side])
            preserved = row.side == 0 and self._said.how == "left"
            if None in key and not preserved:
                answer.errors.append(dict(row.fields))
            elif row.at <= watermark:
                (answer.late_right if row.side else answer.late_left).append(dict(row.fields))
            elif None in key:
                alone.append(self._result(row, None))
            else:
                (self._rights if row.side else self._waiting).append((key, row))
        return alone

    def _without_replaced(self, rows: Sequence[SidedRow], watermark: int) -> list[SidedRow]:
        """A withdrawal is an end, unless another row of the phase takes its place."""
        renewed = {
            key_of((row.at, row.fields), self._said.keys[1])
            for row in rows
            if row.side and row.fields["change"][0] == "+" and row.at > watermark
        }
        found = []
        for row in rows:
            key = key_of((row.at, row.fields), self._said.keys[row.side])
            withdraws = row.side == 1 and row.fields["change"] == "-U"
            if not withdraws or row.at <= watermark or None in key:
                found.append(row)
            elif key not in renewed:
                found.append(row._replace(fields={**row.fields, "change": "-D"}))
        return found

    def _partner(self, key: Key, at: int) -> SidedRow | None:
        before = self._last_before(key, at)
        behind = self._first_behind(key, at)
        if self._said.direction == "backward":
            return before
        if self._said.direction == "forward" or before is None:
            return behind
        if behind is None or at - before.at <= behind.at - at:
            return before
        return behind

    def _last_before(self, key: Key, at: int) -> SidedRow | None:
        """The last row is none at all if it ends the key, or is too far away."""
        rows = [r for r in self._of(key) if r.at < at or (r.at == at and self._said.exact)]
        last = max(rows, key=lambda row: row.at, default=None)
        return last if last is not None and self._counts(last, at) else None

    def _first_behind(self, key: Key, at: int) -> SidedRow | None:
        rows = [r for r in self._of(key) if r.at > at or (r.at == at and self._said.exact)]
        return min((r for r in rows if self._counts(r, at)), key=lambda row: row.at, default=None)

    def _of(self, key: Key) -> list[SidedRow]:
        """The right rows of a key; of those of one time the one that arrived last."""
        rows = [row for its, row in self._rights if its == key]
        return list({row.at: row for row in rows}.values())

    def _counts(self, row: SidedRow, at: int) -> bool:
        ends = self._said.versions_end and row.fields["change"] == "-D"
        tolerance_us = self._said.tolerance_us
        return not ends and (tolerance_us is None or abs(row.at - at) <= tolerance_us)

    def _result(self, left: SidedRow, right: SidedRow | None) -> tuple[int, Row]:
        sides = {0: left.fields} if right is None else {0: left.fields, 1: right.fields}
        result: Row = {}
        for column in self._said.columns:
            values = [sides[side][name] for side, name in column.origins if side in sides]
            result[column.name] = next((v for v in values if v is not None), None)
        return left.at + self._said.wait_us, result
