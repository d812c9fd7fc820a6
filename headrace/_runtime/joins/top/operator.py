"""The half of a best-pair join behind the shuffle: of each key the one row of one input, and the best partner of the other.

Before the one row is there, all rows of the other wait, for it may say which of them count (`where`). From then on only the
best is kept: it is the one that was shown, so whatever comes is compared with it and one of the two goes.

    epoch   one row     others                 kept            shown
    1       -           b1 b2                  b1 b2           nothing: a may rule any of them out
    2       a           b3                     the best        a with the best of b1, b2, b3
    3       a           b4                     the better      the better of it and a with b4
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.join_nodes import TopPairJoin
from headrace._graph.nodes import ERRORS, MAIN
from headrace._runtime.dead_letters import split_null_keys
from headrace._runtime.expressions import columns_in, evaluate
from headrace._runtime.joins.kinds import INSERT, UPDATE, WITHDRAW, named_kinds
from headrace._runtime.joins.matching import Probe
from headrace._runtime.joins.regular.store import KeptRows
from headrace._runtime.joins.results import joined_rows, timestamps_in
from headrace._runtime.joins.sides import Columns
from headrace._runtime.operator import KeyedOperator, Moment, Outputs
from headrace._runtime.ordering import first_places
from headrace._runtime.rows import Rows
from headrace._runtime.state import ShardState
from headrace._runtime.state.index import distinct
from headrace._runtime.unfolded import join_batches

__all__ = ["TopPairOperator"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Rivals:
    """Rows that may be the best of their keys: the kept ones, then the new ones."""

    #: The number of each one's key.
    codes: Integers
    #: The slots of the kept ones, and the places of the new ones in their batch.
    slots: Integers
    places: Integers

    def is_kept(self, which: Integers) -> Mask:
        """Which of them are kept ones."""
        return which < len(self.slots)


class TopPairOperator(KeyedOperator):
    """The best pairs of one shard."""

    def __init__(self, node: TopPairJoin, state: ShardState) -> None:
        # Configuration
        self._node = node
        self._one, self._many = node.unique, 1 - node.unique
        condition = () if node.condition is None else columns_in(node.condition)
        self._looked_at = frozenset([*condition, *node.top.by])
        origins = {column.name: column.origins for column in node.columns}
        #: What the one row is told apart by beside its key.
        self._further = [
            name
            for result in node.rivals_by
            for side, name in origins[result][:1]
            if side == self._one and name not in node.keys[side]
        ]
        # Checkpointed
        self._kept = [KeptRows(node, side, state) for side in (0, 1)]
        # Of this epoch
        self._arrived: list[list[pa.RecordBatch]] = [[], []]

    def merge(self, batch: pa.RecordBatch, side: int = 0) -> None:
        """Take rows in."""
        if batch.num_rows:
            self._arrived[side].append(batch)

    def tick(self, moment: Moment) -> Outputs:
        """The rows from before the tick are joined."""
        yield from self._join()

    def settle(self) -> Outputs:
        """The epoch's rows are joined."""
        yield from self._join()

    def _join(self) -> Outputs:
        batches, self._arrived = self._arrived, [[], []]
        present = {side: join_batches(mine) for side, mine in enumerate(batches) if mine}
        if not present:
            return
        probe, codes = Probe.of_sides(present, [kept.side for kept in self._kept])
        had = self._kept[self._one].members(probe)[1] > 0
        caused = np.full(len(had), np.iinfo(np.int64).min)
        timed = all(timestamps_in(batch) is not None for batch in present.values())
        if self._one in present:
            self._take_first(present[self._one], codes[self._one], had, caused)
        ones, counts = self._kept[self._one].members(probe)
        has = counts > 0
        one_of = np.full(len(has), -1)
        one_of[has] = ones
        rivals = self._rivals(probe, has, codes.get(self._many))
        many = present.get(self._many)
        yield from self._decide(rivals, one_of, had, many, caused if timed else None)
        if self._many in present:
            # Without the one row nobody knows which of them will count.
            waiting = np.flatnonzero(~has[codes[self._many]])
            self._kept[self._many].add(present[self._many].take(pa.array(waiting)), 0)

    def _take_first(
        self, batch: pa.RecordBatch, codes: Integers, had: Mask, caused: Integers
    ) -> None:
        """Keep the first row of each key that has none, and note when it was."""
        firsts = first_places(codes, len(had))
        new = np.sort(firsts[(firsts >= 0) & ~had])
        self._kept[self._one].add(batch.take(pa.array(new)), 0)
        stamps = timestamps_in(batch)
        if stamps is not None:
            caused[codes[new]] = stamps[new]

    def _rivals(self, probe: Probe, has: Mask, codes: Integers | None) -> _Rivals:
        # Those that wait for their one row are not looked at before it comes.
        known = np.flatnonzero(has)
        slots, counts = self._kept[self._many].members(probe.part(known)[0])
        owners = np.repeat(known, counts)
        places = np.empty(0, np.int64) if codes is None else np.flatnonzero(has[codes])
        new = places if codes is None else codes[places]
        return _Rivals(np.concatenate([owners, new]), slots, places)

    def _decide(
        self, rivals: _Rivals, one_of: Integers, had: Mask, batch: pa.RecordBatch | None,
        caused: Integers | None,
    ) -> Outputs:  # fmt: skip
        """Show the best where it is another one than before, and keep nothing else.

        `caused`: the time of each key's one row if that is new. A result has the latest time of what makes it new.
        """
        if not len(rivals.codes):
            return
        stamps = None if caused is None else self._stamps(rivals, batch, caused)
        which, columns = self._counting(rivals, one_of, batch)
        dead = self._has_null(rivals, one_of)[rivals.codes[which]]
        if dead.any():
            pairs = self._rows(rivals, which[dead], one_of, batch, None, stamps)
            letters = split_null_keys(pairs, self._node.uid, self._node.rivals_by)[1]
            assert letters is not None
            yield ERRORS, letters
        best = self._best(rivals, which[~dead], columns)
        was_shown = rivals.is_kept(best) & had[rivals.codes[best]]
        new = best[~was_shown]
        # A kept row whose key had its one row before was shown.
        shown = np.flatnonzero(had[rivals.codes[: len(rivals.slots)]])
        beaten = shown[np.isin(rivals.codes[shown], rivals.codes[new])]
        replaces = np.isin(rivals.codes[new], rivals.codes[beaten])
        if caused is not None and stamps is not None:
            # What is withdrawn has the time of what takes its place.
            caused[rivals.codes[new]] = stamps[new]
            stamps = caused[rivals.codes]
        if len(beaten):
            kinds = np.full(len(beaten), WITHDRAW)
            yield MAIN, self._rows(rivals, beaten, one_of, batch, kinds, stamps)
        if len(new):
            kinds = np.where(replaces, UPDATE, INSERT)
            yield MAIN, self._rows(rivals, new, one_of, batch, kinds, stamps)
        kept = best[rivals.is_kept(best)]
        self._kept[self._many].remove(np.delete(rivals.slots, kept))
        come = rivals.places[new[~rivals.is_kept(new)] - len(rivals.slots)]
        if batch is not None:
            self._kept[self._many].add(batch.take(pa.array(np.sort(come))), 0)

    def _stamps(
        self, rivals: _Rivals, batch: pa.RecordBatch | None, caused: Integers
    ) -> Integers:  # fmt: skip
        """When each pair came to be: a kept row and its one row that was there, long ago."""
        stamps: Integers = caused[rivals.codes]
        own = None if batch is None else timestamps_in(batch)
        if own is not None:
            new = stamps[len(rivals.slots) :]
            np.maximum(new, own[rivals.places], out=new)
        return stamps

    def _has_null(self, rivals: _Rivals, one_of: Integers) -> Mask:
        """Of which keys the one row has a null where rows are told apart: all their pairs are dead letters."""
        null = np.zeros(len(one_of), np.bool_)
        if self._further:
            keys = distinct(rivals.codes)
            ones = self._kept[self._one].rows(one_of[keys])
            for name in self._further:
                null[keys] |= ones[name].is_null().to_numpy(zero_copy_only=False)
        return null

    def _counting(
        self, rivals: _Rivals, one_of: Integers, batch: pa.RecordBatch | None
    ) -> tuple[Integers, Columns]:
        """The rivals of which the condition is true, and the columns of all that somebody looks at."""
        which = np.arange(len(rivals.codes))
        sides = self._sides(rivals, which, one_of, batch)
        columns = {
            column.name: sides[column.origins[0][0]][column.origins[0][1]]
            for column in self._node.columns
            if column.name in self._looked_at
        }
        if self._node.condition is None:
            return which, columns
        truth = pc.fill_null(
            evaluate(self._node.condition, pa.record_batch(columns)), fill_value=False
        )
        return np.flatnonzero(truth.to_numpy(zero_copy_only=False)), columns

    def _best(self, rivals: _Rivals, which: Integers, columns: Columns) -> Integers:
        """The best of each key; keys of which none counts have none."""
        codes, top = rivals.codes[which], self._node.top
        table = {"code": pa.array(codes), "arrival": pa.array(self._arrivals(rivals)[which])}
        order = [("code", "ascending")]
        for place, (name, down) in enumerate(zip(top.by, top.descending, strict=True)):
            table[f"by{place}"] = columns[name].take(pa.array(which))
            order.append((f"by{place}", "descending" if down else "ascending"))
        order.append(("arrival", "ascending"))
        ranked = pc.sort_indices(pa.table(table), order).to_numpy().astype(np.int64)
        found: Integers = which[ranked[np.flatnonzero(np.diff(codes[ranked], prepend=-1))]]
        return found

    def _arrivals(self, rivals: _Rivals) -> Integers:
        """An order of rivals in which those that came first are first."""
        kept = self._kept[self._many].numbers(rivals.slots)
        new = np.arange(len(rivals.places)) + np.iinfo(np.int64).max // 2
        return np.concatenate([kept, new])

    def _sides(
        self, rivals: _Rivals, which: Integers, one_of: Integers, batch: pa.RecordBatch | None
    ) -> dict[int, Columns]:
        many = self._kept[self._many]
        kept = rivals.is_kept(which)
        columns = many.rows(rivals.slots[which[kept]])
        if batch is not None and not kept.all():
            places = rivals.places[which[~kept] - len(rivals.slots)]
            own = many.side.columns(batch, places)
            # In their order: the kept ones stand first among those that are asked for.
            columns = {name: pa.concat_arrays([columns[name], own[name]]) for name in columns}
        return {
            self._one: self._kept[self._one].rows(one_of[rivals.codes[which]]),
            self._many: columns,
        }

    def _rows(
        self, rivals: _Rivals, which: Integers, one_of: Integers, batch: pa.RecordBatch | None,
        kinds: Integers | None, stamps: Integers | None,
    ) -> Rows:  # fmt: skip
        """Pairs as results; without kinds, new ones."""
        kinds = np.full(len(which), INSERT) if kinds is None else kinds
        order = np.argsort(which, kind="stable")
        which, kinds = which[order], kinds[order]
        sides = self._sides(rivals, which, one_of, batch)
        times = None if stamps is None else stamps[which]
        return joined_rows(self._node, sides, times, len(which), [named_kinds(kinds)])
