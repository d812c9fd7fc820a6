"""When to look at state that may have expired.

For each key with state that lives for a time one look is planned, at the earliest instant at which something of it
can be over; if it was touched since, the next look is planned then. So touching costs nothing, and what has expired is
found without a search. Planned looks lie in slices of time as timers do, and by key beside them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._runtime.process.layout import Layout
from headrace._runtime.process.timing.timers import Numbered, Timers, timer_tables
from headrace._runtime.process.touched import Touched
from headrace._runtime.state import ShardState, TableSpec, ValueSpec

__all__ = ["Expiry", "Looks", "expiry_tables"]

Integers = npt.NDArray[np.int64]

_AT = "at"


def expiry_tables(layout: Layout) -> tuple[TableSpec, ...]:
    """The tables of looks; none if nothing expires."""
    tables: list[TableSpec] = []
    for domain in ("event", "processing"):
        if layout.expires_in(domain):
            planned = TableSpec(_planned(domain), layout.keys, (ValueSpec(_AT, pa.int64(), 0),))
            tables += [planned, *timer_tables(_looks(domain), layout.keys)]
    return tuple(tables)


class Looks:
    """The planned looks of one time domain in one shard."""

    def __init__(self, domain: str, state: ShardState) -> None:
        self._state = state
        self._planned = _planned(domain)
        self._timers = Timers(_looks(domain), state)

    def due(self, before: int, reached: int) -> list[pa.Array]:
        """The key columns of the keys at which to look now, some more than once; no columns if there is none."""
        found = list(self._timers.due(before, reached)) if reached > before else []
        return [pa.concat_arrays(column) for column in zip(*(k for k, _ in found), strict=True)]

    def plan(self, keys: Numbered, codes: Integers, times: Integers, now: int) -> None:
        """Look at these keys at these times, unless a look at or before them is planned."""
        table = self._state.table(self._planned, 0)
        slots, _ = table.upsert(keys.hashes(codes), keys.columns(codes))
        planned: Any = table.get(_AT, slots)
        earlier = (planned == 0) | (planned > times)
        if earlier.any():
            table.put(_AT, slots[earlier], times[earlier])
            self._timers.put(keys, codes[earlier], times[earlier], now)

    def unplan(self, keys: Numbered, codes: Integers) -> None:
        """These keys were looked at."""
        table = self._state.table(self._planned, 0)
        slots = table.find(keys.hashes(codes), keys.columns(codes))
        table.remove(slots[slots >= 0])

    def forget(self, reached: int) -> None:
        """Drop what time has passed."""
        self._timers.forget(reached)


class Expiry:
    """The looks of one time domain in one shard. A store tells what it has touched, and looks when it is told to."""

    def __init__(
        self, domain: str, state: ShardState, touched: Touched, stores: Iterable[Any]
    ) -> None:
        self._domain = domain
        self._touched = touched
        self._stores = [store for store in stores if hasattr(store, "expire")]
        self._looks = Looks(domain, state)
        self._due: list[int] = []

    def move(self, before: int, reached: int) -> None:
        """Time moves: the keys at which to look are touched."""
        keys = self._looks.due(before, reached)
        if keys:
            self._due += np.unique(self._touched.codes_by_hash(keys)).tolist()

    def look(self, now: int) -> None:
        """Take away what has expired of these keys, which are loaded, and plan the next looks."""
        due, self._due = self._due, []
        if due:
            self._looks.unplan(self._touched, np.array(due, np.int64))
            self._plan_all(due, now)

    def write(self, now: int) -> None:
        """Plan looks at what was touched in the epoch; what is over already goes at once."""
        codes = sorted({code for store in self._stores for code in store.aged(self._domain)})
        if codes:
            self._plan_all(codes, now, "renew")
        self._looks.forget(now)

    def _plan_all(self, codes: list[int], now: int, verb: str = "expire") -> None:
        # Only stores with many pieces for a key have a cheaper way for what was touched just now.
        asks = [getattr(store, verb, store.expire) for store in self._stores]
        nexts = [ask(self._domain, codes, now) for ask in asks]
        times = np.array(
            [min((t for t in found if t), default=0) for found in zip(*nexts, strict=True)],
            np.int64,
        )
        kept = np.array(codes, np.int64)[times != 0]
        if len(kept):
            self._looks.plan(self._touched, kept, times[times != 0], now)


def _planned(domain: str) -> str:
    return f"planned {domain}"


def _looks(domain: str) -> str:
    return f"looks {domain}"
