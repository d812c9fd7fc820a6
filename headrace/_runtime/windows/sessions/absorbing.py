"""The runs of a phase and the sessions of their keys become sessions, all at once.

    sessions   [----)         [-----)        [--)
    runs         [---)  [------)                        [---)      [--)
    spans      [------)[-----------)         [--)       [---)      late

A span with a session in it is that session, grown; if it bridges several, they become one. A span of runs alone is
a new session, unless it is over: then its rows are late. Nothing is judged before all runs are in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace._runtime.arrivals import Arrivals
from headrace._runtime.plain_keys import number_keys
from headrace._runtime.windows.sessions.combining import (
    Parts,
    combine,
    join_parts,
    merge_parts,
    take_parts,
)
from headrace._runtime.windows.sessions.due import Due
from headrace._runtime.windows.sessions.intervals import (
    Integers,
    Mask,
    Spans,
    distinct,
    merge_intervals,
    openings,
)
from headrace._runtime.windows.sessions.layout import (
    AT,
    END,
    FIRED,
    LONGEST_US,
    START,
    Layout,
    last_over,
)
from headrace._runtime.windows.sessions.runs import Runs
from headrace._runtime.windows.sessions.store import Held, SessionTable
from headrace.watermarks import END_OF_TIME

__all__ = ["Absorbed", "Absorber"]


@dataclass(frozen=True, slots=True)
class Absorbed:
    """What became of runs."""

    #: Runs that are late.
    late: Mask
    #: Slots of sessions that changed or went into another; of those that changed behind their end.
    changed: Integers
    waiting: Integers


class Absorber:
    """Merges runs into the sessions of a shard."""

    def __init__(
        self, layout: Layout, lateness_us: int, sessions: SessionTable, due: Due, arrivals: Arrivals
    ) -> None:
        self._layout = layout
        self._lateness_us = min(lateness_us, LONGEST_US)
        self._sessions = sessions
        self._due = due
        self._arrivals = arrivals

    def absorb(self, runs: Runs, watermark: int, step: int) -> Absorbed:
        """Merge the runs of one phase. `step` is how far time moves in this epoch."""
        found = self._sessions.find_heads(runs.hashes, runs.keys)
        base = int(found.max()) + 1
        held = self._sessions.held_by(distinct(found[found >= 0]))
        keys = np.concatenate([_key_numbers(found, runs, base), held.heads[held.owners]])
        spans = self._spans(keys, runs, held)
        of_runs, of_held = spans.of[: len(runs)], spans.of[len(runs) :]
        targets = np.full(len(spans.starts), -1, np.int64)
        # Of several sessions the first stays: written backwards, it is the last to be written.
        targets[of_held[::-1]] = held.slots[::-1]
        bridged = np.flatnonzero(targets[of_held] != held.slots)
        over = (targets < 0) & (spans.ends <= last_over(watermark, self._lateness_us))
        heads = keys[spans.firsts]
        fresh = np.flatnonzero((targets < 0) & ~over)
        if fresh.size:
            targets[fresh], heads[fresh] = self._open(fresh, spans, heads, base, runs, held)
        late = over[of_runs]
        self._merge(runs, ~late, of_runs, held.slots[bridged], of_held[bridged], targets)
        changed = np.zeros(len(targets), np.bool_)
        changed[of_runs] = True
        waiting = self._grow(
            np.flatnonzero(changed & ~over), spans, targets, heads, watermark, step
        )
        return Absorbed(late, np.append(targets[changed & ~over], held.slots[bridged]), waiting)

    def _spans(self, keys: Integers, runs: Runs, held: Held) -> Spans:
        rows = self._sessions.rows
        starts = np.concatenate([runs.starts, rows.get(START, held.slots)])
        ends = np.concatenate([runs.ends, rows.get(END, held.slots)])
        return merge_intervals(keys, starts, ends)

    def _open(
        self, fresh: Integers, spans: Spans, keys: Integers, base: int, runs: Runs, held: Held
    ) -> tuple[Integers, Integers]:
        # All in a fresh span is runs, so the first of it is one.
        rows = spans.firsts[fresh]
        places = pa.array(rows)
        own = [key.take(places) for key in runs.keys]
        owners = keys[fresh]
        return self._sessions.open(owners, owners < base, runs.hashes[rows], own, held)

    def _merge(
        self, runs: Runs, kept: Mask, of_runs: Integers, bridged: Integers, of_bridged: Integers,
        targets: Integers,
    ) -> None:  # fmt: skip
        """Fold runs, and sessions that go into another, into the sessions that stay."""
        folds, table = self._layout.folds, self._sessions.rows
        parts, groups = self._arrived(runs, kept), of_runs
        if not kept.all():
            parts, groups = take_parts(parts, np.flatnonzero(kept)), of_runs[kept]
        if bridged.size:
            parts = join_parts(folds, [fold.export(table, bridged) for fold in folds], parts)
            groups = np.concatenate([of_bridged, groups])
            np.maximum.at(table.values(FIRED), targets[of_bridged], table.get(FIRED, bridged))
        several = np.bincount(groups, minlength=len(targets))[groups] > 1
        if several.any():
            rows = np.flatnonzero(several)
            whole = combine(folds, take_parts(parts, rows), groups[rows])
            merge_parts(folds, table, targets[whole.groups], whole.parts(folds))
            rows = np.flatnonzero(~several)
            parts, groups = take_parts(parts, rows), groups[rows]
        if len(groups):
            merge_parts(folds, table, targets[groups], parts)
        table.remove(bridged)

    def _arrived(self, runs: Runs, kept: Mask) -> Parts:
        if not self._layout.keeps_arrival:
            return runs.parts
        numbers = np.zeros(len(runs), np.int64)
        for batch in distinct(runs.batches[kept]):
            rows = np.flatnonzero(kept & (runs.batches == batch))
            numbers[rows] = self._arrivals.count(runs.hashes[rows])
        return runs.arrived(self._layout, numbers)

    def _grow(
        self, changed: Integers, spans: Spans, targets: Integers, heads: Integers,
        watermark: int, step: int,
    ) -> Integers:  # fmt: skip
        """Write the bounds of sessions that changed, and look at their keys in time; those that wait."""
        rows, slots, ends = self._sessions.rows, targets[changed], spans.ends[changed]
        rows.values(START)[slots] = spans.starts[changed]
        rows.values(END)[slots] = ends
        rows.touch(slots)
        now = min(watermark + 1, END_OF_TIME)
        at = np.where(ends > now, ends, ends + self._lateness_us)
        sooner = np.flatnonzero(at < rows.get(AT, heads[changed]))
        order = sooner[np.lexsort((at[sooner], heads[changed][sooner]))]
        order = order[openings(heads[changed][order])]
        self._due.add(heads[changed][order], at[order], now, step)
        return slots[ends <= now]


def _key_numbers(found: Integers, runs: Runs, base: int) -> Integers:
    """For each run a number of its key: the slot of the head, from `base` on if there is none."""
    new = np.flatnonzero(found < 0)
    if not new.size:
        return found
    places = pa.array(new)
    numbers = found.copy()
    numbers[new] = number_keys([key.take(places) for key in runs.keys])[0] + base
    return numbers
