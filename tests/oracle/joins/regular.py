"""Regular joins, `first`, `last` and `top`: the whole join of all live rows, made from scratch behind every phase.

What is shown is a bag of rows. Whoever applies the changes of a join one after the other must have this bag behind every
phase, and never withdraw what is not in it.

A row lives until it is withdrawn, replaced, or runs out. One that runs out leaves quietly: whatever is shown of it stays for
ever, and its partners count as having met somebody. So a left row whose only partner ran out is not shown alone.

    clock          l ---------------------------------------------->
    right, ttl        r1 -------| runs out      r2 -------| withdrawn
    shown          l   l+r1       l+r1          l+r1, l+r2   l+r1          not: l+r1 and l alone

An epoch: what has run out by its clock goes, then the early rows change the join, then the others. The rows of an input
in a phase count by their sum: a row and its withdrawal are nothing, whichever came first. A withdrawal of what is not there
is counted, and that is all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from headrace._graph.join_nodes import Keep, RegularJoin
from headrace.testing.epochs import SidedRow, StepEpoch

__all__ = ["RegularOracle", "frozen"]

Row = Mapping[str, Any]
#: A row as it can be counted.
Frozen = Any
Bag = Counter[Frozen]


@dataclass(eq=False)
class _Live:
    """A row that may meet others."""

    fields: Row
    key: Frozen
    content: Frozen
    ends: float
    #: How many it was shown with that ran out since.
    lost: int = 0


class RegularOracle:
    """What must be shown. `where` is true of pairs that are results."""

    def __init__(self, node: RegularJoin, where: Callable[[Row], bool] = lambda _: True) -> None:
        self._node = node
        self._where = where
        self._live: list[list[_Live]] = [[] for _ in node.inputs]
        #: Results with a row that ran out, and rows of preserved sides with a null in their key.
        self._past: Bag = Counter()
        self.unknown_withdrawals = 0
        self.null_keys = 0
        #: Rows with a null in their key of sides that are not preserved.
        self.errors: list[Row] = []

    def epoch(self, epoch: StepEpoch) -> tuple[Bag, Bag]:
        """What is shown behind the tick, and behind the epoch."""
        self._run_out(epoch.clock)
        bags = []
        for rows in (epoch.early, epoch.rows):
            for side in range(len(self._live)):
                mine = [SidedRow(*row).fields for row in rows if SidedRow(*row).side == side]
                self._arrive(side, mine, epoch.clock)
            bags.append(self._past + self._joined())
        return bags[0], bags[1]

    def live(self, side: int) -> int:
        """How many rows of an input may still meet others."""
        return len(self._live[side])

    def _arrive(self, side: int, rows: Sequence[Row], clock: int) -> None:
        keyed = []
        for row in rows:
            if any(row[name] is None for name in self._node.keys[side]):
                self._without_key(side, row)
            else:
                keyed.append(row)
        keep = self._node.keeps[side]
        if keep is not None:
            if keep.rule == "last" and self._node.changing[side]:
                self._keep_last(side, keyed, clock)
                return
            for row in keyed:
                self._keep(side, row, keep, clock)
            return
        plus = [self._born(side, row, clock) for row in keyed if self._sign(side, row) > 0]
        for row in keyed:
            if self._sign(side, row) < 0 and not self._withdraw(side, row, plus):
                self.unknown_withdrawals += not self._withdraw(side, row, self._live[side])
        self._live[side] += plus

    def _without_key(self, side: int, row: Row) -> None:
        if not self._node.preserves(side):
            self.errors.append(row)
            return
        self.null_keys += 1
        self._past[self._result({side: self._born(side, row, 0)})] += self._sign(side, row)

    def _keep(self, side: int, row: Row, keep: Keep, clock: int) -> None:
        """One row of a key, by rule; any withdrawal ends it."""
        new = self._born(side, row, clock)
        old = next((one for one in self._live[side] if one.key == new.key), None)
        if self._sign(side, row) > 0:
            if old is not None and (
                keep.rule == "first"
                or (keep.rule == "top" and not _is_better(keep, new.fields, old.fields))
            ):
                return
            self._live[side].append(new)
        if old is not None:
            self._live[side].remove(old)

    def _keep_last(self, side: int, rows: Sequence[Row], clock: int) -> None:
        """Rows come from several shards, so a withdrawal is told by its content unless it has nothing but its key."""
        for key in dict.fromkeys(self._born(side, row, clock).key for row in rows):
            mine = [row for row in rows if self._born(side, row, clock).key == key]
            old = next((one for one in self._live[side] if one.key == key), None)
            had = None if old is None else self._born(side, old.fields, clock).content
            last = self._last(side, mine, had)
            if last == "same":
                continue
            if old is not None:
                self._live[side].remove(old)
            if last is not None:
                self._live[side].append(self._born(side, last, clock))

    def _last(self, side: int, rows: Sequence[Row], had: Frozen) -> Any:
        """The row that a key has in the end: one of these, None, or the "same" as before."""
        come = [row for row in rows if self._sign(side, row) > 0]
        if len(come) in (0, len(rows)):
            return come[-1] if come else None
        gone = []
        for row in rows:
            if self._sign(side, row) < 0:
                content = self._content(side, row)
                like = [one for one in come if self._content(side, one) == content]
                come = [one for one in come if not like or one is not like[0]]
                gone += [] if like else [row]
        if not come and not gone:
            if had in [self._content(side, row) for row in rows]:
                return "same"
            return rows[-1] if self._sign(side, rows[-1]) > 0 else None
        order = {id(row): place for place, row in enumerate(rows)}
        wiped = max((order[id(row)] for row in gone if self._is_bare(side, row)), default=-1)
        come = [row for row in come if order[id(row)] > wiped]
        return come[-1] if come else None

    def _is_bare(self, side: int, row: Row) -> bool:
        """Whether a row says nothing but its key."""
        names = [n for n in row if n not in self._node.keys[side] and n != "change"]
        return bool(names) and all(row[name] is None for name in names)

    def _withdraw(self, side: int, row: Row, rows: list[_Live]) -> bool:
        """Take away the first of these that is the same, if there is one."""
        content = self._content(side, row)
        for place, one in enumerate(rows):
            if one.content == content:
                del rows[place]
                return True
        return False

    def _run_out(self, clock: int) -> None:
        """One after the other; what is shown of it before and not behind stays for ever."""
        for side, rows in enumerate(self._live):
            for one in [row for row in rows if row.ends <= clock]:
                before = self._joined()
                rows.remove(one)
                for other, others in enumerate(self._live):
                    for partner in others if other != side else ():
                        partner.lost += partner.key == one.key
                self._past += before - self._joined()

    def _joined(self) -> Bag:
        keys = {row.key for rows in self._live for row in rows}
        found: Bag = Counter()
        for key in keys:
            of_key = [[row for row in rows if row.key == key] for rows in self._live]
            found.update(self._result(dict(met)) for met in self._combinations(of_key))
        return Counter({row: many for row, many in found.items() if row is not None})

    def _combinations(self, rows: Sequence[Sequence[_Live]]) -> Iterator[list[tuple[int, _Live]]]:
        """Which rows of one key are shown together, each with its input."""
        how = self._node.how
        if how in ("semi", "anti"):
            for left in rows[0]:
                if bool(rows[1] or left.lost) == (how == "semi"):
                    yield [(0, left)]
            return
        if how == "left":
            # Any number of inputs; if there are several others, nothing runs out of them.
            for left in rows[0]:
                nothing: list[_Live | None] = [] if left.lost else [None]
                for beside in product(*(other or nothing for other in rows[1:])):
                    met = enumerate([left, *beside])
                    yield [(side, row) for side, row in met if row is not None]
            return
        for pair in product(*rows):
            yield list(enumerate(pair))
        for side in {"right": [1], "full": [0, 1]}.get(how, []):
            for one in rows[side]:
                if not rows[1 - side] and not one.lost:
                    yield [(side, one)]

    def _result(self, met: Mapping[int, _Live]) -> Frozen:
        """The row of a result; None where the condition is not true of it."""
        row = {}
        for column in self._node.columns:
            origins = [met[side].fields[name] for side, name in column.origins if side in met]
            row[column.name] = next((value for value in origins if value is not None), None)
        return frozen(row) if self._where(row) else None

    def _born(self, side: int, row: Row, clock: int) -> _Live:
        ttl = self._node.ttls_us[side]
        key = tuple(frozen(row[name]) for name in self._node.keys[side])
        ends = math.inf if ttl is None else clock + ttl
        return _Live(row, key, self._content(side, row), ends)

    def _content(self, side: int, row: Row) -> Frozen:
        changing = self._node.changing[side]
        return frozen({k: v for k, v in row.items() if not (changing and k == "change")})

    def _sign(self, side: int, row: Row) -> int:
        return -1 if self._node.changing[side] and row["change"] in ("-U", "-D") else 1


def frozen(value: Any) -> Frozen:
    """A value that can be counted, equal where the join takes values for equal."""
    if isinstance(value, float):
        return "a NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, Mapping):
        return tuple((name, frozen(value[name])) for name in sorted(value))
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    return value


def _is_better(keep: Keep, new: Row, old: Row) -> bool:
    """By the first column in which they differ; NaN is worse than any number, null is the worst."""
    for name, down in zip(keep.by, keep.descending, strict=True):
        mine, theirs = new[name], old[name]
        ranks = [(v is None) * 2 + (v is not None and v != v) for v in (mine, theirs)]
        if ranks[0] != ranks[1]:
            return ranks[0] < ranks[1]
        if not ranks[0] and mine != theirs:
            return bool(mine > theirs if down else mine < theirs)
    return False
