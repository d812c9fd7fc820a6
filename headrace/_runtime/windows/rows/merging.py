"""Windows that merge: the rows of a phase and the live sessions of their keys are put together before anything else.

    live          [-----)      [---)
    rows                [----)           [--)      the last one is alone: over, it is late; else it is new
    sessions      [----------------)     [--)

Only sessions made of new rows alone can be over. What grows or joins is a new cell that goes on with the contents, the
counters and the trigger of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.plain_keys import number_keys
from headrace._runtime.state import ShardState
from headrace._runtime.windows.rows.cells import Cell, Cells
from headrace._runtime.windows.rows.contents import Contents
from headrace._runtime.windows.rows.folded import Folded
from headrace._runtime.windows.rows.layout import END, SESSIONS, SPAN, Layout
from headrace._runtime.windows.rows.machine import Machine
from headrace._runtime.windows.rows.placing import Incoming, Placed, late_limit
from headrace._runtime.windows.rows.stored import Stored
from headrace._runtime.windows.sessions.intervals import Spans, merge_intervals
from headrace.keys import extend_hashes, hash_keys

__all__ = ["Sessions"]

Integers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Keys = Sequence[pa.Array]


class Sessions:
    """The live sessions of one shard."""

    def __init__(
        self, layout: Layout, cells: Cells, machine: Machine, contents: Folded | Contents, state: ShardState
    ) -> None:  # fmt: skip
        self._lateness_us = layout.node.lateness_us
        self._cells = cells
        self._machine = machine
        self._contents = contents
        self._state = state

    def place(self, rows: Incoming, watermark: int) -> Placed:
        """The sessions of these rows."""
        limit = late_limit(watermark, self._lateness_us)
        codes, firsts = number_keys(rows.keys)
        keys = [key.take(pa.array(firsts)) for key in rows.keys]
        hashes = rows.hashes[firsts]
        owners, starts, lasts = self._live(hashes, keys, limit)
        ends = rows.batch.column(END).to_numpy()
        of_keys = np.concatenate([codes, owners])
        spans = merge_intervals(
            of_keys, np.concatenate([rows.timestamps, starts]), np.concatenate([ends, lasts + 1])
        )
        of_rows, of_live = spans.of[: rows.size], spans.of[rows.size :]
        parts = np.bincount(of_live, minlength=len(spans.starts))
        over = (parts == 0) & (spans.ends - 1 <= limit)
        wanted = np.bincount(of_rows, minlength=len(parts)).astype(np.bool_) & ~over
        span_keys = of_keys[spans.firsts]
        live = _Live(owners, starts, lasts, of_live)
        found = self._open(spans, np.flatnonzero(wanted), span_keys, hashes, keys, live)
        self._write(hashes, keys, spans, span_keys, ~over)
        late = over[of_rows]
        cells = [found[span] for span in of_rows[~late].tolist()]
        return Placed(cells, np.flatnonzero(~late), np.flatnonzero(late))

    def close(self, cells: Sequence[Cell], watermark: int) -> None:
        """These cells are over: their keys forget them."""
        if not cells:
            return
        keys = self._cells.key_values(cells)
        _, firsts = number_keys(keys)
        keys = [key.take(pa.array(firsts)) for key in keys]
        hashes = hash_keys(keys)
        owners, starts, lasts = self._live(hashes, keys, late_limit(watermark, self._lateness_us))
        self._put(hashes, keys, owners, starts, lasts)

    def _live(self, hashes: Hashes, keys: Keys, limit: int) -> tuple[Integers, Integers, Integers]:
        """Sessions that are not over: whose they are, and their bounds."""
        nothing = np.empty(0, np.int64)
        if not self._state.buckets(SESSIONS):
            return nothing, nothing, nothing
        table = self._state.table(SESSIONS, 0)
        slots = table.find(hashes, keys)
        there = np.flatnonzero(slots >= 0)
        lists = table.arrow("live", slots[there])
        owners = np.repeat(there, np.diff(lists.offsets.to_numpy()))
        starts, lasts = (bound.to_numpy() for bound in lists.flatten().flatten())
        alive = lasts > limit
        return owners[alive], starts[alive], lasts[alive]

    def _open(
        self, spans: Spans, wanted: Integers, span_keys: Integers, hashes: Hashes, keys: Keys,
        live: _Live,
    ) -> dict[int, Cell]:  # fmt: skip
        """The cells of these spans; new ones have begun, or have taken over their parts."""
        if not len(wanted):
            return {}
        parts = self._parts(live, np.isin(live.spans, wanted), hashes, keys)
        whose = span_keys[wanted]
        bounds = (spans.starts[wanted], spans.ends[wanted] - 1)
        found, fresh = self._cells.touch(*_named(hashes, keys, whose, *bounds), *bounds)
        by_span = dict(zip(wanted.tolist(), found, strict=True))
        new = {id(cell) for cell in fresh}
        self._machine.start(c for s, c in by_span.items() if id(c) in new and s not in parts)
        grown = [(c, parts[s]) for s, c in by_span.items() if id(c) in new and s in parts]
        for cell, own in grown:
            self._machine.join(cell, own)
            if isinstance(self._contents, Contents):
                _join_rows(cell, own)
        if isinstance(self._contents, Folded):
            self._contents.join([cell for cell, _ in grown], [own for _, own in grown])
        return by_span

    def _parts(
        self, live: _Live, chosen: npt.NDArray[np.bool_], hashes: Hashes, keys: Keys
    ) -> dict[int, list[Cell]]:
        """The live cells in each span, earliest first."""
        places = np.flatnonzero(chosen)
        if not len(places):
            return {}
        places = places[np.argsort(live.starts[places], kind="stable")]
        starts, lasts = live.starts[places], live.lasts[places]
        named, columns = _named(hashes, keys, live.owners[places], starts, lasts)
        cells = self._cells.find(named, [*columns, pa.array(starts), pa.array(lasts)])
        parts: dict[int, list[Cell]] = {}
        for span, cell in zip(live.spans[places].tolist(), cells, strict=True):
            parts.setdefault(span, []).append(cell)
        return parts

    def _write(
        self, hashes: Hashes, keys: Keys, spans: Spans, span_keys: Integers, alive: npt.NDArray[np.bool_]
    ) -> None:  # fmt: skip
        self._put(hashes, keys, span_keys[alive], spans.starts[alive], spans.ends[alive] - 1)

    def _put(
        self, hashes: Hashes, keys: Keys, owners: Integers, starts: Integers, lasts: Integers
    ) -> None:
        """For each key its live sessions; `owners` rise."""
        order = np.argsort(owners, kind="stable")
        owners, starts, lasts = owners[order], starts[order], lasts[order]
        sizes = np.bincount(owners, minlength=len(hashes))
        table = self._state.table(SESSIONS, 0)
        if (empty := np.flatnonzero(sizes == 0)).size:
            slots = table.find(hashes[empty], [key.take(pa.array(empty)) for key in keys])
            table.remove(slots[slots >= 0])
        some = np.flatnonzero(sizes)
        if not len(some):
            return
        items = pa.StructArray.from_arrays([pa.array(starts), pa.array(lasts)], fields=list(SPAN))
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes[some])]), pa.int32())
        lists = pa.ListArray.from_arrays(offsets, items).cast(pa.list_(SPAN))
        slots, _ = table.upsert(hashes[some], [key.take(pa.array(some)) for key in keys])
        table.put("live", slots, lists)


class _Live:
    """Live sessions: the number of their key, their bounds, the span that they are part of now."""

    def __init__(
        self, owners: Integers, starts: Integers, lasts: Integers, spans: Integers
    ) -> None:
        self.owners = owners
        self.starts = starts
        self.lasts = lasts
        self.spans = spans


def _named(
    hashes: Hashes, keys: Keys, whose: Integers, starts: Integers, lasts: Integers
) -> tuple[Hashes, list[pa.Array]]:
    """The hashes of cells and the columns of their keys."""
    longer = extend_hashes(hashes[whose], [pa.array(starts), pa.array(lasts)])
    return longer, [key.take(pa.array(whose)) for key in keys]


def _join_rows(cell: Cell, parts: Sequence[Cell]) -> None:
    kept = [part for own in parts for part in own.stored.parts if part[2]]
    cell.stored = Stored(cell.slot, kept or [[cell.start, cell.last, 0]])
    cell.fresh = [place for own in parts for place in own.fresh]
