"""What the rows of one phase change in a join, of all inputs together: first all that goes, then all that comes.

Every input goes from what it showed before to what it shows after, by way of what is common to both. What it loses meets
the inputs before it as they are between, and those behind it as they were; what it gains meets those before it as they
are after, and those behind it as they are between. Added up that is the difference, and nothing comes that goes again.

    1   what left loses    x   right before         3   what left gains    x   right between
    2   left between       x   what right loses     4   left after         x   what right gains

What stands in for rows takes part as if it were one. It is there for all rows of a key or for none, unless partners run
out: then each row of the other input has its own number of partners, and sees it where it depends on that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.join_nodes import RegularJoin
from headrace._runtime.joins.kinds import DELETE, INSERT
from headrace._runtime.joins.matching import Probe
from headrace._runtime.joins.regular.delta import Delta
from headrace._runtime.joins.regular.product import NOTHING, Shown, combine, roles_of, shows_rows
from headrace._runtime.joins.regular.store import KeptRows
from headrace._runtime.joins.results import timestamps_in
from headrace._runtime.joins.sides import Columns
from headrace._runtime.ordering import starts_of

__all__ = ["Change", "Phase"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_NONE: Integers = np.empty(0, np.int64)


class _Stage(Enum):
    BEFORE = 0
    BETWEEN = 1
    AFTER = 2


@dataclass(frozen=True)
class Change:
    """Results that come or go: rows of one input, or what stands in for them, beside slots of the others."""

    side: int
    columns: Columns | None
    met: Mapping[int, Integers]
    stamps: Integers | None
    kinds: Integers


@dataclass(frozen=True)
class _Look:
    """What other inputs have for some keys."""

    side: int
    #: Of the rows that ask: the numbers of their keys in the probe, and among the keys that were looked up.
    codes: Integers
    local: Integers
    #: By input: slots one key behind the other, and how many each key has.
    slots: Mapping[int, Integers]
    counts: Mapping[int, Integers]


class Phase:
    """The changes of one phase. `probe` has the keys of all its rows, `deltas` what each input with rows changes."""

    def __init__(
        self, node: RegularJoin, kept: Sequence[KeptRows], probe: Probe, deltas: Mapping[int, Delta]
    ) -> None:
        self._node = node
        self._roles = roles_of(node.how, len(kept))
        self._kept = kept
        self._probe = probe
        self._deltas = deltas
        self._stages = [_Stage.BEFORE] * len(kept)
        keys = len(probe.hashes)
        standing = [side for side, role in enumerate(self._roles) if role != "rows"]
        # Of inputs that something may stand in for: the rows of each key before, and how many more there are after.
        self._before = {side: kept[side].count(probe) for side in standing}
        self._growth = {
            side: deltas[side].growth(keys) if side in deltas else np.zeros(keys, np.int64)
            for side in standing
        }

    def lose(self, side: int) -> Iterator[Change]:
        """What the results lose because an input loses it, whose rows are then forgotten."""
        delta, kept = self._deltas[side], self._kept[side]
        if len(delta.gone) and shows_rows(self._roles[side]):
            look = self._look(side, delta.codes[delta.gone_by])
            partners = kept.partners(delta.gone) if kept.counts_partners else None
            stamps = timestamps_in(delta.batch)
            for rows, met in combine(self._shown(look, partners), len(delta.gone)):
                own, by = kept.rows(delta.gone[rows]), delta.gone_by[rows]
                yield Change(side, own, met, _at(stamps, by), delta.gone_kinds[rows])
        yield from self._standing_in(side, DELETE)
        kept.remove(delta.gone)
        self._stages[side] = _Stage.BETWEEN

    def gain(self, side: int, clock: int) -> Iterator[Change]:
        """What the results gain because an input gains it, whose rows are then kept."""
        delta, kept = self._deltas[side], self._kept[side]
        look = self._look(side, delta.codes[delta.come])
        if shows_rows(self._roles[side]):
            stamps = timestamps_in(delta.batch)
            for rows, met in combine(self._shown(look), len(delta.come)):
                by = delta.come[rows]
                own = kept.side.columns(delta.batch, by)
                yield Change(side, own, met, _at(stamps, by), delta.come_kinds[rows])
        yield from self._standing_in(side, INSERT)
        self._keep(look, clock)
        self._spend(look)
        self._stages[side] = _Stage.AFTER

    def settle(self) -> None:
        """Let rows know with how many they are shown from now on."""
        for side, kept in enumerate(self._kept):
            for other in self._deltas if kept.counts_partners else ():
                if other != side:
                    growth = self._growth[other]
                    keys = np.flatnonzero(growth)
                    slots, counts = kept.members(self._probe.part(keys)[0])
                    kept.meet(slots, np.repeat(growth[keys], counts))

    def _look(self, side: int, codes: Integers) -> _Look:
        """Look up what the others have for the keys of rows."""
        part, local = self._probe.part(codes)
        found = {
            other: kept.members(part)
            for other, kept in enumerate(self._kept)
            if other != side and shows_rows(self._roles[other])
        }
        return _Look(
            side,
            codes,
            local,
            {other: slots for other, (slots, _) in found.items()},
            {other: counts for other, (_, counts) in found.items()},
        )

    def _shown(self, look: _Look, partners: Integers | None = None) -> dict[int, Shown]:
        """What others show to the rows that ask. `partners`: how many each had; or all rows that there were."""
        shown = {}
        for other, role in enumerate(self._roles):
            if other == look.side:
                continue
            stands = None
            if role != "rows":
                had = self._before[other][look.codes] if partners is None else partners
                stands = self._stands(other, had, self._growth[other][look.codes])
            if shows_rows(role):
                counts = look.counts[other]
                starts = starts_of(counts)[look.local]
                shown[other] = Shown(look.slots[other], starts, counts[look.local], stands)
            else:
                none = np.zeros(len(look.codes), np.int64)
                shown[other] = Shown(_NONE, none, none, stands)
        return shown

    def _stands(self, side: int, had: Integers, growth: Integers) -> Mask:
        """Whether something stands in for an input at this stage, for rows that had so many partners there."""
        before: Mask = had == 0
        after: Mask = had + growth == 0
        if self._roles[side] == "exists":
            before, after = ~before, ~after
        stage = self._stages[side]
        if stage is _Stage.BETWEEN:
            return before & after
        return before if stage is _Stage.BEFORE else after

    def _standing_in(self, side: int, kind: int) -> Iterator[Change]:
        """What stands in for rows of an input comes or goes."""
        if self._roles[side] == "rows":
            return
        rises = (kind == DELETE) != (self._roles[side] == "exists")
        keys = self._turning(side, rises=rises)
        if not len(keys):
            return
        latest = self._latest(side)
        for rows, met in combine(self._shown(self._look(side, keys)), len(keys)):
            turns = self._turns(side, keys[rows], met, rises=rises)
            if turns.any():
                at, kinds = keys[rows[turns]], np.full(int(turns.sum()), kind)
                beside = {other: slots[turns] for other, slots in met.items()}
                yield Change(side, None, beside, _at(latest, at), kinds)

    def _turning(self, side: int, *, rises: bool) -> Integers:
        """The keys of which an input gets its first row, or loses its last; or may have, where rows count by themselves."""
        growth, before = self._growth[side], self._before[side]
        if any(kept.counts_partners for kept in self._others(side)):
            return np.flatnonzero(growth > 0 if rises else growth < 0)
        after = before + growth
        return np.flatnonzero((before == 0) & (after > 0) if rises else (before > 0) & (after == 0))

    def _turns(
        self, side: int, keys: Integers, met: Mapping[int, Integers], *, rises: bool
    ) -> Mask:
        """Which combinations show or lose what stands in for an input. Nothing beside nothing is no result."""
        turns: Mask = np.any([slots != NOTHING for slots in met.values()], axis=0)
        for other, slots in met.items():
            if self._kept[other].counts_partners:
                there = np.flatnonzero(turns)
                had = self._kept[other].partners(slots[there])
                turns[there] = had == (0 if rises else -self._growth[side][keys[there]])
        return turns

    def _latest(self, side: int) -> Integers | None:
        """The last timestamp of each key's rows that come or make others go; not of those that came in vain."""
        delta = self._deltas[side]
        stamps = timestamps_in(delta.batch)
        if stamps is None:
            return None
        latest = np.full(len(self._probe.hashes), np.iinfo(np.int64).min)
        rows = np.concatenate([delta.come, delta.gone_by])
        np.maximum.at(latest, delta.codes[rows], stamps[rows])
        return latest

    def _keep(self, look: _Look, clock: int) -> None:
        """Keep the rows that come, but for those that have met all that they can ever meet."""
        delta, kept = self._deltas[look.side], self._kept[look.side]
        come, partners = delta.come, None
        if self._node.spends(look.side):
            come = come[~self._met(look)]
        if kept.counts_partners:
            (other,) = (number for number in range(len(self._kept)) if number != look.side)
            partners = self._before[other][delta.codes[come]]
        everything = len(come) == delta.batch.num_rows
        batch = delta.batch if everything else delta.batch.take(pa.array(come))
        contents = None if delta.contents is None else delta.contents[come]
        kept.add(batch, clock, contents=contents, partners=partners)

    def _met(self, look: _Look) -> Mask:
        """Whether every other input has a row for those that ask."""
        met = np.ones(len(look.codes), np.bool_)
        for other in range(len(self._kept)):
            if other in look.counts:
                met &= look.counts[other][look.local] > 0
            elif other != look.side:
                met &= (self._before[other] + self._growth[other])[look.codes] > 0
        return met

    def _spend(self, look: _Look) -> None:
        """Forget rows of other inputs that waited for these and for nothing else."""
        for spent, slots in look.slots.items():
            if self._node.spends(spent) and len(slots):
                full = np.ones(len(look.counts[spent]), np.bool_)
                for other, counts in look.counts.items():
                    if other != spent:
                        full &= counts > 0
                self._kept[spent].remove(slots[np.repeat(full, look.counts[spent])])

    def _others(self, side: int) -> Iterator[KeptRows]:
        return (kept for other, kept in enumerate(self._kept) if other != side)


def _at(stamps: Integers | None, places: Integers) -> Integers | None:
    return None if stamps is None else stamps[places]
