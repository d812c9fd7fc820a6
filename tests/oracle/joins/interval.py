"""Interval joins by looking at all pairs of all rows that ever came, and never forgetting one.

    early rows     judged by the watermark before: a row at or behind it is late
    tick           rows of a preserved side whose last possible partner is behind the watermark come out, if they had none
    rows           judged by the watermark
    settle         the same of rows that came too late for any partner, though not behind the watermark

A pair comes with the later of its two rows, and has the later of their times. A row that stays alone has the time of
its last possible partner, or its own if that is later; so has one with a null in its key, which comes out at once, but from a side that
is not preserved is a dead letter. Compare results as a set.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from headrace._graph.join_nodes import IntervalJoin
from headrace._graph.nodes import ERRORS, LATE, LATE_RIGHT, MAIN
from headrace.testing.epochs import SidedRow, StepEpoch, TimedRow
from tests.oracle.joins.rows import joined, null_key_letter, same_keys
from tests.oracle.process import Said

__all__ = ["IntervalOracle"]


@dataclass
class _Kept:
    row: SidedRow
    has_partner: bool = False
    is_told: bool = False


class IntervalOracle:
    """What an interval join must say."""

    def __init__(self, node: IntervalJoin) -> None:
        self.node = node
        self.null_keys = 0
        self._kept: tuple[list[_Kept], list[_Kept]] = ([], [])
        self._said: dict[str, list[TimedRow]] = defaultdict(list)

    def epoch(self, epoch: StepEpoch) -> Said:
        """One epoch."""
        for row in epoch.early:
            self._take(SidedRow(*row), epoch.before)
        self._let_out(epoch.watermark)
        ticked, self._said = self._said, defaultdict(list)
        for row in epoch.rows:
            self._take(SidedRow(*row), epoch.watermark)
        self._let_out(epoch.watermark)
        settled, self._said = self._said, defaultdict(list)
        return Said(ticked, settled)

    def _take(self, row: SidedRow, watermark: int) -> None:
        side = row.side
        letter = null_key_letter(self.node, row)
        if letter is not None and not self.node.preserves(side):
            self._said[ERRORS].append((row.at, letter))
        elif row.at <= watermark:
            self._said[LATE_RIGHT if side else LATE].append((row.at, dict(row.fields)))
        elif letter is not None:
            self.null_keys += 1
            self._tell_alone(row)
        else:
            self._meet(_Kept(row))

    def _meet(self, mine: _Kept) -> None:
        side = mine.row.side
        for other in self._kept[1 - side]:
            left, right = (mine, other) if side == 0 else (other, mine)
            first, last = left.row.at + self.node.lower_us, left.row.at + self.node.upper_us
            if first <= right.row.at <= last and same_keys(self.node, left.row, right.row):
                mine.has_partner = other.has_partner = True
                both = joined(self.node, {0: left.row.fields, 1: right.row.fields})
                self._said[MAIN].append((max(left.row.at, right.row.at), both))
        self._kept[side].append(mine)

    def _let_out(self, watermark: int) -> None:
        for side in (0, 1):
            for kept in self._kept[side] if self.node.preserves(side) else ():
                is_over = watermark >= kept.row.at + self._reach(side)
                if is_over and not kept.has_partner and not kept.is_told:
                    kept.is_told = True
                    self._tell_alone(kept.row)

    def _tell_alone(self, row: SidedRow) -> None:
        at = row.at + max(0, self._reach(row.side))
        self._said[MAIN].append((at, joined(self.node, {row.side: row.fields})))

    def _reach(self, side: int) -> int:
        """From a row to its last possible partner."""
        return self.node.upper_us if side == 0 else -self.node.lower_us
