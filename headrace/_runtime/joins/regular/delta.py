"""What an epoch's rows of one input change: which kept rows go, and which new ones come.

A row may be new, withdraw an earlier one, or take the place of the one row that is kept of its key. What came and went
within the epoch does neither, in whichever order: rows of several tasks have none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.join_nodes import Keep
from headrace._runtime.joins.kinds import DELETE, INSERT, UPDATE, WITHDRAW, kinds_of
from headrace._runtime.joins.matching import Probe
from headrace._runtime.joins.regular.content import cancelled, content_codes, content_hashes
from headrace._runtime.joins.regular.last_row import last_rows
from headrace._runtime.joins.regular.store import KeptRows
from headrace._runtime.ordering import first_places, places_within, stable_order, starts_of

__all__ = ["Delta", "appended", "changed", "kept_one"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]

_NONE: Integers = np.empty(0, np.int64)


@dataclass(frozen=True)
class Delta:
    """The changes of one input. `kinds` are numbers of changes."""

    batch: pa.RecordBatch
    #: The number of each row's key, in a probe that has all keys of the phase.
    codes: Integers
    #: Kept rows that go: their slots, and of each the row of the batch that made it go.
    gone: Integers
    gone_by: Integers
    gone_kinds: Integers
    #: Rows of the batch that come, in their order.
    come: Integers
    come_kinds: Integers
    #: Hashes of the contents of all rows, where rows are withdrawn by content.
    contents: Hashes | None = None

    def growth(self, keys: int) -> Integers:
        """How many more rows each key has behind it."""
        come = np.bincount(self.codes[self.come], minlength=keys)
        return come - np.bincount(self.codes[self.gone_by], minlength=keys)


def appended(batch: pa.RecordBatch, codes: Integers) -> Delta:
    """All rows are new."""
    rows = np.arange(batch.num_rows)
    return Delta(batch, codes, _NONE, _NONE, _NONE, rows, np.zeros_like(rows))


def changed(
    kept: KeptRows, batch: pa.RecordBatch, probe: Probe, codes: Integers
) -> tuple[Delta, int]:
    """Rows are new or withdraw others; also how many withdraw a row that is not there."""
    kinds = kinds_of(batch)
    contents = content_hashes(kept.side, kept.side.columns(batch))
    minus = (kinds == WITHDRAW) | (kinds == DELETE)
    if not minus.any():
        come = np.arange(batch.num_rows)
        return Delta(batch, codes, _NONE, _NONE, _NONE, come, kinds, contents), 0
    wanted = pa.array(contents[minus])
    candidates = _candidates(kept, probe.part(codes[minus])[0], wanted)
    # Rows that share a hash with one that withdraws; all others just come.
    rows = np.flatnonzero(_is_in(contents, wanted))
    own, stored = content_codes(kept.side, [kept.side.columns(batch, rows), kept.rows(candidates)])
    come, withdrawn = cancelled(own, minus[rows])
    gone, gone_by = _partners(own, withdrawn, stored, candidates)
    stays = np.ones(batch.num_rows, np.bool_)
    stays[np.delete(rows, come)] = False
    gone_by, arriving = rows[gone_by], np.flatnonzero(stays)
    delta = Delta(batch, codes, gone, gone_by, kinds[gone_by], arriving, kinds[arriving], contents)
    return delta, len(withdrawn) - len(gone)


def kept_one(
    keep: Keep, kept: KeptRows, batch: pa.RecordBatch, probe: Probe, codes: Integers, *, changing: bool
) -> Delta:  # fmt: skip
    """One row of each key is kept: new ones take its place or have come in vain."""
    part, local = probe.part(codes)
    slots, counts = kept.members(part)
    has = counts > 0
    old = np.full(len(has), -1)
    old[has] = slots
    minus = np.zeros(batch.num_rows, np.bool_)
    if changing:
        minus = np.isin(kinds_of(batch), (WITHDRAW, DELETE))
    if keep.rule == "top":
        winners = _best(keep, kept, batch, local, old)
    elif keep.rule == "first":
        winners = first_places(local, len(has))
        winners = winners[~has[local[winners]]]
    else:
        winners = last_rows(kept, batch, local, old, minus)
    winners = np.sort(winners)
    ended = minus[winners]
    replaced = has[local[winners]]
    kinds = np.where(replaced, UPDATE, INSERT)
    gone_kinds = np.where(ended, DELETE, WITHDRAW)
    return Delta(
        batch, codes,
        old[local[winners[replaced]]], winners[replaced], gone_kinds[replaced],
        winners[~ended], kinds[~ended],
    )  # fmt: skip


def _candidates(kept: KeptRows, probe: Probe, wanted: pa.Array) -> Integers:
    """The kept rows that may be those withdrawn, the first that came first."""
    slots, _ = kept.members(probe)
    if not len(slots):
        return _NONE
    slots = slots[_is_in(kept.hashes(slots), wanted)]
    return slots[stable_order(kept.numbers(slots))]


def _is_in(hashes: Hashes, wanted: pa.Array) -> Mask:
    found: Mask = pc.is_in(pa.array(hashes), wanted).to_numpy(zero_copy_only=False)
    return found


def _partners(
    own: Integers, withdrawn: Integers, stored: Integers, slots: Integers
) -> tuple[Integers, Integers]:
    """For each row that withdraws another a kept row of the same content; one that finds none is left out."""
    if not len(withdrawn) or not len(slots):
        return _NONE, _NONE
    many = int(max(own.max(), stored.max())) + 1
    order = stable_order(stored)
    sizes = np.bincount(stored, minlength=many)
    codes = own[withdrawn]
    place = places_within(codes, np.bincount(codes, minlength=many))
    found = place < sizes[codes]
    at = starts_of(sizes)[codes[found]] + place[found]
    return slots[order[at]], withdrawn[found]


def _best(
    keep: Keep, kept: KeptRows, batch: pa.RecordBatch, codes: Integers, old: Integers
) -> Integers:
    """The rows of the batch that are better than all others of their key; of equal ones the first that came."""
    known = np.flatnonzero(old >= 0)
    stored, own = kept.rows(old[known]), kept.side.columns(batch)
    codes = np.concatenate([known, codes])
    columns = {
        f"by{place}": pa.concat_arrays([stored[name], own[name]])
        for place, name in enumerate(keep.by)
    }
    table = pa.table({"code": pa.array(codes), **columns})
    order = [("code", "ascending")]
    order += [
        (f"by{place}", "descending" if down else "ascending")
        for place, down in enumerate(keep.descending)
    ]
    ranked = pc.sort_indices(table, [*order]).to_numpy().astype(np.int64)
    firsts = ranked[np.flatnonzero(np.diff(codes[ranked], prepend=-1))]
    winners: Integers = firsts[firsts >= len(known)] - len(known)
    return winners
